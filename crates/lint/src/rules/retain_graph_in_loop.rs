//! # retain-graph-in-loop (AF107)
//!
//! `backward()` keeps the graph, although nothing uses it again.
//!
//! ## Why it freezes
//!
//! With `retain_graph=True` PyTorch does not free the activations after `backward()`. They stay
//! until the next step has computed its own, so two steps are in memory at once, and a batch size
//! that would fit does not. It is often added to silence "Trying to backward through the graph a
//! second time", which has another cause.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward(retain_graph=True)
//!     optimizer.step()
//! ```
//!
//! ## Right
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     optimizer.step()
//! ```
//!
//! ## When it is fine
//!
//! When `backward()` runs on the same graph again: a second loss, a generator after its critic,
//! several updates from one forward pass. Such code is not reported.
//!
//! ## Fix
//!
//! None: remove `retain_graph=True` and see whether PyTorch complains.

use crate::finding::Finding;
use crate::model::uses::{find_uses, lies_in};
use crate::model::{Call, FrameId, LoopId, LoopSource, Module, Role};
use crate::queries::backward::{call_runs_backward, is_backward_call};
use crate::queries::retention::root_name;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::{Ranged, TextSize};

pub static RULE: Rule = Rule {
    code: "AF107",
    name: "retain-graph-in-loop",
    severity: Severity::Info,
    stage: Stage::Preview,
    source: include_str!("retain_graph_in_loop.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.text.contains("retain_graph")
        || !module.imports("torch")
        || model_stores_state(module)
    {
        return;
    }
    for call in module.calls() {
        if is_backward_call(call) && retains_graph(call) && is_last_backward(module, call) {
            findings.push(finding(module, call));
        }
    }
}

fn retains_graph(call: &Call<'_>) -> bool {
    let is_true = |name| matches!(call.keyword(name), Some(Expr::BooleanLiteral(yes)) if yes.value);
    is_true("retain_graph") && !is_true("create_graph")
}

/// Whether no `backward()` follows this one, in its loop or in the loop that calls its function.
fn is_last_backward(module: &Module<'_>, call: &Call<'_>) -> bool {
    let position = call.expr.start();
    let frame = call.context.frame;
    if let Some(id) = call.context.innermost_loop {
        return is_last_backward_in_loop(module, id, position);
    }
    // A function that takes one step; the loop is in its callers.
    let is_alone = module
        .calls()
        .iter()
        .filter(|other| other.context.frame == frame && call_runs_backward(module, other))
        .count()
        == 1;
    let mut callers = module
        .calls()
        .iter()
        .filter(|other| other.local_function == Some(frame))
        .peekable();
    is_alone
        && !stores_graph(module, frame)
        && callers.peek().is_some()
        && callers.all(|caller| {
            caller
                .context
                .innermost_loop
                .is_some_and(|id| is_last_backward_in_loop(module, id, caller.expr.start()))
        })
}

/// Whether no `backward()` follows this position in a loop over batches, and no graph enters the
/// loop from outside.
fn is_last_backward_in_loop(module: &Module<'_>, id: LoopId, position: TextSize) -> bool {
    let around = module.loop_at(id);
    let range = around.statement.range();
    let is_in = |call: &Call<'_>| lies_in(call.expr.range(), range);
    around.loop_source == LoopSource::Batches
        && module
            .calls()
            .iter()
            .filter(|call| is_in(call) && call.expr.start() > position)
            .all(|call| !call_runs_backward(module, call) && !may_run_backward(module, call))
        && !uses_outside_graph(module, id)
}

/// Whether an unknown call receives a graph and may run `backward()` on it.
fn may_run_backward(module: &Module<'_>, call: &Call<'_>) -> bool {
    let is_known = call
        .path
        .is_some_and(|path| matches!(path.first(), "torch" | "numpy" | "wandb"))
        || matches!(
            call.method(),
            Some(
                "append"
                    | "extend"
                    | "update"
                    | "add_scalar"
                    | "format"
                    | "info"
                    | "set_postfix"
                    | "log"
                    | "write"
            )
        )
        || matches!(&*call.expr.func, Expr::Name(name) if matches!(name.id.as_str(), "print" | "float" | "str" | "len"));
    !is_known && module.arguments(call).iter().any(|value| value.graph)
}

/// Whether the loop uses a graph from before the loop or from the previous iteration.
fn uses_outside_graph(module: &Module<'_>, id: LoopId) -> bool {
    let around = module.loop_at(id);
    let range = around.statement.range();
    module
        .stores()
        .iter()
        .filter(|store| store.context.frame == around.frame && store.value.graph)
        .any(|store| {
            let Some(name) = module.dotted_name(store.target) else {
                return true;
            };
            if lies_in(store.statement.range(), range) {
                return store.operator.is_none()
                    && (store.outlived_loop.is_some() || name.starts_with("self."));
            }
            find_uses(module.text, root_name(name), around.body)
                .iter()
                .any(|used| !used.is_store)
        })
}

/// Whether a function stores a graph where it outlives the call.
fn stores_graph(module: &Module<'_>, frame: FrameId) -> bool {
    module.stores().iter().any(|store| {
        store.context.frame == frame
            && store.value.graph
            && module
                .dotted_name(store.target)
                .is_none_or(|name| name.starts_with("self."))
    })
}

/// Whether a model in this text stores state between calls.
fn model_stores_state(module: &Module<'_>) -> bool {
    module.stores().iter().any(|store| {
        let frame = module.frame(store.context.frame);
        let class = frame
            .class
            .and_then(|class| module.classes().get(class as usize));
        let is_model =
            class.is_some_and(|class| matches!(class.role, Role::Model | Role::Lightning));
        is_model
            && frame.name() != "__init__"
            && module
                .dotted_name(store.target)
                .is_some_and(|name| name.starts_with("self."))
    })
}

fn finding(module: &Module<'_>, call: &Call<'_>) -> Finding {
    let of = call.object().map_or("the loss", |of| module.source(of));
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{of}` keeps its graph after `backward()`, but nothing uses it again: two steps are in memory at once"
        ),
        label: "the activations stay until the next step".to_owned(),
        help: format!("free them: `{of}.backward()`"),
        fix: None,
    }
}
