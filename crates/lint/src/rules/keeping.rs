//! What is put where it stays: lists, dicts and totals that outlive the step.

use super::backward::{
    backward_names, goes_back_during, goes_back_in, is_backward, keys_in, may_go_back,
};
use crate::model::uses::{Use, lies_in, uses_of};
use crate::model::{Call, Feed, Frame, FrameId, Kind, LoopId, Module, Place, Role, Store, Value};
use ruff_python_ast::{Expr, Operator, Stmt};
use ruff_text_size::{Ranged, TextRange};

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

/// How fast memory fills.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Gradients are computed of it: what is left of the graph is small.
    Slow,
    /// Every activation stays.
    Fast,
}

/// Whether the graph of something that is kept stays in memory though nobody will go back
/// through it, and how fast that fills the memory.
pub fn graph_stays<'a>(
    module: &Module<'a>,
    name: &'a str,
    item: &'a Expr,
    place: &Place,
    carried: Option<LoopId>,
) -> Option<Pace> {
    if carried.is_none() && (place.within.is_some() || !outlives_the_call(module, name, place)) {
        return None;
    }
    if !is_sure(module, item, place.frame) || carried.is_some_and(|id| ends_at_once(module, id)) {
        return None;
    }
    let root = root_of(name);
    let gone_back = backward_names(module, place.frame);
    if gone_back.contains(&name) || gone_back.contains(&root) {
        return None;
    }
    let is_wanted = || {
        may_go_back(module, name, place.frame)
            || (root != name && may_go_back(module, root, place.frame))
    };
    let in_training = match carried {
        Some(id) => goes_back_in(module, id),
        None => goes_back_during(module, place.frame) || is_engine_step(module, place.frame),
    };
    if in_training {
        let stays = !is_emptied(module, name, place, carried)
            && (is_stepped_with(module, item, place.frame) || !is_wanted());
        return stays.then_some(Pace::Slow);
    }
    let evaluates = carried.is_some_and(|id| evaluates(module, place.frame, id));
    let stays = evaluates && !is_emptied(module, name, place, carried) && !is_wanted();
    stays.then_some(Pace::Fast)
}

/// Whether it is a loss or an output, and not one of the other things that are returned beside
/// them: counts, scores, what is let go of on one of two ways.
fn is_sure<'a>(module: &Module<'a>, item: &'a Expr, frame: FrameId) -> bool {
    let Some(key) = module.key(item) else {
        return true;
    };
    let last = key.rsplit(['.', '[']).next().unwrap_or(key);
    let is_count = !last.contains("loss")
        && [
            "num", "count", "size", "sample", "token", "correct", "acc", "len", "hits", "score",
            "metric",
        ]
        .iter()
        .any(|word| last.contains(word));
    if is_count {
        return false;
    }
    let here = module
        .stores()
        .iter()
        .filter(|store| store.place.frame == frame);
    let mut made = here
        .filter(|store| module.key(store.target) == Some(key))
        .peekable();
    let is_part = made.peek().is_some_and(|store| store.source.is_none());
    let is_let_go = made.any(|store| match store.source {
        Some(Expr::Call(call)) => match &*call.func {
            Expr::Attribute(attribute) => {
                module.key(&attribute.value) == Some(key)
                    && matches!(attribute.attr.as_str(), "detach" | "item" | "cpu" | "numpy")
            }
            _ => false,
        },
        _ => false,
    });
    let is_known = !is_part
        || last.contains("loss")
        || is_stepped_with(module, item, frame)
        || is_put_out(module, key, frame);
    is_known && !is_let_go
}

/// Whether a name is a part of what a model itself put out.
fn is_put_out(module: &Module<'_>, key: &str, frame: FrameId) -> bool {
    module.stores().iter().any(|store| {
        store.place.frame == frame
            && module.key(store.target) == Some(key)
            && matches!(store.statement, Stmt::Assign(assign) if module.calls().iter().any(|call| {
                call.expr.range() == assign.value.range() && call.callee.is(Kind::Model)
            }))
    })
}

/// Whether a loop takes one turn: `break` stands in it without a condition.
fn ends_at_once(module: &Module<'_>, id: LoopId) -> bool {
    module.loop_at(id).body.iter().any(Stmt::is_break_stmt)
}

/// Whether gradients are computed of something in the function where it is kept: after that
/// its graph is of no use.
pub fn is_stepped_with<'a>(module: &Module<'a>, item: &'a Expr, frame: FrameId) -> bool {
    let stepped = stepped_names(module, frame);
    let mut parts = Vec::new();
    keys_in(module, item, &mut parts);
    parts.iter().any(|part| stepped.contains(part))
}

/// The names that gradients are computed of: not what they were computed from.
pub fn stepped_names<'a>(module: &Module<'a>, frame: FrameId) -> Vec<&'a str> {
    let mut names = Vec::new();
    for call in module
        .calls()
        .iter()
        .filter(|call| call.place.frame == frame)
    {
        let is_true =
            |name| matches!(call.keyword(name), Some(Expr::BooleanLiteral(yes)) if yes.value);
        if is_backward(call) {
            // Kept on purpose: it is gone back through again.
            if is_true("retain_graph") || is_true("create_graph") {
                continue;
            }
            match call.method() {
                Some("backward") if call.receiver.is_some_and(|of| of.kind != Kind::Engine) => {
                    call.object()
                        .into_iter()
                        .for_each(|of| summands(module, of, &mut names));
                }
                _ => {}
            }
            let of = call.expr.arguments.args.first();
            of.into_iter()
                .for_each(|of| summands(module, of, &mut names));
        } else if let Some(own) = call.own {
            // `self.optimize(loss)`, which goes back through it.
            let inner = backward_names(module, own);
            for (parameter, argument, _) in arguments_of(module, call, own) {
                if inner.contains(&parameter) {
                    summands(module, argument, &mut names);
                }
            }
        }
    }
    if is_engine_step(module, frame) {
        for statement in module.frame(frame).body {
            if let Stmt::Return(result) = statement
                && let Some(value) = &result.value
            {
                summands(module, value, &mut names);
            }
        }
    }
    names
}

/// The terms of a sum, and what is only scaled.
fn summands<'a>(module: &Module<'a>, expression: &'a Expr, names: &mut Vec<&'a str>) {
    if let Some(key) = module.key(expression) {
        names.push(key);
        return;
    }
    match expression {
        Expr::BinOp(operation) => {
            summands(module, &operation.left, names);
            summands(module, &operation.right, names);
        }
        Expr::UnaryOp(operation) => summands(module, &operation.operand, names),
        Expr::If(choice) => {
            summands(module, &choice.body, names);
            summands(module, &choice.orelse, names);
        }
        Expr::Dict(dict) => dict
            .items
            .iter()
            .for_each(|item| summands(module, &item.value, names)),
        Expr::Call(call) => {
            if let Expr::Attribute(attribute) = &*call.func {
                match attribute.attr.as_str() {
                    "scale" => call
                        .arguments
                        .args
                        .iter()
                        .for_each(|term| summands(module, term, names)),
                    "mean" | "sum" | "div" | "mul" => summands(module, &attribute.value, names),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether this is a step that an engine goes back through: what it returns is the loss.
fn is_engine_step(module: &Module<'_>, frame: FrameId) -> bool {
    let frame = module.frame(frame);
    let Some(class) = frame
        .class
        .and_then(|class| module.classes().get(class as usize))
    else {
        return false;
    };
    let is_trainer = || {
        let mut bases = class
            .def
            .arguments
            .iter()
            .flat_map(|arguments| &arguments.args);
        bases.any(|base| module.source(base).ends_with("Trainer"))
    };
    match frame.name() {
        "training_step" => class.is == Role::Lightning,
        "compute_loss" => is_trainer(),
        _ => false,
    }
}

/// Whether a loop runs a model without learning.
fn evaluates(module: &Module<'_>, frame: FrameId, id: LoopId) -> bool {
    let function = module.frame(frame);
    let by_name = is_evaluation(function.name()) && module.loop_at(id).feed == Feed::Batches;
    (by_name || calls_eval(module, frame))
        && !goes_back_during(module, frame)
        && !is_test(module, function)
}

/// Whether a function's name says that it does not train.
pub fn is_evaluation(name: &str) -> bool {
    ["eval", "valid", "test", "infer", "predict"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether it is a test of the program, not of the model.
pub fn is_test(module: &Module<'_>, frame: &Frame<'_>) -> bool {
    let class = frame
        .class
        .and_then(|class| module.classes().get(class as usize));
    let is_case = class.is_some_and(|class| {
        let mut bases = class
            .def
            .arguments
            .iter()
            .flat_map(|arguments| &arguments.args);
        let is_test = |name: &str| name.starts_with("Test") || name.ends_with("TestCase");
        is_test(class.def.name.as_str()) || bases.any(|base| is_test(module.source(base)))
    });
    is_case
        || frame.name().starts_with("test_")
        || module.imports("pytest")
        || module.imports("unittest")
}

/// Whether a model is put into evaluation in this function.
fn calls_eval(module: &Module<'_>, frame: FrameId) -> bool {
    module.calls().iter().any(|call| {
        call.place.frame == frame && call.method() == Some("eval") && call.expr.arguments.is_empty()
    })
}

/// Whether a container is emptied, or made anew, in the loop that fills it, or in a loop over
/// batches around that.
fn is_emptied(module: &Module<'_>, name: &str, place: &Place, carried: Option<LoopId>) -> bool {
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

fn takes_out(used: &Use<'_>) -> bool {
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

/// The arguments of a call with the names of the parameters they are for.
pub fn arguments_of<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    own: FrameId,
) -> Vec<(&'a str, &'a Expr, Value)> {
    let frame = module.frame(own);
    let Some(def) = frame.def else {
        return Vec::new();
    };
    let is_static = def.decorator_list.iter().any(
        |decorator| matches!(&decorator.expression, Expr::Name(name) if name.id.as_str() == "staticmethod"),
    );
    let skip = usize::from(frame.class.is_some() && !is_static);
    let parameters = def.parameters.iter_non_variadic_params().skip(skip);
    let mut found = Vec::new();
    for (index, parameter) in parameters.enumerate() {
        let name = parameter.parameter.name.as_str();
        if let (Some(argument), Some(value)) = (
            call.argument(index, name),
            module.argument(call, index, name),
        ) {
            found.push((name, argument, value));
        }
    }
    found
}

/// A function of this text that keeps what it is given, where it outlives the call.
pub struct Keeper<'a> {
    pub frame: FrameId,
    /// The parameter whose argument is kept.
    pub parameter: &'a str,
    /// Where it is kept.
    pub name: &'a str,
    /// It is added up, not put beside others.
    pub is_total: bool,
    /// What keeps it.
    pub range: TextRange,
}

pub fn keepers<'a>(module: &Module<'a>, items: &[Kept<'a>]) -> Vec<Keeper<'a>> {
    let mut keepers = Vec::new();
    let mut add =
        |name: &'a str, item: &'a Expr, place: &Place, range: TextRange, is_total: bool| {
            let frame = module.frame(place.frame);
            let Some(def) = frame.def else { return };
            if place.no_grad || !outlives_the_call(module, name, place) {
                return;
            }
            for parameter in def.parameters.iter_non_variadic_params() {
                let parameter = parameter.parameter.name.as_str();
                if holds(item, parameter) && !is_rebound(module, parameter, place.frame) {
                    keepers.push(Keeper {
                        frame: place.frame,
                        parameter,
                        name,
                        is_total,
                        range,
                    });
                }
            }
        };
    for kept in items {
        if !empties(module, kept.name, module.frame(kept.place.frame).body) {
            add(kept.name, kept.item, &kept.place, kept.range, false);
        }
    }
    for store in module.stores() {
        if let Some((name, item)) = added_to(module, store) {
            add(name, item, &store.place, store.statement.range(), true);
        }
    }
    keepers
}

/// The name that is added to, and what is added: `total += x`, `total = total + x`.
pub fn added_to<'a>(module: &Module<'a>, store: &Store<'a>) -> Option<(&'a str, &'a Expr)> {
    let name = module.key(store.target)?;
    let source = store.source?;
    let (name, added) = match store.operator {
        Some(Operator::Add | Operator::Sub) => (name, source),
        Some(_) => return None,
        None => match source {
            Expr::BinOp(sum) if sum.op == Operator::Add => {
                let is_name = |side: &'a Expr| module.key(side) == Some(name);
                match (is_name(&sum.left), is_name(&sum.right)) {
                    (true, false) => (name, &*sum.right),
                    (false, true) => (name, &*sum.left),
                    _ => return None,
                }
            }
            _ => return None,
        },
    };
    // A list that others are put to.
    let is_list = matches!(added, Expr::List(_) | Expr::ListComp(_) | Expr::Tuple(_));
    (!is_list).then_some((name, added))
}

fn is_rebound(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    let mut stores = module
        .stores()
        .iter()
        .filter(|store| store.place.frame == frame);
    stores.any(|store| module.key(store.target) == Some(name))
}

/// Whether an expression has this name's value in it as it is.
fn holds(expression: &Expr, name: &str) -> bool {
    match expression {
        Expr::Name(found) => found.id.as_str() == name,
        Expr::Tuple(tuple) => tuple.elts.iter().any(|part| holds(part, name)),
        Expr::List(list) => list.elts.iter().any(|part| holds(part, name)),
        Expr::Dict(dict) => dict.items.iter().any(|item| holds(&item.value, name)),
        Expr::BinOp(operation) => holds(&operation.left, name) || holds(&operation.right, name),
        Expr::UnaryOp(operation) => holds(&operation.operand, name),
        Expr::Call(call) => match &*call.func {
            Expr::Attribute(attribute) => {
                matches!(
                    attribute.attr.as_str(),
                    "clone" | "mean" | "sum" | "to" | "cuda" | "float" | "contiguous"
                ) && holds(&attribute.value, name)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether `.item()` can be asked of it: gradients were computed of it, without a vector, or it
/// is that times a number.
pub fn is_scalar<'a>(module: &Module<'a>, item: &'a Expr, frame: FrameId) -> bool {
    match item {
        Expr::BinOp(operation) => {
            (is_scalar(module, &operation.left, frame) && is_number(&operation.right))
                || (is_number(&operation.left) && is_scalar(module, &operation.right, frame))
        }
        _ => module
            .key(item)
            .is_some_and(|key| is_gone_back_as_is(module, key, frame)),
    }
}

/// Whether `backward()` is called on just this name: `loss.backward()`, not `loss.mean().backward()`.
fn is_gone_back_as_is(module: &Module<'_>, key: &str, frame: FrameId) -> bool {
    let mut backward = module
        .calls()
        .iter()
        .filter(|call| call.place.frame == frame && is_backward(call));
    backward.any(|call| {
        let given = call.expr.arguments.args.first();
        let of = match (given, call.object()) {
            // `accelerator.backward(loss)`
            (Some(loss), Some(object)) if module.key(object) != Some(key) => Some(loss),
            (None, Some(Expr::Call(scaled)))
                if module.source(&*scaled.func).ends_with(".scale") =>
            {
                scaled.arguments.args.first()
            }
            (None, object) => object,
            _ => None,
        };
        of.and_then(|of| module.key(of)) == Some(key)
    })
}

fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::NumberLiteral(_) => true,
        Expr::Call(call) => match &*call.func {
            Expr::Name(name) => matches!(name.id.as_str(), "len" | "float" | "int"),
            Expr::Attribute(attribute) => match attribute.attr.as_str() {
                "size" => call.arguments.len() == 1,
                "numel" | "item" => true,
                _ => false,
            },
            _ => false,
        },
        Expr::Subscript(part) => {
            matches!(&*part.value, Expr::Attribute(shape) if shape.attr.as_str() == "shape")
        }
        Expr::BinOp(operation) => is_number(&operation.left) && is_number(&operation.right),
        _ => false,
    }
}

/// Whether a use of a total or a list would do as well with numbers: it prints, compares or adds,
/// and asks nothing that only tensors have. What is returned, or gets another name, may be asked
/// anything.
pub fn takes_numbers(module: &Module<'_>, used: &Use<'_>, kept_by: TextRange) -> bool {
    let is_put = matches!(used.around[0], Some(Expr::Subscript(part)) if part.ctx.is_store());
    if used.is_store || is_put || lies_in(used.expr.range(), kept_by) {
        return true;
    }
    // Of an `if` the condition only: what stands in it are statements of their own.
    let source = match used.statement {
        Stmt::If(choice) => module.source(&*choice.test),
        Stmt::Expr(_) | Stmt::AugAssign(_) | Stmt::Assert(_) => module.source(used.statement),
        _ => return false,
    };
    const OF_TENSORS: [&str; 10] = [
        ".item(", ".detach(", ".cpu(", ".numpy(", ".mean(", ".tolist(", ".to(", ".data.", ".data[",
        "torch.",
    ];
    !OF_TENSORS.iter().any(|sign| source.contains(sign))
}

#[cfg(test)]
mod tests {
    use crate::here::Here;
    use crate::rules::find;
    use crate::{Dialect, check};

    /// The statement that keeps the loss of a step, as its fix leaves it.
    fn fixed(keeps: &str, after: &str) -> Option<String> {
        let text = format!(
            "import torch\n\ndef train(model, loader, criterion, losses, total):\n    for x, y in loader:\n        \
             loss = criterion(model(x), y)\n        loss.backward()\n        {keeps}\n    {after}\n"
        );
        let rules: Vec<_> = ["AF101", "AF102"].into_iter().filter_map(find).collect();
        let checked = check(&text, Dialect::Python, &Here::default(), &rules);
        let fix = checked.findings.first()?.fix.clone()?;
        let mut fixed = text.clone();
        for edit in fix.edits.iter().rev() {
            fixed.insert_str(edit.range.start().into(), &edit.content);
        }
        Some(fixed.lines().nth(6)?.trim().to_owned())
    }

    #[test]
    fn a_number_is_kept_only_where_a_number_will_do() {
        for (keeps, after, wanted) in [
            ("total += loss", "print(total)", "total += loss.item()"),
            (
                "total += loss * x.size(0)",
                "print(total)",
                "total += (loss * x.size(0)).item()",
            ),
            // A tensor may be asked of it, or is.
            ("total += loss", "return total", "total += loss.detach()"),
            (
                "total += loss",
                "print((total / 3).item())",
                "total += loss.detach()",
            ),
            (
                "total += loss * y",
                "print(total)",
                "total += (loss * y).detach()",
            ),
            (
                "losses.append(loss)",
                "print(sum(losses))",
                "losses.append(loss.item())",
            ),
            (
                "losses.append(loss)",
                "print(sum(losses).item())",
                "losses.append(loss.detach())",
            ),
            (
                "losses.append((x, loss))",
                "print(len(losses))",
                "losses.append((x, loss.detach()))",
            ),
        ] {
            assert_eq!(
                fixed(keeps, after).as_deref(),
                Some(wanted),
                "{keeps}; {after}"
            );
        }
    }

    #[test]
    fn what_is_no_tensor_has_no_fix() {
        assert_eq!(
            fixed("losses.append({'loss': loss})", "print(len(losses))"),
            None
        );
    }
}
