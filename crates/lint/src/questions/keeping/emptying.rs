//! Whether what is kept is let go of again.

use super::root_of;
use crate::model::uses::{Use, lies_in, uses_of};
use crate::model::{Feed, LoopId, Module, Place};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

/// Whether a container is emptied, or made anew, in the loop that fills it, or in a loop over
/// batches around that.
pub(super) fn is_emptied(
    module: &Module<'_>,
    name: &str,
    place: &Place,
    carried: Option<LoopId>,
) -> bool {
    let Some(id) = carried else {
        return empties(module, name, module.frame(place.frame).body);
    };
    let inner = module.loop_at(id);
    let outer = module
        .loops_around(inner.parent)
        .filter(|around| around.feed == Feed::Batches && inner.feed != Feed::Batches);
    std::iter::once(inner).chain(outer).any(|around| {
        empties(module, name, around.body)
            || module.calls().iter().any(|call| {
                lies_in(call.expr.range(), around.statement.range())
                    && call
                        .own
                        .is_some_and(|own| empties(module, name, module.frame(own).body))
            })
    })
}

/// Whether something is taken out of a container in a block, or the container replaced.
pub fn empties(module: &Module<'_>, name: &str, block: &[Stmt]) -> bool {
    let root = root_of(name);
    [name, root]
        .into_iter()
        .any(|name| uses_of(module.text, name, block).iter().any(takes_out))
}

pub(super) fn takes_out(used: &Use<'_>) -> bool {
    if used.is_store {
        return match used.statement {
            Stmt::AugAssign(_) => false,
            // `xs = xs + [x]` goes on with the same.
            Stmt::Assign(assign) => !matches!(&*assign.value, Expr::BinOp(_)),
            _ => true,
        };
    }
    if matches!(used.statement, Stmt::Delete(_)) {
        return true;
    }
    let is_slice_store = matches!(used.around[0], Some(Expr::Subscript(part)) if part.slice.is_slice_expr() && part.ctx.is_store());
    is_slice_store
        || matches!(
            used.method(),
            Some("clear" | "pop" | "popleft" | "popitem" | "remove" | "reset" | "flush" | "zero_")
        )
}
