//! Whether a stored graph stays in memory although no `backward()` will use it.

use super::removal::is_emptied_in_loop;
use super::retaining_functions::match_arguments;
use super::{outlives_the_call, root_name};
use crate::model::{
    Call, CodeContext, Frame, FrameId, LoopId, LoopSource, Module, Role, ValueKind,
};
use crate::queries::backward::{
    backward_names, collect_names, is_backward_call, may_need_graph, runs_backward_in_function,
    runs_backward_in_loop,
};
use crate::queries::bindings::return_values;
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

/// How fast memory grows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MemoryGrowth {
    /// `backward()` frees the activations, and little of the graph remains.
    Slow,
    /// Every activation stays.
    Fast,
}

/// Returns how fast memory grows if the graph of a stored item stays in memory although no
/// `backward()` will use it.
pub fn retained_graph_growth<'a>(
    module: &Module<'a>,
    name: &'a str,
    item: &'a Expr,
    context: &CodeContext,
    outlived_loop: Option<LoopId>,
) -> Option<MemoryGrowth> {
    if outlived_loop.is_none()
        && (context.innermost_loop.is_some() || !outlives_the_call(module, name, context))
    {
        return None;
    }
    if !is_loss_or_output(module, item, context.frame)
        || outlived_loop.is_some_and(|id| leaves_in_first_iteration(module, id))
    {
        return None;
    }
    let root = root_name(name);
    let backward_targets = backward_names(module, context.frame);
    if backward_targets.contains(&name) || backward_targets.contains(&root) {
        return None;
    }
    let is_wanted = || {
        may_need_graph(module, name, context.frame)
            || (root != name && may_need_graph(module, root, context.frame))
    };
    let in_training = match outlived_loop {
        Some(id) => runs_backward_in_loop(module, id),
        None => {
            runs_backward_in_function(module, context.frame)
                || is_trainer_step(module, context.frame)
        }
    };
    if in_training {
        let stays = !is_emptied_in_loop(module, name, context, outlived_loop)
            && (is_backward_target(module, item, context.frame) || !is_wanted());
        return stays.then_some(MemoryGrowth::Slow);
    }
    let is_for_nothing = script_never_runs_backward(module, context.frame)
        || outlived_loop.is_some_and(|id| is_evaluation_loop(module, context.frame, id));
    let stays =
        is_for_nothing && !is_emptied_in_loop(module, name, context, outlived_loop) && !is_wanted();
    stays.then_some(MemoryGrowth::Fast)
}

/// Whether the item is surely a loss or an output, and not another returned value such as a count
/// or a score, or one that is detached in some branch.
pub(super) fn is_loss_or_output<'a>(module: &Module<'a>, item: &'a Expr, frame: FrameId) -> bool {
    let Some(key) = module.dotted_name(item) else {
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
        .filter(|store| store.context.frame == frame);
    let mut made = here
        .filter(|store| module.dotted_name(store.target) == Some(key))
        .peekable();
    let is_part = made.peek().is_some_and(|store| store.source.is_none());
    let is_let_go = made.any(|store| match store.source {
        Some(Expr::Call(call)) => match &*call.func {
            Expr::Attribute(attribute) => {
                module.dotted_name(&attribute.value) == Some(key)
                    && matches!(attribute.attr.as_str(), "detach" | "item" | "cpu" | "numpy")
            }
            _ => false,
        },
        _ => false,
    });
    let is_known = !is_part
        || last.contains("loss")
        || is_backward_target(module, item, frame)
        || is_model_output(module, key, frame);
    is_known && !is_let_go
}

/// Whether a name is part of the output of a model.
pub(super) fn is_model_output(module: &Module<'_>, key: &str, frame: FrameId) -> bool {
    module.stores().iter().any(|store| {
        store.context.frame == frame
            && module.dotted_name(store.target) == Some(key)
            && matches!(store.statement, Stmt::Assign(assign) if module.calls().iter().any(|call| {
                call.expr.range() == assign.value.range() && call.callee.is(ValueKind::Model)
            }))
    })
}

/// Whether a loop ends in its first iteration because of an unconditional `break`.
pub(super) fn leaves_in_first_iteration(module: &Module<'_>, id: LoopId) -> bool {
    module.loop_at(id).body.iter().any(Stmt::is_break_stmt)
}

/// Whether `backward()` runs on part of the item in the same function. Its graph is useless
/// afterwards.
pub fn is_backward_target<'a>(module: &Module<'a>, item: &'a Expr, frame: FrameId) -> bool {
    let stepped = backward_target_names(module, frame);
    let mut parts = Vec::new();
    collect_names(module, item, &mut parts);
    parts.iter().any(|part| stepped.contains(part))
}

/// Returns the names that `backward()` runs on, without the names they were computed from.
pub fn backward_target_names<'a>(module: &Module<'a>, frame: FrameId) -> Vec<&'a str> {
    let mut names = Vec::new();
    for call in module
        .calls()
        .iter()
        .filter(|call| call.context.frame == frame)
    {
        let is_true =
            |name| matches!(call.keyword(name), Some(Expr::BooleanLiteral(yes)) if yes.value);
        if is_backward_call(call) {
            // The graph is kept on purpose for another `backward()`.
            if is_true("retain_graph") || is_true("create_graph") {
                continue;
            }
            match call.method() {
                Some("backward")
                    if call.receiver.is_some_and(|of| of.kind != ValueKind::Engine) =>
                {
                    call.object()
                        .into_iter()
                        .for_each(|of| collect_summands(module, of, &mut names));
                }
                _ => {}
            }
            let of = call.expr.arguments.args.first();
            of.into_iter()
                .for_each(|of| collect_summands(module, of, &mut names));
        } else if let Some(own) = call.local_function {
            // `self.optimize(loss)`, which runs `backward()`.
            let inner = backward_names(module, own);
            for (parameter, argument, _) in match_arguments(module, call, own) {
                if inner.contains(&parameter) {
                    collect_summands(module, argument, &mut names);
                }
            }
        }
    }
    if is_trainer_step(module, frame) {
        for statement in module.frame(frame).body {
            if let Stmt::Return(result) = statement
                && let Some(value) = &result.value
            {
                collect_summands(module, value, &mut names);
            }
        }
    }
    names
}

/// Collects the terms of a sum, including scaled terms.
pub(super) fn collect_summands<'a>(
    module: &Module<'a>,
    expression: &'a Expr,
    names: &mut Vec<&'a str>,
) {
    if let Some(key) = module.dotted_name(expression) {
        names.push(key);
        return;
    }
    match expression {
        Expr::BinOp(operation) => {
            collect_summands(module, &operation.left, names);
            collect_summands(module, &operation.right, names);
        }
        Expr::UnaryOp(operation) => collect_summands(module, &operation.operand, names),
        Expr::If(choice) => {
            collect_summands(module, &choice.body, names);
            collect_summands(module, &choice.orelse, names);
        }
        Expr::Dict(dict) => dict
            .items
            .iter()
            .for_each(|item| collect_summands(module, &item.value, names)),
        Expr::Call(call) => {
            if let Expr::Attribute(attribute) = &*call.func {
                match attribute.attr.as_str() {
                    "scale" => call
                        .arguments
                        .args
                        .iter()
                        .for_each(|term| collect_summands(module, term, names)),
                    "mean" | "sum" | "div" | "mul" => {
                        collect_summands(module, &attribute.value, names)
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether this is a step whose return value is the loss that an engine runs `backward()` on.
pub(super) fn is_trainer_step(module: &Module<'_>, frame: FrameId) -> bool {
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
        "training_step" => class.role == Role::Lightning,
        "compute_loss" => is_trainer(),
        _ => false,
    }
}

/// Whether a loop runs a model without training it.
pub(super) fn is_evaluation_loop(module: &Module<'_>, frame: FrameId, id: LoopId) -> bool {
    let function = module.frame(frame);
    let by_name = is_evaluation_name(function.name())
        && module.loop_at(id).loop_source == LoopSource::Batches;
    (by_name || calls_eval(module, frame))
        && !runs_backward_in_function(module, frame)
        && !is_test_code(module, function)
}

/// Whether a text that creates a model computes no gradients anywhere, and this function passes
/// nothing to code that could.
fn script_never_runs_backward(module: &Module<'_>, frame: FrameId) -> bool {
    let may = [
        "backward", "grad(", "Trainer", "ightning", "jacobian", "hessian",
    ];
    let makes_a_model = |call: &Call<'_>| call.result.is(ValueKind::Model);
    let function = module.frame(frame);
    let is_of_a_model = function
        .class
        .and_then(|class| module.classes().get(class as usize))
        .is_some_and(|class| class.role != Role::Other);
    !is_of_a_model
        && !may.iter().any(|word| module.text.contains(word))
        && module.calls().iter().any(makes_a_model)
        && return_values(module, frame).is_empty()
        && !is_test_code(module, function)
}

/// Whether a function name suggests evaluation.
pub fn is_evaluation_name(name: &str) -> bool {
    ["eval", "valid", "test", "infer", "predict"]
        .iter()
        .any(|word| name.contains(word))
}

/// Whether a function is a unit test.
pub fn is_test_code(module: &Module<'_>, frame: &Frame<'_>) -> bool {
    let class = frame
        .class
        .and_then(|class| module.classes().get(class as usize));
    let is_case = class.is_some_and(|class| {
        let mut bases = class
            .def
            .arguments
            .iter()
            .flat_map(|arguments| &arguments.args);
        let is_test_name = |name: &str| name.starts_with("Test") || name.ends_with("TestCase");
        is_test_name(class.def.name.as_str()) || bases.any(|base| is_test_name(module.source(base)))
    });
    is_case
        || frame.name().starts_with("test_")
        || module.imports("pytest")
        || module.imports("unittest")
}

/// Whether a function calls `eval()` on a model.
pub(super) fn calls_eval(module: &Module<'_>, frame: FrameId) -> bool {
    module.calls().iter().any(|call| {
        call.context.frame == frame
            && call.method() == Some("eval")
            && call.expr.arguments.is_empty()
    })
}
