//! Follows the shape of a batch through a model and adds up what is saved for `backward()`.

use super::BYTES_PER_INDEX;
use super::structure::{Network, resolve_network};
use crate::model::{FrameId, Module, window_output_length};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;
use std::cell::Cell;

#[derive(Clone)]
pub(super) struct Tensor {
    pub(super) lengths: Vec<f64>,
    pub(super) id: usize,
}

pub(super) struct ForwardPass<'m, 'a> {
    pub(super) module: &'m Module<'a>,
    /// For each tensor, whether it is counted already.
    pub(super) saved: Vec<bool>,
    pub(super) activations: f64,
    /// The number of weights.
    pub(super) weights: f64,
    pub(super) layers: u32,
    pub(super) each: f64,
    pub(super) budget: Cell<u32>,
}

/// The output shape of a layer, and what the layer saves.
pub(super) struct LayerEffect {
    lengths: Vec<f64>,
    weights: f64,
    keeps_input: bool,
    keeps_output: bool,
    /// Additional bytes.
    more: f64,
}

impl LayerEffect {
    fn with_shape(lengths: Vec<f64>) -> LayerEffect {
        LayerEffect {
            lengths,
            weights: 0.0,
            keeps_input: false,
            keeps_output: false,
            more: 0.0,
        }
    }

    fn with_weights(self, weights: f64) -> LayerEffect {
        LayerEffect { weights, ..self }
    }

    fn keeping_input(self) -> LayerEffect {
        LayerEffect {
            keeps_input: true,
            ..self
        }
    }

    fn keeping_output(self) -> LayerEffect {
        LayerEffect {
            keeps_output: true,
            ..self
        }
    }
}

impl<'a> ForwardPass<'_, 'a> {
    pub(super) fn run_network(
        &mut self,
        net: &Network<'a>,
        input: Tensor,
        deep: u32,
    ) -> Option<Tensor> {
        let deep = deep.checked_sub(1)?;
        self.budget.set(self.budget.get().checked_sub(1)?);
        match net {
            Network::Row(nets) => nets
                .iter()
                .try_fold(input, |input, net| self.run_network(net, input, deep)),
            Network::Layer(call, frame) => {
                let step = self.layer_effect(call, *frame, &input.lengths)?;
                self.layers += 1;
                Some(self.apply_effect(step, &input))
            }
            Network::Class(id) => {
                let class = self.module.classes().get(*id as usize)?;
                let forward = *class
                    .methods
                    .get("forward")
                    .or_else(|| class.methods.get("call"))?;
                self.run_forward_method(forward, input, deep)
            }
        }
    }

    fn apply_effect(&mut self, step: LayerEffect, input: &Tensor) -> Tensor {
        self.weights += step.weights;
        self.activations += step.more;
        if step.keeps_input {
            self.save_activation(input);
        }
        let output = Tensor {
            lengths: step.lengths,
            id: self.saved.len(),
        };
        self.saved.push(false);
        if step.keeps_output {
            self.save_activation(&output);
        }
        output
    }

    pub(super) fn save_activation(&mut self, tensor: &Tensor) {
        if let Some(saved) = self.saved.get_mut(tensor.id)
            && !*saved
        {
            *saved = true;
            self.activations += tensor.lengths.iter().product::<f64>() * self.each;
        }
    }

    /// Follows the body of `forward` until something is unknown.
    fn run_forward_method(&mut self, frame: FrameId, input: Tensor, deep: u32) -> Option<Tensor> {
        let def = self.module.frame(frame).def?;
        let first = def.parameters.iter_non_variadic_params().nth(1)?;
        let mut names: Vec<(&str, Tensor)> = vec![(first.parameter.name.as_str(), input)];
        for statement in &def.body {
            match statement {
                Stmt::Assign(assign) => {
                    let value = self.eval_expression(&assign.value, &names, frame, deep);
                    let [Expr::Name(target)] = &assign.targets[..] else {
                        return None;
                    };
                    names.retain(|(name, _)| *name != target.id.as_str());
                    names.push((target.id.as_str(), value?));
                }
                Stmt::Return(result) => {
                    return self.eval_expression(result.value.as_deref()?, &names, frame, deep);
                }
                // A docstring, or a statement without effect.
                Stmt::Expr(expression) if expression.value.is_string_literal_expr() => {}
                Stmt::Pass(_) | Stmt::Assert(_) => {}
                _ => return None,
            }
        }
        None
    }

    fn eval_expression(
        &mut self,
        expr: &'a Expr,
        names: &[(&str, Tensor)],
        frame: FrameId,
        deep: u32,
    ) -> Option<Tensor> {
        match expr {
            Expr::Name(name) => {
                let known = names.iter().find(|(known, _)| *known == name.id.as_str());
                known.map(|(_, tensor)| tensor.clone())
            }
            Expr::BinOp(operation) => {
                let left = self.eval_expression(&operation.left, names, frame, deep);
                let right = self.eval_expression(&operation.right, names, frame, deep);
                let one = match (left, right) {
                    (Some(left), Some(right)) if left.lengths == right.lengths => left,
                    (Some(_), Some(_)) | (None, None) => return None,
                    (Some(one), None) if operation.right.is_number_literal_expr() => one,
                    (None, Some(one)) if operation.left.is_number_literal_expr() => one,
                    _ => return None,
                };
                Some(self.apply_effect(LayerEffect::with_shape(one.lengths.clone()), &one))
            }
            Expr::Call(call) => self.eval_call(call, names, frame, deep),
            _ => None,
        }
    }

    fn eval_call(
        &mut self,
        call: &'a ExprCall,
        names: &[(&str, Tensor)],
        frame: FrameId,
        deep: u32,
    ) -> Option<Tensor> {
        let arguments = &call.arguments.args;
        if let Some(path) = self.module.import_path(&call.func) {
            let input = self.eval_expression(arguments.first()?, names, frame, deep)?;
            let step = match path.segments() {
                ["torch", function] | ["torch", "nn", "functional", function] => {
                    self.function_effect(function, call, 1, frame, &input.lengths)?
                }
                _ => return None,
            };
            return Some(self.apply_effect(step, &input));
        }
        if let Expr::Attribute(method) = &*call.func {
            // `x.relu()`, not `self.first(x)`.
            if let Some(input) = self.eval_expression(&method.value, names, frame, deep) {
                let step = self.function_effect(&method.attr, call, 0, frame, &input.lengths)?;
                return Some(self.apply_effect(step, &input));
            }
            let input = self.eval_expression(arguments.first()?, names, frame, deep)?;
            let net = resolve_network(
                &self.budget,
                self.module,
                &call.func,
                frame,
                call.func.start(),
                deep,
            )?;
            return self.run_network(&net, input, deep);
        }
        None
    }

    fn function_effect(
        &self,
        name: &str,
        call: &'a ExprCall,
        first: usize,
        frame: FrameId,
        input: &[f64],
    ) -> Option<LayerEffect> {
        let same = || LayerEffect::with_shape(input.to_vec());
        match name {
            "relu" | "sigmoid" | "tanh" | "softmax" | "log_softmax" | "elu" => {
                Some(same().keeping_output())
            }
            "gelu" | "silu" | "leaky_relu" | "softplus" | "mish" | "hardswish" => {
                Some(same().keeping_input())
            }
            "dropout" => Some(same()),
            "flatten" => flatten_effect(input, 1.0)
                .filter(|_| self.number(call, first, "start_dim", frame) == Some(1.0)),
            "contiguous" | "float" => Some(same()),
            "view" | "reshape" => {
                let [rows, rest] = &call.arguments.args[..] else {
                    return None;
                };
                let is_rest = self.module.source(rest) == "-1";
                let is_rows = ["size(0)", "shape[0]", "len("]
                    .iter()
                    .any(|way| self.module.source(rows).contains(way));
                flatten_effect(input, 1.0).filter(|_| is_rest && is_rows)
            }
            "max_pool1d" | "max_pool2d" | "max_pool3d" | "avg_pool1d" | "avg_pool2d"
            | "avg_pool3d" => {
                self.pooling_effect(name.starts_with("max"), call, first, frame, input)
            }
            _ => None,
        }
    }

    fn number(&self, call: &'a ExprCall, place: usize, name: &str, frame: FrameId) -> Option<f64> {
        let expr = self.argument(call, place, name)?;
        self.module.final_value(expr, frame).as_number()
    }

    fn argument(&self, call: &'a ExprCall, place: usize, name: &str) -> Option<&'a Expr> {
        let keyword = call
            .arguments
            .find_keyword(name)
            .map(|keyword| &keyword.value);
        keyword.or_else(|| call.arguments.args.get(place))
    }

    /// Returns one number per axis of a window; a single number applies to all axes.
    fn numbers(
        &self,
        call: &'a ExprCall,
        (place, name): (usize, &str),
        frame: FrameId,
        axes: usize,
        otherwise: Option<f64>,
    ) -> Option<Vec<f64>> {
        match self.argument(call, place, name) {
            None => otherwise.map(|number| vec![number; axes]),
            Some(Expr::Tuple(tuple)) if tuple.elts.len() == axes => {
                let parts = tuple
                    .elts
                    .iter()
                    .map(|part| self.module.final_value(part, frame).as_number());
                parts.collect()
            }
            Some(expr) => self
                .module
                .final_value(expr, frame)
                .as_number()
                .map(|number| vec![number; axes]),
        }
    }

    fn pooling_effect(
        &self,
        is_max: bool,
        call: &'a ExprCall,
        first: usize,
        frame: FrameId,
        input: &[f64],
    ) -> Option<LayerEffect> {
        let axes = input.len().checked_sub(2).filter(|axes| *axes > 0)?;
        let kernel = self.numbers(call, (first, "kernel_size"), frame, axes, None)?;
        let stride = self
            .numbers(call, (first + 1, "stride"), frame, axes, None)
            .unwrap_or_else(|| kernel.clone());
        let padding = self.numbers(call, (first + 2, "padding"), frame, axes, Some(0.0))?;
        let mut lengths = input.to_vec();
        for axis in 0..axes {
            lengths[axis + 2] = window_output_length(
                input[axis + 2],
                kernel[axis],
                stride[axis],
                padding[axis],
                1.0,
            );
        }
        let elements: f64 = lengths.iter().product();
        let step = LayerEffect::with_shape(lengths).keeping_input();
        Some(LayerEffect {
            more: if is_max {
                elements * BYTES_PER_INDEX
            } else {
                0.0
            },
            ..step
        })
    }

    fn layer_effect(
        &self,
        call: &'a ExprCall,
        frame: FrameId,
        input: &[f64],
    ) -> Option<LayerEffect> {
        let path = self.module.import_path(&call.func)?;
        if path.first() == "keras" {
            return self.keras_layer_effect(path.last(), call, frame, input);
        }
        let same = || LayerEffect::with_shape(input.to_vec());
        let has_bias = !matches!(self.argument(call, usize::MAX, "bias"), Some(Expr::BooleanLiteral(on)) if !on.value);
        let bias = f64::from(u8::from(has_bias));
        match path.last() {
            "Linear" => {
                let from = self.number(call, 0, "in_features", frame)?;
                let to = self.number(call, 1, "out_features", frame)?;
                let mut lengths = input.to_vec();
                let last = lengths.last_mut().filter(|last| **last == from)?;
                *last = to;
                Some(
                    LayerEffect::with_shape(lengths)
                        .keeping_input()
                        .with_weights(from * to + bias * to),
                )
            }
            "Conv1d" | "Conv2d" | "Conv3d" => {
                let axes = input.len().checked_sub(2).filter(|axes| *axes > 0)?;
                let from = self
                    .number(call, 0, "in_channels", frame)
                    .filter(|from| input.get(1) == Some(from))?;
                let to = self.number(call, 1, "out_channels", frame)?;
                let kernel = self.numbers(call, (2, "kernel_size"), frame, axes, None)?;
                let stride = self.numbers(call, (3, "stride"), frame, axes, Some(1.0))?;
                let dilation = self.numbers(call, (5, "dilation"), frame, axes, Some(1.0))?;
                let groups = self.numbers(call, (6, "groups"), frame, 1, Some(1.0))?;
                let is_same = matches!(self.argument(call, 4, "padding"),
                    Some(Expr::StringLiteral(text)) if text.value.to_str() == "same");
                let mut lengths = input.to_vec();
                lengths[1] = to;
                if !is_same {
                    let padding = self.numbers(call, (4, "padding"), frame, axes, Some(0.0))?;
                    for axis in 0..axes {
                        lengths[axis + 2] = window_output_length(
                            input[axis + 2],
                            kernel[axis],
                            stride[axis],
                            padding[axis],
                            dilation[axis],
                        );
                    }
                }
                let window: f64 = kernel.iter().product();
                let weights = from / groups.first()? * to * window + bias * to;
                lengths.iter().all(|length| *length >= 1.0).then(|| {
                    LayerEffect::with_shape(lengths)
                        .keeping_input()
                        .with_weights(weights)
                })
            }
            "BatchNorm1d" | "BatchNorm2d" | "BatchNorm3d" | "InstanceNorm2d" | "GroupNorm"
            | "LayerNorm" => Some(same().keeping_input()),
            "ReLU" | "Sigmoid" | "Tanh" | "Softmax" | "LogSoftmax" | "ELU" | "ReLU6" => {
                Some(same().keeping_output())
            }
            "GELU" | "SiLU" | "LeakyReLU" | "Softplus" | "Mish" | "Hardswish" | "PReLU" => {
                Some(same().keeping_input())
            }
            "Dropout" | "Dropout1d" | "Dropout2d" | "Dropout3d" | "Identity" => Some(same()),
            "MaxPool1d" | "MaxPool2d" | "MaxPool3d" => {
                self.pooling_effect(true, call, 0, frame, input)
            }
            "AvgPool1d" | "AvgPool2d" | "AvgPool3d" => {
                self.pooling_effect(false, call, 0, frame, input)
            }
            "AdaptiveAvgPool1d" | "AdaptiveAvgPool2d" | "AdaptiveAvgPool3d" => {
                let axes = input.len().checked_sub(2).filter(|axes| *axes > 0)?;
                let to = self.numbers(call, (0, "output_size"), frame, axes, None)?;
                let mut lengths = input.to_vec();
                lengths[2..].copy_from_slice(&to);
                Some(LayerEffect::with_shape(lengths).keeping_input())
            }
            "Flatten" => {
                let start = self.numbers(call, (0, "start_dim"), frame, 1, Some(1.0))?;
                flatten_effect(input, *start.first()?)
            }
            "Embedding" => {
                let rows = self.number(call, 0, "num_embeddings", frame)?;
                let columns = self.number(call, 1, "embedding_dim", frame)?;
                let mut lengths = input.to_vec();
                lengths.push(columns);
                Some(LayerEffect::with_shape(lengths).with_weights(rows * columns))
            }
            _ => None,
        }
    }

    fn keras_layer_effect(
        &self,
        name: &str,
        call: &'a ExprCall,
        frame: FrameId,
        input: &[f64],
    ) -> Option<LayerEffect> {
        let same = || LayerEffect::with_shape(input.to_vec());
        let activated = |step: LayerEffect| match call.arguments.find_keyword("activation") {
            Some(keyword) if !keyword.value.is_none_literal_expr() => step.keeping_output(),
            _ => step,
        };
        match name {
            "Input" | "InputLayer" | "Dropout" | "Rescaling" => Some(same()),
            "Dense" => {
                let units = self.number(call, 0, "units", frame)?;
                let mut lengths = input.to_vec();
                let last = lengths.last_mut()?;
                let from = std::mem::replace(last, units);
                Some(activated(
                    LayerEffect::with_shape(lengths)
                        .keeping_input()
                        .with_weights((from + 1.0) * units),
                ))
            }
            "Conv2D" | "Convolution2D" => {
                let [rows, height, width, channels] = input[..] else {
                    return None;
                };
                let filters = self.number(call, 0, "filters", frame)?;
                let kernel = self.numbers(call, (1, "kernel_size"), frame, 2, None)?;
                let stride = self.numbers(call, (2, "strides"), frame, 2, Some(1.0))?;
                let is_same = matches!(self.argument(call, 3, "padding"),
                    Some(Expr::StringLiteral(text)) if text.value.to_str().eq_ignore_ascii_case("same"));
                let along = |length: f64, axis: usize| {
                    if is_same {
                        (length / stride[axis]).ceil()
                    } else {
                        window_output_length(length, kernel[axis], stride[axis], 0.0, 1.0)
                    }
                };
                let lengths = vec![rows, along(height, 0), along(width, 1), filters];
                let weights = (channels * kernel[0] * kernel[1] + 1.0) * filters;
                lengths.iter().all(|length| *length >= 1.0).then(|| {
                    activated(
                        LayerEffect::with_shape(lengths)
                            .keeping_input()
                            .with_weights(weights),
                    )
                })
            }
            "BatchNormalization" | "LayerNormalization" => Some(same().keeping_input()),
            "Activation" | "ReLU" | "LeakyReLU" | "Softmax" => Some(same().keeping_output()),
            "MaxPooling2D" | "MaxPool2D" | "AveragePooling2D" => {
                let [rows, height, width, channels] = input[..] else {
                    return None;
                };
                let size = self.numbers(call, (0, "pool_size"), frame, 2, Some(2.0))?;
                let lengths = vec![
                    rows,
                    (height / size[0]).floor(),
                    (width / size[1]).floor(),
                    channels,
                ];
                Some(LayerEffect::with_shape(lengths).keeping_input())
            }
            "GlobalAveragePooling2D" | "GlobalMaxPooling2D" => {
                let [rows, _, _, channels] = input[..] else {
                    return None;
                };
                Some(LayerEffect::with_shape(vec![rows, channels]))
            }
            "Flatten" => flatten_effect(input, 1.0),
            _ => None,
        }
    }
}

pub(super) fn flatten_effect(input: &[f64], start: f64) -> Option<LayerEffect> {
    let start = start as usize;
    let (kept, merged) = input
        .split_at_checked(start)
        .filter(|(_, merged)| !merged.is_empty())?;
    let mut lengths = kept.to_vec();
    lengths.push(merged.iter().product());
    Some(LayerEffect::with_shape(lengths))
}
