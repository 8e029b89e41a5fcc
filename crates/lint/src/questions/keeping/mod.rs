//! What is put where it stays: lists, dicts and totals that outlive the step.

mod emptying;
mod keepers;
mod staying;
#[cfg(test)]
mod tests;
mod totals;

use crate::model::uses::lies_in;
use crate::model::{Call, Feed, FrameId, Kind, LoopId, Module, Place, Store, Value};
use crate::questions::backward::keys_in;
pub use emptying::empties;
pub use keepers::{Keeper, arguments_of, keepers};
use ruff_python_ast::{Expr, Operator};
use ruff_text_size::{Ranged, TextRange};
pub use staying::{Pace, graph_stays, is_evaluation, is_stepped_with, is_test};
pub use totals::{added_to, is_scalar, takes_numbers};

/// Something put into a list or a dict.
pub struct Kept<'a> {
    /// What it is put into, as it is written.
    pub name: &'a str,
    pub item: &'a Expr,
    pub value: Value,
    /// The call or the statement that puts it there.
    pub range: TextRange,
    pub place: Place,
    /// The innermost loop that the container outlives.
    pub carried: Option<LoopId>,
}

/// All that is put into lists and dicts.
pub fn kept_items<'a>(module: &Module<'a>) -> Vec<Kept<'a>> {
    let by_call = module
        .calls()
        .iter()
        .filter_map(|call| put_by_call(module, call));
    let by_store = module
        .stores()
        .iter()
        .filter_map(|store| put_by_store(module, store));
    by_call.chain(by_store).collect()
}

/// `xs.append(x)`, `history["loss"].append(x)`.
fn put_by_call<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<Kept<'a>> {
    let count = match call.method()? {
        "append" | "appendleft" | "extend" => 1,
        // Tensors have an `add` too.
        "add"
            if call
                .receiver
                .is_some_and(|receiver| receiver.is(Kind::List)) =>
        {
            1
        }
        "insert" => 2,
        _ => return None,
    };
    let arguments = &call.expr.arguments;
    if arguments.args.len() != count || !arguments.keywords.is_empty() || call.place.inline {
        return None;
    }
    if call
        .receiver
        .is_some_and(|receiver| receiver.is(Kind::Bounded))
    {
        return None;
    }
    Some(Kept {
        name: container(module, call.object()?)?,
        item: arguments.args.last()?,
        value: *module.arguments(call).last()?,
        range: call.expr.range(),
        place: call.place,
        carried: call.carried,
    })
}

/// `xs += [x]`, `xs = xs + [x]`, `table[step] = x`.
fn put_by_store<'a>(module: &Module<'a>, store: &Store<'a>) -> Option<Kept<'a>> {
    let source = store.source?;
    let (name, item) = match (store.operator, source) {
        (Some(Operator::Add), Expr::List(_)) => (container(module, store.target)?, source),
        (Some(_), _) => return None,
        (None, Expr::BinOp(sum)) if sum.op == Operator::Add && sum.right.is_list_expr() => {
            let name = module.key(store.target)?;
            (
                name,
                (module.key(&sum.left) == Some(name)).then_some(&*sum.right)?,
            )
        }
        (None, _) => {
            let Expr::Subscript(subscript) = store.target else {
                return None;
            };
            let name = container(module, &subscript.value)?;
            let is_new = store
                .carried
                .is_some_and(|id| changes_in(module, &subscript.slice, id));
            let is_table = matches!(
                kind_of(module, store.place.frame, name),
                Kind::Dict | Kind::Fields(_) | Kind::List
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
    Some(Kept {
        name,
        item,
        value: store.value,
        range: store.statement.range(),
        place: store.place,
        carried: store.carried,
    })
}

/// The name of a container, without an index that is no literal.
fn container<'a>(module: &Module<'a>, expression: &'a Expr) -> Option<&'a str> {
    let mut rest = expression;
    loop {
        if let Some(key) = module.key(rest) {
            return Some(key);
        }
        match rest {
            Expr::Subscript(subscript) => rest = &subscript.value,
            _ => return None,
        }
    }
}

/// Whether an index is another one in each turn of a loop: bound by it, or counted in it.
fn changes_in<'a>(module: &Module<'a>, index: &'a Expr, id: LoopId) -> bool {
    let around = module.loop_at(id);
    let mut names = Vec::new();
    keys_in(module, index, &mut names);
    let mut bound = Vec::new();
    if let Some((target, over)) = around.over {
        // A `for` over names of layers or tasks has the same ones in the next step.
        let counts = around.feed != Feed::Other
            || matches!(over, Expr::Call(call) if matches!(&*call.func, Expr::Name(name) if name.id == "enumerate"));
        if counts {
            keys_in(module, target, &mut bound);
        }
    }
    names.iter().any(|name| {
        bound.contains(name)
            || module.stores().iter().any(|store| {
                store.operator == Some(Operator::Add)
                    && module.key(store.target) == Some(name)
                    && lies_in(store.statement.range(), around.statement.range())
            })
    })
}

/// The name that what is dotted or indexed belongs to; of an object's own it is `self.…`.
pub fn root_of(name: &str) -> &str {
    let skip = if name.starts_with("self.") {
        "self.".len()
    } else {
        0
    };
    let rest = name.get(skip..).unwrap_or("");
    let length = rest.find(['.', '[']).unwrap_or(rest.len());
    name.get(..skip + length).unwrap_or(name)
}

/// What kind of thing a name stands for in the end.
pub fn kind_of(module: &Module<'_>, frame: FrameId, name: &str) -> Kind {
    let mut here = Some(module.frame(frame));
    if let (Some(attribute), Some(class)) = (
        name.strip_prefix("self."),
        here.and_then(|frame| frame.class),
    ) {
        let class = module.classes().get(class as usize);
        let known = class.and_then(|class| class.attributes.get(attribute));
        return known.map_or(Kind::Unknown, |value| value.kind);
    }
    while let Some(frame) = here {
        if let Some(value) = frame.names.get(name) {
            return value.kind;
        }
        here = frame.parent.map(|parent| module.frame(parent));
    }
    Kind::Unknown
}

/// Whether what a function adds to is there when it has returned: it belongs to the object, or
/// to the function around.
pub fn outlives_the_call(module: &Module<'_>, name: &str, place: &Place) -> bool {
    let frame = module.frame(place.frame);
    let root = root_of(name);
    if frame.def.is_none() || frame.name() == "__init__" {
        return false;
    }
    if root.starts_with("self.") {
        return frame.class.is_some() && !is_made_in(module, root, place.frame);
    }
    !frame.names.contains_key(root)
        && frame
            .parent
            .is_some_and(|parent| is_named_from(module, root, parent))
}

/// Whether a name is bound anew in this function.
fn is_made_in(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    module.stores().iter().any(|store| {
        store.place.frame == frame
            && store.operator.is_none()
            && module.key(store.target) == Some(name)
            && !matches!(store.source, Some(Expr::BinOp(_)))
    })
}

fn is_named_from(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    let frame = module.frame(frame);
    frame.names.contains_key(name)
        || frame
            .parent
            .is_some_and(|parent| is_named_from(module, name, parent))
}
