//! # graph-in-container (AF102)
//!
//! A list, a dict or a meter keeps the graph of every step.
//!
//! ## Why it freezes
//!
//! A loss or an output in PyTorch knows how it was computed. Put into a list as it is, it stays,
//! and with it what it was computed by. After `backward()` that is a little with every step, and
//! the run ends hours later for no reason one can see; without `backward()` it is every
//! activation of every batch, and memory is full after a few hundred steps.
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
//! When what is in the list is gone back through later (`torch.stack(losses).mean().backward()`),
//! when the list is emptied in every step, or when no graph is recorded (`torch.no_grad()`).
//! Such code is not reported. Of functions and meters only those are known that are in the same
//! file.
//!
//! ## Fix
//!
//! Safe: `.item()` where a number will do, `.detach()` where a tensor may be wanted.

use crate::finding::Finding;
use crate::model::uses::uses_of;
use crate::model::{Call, Kind, Module, Store, Value};
use crate::questions::keeping::{
    Keeper, Kept, Pace, arguments_of, empties, graph_stays, is_scalar, is_stepped_with, keepers,
    kept_items, root_of, takes_numbers,
};
use crate::questions::words::{append_to, every_step, with_suffix};
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
    let items = kept_items(module);
    for kept in &items {
        if kept.value.graph
            && !kept.place.no_grad
            && let Some(pace) = graph_stays(module, kept.name, kept.item, &kept.place, kept.carried)
        {
            findings.push(in_container(module, kept, pace));
        }
    }
    if module.calls().iter().any(is_suspect) {
        let keepers = keepers(module, &items);
        for call in module.calls().iter().filter(|call| is_suspect(call)) {
            findings.extend(by_keeper(module, call, &keepers));
        }
    }
}

/// A call of a function of this text that may be given a graph.
fn is_suspect(call: &Call<'_>) -> bool {
    call.own.is_some() && !call.place.no_grad && !call.place.inline
}

fn in_container(module: &Module<'_>, kept: &Kept<'_>, pace: Pace) -> Finding {
    let name = kept.name;
    let message = match pace {
        Pace::Slow => {
            format!("`{name}` keeps the graph of each step, a little more memory every time")
        }
        Pace::Fast => format!(
            "`{name}` keeps the graph of each step, with all its activations: memory is full after a few hundred"
        ),
    };
    let suffix = if is_number(module, kept) {
        ".item()"
    } else {
        ".detach()"
    };
    let single = carrier(module, kept.item).filter(|part| is_tensor(module, kept, part));
    let help = match single {
        Some(part) => {
            let fixed = with_suffix(module, kept.range, part, suffix);
            format!("keep the value, not the graph: `{fixed}`")
        }
        None => {
            "keep values, not graphs: put `.detach()` or `.item()` after what is kept".to_owned()
        }
    };
    Finding {
        rule: &RULE,
        range: kept.range,
        message,
        label: format!("grows {}", every_step(module, kept.carried)),
        help,
        fix: single.map(|part| append_to(part, suffix, "Keep the value, not the graph")),
    }
}

/// Whether it is known to be a tensor, not a dict or an object that has one.
fn is_tensor(module: &Module<'_>, kept: &Kept<'_>, part: &Expr) -> bool {
    let is_stored = |store: &Store<'_>| {
        store.place.frame == kept.place.frame
            && store.value.is(Kind::Tensor)
            && module.source(store.target) == module.source(part)
    };
    kept.value.is(Kind::Tensor) || module.stores().iter().any(is_stored)
}

/// The part of what is kept that has the graph, where it is only one.
fn carrier<'a>(module: &Module<'a>, item: &'a Expr) -> Option<&'a Expr> {
    let parts = match item {
        Expr::Tuple(tuple) => &tuple.elts,
        Expr::List(list) => &list.elts,
        Expr::Dict(_) | Expr::ListComp(_) | Expr::Generator(_) | Expr::Starred(_) => return None,
        _ => return Some(item),
    };
    // In `(epoch, step, loss)` what was stored with a graph under its name.
    let mut carriers = parts.iter().filter(|part| {
        let key = module.key(part);
        let is_stored = module
            .stores()
            .iter()
            .any(|store| store.value.graph && module.key(store.target) == key);
        key.is_some() && is_stored
    });
    let first = carriers.next()?;
    carriers.next().is_none().then_some(first)
}

/// Whether it is a loss that gradients were computed of, and numbers will do for the list.
fn is_number(module: &Module<'_>, kept: &Kept<'_>) -> bool {
    let root = root_of(kept.name);
    let is_plain = is_scalar(module, kept.item, kept.place.frame) && !root.starts_with("self.");
    is_plain
        && uses_of(module.text, root, module.frame(kept.place.frame).body)
            .iter()
            .all(|used| takes_numbers(module, used, kept.range))
}

fn by_keeper<'a>(module: &Module<'a>, call: &Call<'a>, keepers: &[Keeper<'a>]) -> Option<Finding> {
    let own = call.own?;
    let mut kept = keepers
        .iter()
        .filter(|keeper| keeper.frame == own)
        .peekable();
    kept.peek()?;
    let arguments = arguments_of(module, call, own);
    let (keeper, argument) = kept.find_map(|keeper| {
        let is_kept =
            |(name, _, value): &&(&str, &Expr, Value)| *name == keeper.parameter && value.graph;
        arguments
            .iter()
            .find(is_kept)
            .map(|(_, argument, _)| (keeper, *argument))
    })?;
    if !is_stepped_with(module, argument, call.place.frame) || !stays_between_steps(module, call) {
        return None;
    }
    let function = module.source(&*call.expr.func);
    let how = if keeper.is_total {
        "adds what it is given to"
    } else {
        "puts what it is given into"
    };
    Some(Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{function}` {how} `{}`, which keeps the graph of each step, a little more memory every time",
            keeper.name
        ),
        label: format!("grows {}", every_step(module, call.carried)),
        help: format!(
            "give it the value, not the graph: `{}`",
            with_suffix(module, call.expr.range(), argument, ".detach()")
        ),
        fix: Some(append_to(
            argument,
            ".detach()",
            "Give the value, not the graph",
        )),
    })
}

/// Whether what the function adds to is the same one in the next step.
fn stays_between_steps(module: &Module<'_>, call: &Call<'_>) -> bool {
    let object = call.object().and_then(|object| module.key(object));
    match call.carried {
        Some(id) => object.is_none_or(|name| !empties(module, name, module.loop_at(id).body)),
        None => call.place.within.is_none() && object.is_some_and(|name| name.starts_with("self.")),
    }
}
