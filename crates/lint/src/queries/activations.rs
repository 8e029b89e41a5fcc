//! Which activation produced the values that a logarithm or a division uses.

use crate::model::{Activation, Call, FrameId, Module, Value, ValueKind};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

/// Returns the possible activations of an expression: of what it was computed from or, for a
/// parameter, of what the calls in this text pass.
pub fn find_activations<'a>(
    module: &Module<'a>,
    frame: FrameId,
    expression: &'a Expr,
    value: Value,
) -> Vec<Activation> {
    if value.activation != Activation::Unknown {
        return vec![value.activation];
    }
    let Expr::Name(name) = expression else {
        return Vec::new();
    };
    match parameter_index(module, frame, name.id.as_str()) {
        Some(index) => passed_activations(module, frame, index, name.id.as_str()),
        None => Vec::new(),
    }
}

/// Returns the index of a parameter that the function does not rebind.
pub fn parameter_index(module: &Module<'_>, frame: FrameId, name: &str) -> Option<usize> {
    let def = module.frame(frame).def?;
    let mut parameters = def.parameters.iter_non_variadic_params();
    let index = parameters.position(|parameter| parameter.parameter.name.as_str() == name)?;
    let is_rebound = module.stores().iter().any(|store| {
        store.context.frame == frame && module.dotted_name(store.target) == Some(name)
    });
    (!is_rebound).then_some(index)
}

fn passed_activations(
    module: &Module<'_>,
    frame: FrameId,
    index: usize,
    name: &str,
) -> Vec<Activation> {
    let is_method = module.frame(frame).class.is_some();
    let Some(place) = index.checked_sub(usize::from(is_method)) else {
        return Vec::new();
    };
    module
        .calls()
        .iter()
        .filter(|call| call.local_function == Some(frame) || call_runs_method(module, call, frame))
        .filter_map(|call| module.argument(call, place, name))
        .map(|value| value.activation)
        .collect()
}

/// Whether a call of an object in this text runs this method.
fn call_runs_method(module: &Module<'_>, call: &Call<'_>, frame: FrameId) -> bool {
    let class = call
        .callee
        .class
        .and_then(|class| module.classes().get(class as usize));
    class.is_some_and(|class| {
        ["forward", "call"]
            .iter()
            .any(|name| class.methods.get(name) == Some(&frame))
    })
}

/// Whether the name is the `y_pred` of a custom Keras loss.
pub fn is_keras_prediction(module: &Module<'_>, frame: FrameId, expression: &Expr) -> bool {
    let Expr::Name(name) = expression else {
        return false;
    };
    name.id.as_str() == "y_pred"
        && (module.imports("keras") || module.imports("tensorflow"))
        && parameter_index(module, frame, "y_pred").is_some()
        && parameter_index(module, frame, "y_true").is_some()
}

/// Whether a call is one of these tensor methods.
pub fn is_tensor_method(call: &Call<'_>, names: &[&str]) -> bool {
    call.method().is_some_and(|method| names.contains(&method))
        && call
            .receiver
            .is_some_and(|receiver| matches!(receiver.kind, ValueKind::Tensor | ValueKind::Unknown))
}

/// Returns the source of an expression, in parentheses where a dot or an operator could not follow.
pub fn parenthesized(module: &Module<'_>, expression: &Expr) -> String {
    let source = module.source(expression.range());
    match expression {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Subscript(_) => {
            source.to_owned()
        }
        _ => format!("({source})"),
    }
}
