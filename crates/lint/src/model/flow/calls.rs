//! Evaluates calls: the callee, the arguments, the result and the side effects.

use super::{Flow, adds_to_receiver, says_no_grad, turns_grad_off};
use crate::model::facts::Call;
use crate::model::path::Path;
use crate::model::value::{Device, Value, ValueKind};
use crate::model::{activation, known_apis, sizes};
use ruff_python_ast::{Expr, ExprCall};

impl<'a> Flow<'a> {
    pub(super) fn eval_call(&mut self, call: &'a ExprCall) -> Value {
        let path = self.imports.resolve(&call.func);
        let (receiver, callee) = match &*call.func {
            Expr::Attribute(attribute) if path.is_none() => {
                let receiver = self.eval(&attribute.value);
                (
                    Some(receiver),
                    self.resolve_name(&call.func).unwrap_or(Value::UNKNOWN),
                )
            }
            func if path.is_none() => (None, self.eval(func)),
            _ => (None, Value::UNKNOWN),
        };
        let first = self.values.len();
        // Evaluating an argument may record other calls, so the values are collected first.
        let mut given: Vec<Value> = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments.args {
            given.push(self.eval(argument));
        }
        for keyword in &call.arguments.keywords {
            given.push(self.eval(&keyword.value));
        }
        self.last_local_function = None;
        let result = self
            .call_result(call, path, receiver, callee, &given)
            .with_site(call.range_start);
        let result = self.with_activation(call, path, receiver, callee, &given, result);
        let own = self.last_local_function.take();
        if self.recording {
            let first = self.values.len().max(first) as u32;
            self.values.extend_from_slice(&given);
            let outlived_loop = match &*call.func {
                Expr::Attribute(attribute)
                    if own.is_some() || adds_to_receiver(attribute.attr.as_str()) =>
                {
                    self.find_outlived_loop(&attribute.value)
                }
                function if own.is_some() => self.find_outlived_loop(function),
                _ => None,
            };
            self.calls.push(Call {
                expr: call,
                path,
                receiver,
                callee,
                local_function: own,
                result,
                outlived_loop,
                context: self.context,
                arguments: (first, self.values.len() as u32),
            });
        }
        self.apply_side_effects(call, path, receiver, &given);
        result
    }

    pub(super) fn call_result(
        &mut self,
        call: &'a ExprCall,
        path: Option<Path<'a>>,
        receiver: Option<Value>,
        callee: Value,
        given: &[Value],
    ) -> Value {
        let grad = !self.context.no_grad;
        let any_graph = given.iter().any(|value| value.graph);
        let any_predicted = given.iter().any(|value| value.predicted || value.graph);
        if let Some(path) = path {
            return self.library_call_result(call, &path, given);
        }
        match callee.kind {
            ValueKind::Function(id) => {
                return self.call_local_function(id, call, given, receiver.is_some());
            }
            ValueKind::Class(id) => {
                if let Some(init) = self.classes[id as usize].methods.get("__init__").copied() {
                    self.record_caller(init.0, call, given, true);
                } else {
                    self.join_field_arguments(id, call, given);
                }
                return self.instance_of(id);
            }
            ValueKind::Model => return self.call_model(callee, call, given),
            ValueKind::Instance(id) => {
                if let Some(method) = self.classes[id as usize].methods.get("__call__").copied() {
                    return self.call_local_function(method.0, call, given, true);
                }
            }
            ValueKind::Criterion => {
                let own = self.method_run_by_call(callee).map(|id| {
                    self.learn_arguments(id.0, call, given, true);
                    self.frames[id.0 as usize].returns
                });
                let known_plain = !given.is_empty()
                    && given.iter().all(|value| {
                        !value.graph
                            && matches!(
                                value.kind,
                                ValueKind::Tensor | ValueKind::Array | ValueKind::Number
                            )
                    });
                return Value {
                    predicted: true,
                    unreduced: callee.unreduced || own.is_some_and(|own| own.unreduced),
                    elementwise: own.is_some_and(|own| own.elementwise),
                    ..Value::tensor(grad && !known_plain)
                };
            }
            _ => {}
        }
        let Some(receiver) = receiver else {
            return self.builtin_result(call, given);
        };
        let method = match &*call.func {
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => "",
        };
        match receiver.kind {
            ValueKind::Instance(class) => {
                if let Some(id) = self.classes[class as usize].methods.get(method).copied() {
                    return self.call_local_function(id.0, call, given, true);
                }
            }
            ValueKind::Model => match method {
                "forward" | "__call__" => return self.call_model(receiver, call, given),
                "to" | "cuda" | "cpu" | "train" | "eval" | "half" | "float" | "double"
                | "bfloat16" | "requires_grad_" | "apply" | "compile" => return receiver,
                "parameters" => return Value::of_kind(ValueKind::Parameters),
                // The optimizers of a Lightning module with manual optimization.
                "optimizers" if given.is_empty() => return Value::of_kind(ValueKind::Optimizer),
                "compute_loss" | "get_loss" | "loss" | "calc_loss" => return Value::tensor(grad),
                _ => return Value::UNKNOWN,
            },
            ValueKind::Engine if method == "prepare" => {
                if let [one] = given {
                    return *one;
                }
                let row = given.iter().map(|value| ("", *value)).collect();
                return self.push_row(ValueKind::Tuple, row);
            }
            ValueKind::Scaler if method == "scale" => {
                return given.first().copied().unwrap_or(Value::UNKNOWN);
            }
            ValueKind::Parameter if !known_apis::ends_the_graph(method) && method != "copy_" => {
                return Value::tensor(grad);
            }
            ValueKind::Tensor | ValueKind::Unknown | ValueKind::Array => {
                return self.tensor_method_result(receiver, method, call, any_graph, any_predicted);
            }
            ValueKind::List if receiver.graph && method == "pop" => return Value::tensor(true),
            ValueKind::Dataset if self.speaks_tensorflow => {
                return self.dataset_method_result(receiver, method, call, given);
            }
            _ => {}
        }
        Value::UNKNOWN
    }

    pub(super) fn tensor_method_result(
        &mut self,
        receiver: Value,
        method: &'a str,
        call: &'a ExprCall,
        any_graph: bool,
        any_predicted: bool,
    ) -> Value {
        let grad = !self.context.no_grad;
        match method {
            "item" => {
                return Value {
                    predicted: receiver.predicted,
                    ..Value::of_kind(ValueKind::Number)
                };
            }
            "detach" | "detach_" | "data" => return receiver.detached(),
            "cuda" => {
                return Value {
                    device: Device::Gpu,
                    ..receiver
                };
            }
            "cpu" => {
                return Value {
                    device: Device::Unknown,
                    ..receiver
                };
            }
            "to" => {
                let gpu = call
                    .arguments
                    .args
                    .first()
                    .is_some_and(|device| self.is_gpu_device(device));
                let device = if gpu { Device::Gpu } else { receiver.device };
                return Value { device, ..receiver };
            }
            "float" | "half" | "double" if receiver.shape != 0 => {
                let each = match method {
                    "float" => 4.0,
                    "half" => 2.0,
                    _ => 8.0,
                };
                return self.with_dtype(receiver, Some(each));
            }
            "clone" | "contiguous" | "float" | "half" | "double" | "requires_grad_"
            | "pin_memory" => {
                return receiver;
            }
            "astype" if receiver.kind == ValueKind::Array => {
                let each = call.arguments.args.first().and_then(sizes::element);
                return self.with_dtype(receiver, each);
            }
            "random" | "standard_normal" | "integers" | "normal" | "uniform"
                if receiver.kind == ValueKind::Array =>
            {
                let drawn =
                    sizes::drawn_by(method, call, |expression| self.parse_shape(expression));
                return self.with_array_size(Value::of_kind(ValueKind::Array), drawn);
            }
            "size" if receiver.shape != 0 && call.arguments.len() == 1 => {
                let length = self.shape(receiver).and_then(|lengths| {
                    let index = sizes::index(call.arguments.args.first()?, lengths.len())?;
                    lengths.get(index).copied()
                });
                return length.map_or(Value::of_kind(ValueKind::Number), Value::number);
            }
            _ => {}
        }
        let predicted = receiver.predicted || (receiver.graph || any_graph) || any_predicted;
        if known_apis::ends_the_graph(method) {
            return Value {
                predicted: receiver.predicted,
                ..Value::UNKNOWN
            };
        }
        if receiver.graph
            && known_apis::returns_values_and_indices(method)
            && !call.arguments.is_empty()
        {
            let row = vec![
                ("", Value::tensor(grad)),
                ("", Value::of_kind(ValueKind::Tensor)),
            ];
            return self.push_row(ValueKind::Tuple, row);
        }
        if receiver.graph || (receiver.kind == ValueKind::Tensor && any_graph) {
            return Value {
                graph: true,
                predicted,
                unreduced: receiver.unreduced
                    && (!known_apis::reduces(method) || activation::keeps_rows(call, 0)),
                ..Value::of_kind(ValueKind::Tensor)
            };
        }
        match receiver.kind {
            ValueKind::Tensor => Value {
                predicted,
                ..Value::of_kind(ValueKind::Tensor)
            },
            _ => Value::UNKNOWN,
        }
    }

    /// Applies what a call changes besides returning a value.
    pub(super) fn apply_side_effects(
        &mut self,
        call: &'a ExprCall,
        path: Option<Path<'a>>,
        receiver: Option<Value>,
        given: &[Value],
    ) {
        if let Some(path) = path {
            if path.is_any(&["torch.set_grad_enabled", "torch.autograd.set_grad_enabled"])
                && let Some(Expr::BooleanLiteral(on)) = call.arguments.args.first()
            {
                self.context.no_grad = !on.value;
            }
            return;
        }
        let Expr::Attribute(attribute) = &*call.func else {
            return;
        };
        if attribute.attr.as_str() == "add"
            && receiver.is_some_and(|receiver| receiver.is(ValueKind::Model))
            && let [layer] = given
            && let Some(key) = self.dotted_name(&attribute.value)
        {
            self.scope
                .update_value(key, |model| model.activation = layer.activation);
        }
        // A value whose `backward()` is called has a graph.
        if attribute.attr.as_str() == "backward"
            && call.arguments.args.is_empty()
            && !self.context.no_grad
        {
            let of = match &*attribute.value {
                Expr::Call(scaled) => scaled.arguments.args.first().unwrap_or(&attribute.value),
                plain => plain,
            };
            if let Some(key) = self.dotted_name(of) {
                self.scope.update_value(key, |value| {
                    if matches!(value.kind, ValueKind::Unknown | ValueKind::Tensor) {
                        value.kind = ValueKind::Tensor;
                        value.graph = true;
                        value.predicted = true;
                    }
                });
            }
        }
        if adds_to_receiver(attribute.attr.as_str())
            && receiver.is_some()
            && given.iter().any(|value| value.graph)
            && let Some(key) = self.dotted_name(&attribute.value)
        {
            self.scope.update_value(key, |whole| whole.graph = true);
        }
    }

    /// Whether gradient tracking is off inside a `with` statement.
    pub(super) fn is_grad_off_inside(&self, context: &'a Expr) -> bool {
        let (function, call) = match context {
            Expr::Call(call) => (&*call.func, Some(call)),
            other => (other, None),
        };
        let Some(path) = self.imports.resolve(function) else {
            return self.context.no_grad || says_no_grad(function);
        };
        if path.last() == "enable_grad" {
            return false;
        }
        if path.last() == "set_grad_enabled" {
            return match call.and_then(|call| call.arguments.args.first()) {
                Some(Expr::BooleanLiteral(on)) => !on.value,
                // `with torch.set_grad_enabled(phase == "train")` depends on the phase, and its
                // author knows about gradient tracking.
                _ => true,
            };
        }
        self.context.no_grad || turns_grad_off(&path)
    }

    pub(super) fn is_gpu_device(&self, device: &'a Expr) -> bool {
        match device {
            Expr::StringLiteral(text) => text.value.to_str().starts_with("cuda"),
            Expr::Name(name) => name.id.contains("device") || name.id.contains("gpu"),
            Expr::Attribute(attribute) => attribute.attr.contains("device"),
            Expr::Call(call) => call
                .arguments
                .args
                .first()
                .is_some_and(|inner| self.is_gpu_device(inner)),
            Expr::NumberLiteral(_) => true,
            _ => false,
        }
    }

    pub(super) fn all_without_graph(&self, given: &[Value]) -> bool {
        !given.is_empty()
            && given.iter().all(|value| {
                !value.graph && matches!(value.kind, ValueKind::Tensor | ValueKind::Array)
            })
    }
}
