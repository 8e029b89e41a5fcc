//! # graph-in-accumulator (AF101)
//!
//! A sum over steps keeps the graph of every step.
//!
//! ## Why it freezes
//!
//! A loss in PyTorch knows how it was computed. Added to a total as it is, the total knows how
//! all of them were computed, and nothing of that can be freed. After `backward()` what stays is
//! small and grows for hours; without it every activation of every batch stays, and memory is
//! full after a few hundred steps.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     total += loss
//! ```
//!
//! ## Right
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     total += loss.item()
//! ```
//!
//! ## When it is fine
//!
//! When the total itself is what `backward()` is called on, or no graph is recorded
//! (`torch.no_grad()`). Such code is not reported.
//!
//! ## Fix
//!
//! Safe: `.item()` where a number will do, `.detach()` where the total is used as a tensor.

use crate::finding::Finding;
use crate::model::uses::uses_of;
use crate::model::{Kind, Module, Store};
use crate::questions::keeping::{
    Pace, added_to, graph_stays, is_scalar, kind_of, root_of, takes_numbers,
};
use crate::questions::words::{append_to, every_step, with_suffix};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF101",
    name: "graph-in-accumulator",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("graph_in_accumulator.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") && !module.imports("lightning") {
        return;
    }
    for store in module.stores() {
        if store.value.graph
            && !store.place.no_grad
            && let Some((name, added)) = added_to(module, store)
            && kind_of(module, store.place.frame, name) != Kind::List
            && let Some(pace) = graph_stays(module, name, added, &store.place, store.carried)
        {
            findings.push(finding(module, store, name, added, pace));
        }
    }
}

fn finding<'a>(
    module: &Module<'a>,
    store: &Store<'a>,
    name: &str,
    added: &'a Expr,
    pace: Pace,
) -> Finding {
    let message = match pace {
        Pace::Slow => {
            format!("`{name}` keeps the graph of each step, a little more memory every time")
        }
        Pace::Fast => format!(
            "`{name}` keeps the graph of each step, with all its activations: memory is full after a few hundred"
        ),
    };
    let suffix = if is_number(module, store, name, added) {
        ".item()"
    } else {
        ".detach()"
    };
    let fixed = with_suffix(module, store.statement.range(), added, suffix);
    Finding {
        rule: &RULE,
        range: store.statement.range(),
        message,
        label: format!("grows {}", every_step(module, store.carried)),
        help: format!("keep the value, not the graph: `{fixed}`"),
        fix: Some(append_to(added, suffix, "Keep the value, not the graph")),
    }
}

/// Whether it is a loss that gradients were computed of, and numbers will do for the total.
fn is_number<'a>(module: &Module<'a>, store: &Store<'a>, name: &str, added: &'a Expr) -> bool {
    let is_plain = is_scalar(module, added, store.place.frame) && !name.starts_with("self.");
    is_plain
        && uses_of(
            module.text,
            root_of(name),
            module.frame(store.place.frame).body,
        )
        .iter()
        .all(|used| takes_numbers(module, used, store.statement.range()))
}
