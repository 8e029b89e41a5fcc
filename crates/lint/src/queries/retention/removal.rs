//! Whether stored items are removed again.

use super::root_name;
use crate::model::uses::{Use, find_uses, lies_in};
use crate::model::{CodeContext, LoopId, LoopSource, Module};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

/// Whether a container is emptied or replaced in the loop that fills it, or in an enclosing loop
/// over batches.
pub(super) fn is_emptied_in_loop(
    module: &Module<'_>,
    name: &str,
    context: &CodeContext,
    outlived_loop: Option<LoopId>,
) -> bool {
    let Some(id) = outlived_loop else {
        return is_emptied_in_block(module, name, module.frame(context.frame).body);
    };
    let inner = module.loop_at(id);
    let outer = module.enclosing_loops(inner.parent).filter(|around| {
        around.loop_source == LoopSource::Batches && inner.loop_source != LoopSource::Batches
    });
    std::iter::once(inner).chain(outer).any(|around| {
        is_emptied_in_block(module, name, around.body)
            || module.calls().iter().any(|call| {
                lies_in(call.expr.range(), around.statement.range())
                    && call.local_function.is_some_and(|own| {
                        is_emptied_in_block(module, name, module.frame(own).body)
                    })
            })
    })
}

/// Whether a block removes items from a container or replaces it.
pub fn is_emptied_in_block(module: &Module<'_>, name: &str, block: &[Stmt]) -> bool {
    let root = root_name(name);
    [name, root].into_iter().any(|name| {
        find_uses(module.text, name, block)
            .iter()
            .any(removes_items)
    })
}

pub(super) fn removes_items(used: &Use<'_>) -> bool {
    if used.is_store {
        return match used.statement {
            Stmt::AugAssign(_) => false,
            // `xs = xs + [x]` extends the same list.
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
