//! The range of values after layers, functions and operators, by the last activation function.

use super::path::Path;
use super::sizes::keyword;
use super::value::{Activation, Value, ValueKind};
use ruff_python_ast::{Expr, ExprCall, Number, Operator};

/// Returns the activation of the output of a layer created by this call.
pub fn of_layer<'a>(path: &Path<'a>, call: &'a ExprCall, given: &[Value]) -> Activation {
    match path.segments() {
        ["torch", "nn", "Sequential"] => given
            .last()
            .map_or(Activation::Unknown, |last| last.activation),
        ["torch", "nn", "DataParallel"]
        | ["torch", "nn", "parallel", ..]
        | ["torch", "compile"] => given
            .first()
            .map_or(Activation::Unknown, |model| model.activation),
        ["torch", "nn", "Linear" | "LazyLinear" | "Bilinear"] => Activation::Linear,
        ["torch", "nn", name] if name.starts_with("Conv") => Activation::Linear,
        ["torch", "nn", "Softmax" | "Softmax2d"] => Activation::Softmax,
        ["torch", "nn", "Sigmoid"] => Activation::Sigmoid,
        ["torch", "nn", "ReLU" | "ReLU6"] => Activation::Relu,
        ["keras", "layers", name] => of_keras_layer(name, call),
        ["keras", "Model"] | ["keras", "models", "Model"] => {
            let outputs = call
                .arguments
                .args
                .len()
                .checked_sub(1)
                .filter(|last| *last == 1);
            let named = call.arguments.keywords.iter().position(|keyword| {
                keyword
                    .arg
                    .as_ref()
                    .is_some_and(|name| name == "outputs" || name == "output")
            });
            let place = named
                .map(|named| named + call.arguments.args.len())
                .or(outputs);
            let outputs = place.and_then(|place| given.get(place));
            outputs.map_or(Activation::Unknown, |outputs| outputs.activation)
        }
        _ => Activation::Unknown,
    }
}

fn of_keras_layer(name: &str, call: &ExprCall) -> Activation {
    let activation = match name {
        "Softmax" => return Activation::Softmax,
        "ReLU" => return Activation::Relu,
        "Activation" => call.arguments.args.first(),
        "Dense" | "Conv1D" | "Conv2D" | "Conv3D" => match keyword(call, "activation") {
            Some(activation) => Some(activation),
            None if call.arguments.args.len() < 2 && name == "Dense" => return Activation::Linear,
            None => None,
        },
        _ => None,
    };
    let name = match activation {
        Some(Expr::StringLiteral(text)) => text.value.to_str(),
        Some(Expr::Attribute(attribute)) => attribute.attr.as_str(),
        _ => "",
    };
    activated(name).unwrap_or(Activation::Unknown)
}

/// Returns the activation that a criterion applies to its input.
pub fn of_criterion(path: &Path<'_>, call: &ExprCall) -> Activation {
    let takes_logits =
        matches!(keyword(call, "from_logits"), Some(Expr::BooleanLiteral(yes)) if yes.value);
    match path.segments() {
        ["torch", .., "CrossEntropyLoss"] => Activation::Softmax,
        ["torch", .., "BCEWithLogitsLoss"] => Activation::Sigmoid,
        [
            "keras",
            "losses",
            "CategoricalCrossentropy" | "SparseCategoricalCrossentropy",
        ] if takes_logits => Activation::Softmax,
        ["keras", "losses", "BinaryCrossentropy"] if takes_logits => Activation::Sigmoid,
        _ => Activation::Unknown,
    }
}

/// Returns the activation of the result of a library function.
pub fn of_function(path: &Path<'_>, given: &[Value]) -> Activation {
    let name = match path.segments() {
        ["torch" | "tensorflow", name]
        | ["torch", "nn" | "special", "functional", name]
        | ["torch", "special", name]
        | ["tensorflow", "nn" | "math", name]
        | ["keras", "activations" | "backend" | "ops", name] => *name,
        _ => return Activation::Unknown,
    };
    if let Some(activation) = activated(name) {
        return activation;
    }
    let first = given
        .first()
        .map_or(Activation::Unknown, |first| first.activation);
    let only_moves = only_moves(name)
        || matches!(
            name,
            "cast" | "identity" | "gather_nd" | "batch_gather" | "boolean_mask"
        );
    match name {
        "linear" | "conv1d" | "conv2d" | "conv3d" if path.first() == "torch" => Activation::Linear,
        // The sum of ReLU outputs may still be zero.
        "sum" | "mean" | "reduce_sum" | "reduce_mean" if first == Activation::Relu => first,
        _ if only_moves => first,
        _ => Activation::Unknown,
    }
}

/// Returns the activation of the result of a tensor method.
pub fn of_method(name: &str, receiver: Value) -> Activation {
    match activated(name) {
        Some(activation) => activation,
        None if only_moves(name) => receiver.activation,
        None if matches!(name, "sum" | "mean") && receiver.activation == Activation::Relu => {
            receiver.activation
        }
        None => Activation::Unknown,
    }
}

fn activated(name: &str) -> Option<Activation> {
    Some(match name {
        "softmax" => Activation::Softmax,
        "sigmoid" | "sigmoid_" | "expit" => Activation::Sigmoid,
        "relu" | "relu_" | "relu6" => Activation::Relu,
        _ => return None,
    })
}

/// Whether a function or method only moves, copies or selects values.
fn only_moves(name: &str) -> bool {
    matches!(
        name,
        "gather"
            | "squeeze"
            | "unsqueeze"
            | "expand_dims"
            | "view"
            | "view_as"
            | "reshape"
            | "flatten"
            | "transpose"
            | "permute"
            | "t"
            | "contiguous"
            | "to"
            | "cuda"
            | "cpu"
            | "float"
            | "half"
            | "double"
            | "clone"
            | "detach"
            | "expand"
            | "expand_as"
            | "repeat"
            | "index_select"
            | "masked_select"
            | "narrow"
            | "select"
            | "swapaxes"
            | "movedim"
            | "take_along_dim"
    )
}

/// Returns the activation of the result of an operator: `1 - p` of a probability is a probability.
pub fn operated(operator: Operator, left: Value, right: Value) -> Activation {
    match right.activation {
        Activation::Softmax | Activation::Sigmoid
            if operator == Operator::Sub && left.as_number() == Some(1.0) =>
        {
            right.activation
        }
        _ => Activation::Unknown,
    }
}

/// Whether the result of an operator has one value per output of a layer: the output minus
/// something, or a value computed from that.
pub fn stays_elementwise(operator: Operator, left: Value, right: Value) -> bool {
    let is_output =
        |value: Value| value.is(ValueKind::Tensor) && value.activation == Activation::Linear;
    match operator {
        Operator::Sub => {
            left.elementwise || right.elementwise || is_output(left) || is_output(right)
        }
        Operator::Add | Operator::Mult | Operator::Div | Operator::Pow => {
            left.elementwise || right.elementwise
        }
        _ => false,
    }
}

/// Whether a function or method works element by element.
pub fn is_elementwise(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "pow"
            | "square"
            | "sqrt"
            | "exp"
            | "log"
            | "log1p"
            | "mul"
            | "div"
            | "add"
            | "sub"
            | "neg"
            | "clamp"
            | "clip"
            | "abs_"
            | "pow_"
            | "tanh"
            | "cosh"
    ) || only_moves(name)
}

/// Whether a sum or mean reduces only a later dimension and keeps the rows.
pub fn keeps_rows(call: &ExprCall, place: usize) -> bool {
    let dimension = keyword(call, "dim")
        .or_else(|| keyword(call, "axis"))
        .or_else(|| call.arguments.args.get(place));
    match dimension {
        Some(Expr::NumberLiteral(number)) => {
            matches!(&number.value, Number::Int(int) if int.as_u8().is_some_and(|int| int >= 1))
        }
        _ => false,
    }
}
