//! # graph-in-container (AF102)
//!
//! A list, dict or meter keeps the autograd graph of every step.
//!
//! ## Why it freezes
//!
//! A loss or output in PyTorch references the graph that computed it. A list that holds it keeps
//! the graph too. After `backward()` the remains are small, and the run fails hours later for no
//! visible reason. Without `backward()` every activation of every batch stays, and memory is full
//! after a few hundred steps.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     history.append(loss)
//! ```
//!
//! ## Right
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     history.append(loss.item())
//! ```
//!
//! ## When it is fine
//!
//! When `backward()` later runs on the stored values (`torch.stack(losses).mean().backward()`),
//! when the list is emptied in every step, or when gradient tracking is off (`torch.no_grad()`).
//! Such code is not reported. Only functions and meters in the same file are known.
//!
//! ## Fix
//!
//! Safe: `.item()` where a number is enough, `.detach()` where a tensor may be needed.

use crate::finding::Finding;
use crate::model::uses::find_uses;
use crate::model::{Call, Module, Store, Value, ValueKind};
use crate::queries::retention::{
    MemoryGrowth, RetainingFunction, StoredItem, accepts_plain_number, find_retaining_functions,
    find_stored_items, is_backward_target, is_emptied_in_block, is_scalar, match_arguments,
    retained_graph_growth, root_name,
};
use crate::queries::wording::{append_fix, every_step_label, source_with_suffix};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF102",
    name: "graph-in-container",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("graph_in_container.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") && !module.imports("lightning") {
        return;
    }
    let items = find_stored_items(module);
    for kept in &items {
        if kept.value.graph
            && !kept.context.no_grad
            && let Some(pace) = retained_graph_growth(
                module,
                kept.name,
                kept.item,
                &kept.context,
                kept.outlived_loop,
            )
        {
            findings.push(container_finding(module, kept, pace));
        }
    }
    if module.calls().iter().any(is_suspect) {
        let keepers = find_retaining_functions(module, &items);
        for call in module.calls().iter().filter(|call| is_suspect(call)) {
            findings.extend(check_retaining_call(module, call, &keepers));
        }
    }
}

/// Whether this calls a function in this text that may receive a graph.
fn is_suspect(call: &Call<'_>) -> bool {
    call.local_function.is_some() && !call.context.no_grad && !call.context.inline
}

fn container_finding(module: &Module<'_>, kept: &StoredItem<'_>, pace: MemoryGrowth) -> Finding {
    let name = kept.name;
    let message = match pace {
        MemoryGrowth::Slow => {
            format!("`{name}` keeps the graph of every step: memory grows a little each time")
        }
        MemoryGrowth::Fast => format!(
            "`{name}` keeps the graph and all activations of every step: memory is full after a few hundred steps"
        ),
    };
    let suffix = if is_number(module, kept) {
        ".item()"
    } else {
        ".detach()"
    };
    let single =
        find_part_with_graph(module, kept.item).filter(|part| is_tensor(module, kept, part));
    let help = match single {
        Some(part) => {
            let fixed = source_with_suffix(module, kept.range, part, suffix);
            format!("keep the value, not the graph: `{fixed}`")
        }
        None => {
            "keep values, not graphs: add `.detach()` or `.item()` to what is stored".to_owned()
        }
    };
    Finding {
        rule: &RULE,
        range: kept.range,
        message,
        label: format!("grows {}", every_step_label(module, kept.outlived_loop)),
        help,
        fix: single.map(|part| append_fix(part, suffix, "Keep the value, not the graph")),
    }
}

/// Whether the value is known to be a tensor, not a dict or object that contains one.
fn is_tensor(module: &Module<'_>, kept: &StoredItem<'_>, part: &Expr) -> bool {
    let is_stored = |store: &Store<'_>| {
        store.context.frame == kept.context.frame
            && store.value.is(ValueKind::Tensor)
            && module.source(store.target) == module.source(part)
    };
    kept.value.is(ValueKind::Tensor) || module.stores().iter().any(is_stored)
}

/// Returns the part of the stored item that has the graph, if there is only one.
fn find_part_with_graph<'a>(module: &Module<'a>, item: &'a Expr) -> Option<&'a Expr> {
    let parts = match item {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        Expr::Dict(_) | Expr::ListComp(_) | Expr::Generator(_) | Expr::Starred(_) => return None,
        _ => return Some(item),
    };
    // In `(epoch, step, loss)`, the part that was assigned with a graph.
    let mut carriers = parts.iter().filter(|part| {
        let key = module.dotted_name(part);
        let is_stored = module
            .stores()
            .iter()
            .any(|store| store.value.graph && module.dotted_name(store.target) == key);
        key.is_some() && is_stored
    });
    let first = carriers.next()?;
    carriers.next().is_none().then_some(first)
}

/// Whether the stored value is a scalar loss, and plain numbers are enough in the list.
fn is_number(module: &Module<'_>, kept: &StoredItem<'_>) -> bool {
    let root = root_name(kept.name);
    let is_plain = is_scalar(module, kept.item, kept.context.frame) && !root.starts_with("self.");
    is_plain
        && find_uses(module.text, root, module.frame(kept.context.frame).body)
            .iter()
            .all(|used| accepts_plain_number(module, used, kept.range))
}

fn check_retaining_call<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    keepers: &[RetainingFunction<'a>],
) -> Option<Finding> {
    let own = call.local_function?;
    let mut kept = keepers
        .iter()
        .filter(|keeper| keeper.frame == own)
        .peekable();
    kept.peek()?;
    let arguments = match_arguments(module, call, own);
    let (keeper, argument) = kept.find_map(|keeper| {
        let is_kept =
            |(name, _, value): &&(&str, &Expr, Value)| *name == keeper.parameter && value.graph;
        arguments
            .iter()
            .find(is_kept)
            .map(|(_, argument, _)| (keeper, *argument))
    })?;
    if !is_backward_target(module, argument, call.context.frame)
        || !stays_between_steps(module, call)
    {
        return None;
    }
    let function = module.source(&*call.expr.func);
    let how = if keeper.is_total {
        "adds its argument to"
    } else {
        "stores its argument in"
    };
    Some(Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{function}` {how} `{}`, which keeps the graph of every step: memory grows a little each time",
            keeper.name
        ),
        label: format!("grows {}", every_step_label(module, call.outlived_loop)),
        help: format!(
            "pass the value, not the graph: `{}`",
            source_with_suffix(module, call.expr.range(), argument, ".detach()")
        ),
        fix: Some(append_fix(
            argument,
            ".detach()",
            "Pass the value, not the graph",
        )),
    })
}

/// Whether the function stores into the same container in the next step.
fn stays_between_steps(module: &Module<'_>, call: &Call<'_>) -> bool {
    let object = call.object().and_then(|object| module.dotted_name(object));
    match call.outlived_loop {
        Some(id) => {
            object.is_none_or(|name| !is_emptied_in_block(module, name, module.loop_at(id).body))
        }
        None => {
            call.context.innermost_loop.is_none()
                && object.is_some_and(|name| name.starts_with("self."))
        }
    }
}
