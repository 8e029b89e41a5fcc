//! # double-softmax (AF403)
//!
//! A loss that applies a softmax receives values that already went through one.
//!
//! ## Why it crashes
//!
//! `CrossEntropyLoss` expects logits. A second softmax makes probabilities almost equal: with ten
//! classes the best cannot exceed 0.23. The loss stays high, gradients are tiny, and the model
//! hardly learns.
//!
//! ## Wrong
//!
//! ```python
//! probs = torch.softmax(model(x), dim=1)
//! loss = nn.CrossEntropyLoss()(probs, y)
//! ```
//!
//! ## Right
//!
//! ```python
//! logits = model(x)
//! loss = nn.CrossEntropyLoss()(logits, y)
//! ```
//!
//! ## When it is fine
//!
//! Never for training. Models that apply a softmax only for inference are not reported.
//!
//! ## Fix
//!
//! None: only the author can choose between removing the softmax and using another loss.

use crate::finding::Finding;
use crate::model::{Activation, Call, Module, Value, ValueKind};
use crate::queries::activations::find_activations;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF403",
    name: "double-softmax",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("double_softmax.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        if let Some(given) = find_double_activation(module, call, Activation::Softmax) {
            findings.push(finding(module, call, given));
        }
    }
}

/// Returns the input of a loss that already went through the activation that the loss applies.
pub fn find_double_activation<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    activation: Activation,
) -> Option<&'a Expr> {
    let (given, value) = logits_argument(module, call, activation)?;
    let known = find_activations(module, call.context.frame, given, value);
    (!known.is_empty() && known.iter().all(|known| *known == activation)).then_some(given)
}

/// Returns the logits argument of a loss that applies this activation.
fn logits_argument<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    activation: Activation,
) -> Option<(&'a Expr, Value)> {
    let argument = |place: usize, name: &str| {
        Some((
            call.argument(place, name)?,
            module.argument(call, place, name)?,
        ))
    };
    if let Some(path) = call.path {
        return match (path.segments(), activation) {
            (["torch", "nn", "functional", "cross_entropy"], Activation::Softmax)
            | (
                [
                    "torch",
                    "nn",
                    "functional",
                    "binary_cross_entropy_with_logits",
                ],
                Activation::Sigmoid,
            ) => argument(0, "input"),
            (
                [
                    "tensorflow",
                    "nn",
                    "softmax_cross_entropy_with_logits"
                    | "sparse_softmax_cross_entropy_with_logits",
                ],
                Activation::Softmax,
            )
            | (["tensorflow", "nn", "sigmoid_cross_entropy_with_logits"], Activation::Sigmoid) => {
                argument(1, "logits")
            }
            _ => None,
        };
    }
    if call.method() == Some("compile") {
        // The output of the model is the input of the loss.
        let model = call
            .receiver
            .filter(|receiver| receiver.is(ValueKind::Model))?;
        let loss = module.argument(call, 1, "loss")?;
        let fits = loss.is(ValueKind::Criterion) && loss.activation == activation;
        return Some((call.object()?, model)).filter(|_| fits);
    }
    let fits = call.callee.is(ValueKind::Criterion) && call.callee.activation == activation;
    if !fits {
        return None;
    }
    // Keras losses take the true values first.
    let is_keras = !module.imports("torch");
    if is_keras {
        argument(1, "y_pred")
    } else {
        argument(0, "input")
    }
}

fn finding(module: &Module<'_>, call: &Call<'_>, given: &Expr) -> Finding {
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{}` went through a softmax, and this loss applies another: the gradients almost vanish",
            module.source(given)
        ),
        label: "expects logits".to_owned(),
        help:
            "pass the logits to the loss, and apply the softmax only where probabilities are needed"
                .to_owned(),
        fix: None,
    }
}
