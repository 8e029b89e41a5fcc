//! # persistent-tape (AF501)
//!
//! A persistent gradient tape keeps all activations of its step after the gradients are computed.
//!
//! ## Why it freezes
//!
//! A tape frees its recorded activations when `gradient()` is called. A persistent tape keeps them
//! until nothing references it, which in a loop includes the next step. Memory then holds two steps
//! at once.
//!
//! ## Wrong
//!
//! ```python
//! with tf.GradientTape(persistent=True) as tape:
//!     ...
//! one = tape.gradient(first_loss, first_weights)
//! two = tape.gradient(second_loss, second_weights)
//! ```
//!
//! ## Right
//!
//! ```python
//! with tf.GradientTape(persistent=True) as tape:
//!     ...
//! one = tape.gradient(first_loss, first_weights)
//! two = tape.gradient(second_loss, second_weights)
//! del tape
//! ```
//!
//! ## When it is fine
//!
//! In a `tf.function`, or a `train_step` that Keras compiles, the tape is gone after tracing; these
//! are not reported. A function that returns right after the gradients frees it only slightly
//! later.
//!
//! ## Fix
//!
//! Safe: `del tape` after its last use.

use crate::finding::{Finding, Fix, Safety};
use crate::model::uses::find_uses;
use crate::model::{Call, Frame, Module, Role};
use crate::queries::bindings::find_statement;
use crate::queries::optimizer_steps::insert_line_after;
use crate::queries::retention::is_test_code;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF501",
    name: "persistent-tape",
    severity: Severity::Info,
    stage: Stage::Preview,
    source: include_str!("persistent_tape.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        if call
            .path
            .is_some_and(|path| path.is("tensorflow.GradientTape"))
            && matches!(call.argument(0, "persistent"), Some(Expr::BooleanLiteral(on)) if on.value)
            && let Some(finding) = check_tape(module, call)
        {
            findings.push(finding);
        }
    }
}

fn check_tape(module: &Module<'_>, call: &Call<'_>) -> Option<Finding> {
    let frame = module.frame(call.context.frame);
    if is_compiled(module, frame) || is_test_code(module, frame) || module.text.contains("TestCase")
    {
        return None;
    }
    let (block, at) = find_statement(frame.body, call.expr.range())?;
    let Stmt::With(with) = block.get(at)? else {
        return None;
    };
    let item = with
        .items
        .iter()
        .find(|item| item.context_expr.range() == call.expr.range())?;
    let Some(Expr::Name(name)) = item.optional_vars.as_deref() else {
        return None;
    };
    let name = name.id.as_str();
    let uses = find_uses(module.text, name, frame.body);
    let lets_go = uses
        .iter()
        .any(|used| matches!(used.statement, Stmt::Delete(_)));
    // A tape that is passed on may live longer on purpose.
    let given_away = uses.iter().any(|used| {
        !used.is_store && used.method().is_none() || matches!(used.statement, Stmt::Return(_))
    });
    if lets_go || given_away {
        return None;
    }
    let rest = block.get(at + 1..)?;
    let last = rest.iter().rposition(|statement| {
        uses.iter()
            .any(|used| statement.range().contains_range(used.expr.range()))
    })?;
    let takes = uses
        .iter()
        .filter(|used| used.method() == Some("gradient"))
        .count();
    let last = rest.get(last)?;
    let head = with.body.first().map_or(with.end(), Ranged::start);
    Some(Finding {
        rule: &RULE,
        range: TextRange::new(with.start(), head.min(call.expr.end())),
        message: format!(
            "`{name}` keeps all activations of the step after the gradients are computed"
        ),
        label: format!(
            "kept after {}",
            module.line_label(TextRange::empty(last.end()))
        ),
        help: if takes > 1 {
            format!("free it after its last use: del {name}")
        } else {
            "one gradient needs no persistent tape: remove persistent=True".to_owned()
        },
        fix: insert_line_after(module, last.range(), &format!("del {name}")).map(|edit| Fix {
            edits: vec![edit],
            safety: Safety::Safe,
            title: "Free the tape after its last use".to_owned(),
        }),
    })
}

/// Whether a function is compiled, by its decorator or by Keras.
fn is_compiled(module: &Module<'_>, frame: &Frame<'_>) -> bool {
    let Some(def) = frame.def else { return false };
    let by_decorator = def.decorator_list.iter().any(|decorator| {
        let function = match &decorator.expression {
            Expr::Call(call) => &*call.func,
            other => other,
        };
        module.source(function).ends_with("function")
    });
    let class = frame
        .class
        .and_then(|class| module.classes().get(class as usize));
    let by_keras = class.is_some_and(|class| class.role == Role::Keras)
        && matches!(def.name.as_str(), "train_step" | "test_step" | "call");
    // `step = tf.function(step)`.
    let name = def.name.as_str();
    let by_call = module.calls().iter().any(|call| {
        call.path.is_some_and(|path| path.is("tensorflow.function"))
            && call
                .argument(0, "func")
                .is_some_and(|function| module.source(function).ends_with(name))
    });
    by_decorator || by_keras || by_call
}
