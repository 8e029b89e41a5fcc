//! # exception-swallowed (AF109)
//!
//! An `except` around a training step catches every error, and the loop continues.
//!
//! ## Why it freezes
//!
//! "Out of memory" is an exception like any other. An `except:` or `except Exception:` around the
//! step catches it, and the loop continues with full memory, failing steps and the gradients of
//! half a step. The run seems to work for days and learns nothing. A bare `except:` also catches
//! Ctrl-C.
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
//! When the handler raises, logs the error with its traceback, or catches one kind of error only.
//! Such handlers are not reported. A handler that prints every error and continues is.
//!
//! ## Fix
//!
//! None: only the author knows which exception was meant.

use crate::finding::Finding;
use crate::model::uses::lies_in;
use crate::model::{Call, CodeContext, Module, ValueKind};
use crate::queries::backward::call_runs_backward;
use crate::queries::try_blocks::{calls_in_block, caught_exceptions, find_try_statements};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{ExceptHandler, ExceptHandlerExceptHandler, Expr, ExprCall, Stmt, StmtTry};
use ruff_text_size::{Ranged, TextRange, TextSize};

pub static RULE: Rule = Rule {
    code: "AF109",
    name: "exception-swallowed",
    severity: Severity::Warning,
    stage: Stage::Preview,
    source: include_str!("exception_swallowed.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") && !module.imports("tensorflow") && !module.imports("keras") {
        return;
    }
    for attempt in find_try_statements(module) {
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            if let Some(how) = swallows(handler)
                && calls_in_block(module, &attempt.body).any(|call| is_step(module, call, attempt))
            {
                findings.push(finding(handler, how));
            }
        }
    }
}

/// What a handler does with an error that it should not catch.
#[derive(Clone, Copy)]
enum Handling {
    Silent,
    /// It prints the error.
    Printed,
}

/// Returns how a handler treats out-of-memory errors, if it catches them and continues.
fn swallows(handler: &ExceptHandlerExceptHandler) -> Option<Handling> {
    let caught = caught_exceptions(handler);
    let takes_all = handler.type_.is_none()
        || caught
            .iter()
            .any(|name| matches!(*name, "Exception" | "BaseException"));
    if handler.body.iter().all(is_silent) {
        return (takes_all || caught.contains(&"RuntimeError")).then_some(Handling::Silent);
    }
    (takes_all && handler.body.iter().all(only_prints)).then_some(Handling::Printed)
}

/// Whether a statement in a handler reports nothing.
fn is_silent(statement: &Stmt) -> bool {
    match statement {
        Stmt::Pass(_) | Stmt::Continue(_) | Stmt::AugAssign(_) => true,
        Stmt::Assign(assign) => assign.value.is_literal_expr(),
        Stmt::Return(result) => result
            .value
            .as_deref()
            .is_none_or(Expr::is_none_literal_expr),
        Stmt::Expr(expression) => match &*expression.value {
            Expr::Call(call) => {
                matches!(called_name(call), "empty_cache" | "collect" | "zero_grad")
            }
            literal => literal.is_literal_expr(),
        },
        _ => false,
    }
}

fn only_prints(statement: &Stmt) -> bool {
    let is_print = matches!(statement, Stmt::Expr(expression)
        if matches!(&*expression.value, Expr::Call(call) if called_name(call) == "print"));
    is_print || is_silent(statement)
}

fn called_name(call: &ExprCall) -> &str {
    match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    }
}

/// Whether a call trains, in a loop that continues after the `try`.
fn is_step(module: &Module<'_>, call: &Call<'_>, attempt: &StmtTry) -> bool {
    let trains = call_runs_backward(module, call)
        || (matches!(call.method(), Some("fit" | "train_on_batch"))
            && call
                .receiver
                .is_some_and(|receiver| receiver.is(ValueKind::Model)));
    let loop_continues = |context: &CodeContext| {
        module
            .enclosing_loops(context.innermost_loop)
            .any(|around| lies_in(attempt.range(), around.statement.range()))
    };
    let is_repeated = || {
        let mut callers = module
            .calls()
            .iter()
            .filter(|caller| caller.local_function == Some(call.context.frame));
        callers.any(|caller| caller.context.innermost_loop.is_some())
    };
    trains
        && (loop_continues(&call.context)
            || (call.context.innermost_loop.is_none() && is_repeated()))
}

fn finding(handler: &ExceptHandlerExceptHandler, how: Handling) -> Finding {
    let head = handler
        .type_
        .as_deref()
        .map_or(handler.start() + TextSize::of("except"), Ranged::end);
    let (message, label) = match how {
        Handling::Silent => (
            "this `except` hides out-of-memory errors: the loop continues and learns nothing",
            "ignores every error",
        ),
        Handling::Printed => (
            "this `except` treats out-of-memory like any other error: the loop continues with full memory",
            "catches every error and continues",
        ),
    };
    Finding {
        rule: &RULE,
        range: TextRange::new(handler.start(), head),
        message: message.to_owned(),
        label: label.to_owned(),
        help: "catch only the exception you expect, or `raise` at the end of the handler"
            .to_owned(),
        fix: None,
    }
}
