//! The memory that a step through a network needs at least: its layers are followed with the
//! lengths of a batch, as far as they are written in the text.
//!
//! What is not known adds nothing, so the sum is a lower bound.

use super::whence::{bound_to, own_function, returned};
use crate::model::{FrameId, Kind, Module, windowed};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::{Ranged, TextSize};
use std::cell::Cell;

/// Bytes of an element: weights, gradients, activations.
const EACH: f64 = 4.0;
/// An index of a pooled maximum.
const INDEX: f64 = 8.0;

/// What a step needs at least, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Need {
    /// The batch itself.
    pub input: f64,
    /// What the layers keep for the way back.
    pub activations: f64,
    /// Weights, their gradients and the optimizer's state.
    pub weights: f64,
}

impl Need {
    pub fn all(&self) -> f64 {
        self.input + self.activations + self.weights
    }
}

/// What a step through a model needs with a batch of these lengths. None where nothing is known
/// of its layers.
pub fn need<'a>(
    module: &Module<'a>,
    model: &'a Expr,
    frame: FrameId,
    lengths: &[f64],
) -> Option<Need> {
    let budget = Cell::new(MOST);
    let net = net_of(&budget, module, model, frame, model.start(), DEEPEST)?;
    let mut walk = Walk {
        module,
        saved: vec![true],
        activations: 0.0,
        weights: 0.0,
        layers: 0,
        each: if is_mixed(module) { EACH / 2.0 } else { EACH },
        budget,
    };
    let input = Tensor {
        lengths: lengths.to_vec(),
        id: 0,
    };
    // The loss is computed from the output, and keeps it.
    if let Some(output) = walk.through(&net, input, DEEPEST) {
        walk.keep(&output);
    }
    (walk.layers > 0).then(|| Need {
        input: lengths.iter().product::<f64>() * EACH,
        activations: walk.activations,
        weights: walk.weights * (2.0 * EACH + state(module)),
    })
}

const DEEPEST: u32 = 8;
/// Layers that are looked at before giving up: names may refer to each other in circles.
const MOST: u32 = 5_000;

/// Whether activations may be halves.
fn is_mixed(module: &Module<'_>) -> bool {
    [
        "autocast",
        "mixed_precision",
        ".half()",
        "bfloat16",
        "float16",
        "fp16",
        "bf16",
    ]
    .iter()
    .any(|word| module.text.contains(word))
}

/// Bytes of optimizer state for each weight.
fn state(module: &Module<'_>) -> f64 {
    let of = |name: &str, has_momentum: bool| match name.to_ascii_lowercase().as_str() {
        "adam" | "adamw" | "nadam" | "radam" | "adamax" => 8.0,
        "rmsprop" | "adagrad" | "adadelta" | "lion" => 4.0,
        "sgd" if has_momentum => 4.0,
        _ => 0.0,
    };
    let states = module.calls().iter().filter_map(|call| {
        if let Some(path) = call.path.filter(|_| call.result.is(Kind::Optimizer)) {
            let momentum = call.keyword("momentum").is_some();
            return Some(of(path.last(), momentum));
        }
        match (call.method(), call.argument(0, "optimizer")) {
            (Some("compile"), Some(Expr::StringLiteral(name))) => {
                Some(of(name.value.to_str(), false))
            }
            _ => None,
        }
    });
    states.fold(0.0, f64::max)
}

// ---- what a model is made of ----

enum Net<'a> {
    Layer(&'a ExprCall, FrameId),
    /// A class of this text.
    Class(u32),
    Row(Vec<Net<'a>>),
}

fn net_of<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    expr: &'a Expr,
    frame: FrameId,
    before: TextSize,
    deep: u32,
) -> Option<Net<'a>> {
    let deep = deep.checked_sub(1)?;
    budget.set(budget.get().checked_sub(1)?);
    match expr {
        Expr::Name(_) | Expr::Attribute(_) => {
            let name = module.key(expr)?;
            let origin = bound_to(module, name, frame, before)?;
            if origin.part.is_some() {
                return None;
            }
            let net = net_of(
                budget,
                module,
                origin.expr,
                origin.frame,
                origin.expr.start(),
                deep,
            )?;
            Some(with_added(budget, module, net, name, origin.frame, deep))
        }
        Expr::Call(call) => {
            let Some(path) = module.path(&call.func) else {
                if let Expr::Attribute(method) = &*call.func
                    && matches!(
                        method.attr.as_str(),
                        "to" | "cuda"
                            | "cpu"
                            | "train"
                            | "eval"
                            | "float"
                            | "apply"
                            | "requires_grad_"
                    )
                {
                    return net_of(budget, module, &method.value, frame, before, deep);
                }
                return match module.settled(&call.func, frame).kind {
                    Kind::Class(id) => Some(Net::Class(id)),
                    Kind::Function(_) => {
                        let own = own_function(module, call, frame)?;
                        let result = returned(module, own)?;
                        net_of(budget, module, result, own, result.start(), deep)
                    }
                    _ => None,
                };
            };
            let arguments = &call.arguments;
            match path.segments() {
                ["torch", "nn", "Sequential"] => row(budget, module, &arguments.args, frame, deep),
                ["keras", "Sequential"] | ["keras", "models", "Sequential"] => {
                    match arguments.args.first() {
                        Some(Expr::List(layers)) => row(budget, module, &layers.elts, frame, deep),
                        None if arguments.is_empty() => Some(Net::Row(Vec::new())),
                        _ => None,
                    }
                }
                ["torch", "nn", _] | ["keras", "layers", ..] | ["keras", "Input"] => {
                    Some(Net::Layer(call, frame))
                }
                ["torch", "compile"] => {
                    net_of(budget, module, arguments.args.first()?, frame, before, deep)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn row<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    layers: &'a [Expr],
    frame: FrameId,
    deep: u32,
) -> Option<Net<'a>> {
    let mut nets = Vec::with_capacity(layers.len());
    for layer in layers {
        match net_of(budget, module, layer, frame, layer.start(), deep) {
            Some(net) => nets.push(net),
            // What follows cannot be known; what came before is.
            None => break,
        }
    }
    (!nets.is_empty()).then_some(Net::Row(nets))
}

/// The layers that are added to a Keras model afterwards: `model.add(…)`.
fn with_added<'a>(
    budget: &Cell<u32>,
    module: &Module<'a>,
    net: Net<'a>,
    name: &str,
    frame: FrameId,
    deep: u32,
) -> Net<'a> {
    let Net::Row(mut layers) = net else {
        return net;
    };
    for call in module.calls() {
        if call.method() == Some("add")
            && call.place.frame == frame
            && call.place.within.is_none()
            && call.object().and_then(|object| module.key(object)) == Some(name)
            && let Some(layer) = call.argument(0, "layer")
        {
            match net_of(budget, module, layer, frame, layer.start(), deep) {
                Some(net) => layers.push(net),
                None => break,
            }
        }
    }
    Net::Row(layers)
}

// ---- the way through ----

#[derive(Clone)]
struct Tensor {
    lengths: Vec<f64>,
    id: usize,
}

struct Walk<'m, 'a> {
    module: &'m Module<'a>,
    /// By tensor, whether it is counted.
    saved: Vec<bool>,
    activations: f64,
    /// How many there are.
    weights: f64,
    layers: u32,
    each: f64,
    budget: Cell<u32>,
}

/// What a layer makes of its input.
struct Step {
    lengths: Vec<f64>,
    weights: f64,
    keeps_input: bool,
    keeps_output: bool,
    /// Bytes besides.
    more: f64,
}

impl Step {
    fn to(lengths: Vec<f64>) -> Step {
        Step {
            lengths,
            weights: 0.0,
            keeps_input: false,
            keeps_output: false,
            more: 0.0,
        }
    }

    fn with_weights(self, weights: f64) -> Step {
        Step { weights, ..self }
    }

    fn keeping_input(self) -> Step {
        Step {
            keeps_input: true,
            ..self
        }
    }

    fn keeping_output(self) -> Step {
        Step {
            keeps_output: true,
            ..self
        }
    }
}

impl<'a> Walk<'_, 'a> {
    fn through(&mut self, net: &Net<'a>, input: Tensor, deep: u32) -> Option<Tensor> {
        let deep = deep.checked_sub(1)?;
        self.budget.set(self.budget.get().checked_sub(1)?);
        match net {
            Net::Row(nets) => nets
                .iter()
                .try_fold(input, |input, net| self.through(net, input, deep)),
            Net::Layer(call, frame) => {
                let step = self.layer(call, *frame, &input.lengths)?;
                self.layers += 1;
                Some(self.take(step, &input))
            }
            Net::Class(id) => {
                let class = self.module.classes().get(*id as usize)?;
                let forward = *class
                    .methods
                    .get("forward")
                    .or_else(|| class.methods.get("call"))?;
                self.function(forward, input, deep)
            }
        }
    }

    fn take(&mut self, step: Step, input: &Tensor) -> Tensor {
        self.weights += step.weights;
        self.activations += step.more;
        if step.keeps_input {
            self.keep(input);
        }
        let output = Tensor {
            lengths: step.lengths,
            id: self.saved.len(),
        };
        self.saved.push(false);
        if step.keeps_output {
            self.keep(&output);
        }
        output
    }

    fn keep(&mut self, tensor: &Tensor) {
        if let Some(saved) = self.saved.get_mut(tensor.id)
            && !*saved
        {
            *saved = true;
            self.activations += tensor.lengths.iter().product::<f64>() * self.each;
        }
    }

    /// The body of `forward`, until something is not known.
    fn function(&mut self, frame: FrameId, input: Tensor, deep: u32) -> Option<Tensor> {
        let def = self.module.frame(frame).def?;
        let first = def.parameters.iter_non_variadic_params().nth(1)?;
        let mut names: Vec<(&str, Tensor)> = vec![(first.parameter.name.as_str(), input)];
        for statement in &def.body {
            match statement {
                Stmt::Assign(assign) => {
                    let value = self.expression(&assign.value, &names, frame, deep);
                    let [Expr::Name(target)] = &assign.targets[..] else {
                        return None;
                    };
                    names.retain(|(name, _)| *name != target.id.as_str());
                    names.push((target.id.as_str(), value?));
                }
                Stmt::Return(result) => {
                    return self.expression(result.value.as_deref()?, &names, frame, deep);
                }
                // A comment, or something that only looks.
                Stmt::Expr(expression) if expression.value.is_string_literal_expr() => {}
                Stmt::Pass(_) | Stmt::Assert(_) => {}
                _ => return None,
            }
        }
        None
    }

    fn expression(
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
                let left = self.expression(&operation.left, names, frame, deep);
                let right = self.expression(&operation.right, names, frame, deep);
                let one = match (left, right) {
                    (Some(left), Some(right)) if left.lengths == right.lengths => left,
                    (Some(_), Some(_)) | (None, None) => return None,
                    (Some(one), None) if operation.right.is_number_literal_expr() => one,
                    (None, Some(one)) if operation.left.is_number_literal_expr() => one,
                    _ => return None,
                };
                Some(self.take(Step::to(one.lengths.clone()), &one))
            }
            Expr::Call(call) => self.call(call, names, frame, deep),
            _ => None,
        }
    }

    fn call(
        &mut self,
        call: &'a ExprCall,
        names: &[(&str, Tensor)],
        frame: FrameId,
        deep: u32,
    ) -> Option<Tensor> {
        let arguments = &call.arguments.args;
        if let Some(path) = self.module.path(&call.func) {
            let input = self.expression(arguments.first()?, names, frame, deep)?;
            let step = match path.segments() {
                ["torch", function] | ["torch", "nn", "functional", function] => {
                    self.functional(function, call, 1, frame, &input.lengths)?
                }
                _ => return None,
            };
            return Some(self.take(step, &input));
        }
        if let Expr::Attribute(method) = &*call.func {
            // `x.relu()`, not `self.first(x)`.
            if let Some(input) = self.expression(&method.value, names, frame, deep) {
                let step = self.functional(&method.attr, call, 0, frame, &input.lengths)?;
                return Some(self.take(step, &input));
            }
            let input = self.expression(arguments.first()?, names, frame, deep)?;
            let net = net_of(
                &self.budget,
                self.module,
                &call.func,
                frame,
                call.func.start(),
                deep,
            )?;
            return self.through(&net, input, deep);
        }
        None
    }

    fn functional(
        &self,
        name: &str,
        call: &'a ExprCall,
        first: usize,
        frame: FrameId,
        input: &[f64],
    ) -> Option<Step> {
        let same = || Step::to(input.to_vec());
        match name {
            "relu" | "sigmoid" | "tanh" | "softmax" | "log_softmax" | "elu" => {
                Some(same().keeping_output())
            }
            "gelu" | "silu" | "leaky_relu" | "softplus" | "mish" | "hardswish" => {
                Some(same().keeping_input())
            }
            "dropout" => Some(same()),
            "flatten" => flattened(input, 1.0)
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
                flattened(input, 1.0).filter(|_| is_rest && is_rows)
            }
            "max_pool1d" | "max_pool2d" | "max_pool3d" | "avg_pool1d" | "avg_pool2d"
            | "avg_pool3d" => self.pooled(name.starts_with("max"), call, first, frame, input),
            _ => None,
        }
    }

    fn number(&self, call: &'a ExprCall, place: usize, name: &str, frame: FrameId) -> Option<f64> {
        let expr = self.argument(call, place, name)?;
        self.module.settled(expr, frame).as_number()
    }

    fn argument(&self, call: &'a ExprCall, place: usize, name: &str) -> Option<&'a Expr> {
        let keyword = call
            .arguments
            .find_keyword(name)
            .map(|keyword| &keyword.value);
        keyword.or_else(|| call.arguments.args.get(place))
    }

    /// A number for each of the axes that a window moves along; one stands for all.
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
                    .map(|part| self.module.settled(part, frame).as_number());
                parts.collect()
            }
            Some(expr) => self
                .module
                .settled(expr, frame)
                .as_number()
                .map(|number| vec![number; axes]),
        }
    }

    fn pooled(
        &self,
        is_max: bool,
        call: &'a ExprCall,
        first: usize,
        frame: FrameId,
        input: &[f64],
    ) -> Option<Step> {
        let axes = input.len().checked_sub(2).filter(|axes| *axes > 0)?;
        let kernel = self.numbers(call, (first, "kernel_size"), frame, axes, None)?;
        let stride = self
            .numbers(call, (first + 1, "stride"), frame, axes, None)
            .unwrap_or_else(|| kernel.clone());
        let padding = self.numbers(call, (first + 2, "padding"), frame, axes, Some(0.0))?;
        let mut lengths = input.to_vec();
        for axis in 0..axes {
            lengths[axis + 2] = windowed(
                input[axis + 2],
                kernel[axis],
                stride[axis],
                padding[axis],
                1.0,
            );
        }
        let elements: f64 = lengths.iter().product();
        let step = Step::to(lengths).keeping_input();
        Some(Step {
            more: if is_max { elements * INDEX } else { 0.0 },
            ..step
        })
    }

    fn layer(&self, call: &'a ExprCall, frame: FrameId, input: &[f64]) -> Option<Step> {
        let path = self.module.path(&call.func)?;
        if path.first() == "keras" {
            return self.keras_layer(path.last(), call, frame, input);
        }
        let same = || Step::to(input.to_vec());
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
                    Step::to(lengths)
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
                        lengths[axis + 2] = windowed(
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
                lengths
                    .iter()
                    .all(|length| *length >= 1.0)
                    .then(|| Step::to(lengths).keeping_input().with_weights(weights))
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
            "MaxPool1d" | "MaxPool2d" | "MaxPool3d" => self.pooled(true, call, 0, frame, input),
            "AvgPool1d" | "AvgPool2d" | "AvgPool3d" => self.pooled(false, call, 0, frame, input),
            "AdaptiveAvgPool1d" | "AdaptiveAvgPool2d" | "AdaptiveAvgPool3d" => {
                let axes = input.len().checked_sub(2).filter(|axes| *axes > 0)?;
                let to = self.numbers(call, (0, "output_size"), frame, axes, None)?;
                let mut lengths = input.to_vec();
                lengths[2..].copy_from_slice(&to);
                Some(Step::to(lengths).keeping_input())
            }
            "Flatten" => {
                let start = self.numbers(call, (0, "start_dim"), frame, 1, Some(1.0))?;
                flattened(input, *start.first()?)
            }
            "Embedding" => {
                let rows = self.number(call, 0, "num_embeddings", frame)?;
                let columns = self.number(call, 1, "embedding_dim", frame)?;
                let mut lengths = input.to_vec();
                lengths.push(columns);
                Some(Step::to(lengths).with_weights(rows * columns))
            }
            _ => None,
        }
    }

    fn keras_layer(
        &self,
        name: &str,
        call: &'a ExprCall,
        frame: FrameId,
        input: &[f64],
    ) -> Option<Step> {
        let same = || Step::to(input.to_vec());
        let activated = |step: Step| match call.arguments.find_keyword("activation") {
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
                    Step::to(lengths)
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
                        windowed(length, kernel[axis], stride[axis], 0.0, 1.0)
                    }
                };
                let lengths = vec![rows, along(height, 0), along(width, 1), filters];
                let weights = (channels * kernel[0] * kernel[1] + 1.0) * filters;
                lengths
                    .iter()
                    .all(|length| *length >= 1.0)
                    .then(|| activated(Step::to(lengths).keeping_input().with_weights(weights)))
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
                Some(Step::to(lengths).keeping_input())
            }
            "GlobalAveragePooling2D" | "GlobalMaxPooling2D" => {
                let [rows, _, _, channels] = input[..] else {
                    return None;
                };
                Some(Step::to(vec![rows, channels]))
            }
            "Flatten" => flattened(input, 1.0),
            _ => None,
        }
    }
}

fn flattened(input: &[f64], start: f64) -> Option<Step> {
    let start = start as usize;
    let (kept, merged) = input
        .split_at_checked(start)
        .filter(|(_, merged)| !merged.is_empty())?;
    let mut lengths = kept.to_vec();
    lengths.push(merged.iter().product());
    Some(Step::to(lengths))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::here::Here;

    /// What the call of `model` in a text needs with a batch of these lengths.
    fn needed(text: &str, lengths: &[f64]) -> Option<Need> {
        let parsed = ruff_python_parser::parse_module(text).unwrap();
        let module = Module::of(text, parsed.syntax(), &Here::default());
        let call = module
            .calls()
            .iter()
            .find(|call| module.source(&*call.expr.func) == "model")
            .unwrap();
        need(&module, &call.expr.func, call.place.frame, lengths)
    }

    #[test]
    fn layers_in_a_row_keep_what_the_way_back_needs() {
        let text = "
from torch import nn, optim
model = nn.Sequential(nn.Linear(10, 100), nn.ReLU(), nn.Linear(100, 5)).cuda()
optimizer = optim.Adam(model.parameters())
model(x)
";
        let need = needed(text, &[1000.0, 10.0]).unwrap();
        assert_eq!(need.input, 1000.0 * 10.0 * 4.0);
        // What the rectifier put out, and the output; not what went into the rectifier.
        assert_eq!(need.activations, 1000.0 * (100.0 + 5.0) * 4.0);
        assert_eq!(
            need.weights,
            (10.0 * 100.0 + 100.0 + 100.0 * 5.0 + 5.0) * 16.0
        );
    }

    #[test]
    fn a_class_is_followed_through_its_forward() {
        let text = "
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(width * 16 * 16, 10)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = self.pool(x)
        return self.last(x.view(x.size(0), -1))

model = Net()
model(x)
";
        let need = needed(text, &[2.0, 3.0, 32.0, 32.0]).unwrap();
        let (wide, narrow) = (2.0 * 8.0 * 32.0 * 32.0, 2.0 * 8.0 * 16.0 * 16.0);
        // The rectifier's output, the pool's indices, the flat input of the last layer, its output.
        assert_eq!(
            need.activations,
            wide * 4.0 + narrow * 8.0 + narrow * 4.0 + 2.0 * 10.0 * 4.0
        );
    }

    #[test]
    fn what_is_not_known_adds_nothing() {
        let text = "
from torch import nn
model = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), Strange(), nn.Linear(20, 1_000_000))
model(x)
";
        let need = needed(text, &[7.0, 10.0]).unwrap();
        assert_eq!(need.activations, 7.0 * 20.0 * 4.0);
        assert_eq!(needed("model = strange()\nmodel(x)\n", &[7.0, 10.0]), None);
    }

    #[test]
    fn models_that_call_each_other_come_to_an_end() {
        let calls = "        x = self.inner(x)\n".repeat(40);
        let text = format!(
            "
from torch import nn

class Net(nn.Module):
    def __init__(self):
        self.inner = Net()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
{calls}        return x

model = Net()
model(x)
"
        );
        assert!(needed(&text, &[1.0, 4.0]).is_some());
    }
}
