//! # eval-without-no-grad (AF105)
//!
//! Evaluation runs with gradient tracking on, so PyTorch keeps every activation.
//!
//! ## Why it crashes
//!
//! `model.eval()` changes dropout and batch normalization; it does not turn gradient tracking off.
//! Every activation is kept for a `backward()` that never comes. Evaluation takes several times the
//! memory it needs, and the run often fails in the validation after the first epoch.
//!
//! ## Wrong
//!
//! ```python
//! model.eval()
//! for x, y in val_loader:
//!     correct += (model(x).argmax(1) == y).sum().item()
//! ```
//!
//! ## Right
//!
//! ```python
//! model.eval()
//! with torch.no_grad():
//!     for x, y in val_loader:
//!         correct += (model(x).argmax(1) == y).sum().item()
//! ```
//!
//! ## When it is fine
//!
//! When gradients are wanted (attacks, saliency), or the caller has turned them off. Where the file
//! shows that, nothing is reported.
//!
//! ## Fix
//!
//! Unsafe: adds `@torch.no_grad()` to a function that only evaluates.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::uses::lies_in;
use crate::model::{Call, Frame, FrameId, LoopId, LoopSource, Module, Role, ValueKind, each_block};
use crate::queries::backward::{
    call_runs_backward, runs_backward_in_function, runs_backward_in_loop,
};
use crate::queries::retention::{is_evaluation_name, is_test_code, match_arguments};
use crate::queries::try_blocks::runs_model;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange, TextSize};

pub static RULE: Rule = Rule {
    code: "AF105",
    name: "eval-without-no-grad",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("eval_without_no_grad.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") || sets_grad_in_other_ways(module) {
        return;
    }
    let mut seen: Vec<(FrameId, LoopId)> = Vec::new();
    for call in module.calls() {
        let Some(id) = call.context.innermost_loop else {
            continue;
        };
        let is_plain =
            !call.context.no_grad && !call.context.inline && call.context.handler.is_none();
        let around = module.loop_at(id);
        let is_over =
            around.for_clause.is_some() && !matches!(around.loop_source, LoopSource::Times(_));
        let is_suspect = is_plain
            && (call.callee.is(ValueKind::Model) || (call.local_function.is_some() && is_over));
        if is_suspect
            && !seen.contains(&(call.context.frame, id))
            && records_graph(module, call)
            && only_evaluates(module, call, id)
        {
            seen.push((call.context.frame, id));
            findings.push(finding(module, call, id));
        }
    }
}

/// Whether the text turns gradient tracking on or off in a way that is not followed.
fn sets_grad_in_other_ways(module: &Module<'_>) -> bool {
    [
        "set_grad_enabled",
        "volatile",
        "requires_grad = False",
        "requires_grad=False",
        "requires_grad_(False)",
    ]
    .iter()
    .any(|sign| module.text.contains(sign))
}

/// Whether a call records a graph: of a model, or of a function that runs one.
fn records_graph(module: &Module<'_>, call: &Call<'_>) -> bool {
    if call.callee.is(ValueKind::Model) {
        return call.result.graph
            || matches!(call.result.kind, ValueKind::Tuple(_) | ValueKind::Fields(_));
    }
    call.local_function.is_some_and(|own| {
        let frame = module.frame(own);
        let is_helper =
            !frame.no_grad && !is_in_model(module, frame) && !is_evaluation_name(frame.name());
        is_helper
            && !runs_backward_in_function(module, own)
            && module.calls().iter().any(|inner| {
                inner.context.frame == own
                    && inner.callee.is(ValueKind::Model)
                    && !inner.context.no_grad
            })
    })
}

/// Whether the loop runs the model without training it.
fn only_evaluates<'a>(module: &Module<'a>, call: &Call<'a>, id: LoopId) -> bool {
    let frame = module.frame(call.context.frame);
    let source = frame.def.map_or("", |def| module.source(def));
    if is_in_model(module, frame) || is_test_code(module, frame) || source.contains("requires_grad")
    {
        return false;
    }
    // If it is off for one call of a model, it is on for another call on purpose.
    let is_chosen = module.calls().iter().any(|other| {
        other.context.frame == call.context.frame
            && other.context.no_grad
            && other.callee.is(ValueKind::Model)
    });
    if is_chosen
        || runs_backward_in_loop(module, id)
        || is_in_unknown_context(module, frame.body, call.expr.range())
    {
        return false;
    }
    is_after_eval(module, call) || is_evaluation_function(module, frame, call, id)
}

/// Whether a function is part of a model, whose caller decides about gradient tracking.
fn is_in_model(module: &Module<'_>, frame: &Frame<'_>) -> bool {
    let mut here = Some(frame);
    while let Some(frame) = here {
        let class = frame
            .class
            .and_then(|class| module.classes().get(class as usize));
        if class.is_some_and(|class| !matches!(class.role, Role::Other | Role::Dataset)) {
            return true;
        }
        here = frame.parent.map(|parent| module.frame(parent));
    }
    frame.name() == "forward"
}

/// Whether the model was switched to evaluation before, and neither `train()` nor `backward()`
/// follows until the next switch.
fn is_after_eval<'a>(module: &Module<'a>, call: &Call<'a>) -> bool {
    let here: Vec<&Call<'a>> = module
        .calls()
        .iter()
        .filter(|other| other.context.frame == call.context.frame)
        .collect();
    let position = call.expr.start();
    let turns = |name: &str, other: &Call<'a>| {
        other.method() == Some(name)
            && other.expr.arguments.is_empty()
            && other
                .object()
                .is_some_and(|object| is_same_model(module, call, object))
    };
    let evaluated = here
        .iter()
        .filter(|other| turns("eval", other) && other.expr.start() < position)
        .map(|other| other.expr.start())
        .max();
    let Some(evaluated) = evaluated else {
        return false;
    };
    let is_back =
        |other: &&&Call<'a>| other.method() == Some("train") && other.expr.start() > evaluated;
    let trained = here.iter().filter(is_back).map(|other| other.expr.start());
    if trained.clone().any(|trained| trained < position) {
        return false;
    }
    let end = trained.min().unwrap_or(TextSize::new(u32::MAX));
    let mut later = here
        .iter()
        .filter(|other| (evaluated..end).contains(&other.expr.start()));
    !later.any(|other| call_runs_backward(module, other))
}

/// Whether `.eval()` was called on the model that runs here or in the called function.
fn is_same_model<'a>(module: &Module<'a>, call: &Call<'a>, object: &'a Expr) -> bool {
    let Some(key) = module.dotted_name(object) else {
        return false;
    };
    let Some(own) = call
        .local_function
        .filter(|_| !call.callee.is(ValueKind::Model))
    else {
        // `self.model.eval()` also applies to submodules.
        let asked = module.dotted_name(&call.expr.func);
        return asked.is_some_and(|asked| {
            asked == key
                || asked
                    .strip_prefix(key)
                    .is_some_and(|rest| rest.starts_with(['.', '[']))
        });
    };
    let given = match_arguments(module, call, own);
    module.calls().iter().any(|inner| {
        inner.context.frame == own
            && inner.callee.is(ValueKind::Model)
            && module.dotted_name(&inner.expr.func).is_some_and(|asked| {
                let is_shared =
                    key.starts_with("self.") || !module.frame(own).names.contains_key(key);
                (asked == key && is_shared)
                    || given.iter().any(|(name, argument, _)| {
                        *name == asked && module.dotted_name(argument) == Some(key)
                    })
            })
    })
}

/// Whether a function evaluates by its name, iterates over batches, and all of its callers are
/// known and see no graph.
fn is_evaluation_function(
    module: &Module<'_>,
    frame: &Frame<'_>,
    call: &Call<'_>,
    id: LoopId,
) -> bool {
    let id_of_frame = call.context.frame;
    let mut callers = module
        .calls()
        .iter()
        .filter(|other| other.local_function == Some(id_of_frame))
        .peekable();
    is_evaluation_name(frame.name())
        && module.loop_at(id).loop_source == LoopSource::Batches
        && !frame.returns.graph
        && !runs_backward_in_function(module, id_of_frame)
        && !module.calls().iter().any(|other| {
            other.context.frame == id_of_frame
                && (other.method() == Some("train") || other.method() == Some("step"))
        })
        && callers.peek().is_some()
        && callers.all(|caller| {
            !caller.context.no_grad && !is_test_code(module, module.frame(caller.context.frame))
        })
}

/// Whether an enclosing `with` may turn gradient tracking off.
fn is_in_unknown_context(module: &Module<'_>, block: &[Stmt], range: TextRange) -> bool {
    block.iter().any(|statement| {
        if !lies_in(range, statement.range()) {
            return false;
        }
        let is_unknown = match statement {
            Stmt::With(with) => with.items.iter().any(|item| match &item.context_expr {
                Expr::Call(call) => {
                    let name = module.source(&*call.func);
                    ["grad", "eval", "mode", "context", "ctx", "infer"]
                        .iter()
                        .any(|word| name.contains(word))
                }
                _ => true,
            }),
            _ => false,
        };
        let mut inside = is_unknown;
        each_block(statement, |block| {
            inside = inside || is_in_unknown_context(module, block, range)
        });
        inside
    })
}

fn finding<'a>(module: &Module<'a>, call: &Call<'a>, id: LoopId) -> Finding {
    let function = module.source(&*call.expr.func);
    let line = module.line_label(module.loop_header(id));
    let fix = no_grad_fix(module, call);
    let help = match fix {
        Some(_) => "turn gradient tracking off for the function: `@torch.no_grad()`".to_owned(),
        None => format!("put the loop at {line} under `with torch.no_grad():`"),
    };
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{function}` runs with gradient tracking on but no `backward()` follows: every activation is kept"
        ),
        label: "keeps all activations".to_owned(),
        help,
        fix,
    }
}

/// Returns a fix that adds a decorator, if the function only evaluates.
fn no_grad_fix<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<Fix> {
    let frame = module.frame(call.context.frame);
    let def = frame.def.filter(|def| !def.is_async)?;
    let has_torch = module.text.lines().any(|line| {
        let names = line.strip_prefix("import ").unwrap_or("");
        names
            .split(',')
            .any(|name| name.split('#').next().unwrap_or("").trim() == "torch")
    });
    let id = call.context.frame;
    if !has_torch
        || runs_backward_in_function(module, id)
        || frame.returns.graph
        || !runs_model(module, call)
    {
        return None;
    }
    // Below the existing decorators, directly above `def`.
    let from = def.decorator_list.last().map_or(def.start(), Ranged::end);
    let until = def.name.start();
    let between = module.text.get(usize::from(from)..usize::from(until))?;
    let offset = TextSize::try_from(between.rfind("def")?).ok()?;
    let at = from + offset;
    let before = module.text.get(..usize::from(at))?;
    let indent = before.rsplit('\n').next().unwrap_or("");
    let is_indent = indent.chars().all(char::is_whitespace);
    is_indent.then(|| Fix {
        edits: vec![Edit {
            range: TextRange::empty(at),
            content: format!("@torch.no_grad()\n{indent}"),
        }],
        safety: Safety::Unsafe,
        title: "Turn gradient tracking off in this function".to_owned(),
    })
}
