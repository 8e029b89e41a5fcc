//! # missing-zero-grad (AF301)
//!
//! Gradients are computed and the optimizer steps, but nothing clears the gradients.
//!
//! ## Why it crashes
//!
//! `backward()` adds to the existing gradients. Without `zero_grad()` each step uses the sum of all
//! previous gradients. They grow, the loss jumps and finally becomes NaN, and the hours until then
//! are lost.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     optimizer.step()
//! ```
//!
//! ## Right
//!
//! ```python
//! for x, y in loader:
//!     optimizer.zero_grad()
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     optimizer.step()
//! ```
//!
//! ## When it is fine
//!
//! When something else clears them: an engine such as DeepSpeed, or a function in another file. A
//! file is reported only if nothing in it could clear them.
//!
//! ## Fix
//!
//! Unsafe, because it changes the training: `zero_grad()` after the step.

use crate::finding::{Finding, Fix, Safety};
use crate::model::{Call, LoopId, Module, Role, ValueKind};
use crate::queries::backward::is_backward_call;
use crate::queries::optimizer_steps::{
    OptimizerSteps, cleared_object, count_mentions, insert_line_after,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF301",
    name: "missing-zero-grad",
    severity: Severity::Error,
    stage: Stage::Preview,
    source: include_str!("missing_zero_grad.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    let steps = OptimizerSteps::collect(module);
    if steps.direct().is_empty() || !module.imports("torch") {
        return;
    }
    let mut reported: Vec<&str> = Vec::new();
    for (step, optimizer) in steps.direct() {
        if !reported.contains(optimizer)
            && let Some(turns) = find_repeating_loop(module, step, optimizer)
            && !is_in_test(module, step)
            && !is_cleared(module, &steps, step, optimizer)
        {
            reported.push(optimizer);
            findings.push(finding(module, step, optimizer, turns));
        }
    }
}

/// Returns the loop that repeats both the step and the gradients of an optimizer: around both, or
/// around the call of their function (`Some(None)`).
fn find_repeating_loop(
    module: &Module<'_>,
    step: &Call<'_>,
    optimizer: &str,
) -> Option<Option<LoopId>> {
    let backwards: Vec<&Call<'_>> = module
        .calls()
        .iter()
        .filter(|call| is_plain_backward(call))
        .collect();
    let mut around = step.context.innermost_loop;
    while let Some(id) = around {
        let has_backward = backwards
            .iter()
            .any(|back| module.is_inside_loop(&back.context, id))
            || module.calls().iter().any(|call| {
                module.is_inside_loop(&call.context, id)
                    && call
                        .local_function
                        .is_some_and(|own| backwards.iter().any(|back| back.context.frame == own))
            });
        if has_backward {
            let made_anew = module.stores().iter().any(|store| {
                module.is_inside_loop(&store.context, id)
                    && module.dotted_name(store.target) == Some(optimizer)
            });
            return (!made_anew && !ends_in_first_iteration(module.loop_at(id).body))
                .then_some(Some(id));
        }
        around = module.loop_at(id).parent;
    }
    let frame = step.context.frame;
    if is_lightning_step(module, step) && backwards.iter().any(|back| back.context.frame == frame) {
        return Some(None);
    }
    let is_made_here = module.stores().iter().any(|store| {
        store.context.frame == frame && module.dotted_name(store.target) == Some(optimizer)
    });
    let mut callers = module
        .calls()
        .iter()
        .filter(|call| call.local_function == Some(frame));
    let by_caller = step.context.innermost_loop.is_none()
        && !is_made_here
        && backwards
            .iter()
            .any(|back| back.context.frame == frame && back.context.innermost_loop.is_none())
        && callers.any(|call| call.context.innermost_loop.is_some() || call.context.inline);
    by_caller.then_some(None)
}

/// Whether this is a step that Lightning calls for each batch, with optimizers that it keeps.
fn is_lightning_step(module: &Module<'_>, step: &Call<'_>) -> bool {
    let frame = module.frame(step.context.frame);
    let class = frame
        .class
        .and_then(|class| module.classes().get(class as usize));
    frame.name() == "training_step" && class.is_some_and(|class| class.role == Role::Lightning)
}

/// Whether a loop always ends in its first iteration.
fn ends_in_first_iteration(body: &[Stmt]) -> bool {
    matches!(
        body.last(),
        Some(Stmt::Break(_) | Stmt::Return(_) | Stmt::Raise(_))
    )
}

/// Whether this is `loss.backward()`, not that of an engine, which clears the gradients itself.
fn is_plain_backward(call: &Call<'_>) -> bool {
    is_backward_call(call)
        && (call.method() == Some("manual_backward")
            || call
                .receiver
                .is_none_or(|receiver| receiver.kind != ValueKind::Model))
        && call.path.is_none()
}

/// Whether a step is in a unit test; tests may step without clearing on purpose.
fn is_in_test(module: &Module<'_>, step: &Call<'_>) -> bool {
    let mut frame = Some(step.context.frame);
    while let Some(id) = frame {
        let here = module.frame(id);
        if here.name().starts_with("test") || here.name().starts_with("_test") {
            return true;
        }
        frame = here.parent;
    }
    false
}

/// Whether anything in the text may clear this optimizer's gradients.
fn is_cleared(
    module: &Module<'_>,
    steps: &OptimizerSteps<'_, '_>,
    step: &Call<'_>,
    optimizer: &str,
) -> bool {
    let mut of_others = 0;
    for call in module.calls() {
        let Some(other) = cleared_object(module, call) else {
            continue;
        };
        if other == optimizer
            || !steps_before_gradients(module, steps, step, other)
            || call.context.frame != step.context.frame
        {
            return true;
        }
        of_others += 1;
    }
    // Calls that the model did not see, and all other ways to clear gradients.
    count_mentions(module.text, "zero_grad") > of_others
        || [
            "reset_grad",
            "clear_grad",
            "clean_grad",
            "zero_gradients",
            "zerograd",
            "deepspeed",
            "colossalai",
        ]
        .iter()
        .any(|word| count_mentions(module.text, word) > 0)
        || is_cleared_by_hand(module.text)
        || has_unknown_base(module, step)
}

/// Whether another optimizer of the function steps before this one's gradients are computed, so
/// that it clears only its own.
fn steps_before_gradients(
    module: &Module<'_>,
    steps: &OptimizerSteps<'_, '_>,
    step: &Call<'_>,
    other: &str,
) -> bool {
    let backwards = module
        .calls()
        .iter()
        .filter(|call| call.context.frame == step.context.frame && is_backward_call(call));
    let Some(last) = backwards
        .map(|back| back.expr.start())
        .filter(|start| *start < step.expr.start())
        .max()
    else {
        return false;
    };
    steps.direct().iter().any(|(call, stepped)| {
        *stepped == other && call.context.frame == step.context.frame && call.expr.end() <= last
    })
}

/// Whether the text clears gradients by hand: `p.grad = None`, `p.grad.zero_()`,
/// `p.grad.data.zero_()`, `p.grad *= 0`.
fn is_cleared_by_hand(text: &str) -> bool {
    text.match_indices(".grad").any(|(at, word)| {
        let rest = text.get(at + word.len()..).unwrap_or("");
        let rest = rest
            .strip_prefix(".data")
            .unwrap_or(rest)
            .trim_start_matches(' ');
        [".zero_", ".fill_", ".mul_", "*=", ".detach_"]
            .iter()
            .any(|way| rest.starts_with(way))
            || (rest.starts_with('=') && !rest.starts_with("=="))
    })
}

/// Whether the class of a step has an unknown base class, which may do anything between the steps.
fn has_unknown_base(module: &Module<'_>, step: &Call<'_>) -> bool {
    let Some(class) = module
        .frame(step.context.frame)
        .class
        .and_then(|id| module.classes().get(id as usize))
    else {
        return false;
    };
    let mut bases = class
        .def
        .arguments
        .iter()
        .flat_map(|arguments| &arguments.args);
    bases.any(|base| {
        let is_known = match base {
            Expr::Name(name) => {
                name.id.as_str() == "object"
                    || module
                        .classes()
                        .iter()
                        .any(|other| other.def.name.as_str() == name.id.as_str())
            }
            _ => false,
        };
        let is_module = module.import_path(base).is_some_and(|path| {
            path.is_any(&["torch.nn.Module", "lightning.LightningModule"]) || path.first() == "abc"
        });
        !is_known && !is_module
    })
}

fn finding(
    module: &Module<'_>,
    step: &Call<'_>,
    optimizer: &str,
    turns: Option<LoopId>,
) -> Finding {
    let when = match turns {
        Some(id) => format!(
            "in every iteration of the loop at {}",
            module.line_label(module.loop_header(id))
        ),
        None => "in every call".to_owned(),
    };
    let clear = format!("{optimizer}.zero_grad()");
    let fix = insert_line_after(module, step.expr.range(), &clear).map(|edit| Fix {
        edits: vec![edit],
        safety: Safety::Unsafe,
        title: "Clear the gradients after the step".to_owned(),
    });
    Finding {
        rule: &RULE,
        range: step.expr.range(),
        message: format!(
            "`{optimizer}` steps {when}, but nothing clears its gradients: they grow until the loss is NaN"
        ),
        label: "uses the gradients of all previous steps".to_owned(),
        help: format!("clear them after each step: {clear}"),
        fix,
    }
}
