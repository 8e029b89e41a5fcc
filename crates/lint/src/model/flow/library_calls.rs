//! The return values of library functions and methods.

use super::{Flow, is_loss_function, is_text_none};
use crate::model::path::Path;
use crate::model::value::{Device, Size, Value, ValueKind};
use crate::model::{activation, known_apis, sizes};
use ruff_python_ast::{Expr, ExprCall};

impl<'a> Flow<'a> {
    /// Returns the result of a library function.
    pub(super) fn library_call_result(
        &mut self,
        call: &'a ExprCall,
        path: &Path<'a>,
        given: &[Value],
    ) -> Value {
        let grad = !self.context.no_grad;
        let any_graph = given.iter().any(|value| value.graph);
        let predicted = given.iter().any(|value| value.predicted || value.graph);
        if let Some(kind) = known_apis::returned_by(path) {
            return self.constructed_value(kind, call, path, given);
        }
        let made = sizes::made_by(path, call, |expression| self.parse_shape(expression));
        if known_apis::makes_a_leaf(path) {
            let gpu =
                sizes::keyword(call, "device").is_some_and(|device| self.is_gpu_device(device));
            let leaf = Value {
                device: if gpu { Device::Gpu } else { Device::Unknown },
                ..Value::of_kind(ValueKind::Tensor)
            };
            return match path.last() {
                "tensor" | "as_tensor" | "from_numpy" => self.copied_array(leaf, call, given),
                _ => self.with_array_size(leaf, made),
            };
        }
        match path.segments() {
            ["torch", "nn", "functional", name] => {
                let shape = self.shape_after_functional(name, call, given);
                let unreduced = sizes::keyword(call, "reduction").is_some_and(is_text_none);
                let is_loss = is_loss_function(name);
                let reduced = is_loss && !unreduced;
                Value {
                    graph: grad && (any_graph || (is_loss && !self.all_without_graph(given))),
                    predicted: predicted || is_loss,
                    unreduced: unreduced || (!reduced && given.iter().any(|v| v.unreduced)),
                    shape,
                    ..Value::of_kind(ValueKind::Tensor)
                }
            }
            ["torch", name] if known_apis::ends_the_graph(name) => Value {
                predicted,
                ..Value::of_kind(ValueKind::Tensor)
            },
            ["torch", name]
                if any_graph && known_apis::returns_values_and_indices(name) && given.len() > 1 =>
            {
                let row = vec![
                    ("", Value::tensor(grad)),
                    ("", Value::of_kind(ValueKind::Tensor)),
                ];
                self.push_row(ValueKind::Tuple, row)
            }
            ["torch", name] => Value {
                graph: grad
                    && (any_graph || given.iter().any(|value| value.is(ValueKind::Parameter))),
                predicted,
                unreduced: given.iter().any(|value| value.unreduced)
                    && (!known_apis::reduces(name) || activation::keeps_rows(call, 1)),
                ..Value::of_kind(ValueKind::Tensor)
            },
            ["torch", "utils", "checkpoint", "checkpoint"] => Value::tensor(grad),
            ["tensorflow", ..] if made.is_some() => {
                self.with_array_size(Value::of_kind(ValueKind::Tensor), made)
            }
            ["tensorflow", ..] => Value {
                predicted,
                unreduced: given.iter().any(|value| value.unreduced)
                    && !known_apis::reduces(path.last()),
                ..Value::of_kind(ValueKind::Tensor)
            },
            ["numpy", "array" | "asarray"] => {
                let array = Value {
                    predicted,
                    ..Value::of_kind(ValueKind::Array)
                };
                self.copied_array(array, call, given)
            }
            ["numpy", ..] => {
                let array = Value {
                    predicted,
                    ..Value::of_kind(ValueKind::Array)
                };
                self.with_array_size(array, made)
            }
            ["pandas", ..] => Value::of_kind(ValueKind::Array),
            ["copy", "deepcopy" | "copy"] => given.first().copied().unwrap_or(Value::UNKNOWN),
            ["tqdm", ..] | ["itertools", "islice"] => {
                given.first().copied().unwrap_or(Value::UNKNOWN)
            }
            _ => Value::UNKNOWN,
        }
    }

    /// Returns the shape of the result of a `torch.nn.functional` function.
    pub(super) fn shape_after_functional(
        &mut self,
        name: &str,
        call: &'a ExprCall,
        given: &[Value],
    ) -> u32 {
        let Some(first) = given.first().filter(|first| first.shape != 0) else {
            return 0;
        };
        match name {
            "relu" | "gelu" | "tanh" | "sigmoid" | "dropout" | "normalize" | "softmax" => {
                first.shape
            }
            "max_pool2d" | "avg_pool2d" => {
                let number = |place: usize, name: &str, otherwise: Option<f64>| {
                    let argument =
                        sizes::keyword(call, name).or_else(|| call.arguments.args.get(place));
                    argument.map_or(otherwise, |argument| self.peek(argument).as_number())
                };
                let kernel = number(1, "kernel_size", None);
                let (Some(kernel), Some(padding)) = (kernel, number(3, "padding", Some(0.0)))
                else {
                    return 0;
                };
                let Some(stride) = number(2, "stride", Some(kernel)) else {
                    return 0;
                };
                let Some([rows, channels, height, width]) = self.shape(*first) else {
                    return 0;
                };
                let along = |length: &f64| {
                    sizes::window_output_length(*length, kernel, stride, padding, 1.0)
                };
                let lengths = vec![*rows, *channels, along(height), along(width)];
                self.intern_shape(lengths)
            }
            _ => 0,
        }
    }

    /// Returns an array or tensor created from another.
    pub(super) fn copied_array(&self, made: Value, call: &'a ExprCall, given: &[Value]) -> Value {
        let Some(from) = given.first() else {
            return made;
        };
        let whole = Value {
            size: match from.size {
                Size::Number(_) => Size::Unknown,
                size => size,
            },
            shape: from.shape,
            ..made
        };
        match sizes::keyword(call, "dtype") {
            Some(dtype) => self.with_dtype(whole, sizes::element(dtype)),
            None => whole,
        }
    }

    pub(super) fn constructed_value(
        &mut self,
        kind: ValueKind,
        call: &'a ExprCall,
        path: &Path<'a>,
        given: &[Value],
    ) -> Value {
        let first = given.first().copied().unwrap_or(Value::UNKNOWN);
        match kind {
            ValueKind::Criterion => Value {
                unreduced: sizes::keyword(call, "reduction").is_some_and(is_text_none),
                activation: activation::of_criterion(path, call),
                ..Value::of_kind(kind)
            },
            ValueKind::Model => {
                let wraps = path.is_any(&["torch.nn.DataParallel", "torch.compile"])
                    || path.is_in("torch.nn.parallel");
                Value {
                    activation: self.activation_of_model(path, call, given),
                    class: first.class.filter(|_| wraps),
                    ..Value::of_kind(kind)
                }
            }
            ValueKind::Dataset if path.is_in("torch.utils.data") => Value {
                size: first.size,
                device: first.device,
                shape: if path.last() == "TensorDataset" {
                    first.shape
                } else {
                    0
                },
                ..Value::of_kind(kind)
            },
            ValueKind::Dataset if path.last() == "from_tensor_slices" => {
                let whole = match first.kind {
                    ValueKind::Tuple(row) => self.rows[row as usize]
                        .first()
                        .map_or(first, |(_, part)| *part),
                    _ => first,
                };
                Value {
                    size: whole.size,
                    shape: self.shape(whole).map_or(0, |_| whole.shape),
                    ..Value::of_kind(kind)
                }
            }
            ValueKind::Loader => {
                let size =
                    sizes::keyword(call, "batch_size").or_else(|| call.arguments.args.get(1));
                let size = size.map_or(Value::number(1.0), |size| self.peek(size));
                let turns = first
                    .rows()
                    .zip(size.as_number())
                    .map(|(rows, size)| (rows / size.max(1.0)).ceil());
                Value {
                    device: first.device,
                    // A loader's length is its number of iterations.
                    size: match (first.size, turns) {
                        (Size::Bytes { bytes, .. }, Some(rows)) => Size::Bytes { bytes, rows },
                        _ => Size::Unknown,
                    },
                    shape: self.batch_shape(first, size),
                    ..Value::of_kind(kind)
                }
            }
            ValueKind::List if path.is("collections.deque") => {
                let bound = sizes::keyword(call, "maxlen").or_else(|| call.arguments.args.get(1));
                let is_bounded = bound.is_some_and(|bound| !bound.is_none_literal_expr());
                Value::of_kind(if is_bounded {
                    ValueKind::Bounded
                } else {
                    ValueKind::List
                })
            }
            _ => Value::of_kind(kind),
        }
    }

    /// Returns the shape of a batch with this many rows of a dataset.
    pub(super) fn batch_shape(&mut self, dataset: Value, size: Value) -> u32 {
        let (Some(lengths), Some(size)) = (self.shape(dataset), size.as_number()) else {
            return 0;
        };
        let mut lengths = lengths.to_vec();
        if let Some(rows) = lengths.first_mut() {
            *rows = rows.min(size);
        }
        self.intern_shape(lengths)
    }

    /// Returns the result of a `tf.data.Dataset` method.
    pub(super) fn dataset_method_result(
        &mut self,
        dataset: Value,
        method: &str,
        call: &'a ExprCall,
        given: &[Value],
    ) -> Value {
        let plain = Value::of_kind(ValueKind::Dataset);
        match method {
            "shuffle" | "repeat" | "cache" | "prefetch" | "with_options" => Value {
                size: dataset.size,
                shape: dataset.shape,
                ..plain
            },
            "batch" => {
                let size = sizes::keyword(call, "batch_size").map(|size| self.peek(size));
                let size = size.or(given.first().copied()).unwrap_or(Value::UNKNOWN);
                Value {
                    shape: self.batch_shape(dataset, size),
                    ..plain
                }
            }
            "map"
            | "filter"
            | "padded_batch"
            | "unbatch"
            | "interleave"
            | "flat_map"
            | "take"
            | "skip"
            | "shard"
            | "apply"
            | "concatenate"
            | "enumerate"
            | "window"
            | "map_with_legacy_function"
            | "ragged_batch"
            | "zip"
            | "ignore_errors"
            | "rebatch"
            | "snapshot" => plain,
            _ => Value::UNKNOWN,
        }
    }

    pub(super) fn builtin_result(&mut self, call: &'a ExprCall, given: &[Value]) -> Value {
        let Expr::Name(name) = &*call.func else {
            return Value::UNKNOWN;
        };
        let first = given.first().copied().unwrap_or(Value::UNKNOWN);
        match name.id.as_str() {
            "int" if first.as_number().is_some() => first
                .as_number()
                .map_or(Value::UNKNOWN, |number| Value::number(number.trunc())),
            "float" | "int" | "round" | "abs" if !first.graph || name.id != "abs" => Value {
                predicted: first.predicted,
                ..Value::of_kind(ValueKind::Number)
            },
            "abs" => first,
            "len" => match first.rows() {
                Some(rows) => Value::number(rows),
                None => Value::of_kind(ValueKind::Number),
            },
            "sum" | "max" | "min" => Value {
                kind: if first.graph {
                    ValueKind::Tensor
                } else {
                    ValueKind::Unknown
                },
                graph: first.graph,
                predicted: first.predicted,
                ..Value::UNKNOWN
            },
            "list" | "sorted" | "set" => Value {
                graph: first.graph,
                ..Value::of_kind(ValueKind::List)
            },
            "tuple" | "reversed" | "iter" | "enumerate" | "tqdm" => first,
            "dict" | "defaultdict" => Value::of_kind(ValueKind::Dict),
            "str" | "repr" | "format" => Value::of_kind(ValueKind::Text),
            _ => Value::UNKNOWN,
        }
    }
}
