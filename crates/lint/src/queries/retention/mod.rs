//! What is stored in lists, dicts and totals that outlive the step.

mod graphs;
mod removal;
mod retaining_functions;
#[cfg(test)]
mod tests;
mod totals;

use crate::model::uses::lies_in;
use crate::model::{
    Call, CodeContext, FrameId, LoopId, LoopSource, Module, Store, Value, ValueKind,
};
use crate::queries::backward::collect_names;
pub use graphs::{
    MemoryGrowth, is_backward_target, is_evaluation_name, is_test_code, retained_graph_growth,
};
pub use removal::is_emptied_in_block;
pub use retaining_functions::{RetainingFunction, find_retaining_functions, match_arguments};
use ruff_python_ast::{Expr, Operator};
use ruff_text_size::{Ranged, TextRange};
pub use totals::{accepts_plain_number, find_accumulation, is_scalar};

/// An item stored in a list or a dict.
pub struct StoredItem<'a> {
    /// The name of the container.
    pub name: &'a str,
    /// The stored expression.
    pub item: &'a Expr,
    /// Its value.
    pub value: Value,
    /// The call or statement that stores the item.
    pub range: TextRange,
    /// Where it is stored.
    pub context: CodeContext,
    /// The innermost loop that the container outlives.
    pub outlived_loop: Option<LoopId>,
}

/// Returns everything stored in lists and dicts.
pub fn find_stored_items<'a>(module: &Module<'a>) -> Vec<StoredItem<'a>> {
    let by_call = module
        .calls()
        .iter()
        .filter_map(|call| stored_by_call(module, call));
    let by_store = module
        .stores()
        .iter()
        .filter_map(|store| stored_by_assignment(module, store));
    by_call.chain(by_store).collect()
}

/// Returns the item stored by `xs.append(x)` or `history["loss"].append(x)`.
fn stored_by_call<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<StoredItem<'a>> {
    let count = match call.method()? {
        "append" | "appendleft" | "extend" => 1,
        // Tensors have an `add` method too.
        "add"
            if call
                .receiver
                .is_some_and(|receiver| receiver.is(ValueKind::List)) =>
        {
            1
        }
        "insert" => 2,
        _ => return None,
    };
    let arguments = &call.expr.arguments;
    if arguments.args.len() != count || !arguments.keywords.is_empty() || call.context.inline {
        return None;
    }
    if call
        .receiver
        .is_some_and(|receiver| receiver.is(ValueKind::Bounded))
    {
        return None;
    }
    Some(StoredItem {
        name: container_name(module, call.object()?)?,
        item: arguments.args.last()?,
        value: *module.arguments(call).last()?,
        range: call.expr.range(),
        context: call.context,
        outlived_loop: call.outlived_loop,
    })
}

/// Returns the item stored by `xs += [x]`, `xs = xs + [x]` or `table[step] = x`.
fn stored_by_assignment<'a>(module: &Module<'a>, store: &Store<'a>) -> Option<StoredItem<'a>> {
    let source = store.source?;
    let (name, item) = match (store.operator, source) {
        (Some(Operator::Add), Expr::List(_)) => (container_name(module, store.target)?, source),
        (Some(_), _) => return None,
        (None, Expr::BinOp(sum)) if sum.op == Operator::Add && sum.right.is_list_expr() => {
            let name = module.dotted_name(store.target)?;
            (
                name,
                (module.dotted_name(&sum.left) == Some(name)).then_some(&*sum.right)?,
            )
        }
        (None, _) => {
            let Expr::Subscript(subscript) = store.target else {
                return None;
            };
            let name = container_name(module, &subscript.value)?;
            let is_new = store
                .outlived_loop
                .is_some_and(|id| index_changes_in_loop(module, &subscript.slice, id));
            let is_table = matches!(
                kind_of_name(module, store.context.frame, name),
                ValueKind::Dict | ValueKind::Fields(_) | ValueKind::List
            );
            (is_new && is_table).then_some((name, source))?
        }
    };
    let item = match item {
        Expr::List(list) => match &*list.elts {
            [one] => one,
            _ => item,
        },
        _ => item,
    };
    Some(StoredItem {
        name,
        item,
        value: store.value,
        range: store.statement.range(),
        context: store.context,
        outlived_loop: store.outlived_loop,
    })
}

/// Returns the name of a container, without an index that is not a literal.
fn container_name<'a>(module: &Module<'a>, expression: &'a Expr) -> Option<&'a str> {
    let mut rest = expression;
    loop {
        if let Some(key) = module.dotted_name(rest) {
            return Some(key);
        }
        match rest {
            Expr::Subscript(subscript) => rest = &subscript.value,
            _ => return None,
        }
    }
}

/// Whether an index differs in each iteration of a loop because the loop binds or counts it.
fn index_changes_in_loop<'a>(module: &Module<'a>, index: &'a Expr, id: LoopId) -> bool {
    let around = module.loop_at(id);
    let mut names = Vec::new();
    collect_names(module, index, &mut names);
    let mut bound = Vec::new();
    if let Some((target, over)) = around.for_clause {
        // A `for` over names of layers or tasks has the same indices in the next step.
        let counts = around.loop_source != LoopSource::Other
            || matches!(over, Expr::Call(call) if matches!(&*call.func, Expr::Name(name) if name.id == "enumerate"));
        if counts {
            collect_names(module, target, &mut bound);
        }
    }
    names.iter().any(|name| {
        bound.contains(name)
            || module.stores().iter().any(|store| {
                store.operator == Some(Operator::Add)
                    && module.dotted_name(store.target) == Some(name)
                    && lies_in(store.statement.range(), around.statement.range())
            })
    })
}

/// Returns the first name of a dotted or indexed name, or `self.…` for an attribute of `self`.
pub fn root_name(name: &str) -> &str {
    let skip = if name.starts_with("self.") {
        "self.".len()
    } else {
        0
    };
    let rest = name.get(skip..).unwrap_or("");
    let length = rest.find(['.', '[']).unwrap_or(rest.len());
    name.get(..skip + length).unwrap_or(name)
}

/// Returns the kind of a name's final value.
pub fn kind_of_name(module: &Module<'_>, frame: FrameId, name: &str) -> ValueKind {
    let mut here = Some(module.frame(frame));
    if let (Some(attribute), Some(class)) = (
        name.strip_prefix("self."),
        here.and_then(|frame| frame.class),
    ) {
        let class = module.classes().get(class as usize);
        let known = class.and_then(|class| class.attributes.get(attribute));
        return known.map_or(ValueKind::Unknown, |value| value.kind);
    }
    while let Some(frame) = here {
        if let Some(value) = frame.names.get(name) {
            return value.kind;
        }
        here = frame.parent.map(|parent| module.frame(parent));
    }
    ValueKind::Unknown
}

/// Whether a container still exists when the function has returned, because it belongs to `self` or
/// to an outer function.
pub fn outlives_the_call(module: &Module<'_>, name: &str, context: &CodeContext) -> bool {
    let frame = module.frame(context.frame);
    let root = root_name(name);
    if frame.def.is_none() || frame.name() == "__init__" {
        return false;
    }
    if root.starts_with("self.") {
        return frame.class.is_some() && !is_created_in_function(module, root, context.frame);
    }
    !frame.names.contains_key(root)
        && frame
            .parent
            .is_some_and(|parent| is_bound_in_outer_function(module, root, parent))
}

/// Whether a function creates the object that a name is bound to.
fn is_created_in_function(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    module.stores().iter().any(|store| {
        store.context.frame == frame
            && store.operator.is_none()
            && module.dotted_name(store.target) == Some(name)
            && !matches!(store.source, Some(Expr::BinOp(_)))
    })
}

fn is_bound_in_outer_function(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    let frame = module.frame(frame);
    frame.names.contains_key(name)
        || frame
            .parent
            .is_some_and(|parent| is_bound_in_outer_function(module, name, parent))
}
