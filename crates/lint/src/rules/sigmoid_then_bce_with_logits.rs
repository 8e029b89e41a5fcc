//! # sigmoid-then-bce-with-logits (AF404)
//!
//! A loss that applies a sigmoid is given what went through one already.
//!
//! ## Why it crashes
//!
//! `BCEWithLogitsLoss` takes raw numbers. Of probabilities its own sigmoid makes numbers between
//! 0.5 and 0.73: the loss for a 0 cannot fall below 0.69, gradients are tiny, and days of
//! training end where they began.
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
//! None: whether the sigmoid goes, or the loss becomes another, is the author's to say.

use super::double_softmax::given_twice;
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
        if let Some(given) = given_twice(module, call, Activation::Sigmoid) {
            findings.push(finding(module, call, given));
        }
    }
}

fn finding(module: &Module<'_>, call: &Call<'_>, given: &Expr) -> Finding {
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{}` has been through a sigmoid, and this loss applies another: the gradients all but vanish",
            module.source(given)
        ),
        label: "takes raw numbers".to_owned(),
        help: "give the loss the numbers before the sigmoid, or use `BCELoss`".to_owned(),
        fix: None,
    }
}
