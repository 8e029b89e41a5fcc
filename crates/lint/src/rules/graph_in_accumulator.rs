//! # graph-in-accumulator (AF101)
//!
//! A running total keeps the autograd graph of every step.
//!
//! ## Why it freezes
//!
//! A loss in PyTorch references the graph that computed it. Their total references the graphs of
//! all steps, so none can be freed. After `backward()` the remains are small, but memory grows for
//! hours. Without `backward()` every activation of every batch stays, and memory is full after a
//! few hundred steps.
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
//! When `backward()` is called on the total itself, or gradient tracking is off
//! (`torch.no_grad()`). Such code is not reported.
//!
//! ## Fix
//!
//! Safe: `.item()` where a number is enough, `.detach()` where the total is used as a tensor.

use crate::finding::Finding;
use crate::model::uses::find_uses;
use crate::model::{Module, Store, ValueKind};
use crate::queries::retention::{
    MemoryGrowth, accepts_plain_number, find_accumulation, is_scalar, kind_of_name,
    retained_graph_growth, root_name,
};
use crate::queries::wording::{append_fix, every_step_label, source_with_suffix};
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
            && !store.context.no_grad
            && let Some((name, added)) = find_accumulation(module, store)
            && kind_of_name(module, store.context.frame, name) != ValueKind::List
            && let Some(pace) =
                retained_graph_growth(module, name, added, &store.context, store.outlived_loop)
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
    pace: MemoryGrowth,
) -> Finding {
    let message = match pace {
        MemoryGrowth::Slow => {
            format!("`{name}` keeps the graph of every step: memory grows a little each time")
        }
        MemoryGrowth::Fast => format!(
            "`{name}` keeps the graph and all activations of every step: memory is full after a few hundred steps"
        ),
    };
    let suffix = if is_number(module, store, name, added) {
        ".item()"
    } else {
        ".detach()"
    };
    let fixed = source_with_suffix(module, store.statement.range(), added, suffix);
    Finding {
        rule: &RULE,
        range: store.statement.range(),
        message,
        label: format!("grows {}", every_step_label(module, store.outlived_loop)),
        help: format!("keep the value, not the graph: `{fixed}`"),
        fix: Some(append_fix(added, suffix, "Keep the value, not the graph")),
    }
}

/// Whether the added value is a scalar loss, and a plain number is enough for the total.
fn is_number<'a>(module: &Module<'a>, store: &Store<'a>, name: &str, added: &'a Expr) -> bool {
    let is_plain = is_scalar(module, added, store.context.frame) && !name.starts_with("self.");
    is_plain
        && find_uses(
            module.text,
            root_name(name),
            module.frame(store.context.frame).body,
        )
        .iter()
        .all(|used| accepts_plain_number(module, used, store.statement.range()))
}
