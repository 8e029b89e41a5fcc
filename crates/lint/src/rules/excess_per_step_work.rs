//! # excess-per-step-work (AF211)
//!
//! Slow work that rarely helps runs in every step.
//!
//! ## Why it freezes
//!
//! `torch.cuda.empty_cache()` waits for the GPU and frees memory that the next step allocates
//! again. `gc.collect()` visits every Python object. Anomaly detection checks each gradient and
//! keeps a traceback of each operation. Printing the loss waits for the GPU, and ten thousand lines
//! overload a notebook. In every step this makes training two to ten times slower and looks like a
//! hang. None of it frees tensors that are still referenced.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in loader:
//!     step(x, y)
//!     torch.cuda.empty_cache()
//! ```
//!
//! ## Right
//!
//! ```python
//! for x, y in loader:
//!     step(x, y)
//! ```
//!
//! ## When it is fine
//!
//! Once per epoch, before another program needs the GPU, or while debugging a NaN. Calls under a
//! condition are not reported, nor is `print` in a loop of unknown length.
//!
//! ## Fix
//!
//! Safe: removes the line, or turns anomaly detection off.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Call, LoopId, LoopSource, Module};
use crate::queries::backward::{is_backward_call, runs_backward_in_loop};
use crate::queries::bindings::find_statement;
use crate::queries::optimizer_steps::delete_line;
use crate::queries::retention::is_test_code;
use crate::queries::wording::{every_step_label, format_count};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF211",
    name: "excess-per-step-work",
    severity: Severity::Info,
    stage: Stage::Stable,
    source: include_str!("excess_per_step_work.rs"),
    check,
};

/// The number of printed lines per epoch that is too many.
const MAX_PRINTED_LINES: f64 = 1000.0;

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        if let Some(id) = call.context.innermost_loop
            && let Some(what) = slow_call_effect(module, call, id)
            && !call.context.inline
            && call.context.handler.is_none()
            && is_training_loop(module, id)
            && !is_test_code(module, module.frame(call.context.frame))
            && let Some(statement) = find_statement_of_call(module, call, id)
        {
            findings.push(finding(module, call, statement, &what, id));
        }
    }
}

/// Returns what makes a call slow, if it is one of the slow calls.
fn slow_call_effect(module: &Module<'_>, call: &Call<'_>, id: LoopId) -> Option<String> {
    let Some(path) = call.path else {
        let prints = matches!(&*call.expr.func, Expr::Name(name) if name.id == "print")
            && call.local_function.is_none();
        let turns = prints
            .then(|| iteration_count(module, id))
            .flatten()
            .filter(|turns| *turns >= MAX_PRINTED_LINES)?;
        return Some(format!(
            "prints {} lines per epoch and waits for the GPU before each",
            format_count(turns)
        ));
    };
    let what = match path.segments() {
        ["torch", "cuda", "empty_cache"] => {
            "waits for the GPU and frees memory that the next step allocates again"
        }
        ["gc", "collect"] => "visits every Python object",
        ["torch", "autograd", .., "detect_anomaly"] => {
            "checks each gradient and keeps a traceback of each operation"
        }
        ["torch", "autograd", .., "set_detect_anomaly"] => {
            let on = matches!(call.argument(0, "mode"), Some(Expr::BooleanLiteral(on)) if on.value);
            on.then_some("checks each gradient and keeps a traceback of each operation")?
        }
        _ => return None,
    };
    Some(what.to_owned())
}

/// Returns the number of iterations over a loader, if the sizes are written in the text.
fn iteration_count(module: &Module<'_>, id: LoopId) -> Option<f64> {
    let around = module.loop_at(id);
    let (_, mut over) = around
        .for_clause
        .filter(|_| around.loop_source == LoopSource::Batches)?;
    while let Expr::Call(call) = over {
        over = call.arguments.args.first()?;
    }
    module.final_value(over, around.frame).rows()
}

/// Whether a loop trains: it iterates over batches and runs `backward()`, or computes gradients
/// itself.
fn is_training_loop(module: &Module<'_>, id: LoopId) -> bool {
    let steps = |call: &Call<'_>| {
        is_backward_call(call)
            || matches!(call.method(), Some("apply_gradients" | "train_on_batch"))
    };
    (module.loop_at(id).loop_source == LoopSource::Batches && runs_backward_in_loop(module, id))
        || module
            .calls()
            .iter()
            .any(|call| call.context.innermost_loop == Some(id) && steps(call))
}

/// Returns the statement that consists of this call, or the `with` that enters it, if it runs
/// unconditionally and is not the only statement of the loop.
fn find_statement_of_call<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    id: LoopId,
) -> Option<&'a Stmt> {
    let body = module.loop_at(id).body;
    // A loop that retries has a reason to free memory first.
    if body.iter().any(Stmt::is_try_stmt) {
        return None;
    }
    let (block, at) = find_statement(body, call.expr.range())?;
    let statement = block.get(at).filter(|_| std::ptr::eq(block, body))?;
    let is_it = match statement {
        Stmt::Expr(expression) => expression.value.range() == call.expr.range() && body.len() > 1,
        Stmt::With(with) => with
            .items
            .iter()
            .any(|item| item.context_expr.range() == call.expr.range()),
        _ => false,
    };
    is_it.then_some(statement)
}

fn finding(
    module: &Module<'_>,
    call: &Call<'_>,
    statement: &Stmt,
    what: &str,
    id: LoopId,
) -> Finding {
    let function = module.source(&*call.expr.func);
    let fix = match statement {
        // `set_detect_anomaly(False)` is a context manager as well.
        Stmt::With(_) => function
            .strip_suffix("detect_anomaly")
            .filter(|head| head.ends_with('.'))
            .map(|head| Fix {
                edits: vec![Edit {
                    range: call.expr.range(),
                    content: format!("{head}set_detect_anomaly(False)"),
                }],
                safety: Safety::Safe,
                title: "Turn it off".to_owned(),
            }),
        // The author decides what is printed.
        _ if function == "print" => None,
        _ => delete_line(module, statement.range()).map(|edit| Fix {
            edits: vec![edit],
            safety: Safety::Safe,
            title: "Remove it".to_owned(),
        }),
    };
    Finding {
        rule: &RULE,
        range: TextRange::new(statement.start(), call.expr.end()),
        message: format!(
            "`{function}()` {what}, {}",
            every_step_label(module, Some(id))
        ),
        label: "runs in every step".to_owned(),
        help: if function == "print" {
            "print every 100th: if step % 100 == 0".to_owned()
        } else {
            "remove it, or do it once after the loop".to_owned()
        },
        fix,
    }
}
