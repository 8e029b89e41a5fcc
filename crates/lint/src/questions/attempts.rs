//! Every `try` of a text, and what is run in it.

use super::backward::{goes_back_by, is_backward};
use crate::model::uses::lies_in;
use crate::model::{Call, FrameId, Kind, Module, each_block};
use ruff_python_ast::{ExceptHandlerExceptHandler, Expr, Stmt, StmtTry};
use ruff_text_size::{Ranged, TextRange};

/// All `try` statements.
pub fn attempts<'a>(module: &Module<'a>) -> Vec<&'a StmtTry> {
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

/// The range of a block.
pub fn range_of(block: &[Stmt]) -> TextRange {
    match (block.first(), block.last()) {
        (Some(first), Some(last)) => TextRange::new(first.start(), last.end()),
        _ => TextRange::default(),
    }
}

/// The calls that stand in a block.
pub fn calls_in<'m, 'a>(
    module: &'m Module<'a>,
    block: &[Stmt],
) -> impl Iterator<Item = &'m Call<'a>> {
    let range = range_of(block);
    module
        .calls()
        .iter()
        .filter(move |call| lies_in(call.expr.range(), range))
}

/// Whether a call runs a model, itself or in a function of this text.
pub fn runs_a_model(module: &Module<'_>, call: &Call<'_>) -> bool {
    fn runs(module: &Module<'_>, call: &Call<'_>, deep: u32) -> bool {
        let is_forward =
            call.method() == Some("forward") && call.receiver.is_some_and(|of| of.is(Kind::Model));
        call.callee.is(Kind::Model)
            || is_forward
            || is_backward(call)
            || (deep > 0 && call.own.is_some_and(|own| any_runs(module, own, deep - 1)))
    }
    fn any_runs(module: &Module<'_>, frame: FrameId, deep: u32) -> bool {
        module
            .calls()
            .iter()
            .any(|call| call.place.frame == frame && runs(module, call, deep))
    }
    runs(module, call, 3) || goes_back_by(module, call)
}

/// The names of the exceptions that a handler is for; none when it is for all.
pub fn caught(handler: &ExceptHandlerExceptHandler) -> Vec<&str> {
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
