//! # tensors-kept-forever (AF103)
//!
//! Every step adds a batch, an output or a copy of the weights to a list that is never emptied.
//!
//! ## Why it freezes
//!
//! A tensor needs its full size even without a graph. A batch of images takes tens of megabytes,
//! the weights hundreds. Kept in every training step, they fill memory at a steady rate, and the
//! machine swaps long before the run ends.
//!
//! ## Wrong
//!
//! ```python
//! seen = []
//! for x, y in loader:
//!     train_step(x, y)
//!     seen.append(x)
//! ```
//!
//! ## Right
//!
//! ```python
//! seen = deque(maxlen=50)
//! for x, y in loader:
//!     train_step(x, y)
//!     seen.append(x)
//! ```
//!
//! ## When it is fine
//!
//! When the stored tensors are used: joined by `torch.cat` at the end, sampled from, or removed now
//! and then; or when they are stored for one pass over the data or only occasionally. Such lists
//! are not reported, nor are lists outside training.
//!
//! ## Fix
//!
//! None: only the author knows how many are needed.

use crate::finding::Finding;
use crate::model::uses::{Use, find_uses, lies_in};
use crate::model::{Call, FrameId, Loop, LoopId, LoopSource, Module, ValueKind, is_loss_function};
use crate::queries::backward::{
    is_backward_call, runs_backward_in_function, runs_backward_in_loop,
};
use crate::queries::retention::{
    RetainingFunction, StoredItem, find_retaining_functions, find_stored_items, match_arguments,
    outlives_the_call, root_name,
};
use crate::queries::tensor_origin::{TensorOrigin, trace_origin};
use crate::queries::wording::every_step_label;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF103",
    name: "tensors-kept-forever",
    severity: Severity::Warning,
    stage: Stage::Preview,
    source: include_str!("tensors_kept_forever.rs"),
    check,
};

/// The largest size in bytes of a tensor that is not reported.
const MAX_SMALL_BYTES: f64 = 4096.0;

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") && !module.imports("tensorflow") {
        return;
    }
    let items = find_stored_items(module);
    for kept in &items {
        if let Some(what) = find_growing_item(module, kept) {
            findings.push(finding(
                module,
                kept.name,
                kept.range,
                kept.outlived_loop,
                what,
            ));
        }
    }
    if items
        .iter()
        .any(|kept| outlives_the_call(module, kept.name, &kept.context))
    {
        let keepers = find_retaining_functions(module, &items);
        for call in module.calls() {
            findings.extend(check_retaining_call(module, call, &keepers));
        }
    }
}

/// Returns what is stored in every training step in a list that only grows.
fn find_growing_item<'a>(module: &Module<'a>, kept: &StoredItem<'a>) -> Option<&'static str> {
    // Items with a graph belong to another rule; only PyTorch has graphs.
    if (kept.value.graph && module.imports("torch")) || kept.context.inline {
        return None;
    }
    let outlives_the_call = outlives_the_call(module, kept.name, &kept.context);
    if kept.outlived_loop.is_none() && !outlives_the_call {
        return None;
    }
    if outlives_the_call && is_hook(module, kept.context.frame) {
        let is_kept = !is_conditional(module.frame(kept.context.frame).body, kept.range)
            && stores_argument(module, kept)
            && module
                .loops()
                .iter()
                .any(|around| is_step_loop(module, around))
            && only_grows(module, kept.name, kept.context.frame);
        return is_kept.then_some("the activations of every step");
    }
    let what = describe_large_item(module, kept.context.frame, kept.item)?;
    let grows = match kept.outlived_loop {
        Some(id) if is_training_loop(module, id) => {
            // A list for one pass over the data is freed when the function returns.
            let is_one_pass = module.loop_at(id).loop_source == LoopSource::Batches
                && module.loop_at(id).parent.is_none()
                && !kept.name.starts_with("self.");
            !is_one_pass
                && !is_conditional(module.loop_at(id).body, kept.range)
                && is_created_before_loops(module, kept, id)
        }
        _ => {
            outlives_the_call
                && !is_conditional(module.frame(kept.context.frame).body, kept.range)
                && is_called_each_step(module, kept.context.frame)
        }
    };
    (grows && only_grows(module, kept.name, kept.context.frame)).then_some(what)
}

/// Describes an item that is large.
fn describe_large_item<'a>(
    module: &Module<'a>,
    frame: FrameId,
    item: &'a Expr,
) -> Option<&'static str> {
    match trace_origin(module, frame, item, true) {
        TensorOrigin::Batch if is_passed_to_model(module, frame, item) => {
            return Some("every batch");
        }
        TensorOrigin::Output(_) => return Some("every output"),
        TensorOrigin::Gradient => return Some("the gradients of every step"),
        TensorOrigin::Weights => return Some("a copy of the weights of every step"),
        _ => {}
    }
    let key = module.dotted_name(item)?;
    let mut stores = module
        .stores()
        .iter()
        .filter(|store| store.context.frame == frame);
    let is_large = stores.any(|store| {
        module.dotted_name(store.target) == Some(key)
            && store.value.is(ValueKind::Tensor)
            && store
                .value
                .bytes()
                .is_none_or(|bytes| bytes > MAX_SMALL_BYTES)
    });
    (is_large && is_passed_to_model(module, frame, item)).then_some("every batch")
}

/// Whether a function is a forward hook of a model.
fn is_hook(module: &Module<'_>, frame: FrameId) -> bool {
    let name = module.frame(frame).name();
    let mut hooks = module.calls().iter().filter(|call| {
        matches!(
            call.method(),
            Some("register_forward_hook" | "register_forward_pre_hook")
        )
    });
    hooks.any(|call| {
        let given = call.expr.arguments.args.first();
        matches!(given, Some(Expr::Name(given)) if given.id.as_str() == name)
    })
}

/// Whether a hook stores one of its arguments, not just a number computed from it.
fn stores_argument<'a>(module: &Module<'a>, kept: &StoredItem<'a>) -> bool {
    let Some(def) = module.frame(kept.context.frame).def else {
        return false;
    };
    let mut rest = kept.item;
    while let Expr::Call(call) = rest
        && let Expr::Attribute(attribute) = &*call.func
        && matches!(
            attribute.attr.as_str(),
            "detach" | "clone" | "cpu" | "numpy"
        )
    {
        rest = &attribute.value;
    }
    let key = module.dotted_name(rest);
    def.parameters
        .iter_non_variadic_params()
        .any(|parameter| Some(parameter.parameter.name.as_str()) == key)
}

fn is_step_loop(module: &Module<'_>, around: &Loop<'_>) -> bool {
    around.loop_source == LoopSource::Batches
        && module.calls().iter().any(|call| {
            lies_in(call.expr.range(), around.statement.range()) && is_backward_call(call)
        })
}

/// Whether a name in the item is passed to a model or its loss in the same function.
fn is_passed_to_model<'a>(module: &Module<'a>, frame: FrameId, item: &'a Expr) -> bool {
    let mut names = Vec::new();
    crate::queries::backward::collect_names(module, item, &mut names);
    module.calls().iter().any(|call| {
        call.context.frame == frame
            && (matches!(call.callee.kind, ValueKind::Model | ValueKind::Criterion)
                || call.path.is_some_and(|path| is_loss_function(path.last())))
            && call.expr.arguments.args.iter().any(|argument| {
                module
                    .dotted_name(argument)
                    .is_some_and(|key| names.contains(&key))
            })
    })
}

/// Whether a loop trains, over batches or for many iterations.
fn is_training_loop(module: &Module<'_>, id: LoopId) -> bool {
    has_many_iterations(module, id) && (runs_backward_in_loop(module, id) || has_tape(module, id))
}

fn has_many_iterations(module: &Module<'_>, id: LoopId) -> bool {
    module
        .enclosing_loops(Some(id))
        .any(|around| match around.loop_source {
            LoopSource::Batches => true,
            LoopSource::Times(times) => times.is_none_or(|times| times > 1000.0),
            LoopSource::Other => has_tape(module, id),
        })
}

fn has_tape(module: &Module<'_>, id: LoopId) -> bool {
    module.calls().iter().any(|call| {
        module.is_inside_loop(&call.context, id) && call.method() == Some("apply_gradients")
    })
}

/// Whether the list is created outside all loops, not once per epoch.
fn is_created_before_loops(module: &Module<'_>, kept: &StoredItem<'_>, id: LoopId) -> bool {
    let outermost = module
        .enclosing_loops(Some(id))
        .last()
        .map(|around| around.statement.range());
    let root = root_name(kept.name);
    let mut made = module.stores().iter().filter(|store| {
        store.context.frame == kept.context.frame
            && store.operator.is_none()
            && module.dotted_name(store.target) == Some(root)
    });
    outermost
        .is_some_and(|outermost| made.all(|store| !lies_in(store.statement.range(), outermost)))
}

/// Whether a statement in this block runs conditionally.
fn is_conditional(block: &[Stmt], range: TextRange) -> bool {
    block.iter().any(|statement| {
        lies_in(range, statement.range())
            && match statement {
                Stmt::If(_) | Stmt::Match(_) => true,
                Stmt::Try(attempt) => {
                    attempt
                        .handlers
                        .iter()
                        .any(|handler| lies_in(range, handler.range()))
                        || is_conditional(&attempt.body, range)
                }
                Stmt::For(repeat) => is_conditional(&repeat.body, range),
                Stmt::While(repeat) => is_conditional(&repeat.body, range),
                Stmt::With(with) => is_conditional(&with.body, range),
                _ => false,
            }
    })
}

/// Whether a function is called unconditionally in a training loop.
fn is_called_each_step(module: &Module<'_>, frame: FrameId) -> bool {
    let steps_itself = runs_backward_in_function(module, frame);
    module.calls().iter().any(|call| {
        call.local_function == Some(frame)
            && call.context.innermost_loop.is_some_and(|id| {
                let trains = is_training_loop(module, id)
                    || (steps_itself && has_many_iterations(module, id));
                trains && !is_conditional(module.loop_at(id).body, call.expr.range())
            })
    })
}

/// Whether no item is removed from a list, and nothing uses the whole list.
fn only_grows(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    let root = root_name(name);
    let here = module.frame(frame);
    if !root.starts_with("self.") {
        // A list of an outer function is used there as well.
        let owner =
            std::iter::successors(Some(here), |inner| inner.parent.map(|id| module.frame(id)))
                .find(|frame| frame.names.contains_key(root))
                .unwrap_or(here);
        return find_uses(module.text, root, owner.body)
            .iter()
            .all(|used| keeps_list_growing(used, true));
    }
    let methods = module
        .frames()
        .iter()
        .filter(|other| other.class.is_some() && other.class == here.class);
    methods.into_iter().all(|method| {
        let makes = method.name() == "__init__";
        find_uses(module.text, root, method.body)
            .iter()
            .all(|used| keeps_list_growing(used, makes))
    })
}

/// Whether a use only creates the list, adds to it, counts it, or reads its end.
fn keeps_list_growing(used: &Use<'_>, makes: bool) -> bool {
    if matches!(used.statement, Stmt::Delete(_)) {
        return false;
    }
    if used.is_store {
        return makes || matches!(used.statement, Stmt::AugAssign(_));
    }
    if let Some(method) = used.method() {
        return matches!(method, "append" | "extend" | "insert" | "items");
    }
    match used.around[0] {
        Some(Expr::Call(call)) => {
            matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "len")
        }
        // `kept[name].append(x)`, `kept[-100:]`, `kept[-1]`
        Some(Expr::Subscript(part)) => {
            let is_put_to = matches!(used.around[1], Some(Expr::Attribute(attribute)) if attribute.attr.as_str() == "append");
            let from_end = match &*part.slice {
                Expr::Slice(slice) => {
                    slice.lower.as_deref().is_some_and(Expr::is_unary_op_expr)
                        && slice.upper.is_none()
                }
                index => index.is_unary_op_expr(),
            };
            is_put_to || part.ctx.is_store() || from_end
        }
        None => matches!(used.statement, Stmt::Return(_)),
        _ => false,
    }
}

/// Returns a finding for a call of a function in this text that stores its argument.
fn check_retaining_call<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    keepers: &[RetainingFunction<'a>],
) -> Option<Finding> {
    let own = call.local_function?;
    let id = call
        .outlived_loop
        .filter(|id| is_training_loop(module, *id))?;
    if is_conditional(module.loop_at(id).body, call.expr.range()) {
        return None;
    }
    let mut kept = keepers
        .iter()
        .filter(|keeper| keeper.frame == own && !keeper.is_total)
        .peekable();
    kept.peek()?;
    let arguments = match_arguments(module, call, own);
    kept.find_map(|keeper| {
        let (_, argument, value) = arguments
            .iter()
            .find(|(name, ..)| *name == keeper.parameter)?;
        let what =
            describe_large_item(module, call.context.frame, argument).filter(|_| !value.graph)?;
        let is_for_good = only_grows(module, keeper.name, own)
            && !is_conditional(module.frame(own).body, keeper.range);
        is_for_good.then(|| finding(module, keeper.name, call.expr.range(), Some(id), what))
    })
}

fn finding(
    module: &Module<'_>,
    name: &str,
    range: TextRange,
    outlived_loop: Option<LoopId>,
    what: &str,
) -> Finding {
    Finding {
        rule: &RULE,
        range,
        message: format!(
            "`{name}` keeps {what} and is never emptied: it grows until memory is full"
        ),
        label: format!("grows {}", every_step_label(module, outlived_loop)),
        help: format!(
            "keep only the last few: `{name} = deque(maxlen=100)`, or only what you need of each"
        ),
        fix: None,
    }
}
