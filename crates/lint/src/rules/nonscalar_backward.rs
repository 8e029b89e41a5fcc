//! # nonscalar-backward (AF306)
//!
//! `backward()` is called on a loss with one value per element.
//!
//! ## Why it crashes
//!
//! `backward()` needs a scalar. For a tensor with several elements PyTorch raises `grad can be
//! implicitly created only for scalar outputs`, after the first batch has been loaded and computed.
//!
//! ## Wrong
//!
//! ```python
//! criterion = nn.CrossEntropyLoss(reduction="none")
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward()
//! ```
//!
//! ## Right
//!
//! ```python
//! criterion = nn.CrossEntropyLoss(reduction="none")
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.mean().backward()
//! ```
//!
//! ## When it is fine
//!
//! With batches of one element, or with a `gradient` argument. The latter is not reported.
//!
//! ## Fix
//!
//! Unsafe, because a sum may be meant: `.mean()` before `backward()`.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Call, LoopSource, Module, ValueKind};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF306",
    name: "nonscalar-backward",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("nonscalar_backward.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        if call.method() == Some("backward")
            && call.expr.arguments.args.is_empty()
            && call.keyword("gradient").is_none()
            && let Some(receiver) = call.receiver
            && (receiver.unreduced || receiver.elementwise)
            && receiver.is(ValueKind::Tensor)
            && !call.is_open()
            && (receiver.unreduced || has_batches(module, call))
            && !module.text.contains("batch_size=1)")
        {
            findings.push(finding(module, call));
        }
    }
}

/// Whether the model receives several samples at once: from a loader, or from a function in this
/// text that creates tensors with several rows.
fn has_batches(module: &Module<'_>, call: &Call<'_>) -> bool {
    module
        .enclosing_loops(call.context.innermost_loop)
        .any(|around| {
            around.loop_source == LoopSource::Batches
                || around.for_clause.is_some_and(|(_, iter)| {
                    module.calls().iter().any(|maker| {
                        iter.range().contains_range(maker.expr.range())
                            && maker.local_function.is_some_and(|own| {
                                module
                                    .calls()
                                    .iter()
                                    .any(|made| made.context.frame == own && has_rows(made))
                            })
                    })
                })
        })
}

/// Whether a call such as `torch.randn(32, 10)` creates several rows.
fn has_rows(call: &Call<'_>) -> bool {
    call.path.is_some_and(|path| {
        path.is_any(&["torch.rand", "torch.randn", "torch.zeros", "torch.ones"])
    }) && call.expr.arguments.args.len() >= 2
        && !matches!(call.expr.arguments.args.first(), Some(Expr::NumberLiteral(number))
            if matches!(&number.value, ruff_python_ast::Number::Int(int) if int.as_u8() == Some(1)))
}

fn finding(module: &Module<'_>, call: &Call<'_>) -> Finding {
    // `scaler.scale(loss)` returns the scaled loss.
    let loss = match call.object() {
        Some(Expr::Call(scale)) => match (&*scale.func, &*scale.arguments.args) {
            (Expr::Attribute(attribute), [loss]) if attribute.attr.as_str() == "scale" => {
                Some(loss)
            }
            _ => call.object(),
        },
        object => object,
    };
    let source = loss.map_or("", |loss| module.source(loss));
    let is_name = loss.is_some_and(|loss| module.dotted_name(loss).is_some());
    let fix = loss.filter(|_| is_name).map(|loss| Fix {
        edits: vec![Edit {
            range: TextRange::empty(loss.end()),
            content: ".mean()".to_owned(),
        }],
        safety: Safety::Unsafe,
        title: "Use the mean".to_owned(),
    });
    let named = if is_name {
        format!("`{source}`")
    } else {
        "the loss".to_owned()
    };
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "{named} has one value per element, but `backward()` needs a scalar: this fails on the first batch"
        ),
        label: "not a scalar".to_owned(),
        help: if is_name {
            format!(
                "use the mean: {}",
                module
                    .source(call.expr)
                    .replacen(source, &format!("{source}.mean()"), 1)
            )
        } else {
            "take the mean or sum of the loss first".to_owned()
        },
        fix,
    }
}
