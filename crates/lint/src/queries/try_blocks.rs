//! `try` statements, the calls inside them and the exceptions they catch.

use super::backward::{call_runs_backward, is_backward_call};
use crate::model::uses::lies_in;
use crate::model::{Call, FrameId, Module, ValueKind, each_block};
use ruff_python_ast::{ExceptHandlerExceptHandler, Expr, Stmt, StmtTry};
use ruff_text_size::{Ranged, TextRange};

/// Returns all `try` statements.
pub fn find_try_statements<'a>(module: &Module<'a>) -> Vec<&'a StmtTry> {
    fn collect<'a>(block: &'a [Stmt], found: &mut Vec<&'a StmtTry>) {
        for statement in block {
            if let Stmt::Try(attempt) = statement {
                found.push(attempt);
            }
            each_block(statement, |block| collect(block, found));
        }
    }
    let mut found = Vec::new();
    if module.text.contains("except") {
        module
            .frames()
            .iter()
            .for_each(|frame| collect(frame.body, &mut found));
    }
    found
}

/// Returns the range of a block.
pub fn block_range(block: &[Stmt]) -> TextRange {
    match (block.first(), block.last()) {
        (Some(first), Some(last)) => TextRange::new(first.start(), last.end()),
        _ => TextRange::default(),
    }
}

/// Returns the calls inside a block.
pub fn calls_in_block<'m, 'a>(
    module: &'m Module<'a>,
    block: &[Stmt],
) -> impl Iterator<Item = &'m Call<'a>> {
    let range = block_range(block);
    module
        .calls()
        .iter()
        .filter(move |call| lies_in(call.expr.range(), range))
}

/// Whether a call runs a model, directly or through a function in this text.
pub fn runs_model(module: &Module<'_>, call: &Call<'_>) -> bool {
    fn runs(module: &Module<'_>, call: &Call<'_>, deep: u32) -> bool {
        let is_forward = call.method() == Some("forward")
            && call.receiver.is_some_and(|of| of.is(ValueKind::Model));
        call.callee.is(ValueKind::Model)
            || is_forward
            || is_backward_call(call)
            || (deep > 0
                && call
                    .local_function
                    .is_some_and(|own| any_runs(module, own, deep - 1)))
    }
    fn any_runs(module: &Module<'_>, frame: FrameId, deep: u32) -> bool {
        module
            .calls()
            .iter()
            .any(|call| call.context.frame == frame && runs(module, call, deep))
    }
    runs(module, call, 3) || call_runs_backward(module, call)
}

/// Returns the names of the exceptions that a handler catches; empty for a bare `except:`.
pub fn caught_exceptions(handler: &ExceptHandlerExceptHandler) -> Vec<&str> {
    fn last(expression: &Expr) -> Option<&str> {
        match expression {
            Expr::Name(name) => Some(name.id.as_str()),
            Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
            _ => None,
        }
    }
    match handler.type_.as_deref() {
        Some(Expr::Tuple(tuple)) => tuple.elts.iter().filter_map(last).collect(),
        Some(one) => last(one).into_iter().collect(),
        None => Vec::new(),
    }
}
