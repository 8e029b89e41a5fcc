//! # division-by-prediction (AF402)
//!
//! The code divides by the output of a model, which may be zero.
//!
//! ## Why it crashes
//!
//! A model may output 0, and is close to 0 at the start of training. The quotient and its gradient
//! become infinite, and after the next step every weight is NaN. The run continues for hours and
//! learns nothing.
//!
//! ## Wrong
//!
//! ```python
//! loss = ((y - y_pred) ** 2 / y_pred).mean()
//! ```
//!
//! ## Right
//!
//! ```python
//! loss = ((y - y_pred) ** 2 / (y_pred.abs() + 1e-6)).mean()
//! ```
//!
//! ## When it is fine
//!
//! When the model's last activation is never zero, or the divisor has an epsilon or `clamp(min=…)`.
//! Such code is not reported, nor is code that runs without gradients.
//!
//! ## Fix
//!
//! Unsafe, because results change slightly: a small epsilon is added to the divisor.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Activation, Call, CodeContext, Module, Value};
use crate::queries::activations::{find_activations, is_keras_prediction, is_tensor_method};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF402",
    name: "division-by-prediction",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("division_by_prediction.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !["torch", "tensorflow", "keras"]
        .iter()
        .any(|package| module.imports(package))
    {
        return;
    }
    for division in module.divisions() {
        let range = TextRange::new(division.above.start(), division.below.end());
        check_divisor(
            module,
            &division.context,
            range,
            division.below,
            division.by,
            findings,
        );
    }
    for call in module.calls() {
        if let Some((below, by)) = find_divisor(module, call) {
            check_divisor(
                module,
                &call.context,
                call.expr.range(),
                below,
                by,
                findings,
            );
        }
    }
}

/// Returns the divisor of `torch.div(a, b)`, `a.div(b)` or `tf.divide(a, b)`.
fn find_divisor<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<(&'a Expr, Value)> {
    let place = match call.path {
        Some(path) => {
            let names = [
                "torch.div",
                "torch.divide",
                "torch.true_divide",
                "tensorflow.divide",
                "tensorflow.math.divide",
                "tensorflow.div",
                "tensorflow.truediv",
            ];
            path.is_any(&names).then_some(1)?
        }
        None => is_tensor_method(call, &["div", "div_", "divide", "true_divide"]).then_some(0)?,
    };
    Some((
        call.argument(place, "other")?,
        module.argument(call, place, "other")?,
    ))
}

fn check_divisor<'a>(
    module: &Module<'a>,
    context: &CodeContext,
    range: TextRange,
    below: &'a Expr,
    by: Value,
    findings: &mut Vec<Finding>,
) {
    if context.no_grad
        || findings
            .iter()
            .any(|known| known.rule.code == RULE.code && known.range == range)
    {
        return;
    }
    let is_risky = |activation: &Activation| {
        matches!(
            activation,
            Activation::Linear | Activation::Relu | Activation::ModelOutput
        )
    };
    if is_keras_prediction(module, context.frame, below)
        || find_activations(module, context.frame, below, by)
            .iter()
            .any(is_risky)
    {
        findings.push(finding(module, range, below));
    }
}

fn finding(module: &Module<'_>, range: TextRange, below: &Expr) -> Finding {
    let source = module.source(below);
    let content = format!("({source} + 1e-8)");
    Finding {
        rule: &RULE,
        range,
        message: format!(
            "`{source}` is the output of a model and may be zero: the quotient becomes infinite and the loss NaN"
        ),
        label: "divides by a prediction".to_owned(),
        help: format!("keep it above zero: {content}, or `clamp(min=…)` if it is positive"),
        fix: Some(Fix {
            edits: vec![Edit {
                range: below.range(),
                content,
            }],
            safety: Safety::Unsafe,
            title: "Add an epsilon to the divisor".to_owned(),
        }),
    }
}
