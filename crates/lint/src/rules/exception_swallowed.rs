//! # exception-swallowed (AF109)
//!
//! Whatever goes wrong in a training step is passed over in silence.
//!
//! ## Why it freezes
//!
//! "Out of memory" is an exception like any other. A bare `except:` around the step takes it,
//! and the loop goes on: with the memory still full, most steps failing, the gradients of half
//! a step left behind, and nothing on the screen. The run seems to work, for days, and learns
//! nothing. A bare `except:` takes Ctrl-C as well.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in loader:
//!     try:
//!         train_step(x, y)
//!     except:
//!         continue
//! ```
//!
//! ## Right
//!
//! ```python
//! for x, y in loader:
//!     try:
//!         train_step(x, y)
//!     except CorruptSample as error:
//!         print("left out:", error)
//! ```
//!
//! ## When it is fine
//!
//! When the handler raises, or says what happened: such handlers are not reported.
//!
//! ## Fix
//!
//! None: only the author knows which exception was meant.

use super::attempts::{attempts, calls_in, caught};
use super::backward::goes_back_by;
use crate::finding::Finding;
use crate::model::uses::lies_in;
use crate::model::{Call, Module};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{ExceptHandler, ExceptHandlerExceptHandler, Expr, Stmt, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};

pub static RULE: Rule = Rule {
    code: "AF109",
    name: "exception-swallowed",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("exception_swallowed.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") {
        return;
    }
    for attempt in attempts(module) {
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            if is_broad(handler)
                && handler.body.iter().all(|statement| is_silent(handler, statement))
                && calls_in(module, &attempt.body).any(|call| is_step(module, call, attempt))
            {
                findings.push(finding(handler));
            }
        }
    }
}

/// Whether out of memory is among what it takes.
fn is_broad(handler: &ExceptHandlerExceptHandler) -> bool {
    handler.type_.is_none()
        || caught(handler)
            .iter()
            .any(|name| matches!(*name, "RuntimeError" | "Exception" | "BaseException"))
}

/// Whether a statement of a handler says nothing of what happened.
fn is_silent(handler: &ExceptHandlerExceptHandler, statement: &Stmt) -> bool {
    match statement {
        Stmt::Pass(_) | Stmt::Continue(_) => true,
        Stmt::AugAssign(_) => true,
        Stmt::Assign(assign) => assign.value.is_literal_expr(),
        Stmt::Expr(expression) => match &*expression.value {
            Expr::Call(call) => {
                let name = match &*call.func {
                    Expr::Name(name) => name.id.as_str(),
                    Expr::Attribute(attribute) => attribute.attr.as_str(),
                    _ => "",
                };
                let is_plain = call.arguments.args.iter().all(Expr::is_literal_expr);
                is_plain
                    && match name {
                        "empty_cache" | "collect" | "zero_grad" => true,
                        // With a name for it, one might have been used.
                        "print" => handler.name.is_none() && call.arguments.args.is_empty(),
                        _ => false,
                    }
            }
            literal => literal.is_literal_expr(),
        },
        _ => false,
    }
}

/// Whether a call computes gradients in a loop that goes on after the `try`.
fn is_step(module: &Module<'_>, call: &Call<'_>, attempt: &StmtTry) -> bool {
    goes_back_by(module, call)
        && module
            .loops_around(call.place.within)
            .any(|around| lies_in(attempt.range(), around.statement.range()))
}

fn finding(handler: &ExceptHandlerExceptHandler) -> Finding {
    let head = handler
        .type_
        .as_deref()
        .map_or(handler.start() + TextSize::of("except"), |kind| kind.end());
    let what = handler.type_.as_deref().map_or("`except:`", |_| "This `except`");
    Finding {
        rule: &RULE,
        range: TextRange::new(handler.start(), head),
        message: format!("{what} hides that the step ran out of memory: the loop goes on and learns nothing"),
        label: "takes every error, and says nothing".to_owned(),
        help: "name the exception that is meant, and let the others through; or `raise` at the end of the handler".to_owned(),
        fix: None,
    }
}
