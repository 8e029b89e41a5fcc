//! # nonscalar-backward (AF306)
//!
//! `backward()` is called on a loss that has a value for each element.
//!
//! ## Why it crashes
//!
//! Gradients are those of one number. Of a tensor with more than one PyTorch raises `grad can be
//! implicitly created only for scalar outputs`, after the first batch has been loaded and
//! computed.
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
//! With batches of one element, or with a gradient as argument. The latter is not reported.
//!
//! ## Fix
//!
//! Unsafe, as a sum may be meant: `.mean()` before `backward()`.

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

/// Whether more than one element at a time goes through the model: a loader feeds the loop, or
/// a function of this text that makes tensors of several rows.
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

/// `torch.randn(32, 10)`: more dimensions than one, and no single row.
fn has_rows(call: &Call<'_>) -> bool {
    call.path.is_some_and(|path| {
        path.is_any(&["torch.rand", "torch.randn", "torch.zeros", "torch.ones"])
    }) && call.expr.arguments.args.len() >= 2
        && !matches!(call.expr.arguments.args.first(), Some(Expr::NumberLiteral(number))
            if matches!(&number.value, ruff_python_ast::Number::Int(int) if int.as_u8() == Some(1)))
}

fn finding(module: &Module<'_>, call: &Call<'_>) -> Finding {
    // The scaler gives back what it is given, scaled.
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
        title: "Go back through the mean".to_owned(),
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
            "{named} has a value for each element, `backward()` takes one number: this fails with the first batch"
        ),
        label: "not a single number".to_owned(),
        help: if is_name {
            format!(
                "go back through the mean: {}",
                module
                    .source(call.expr)
                    .replacen(source, &format!("{source}.mean()"), 1)
            )
        } else {
            "take the mean or the sum of the loss first".to_owned()
        },
        fix,
    }
}
