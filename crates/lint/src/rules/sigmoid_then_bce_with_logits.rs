//! # sigmoid-then-bce-with-logits (AF404)
//!
//! A loss that applies a sigmoid receives values that already went through one.
//!
//! ## Why it crashes
//!
//! `BCEWithLogitsLoss` expects logits. A second sigmoid maps probabilities to values between 0.5
//! and 0.73: the loss for a 0 cannot fall below 0.69, gradients are tiny, and the model hardly
//! learns.
//!
//! ## Wrong
//!
//! ```python
//! probs = torch.sigmoid(model(x))
//! loss = nn.BCEWithLogitsLoss()(probs, y)
//! ```
//!
//! ## Right
//!
//! ```python
//! logits = model(x)
//! loss = nn.BCEWithLogitsLoss()(logits, y)
//! ```
//!
//! ## When it is fine
//!
//! Never for training. Models that apply a sigmoid only for inference are not reported.
//!
//! ## Fix
//!
//! None: only the author can choose between removing the sigmoid and using another loss.

use super::double_softmax::find_double_activation;
use crate::finding::Finding;
use crate::model::{Activation, Call, Module};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF404",
    name: "sigmoid-then-bce-with-logits",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("sigmoid_then_bce_with_logits.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        if let Some(given) = find_double_activation(module, call, Activation::Sigmoid) {
            findings.push(finding(module, call, given));
        }
    }
}

fn finding(module: &Module<'_>, call: &Call<'_>, given: &Expr) -> Finding {
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{}` went through a sigmoid, and this loss applies another: the gradients almost vanish",
            module.source(given)
        ),
        label: "expects logits".to_owned(),
        help: "pass the logits to the loss, or use `BCELoss`".to_owned(),
        fix: None,
    }
}
