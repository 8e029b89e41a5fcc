//! # excess-per-step-work (AF211)
//!
//! Something that costs time, and helps rarely, is done in every step.
//!
//! ## Why it freezes
//!
//! `torch.cuda.empty_cache()` waits for the card and gives back memory that the next step asks
//! for again; `gc.collect()` goes through every object of the program; anomaly detection checks
//! each gradient and keeps a traceback of each operation; a `print` of the loss waits for the
//! card, and ten thousand lines are more than a notebook can show. Every step, that makes
//! training two to ten times slower and looks like a hang. None of them makes room for tensors
//! that are still referred to.
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
//! Once an epoch, before another program needs the card, or while looking for a NaN. What stands
//! under a condition is not reported, nor `print` where the number of steps is not written in
//! the text.
//!
//! ## Fix
//!
//! Safe: the line goes away, or anomaly detection is turned off.

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

/// Lines that nobody reads.
const MANY: f64 = 1000.0;

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        if let Some(id) = call.context.innermost_loop
            && let Some(what) = costly(module, call, id)
            && !call.context.inline
            && call.context.handler.is_none()
            && is_step(module, id)
            && !is_test_code(module, module.frame(call.context.frame))
            && let Some(statement) = own_statement(module, call, id)
        {
            findings.push(finding(module, call, statement, &what, id));
        }
    }
}

/// What a call costs, if it is one of those.
fn costly(module: &Module<'_>, call: &Call<'_>, id: LoopId) -> Option<String> {
    let Some(path) = call.path else {
        let prints = matches!(&*call.expr.func, Expr::Name(name) if name.id == "print")
            && call.local_function.is_none();
        let turns = prints
            .then(|| turns(module, id))
            .flatten()
            .filter(|turns| *turns >= MANY)?;
        return Some(format!(
            "writes {} lines an epoch, and waits for the card before each",
            format_count(turns)
        ));
    };
    let what = match path.segments() {
        ["torch", "cuda", "empty_cache"] => {
            "waits for the card and gives back memory that the next step asks for again"
        }
        ["gc", "collect"] => "goes through every object of the program",
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

/// How many turns a loop over a loader takes, where the sizes are written in the text.
fn turns(module: &Module<'_>, id: LoopId) -> Option<f64> {
    let around = module.loop_at(id);
    let (_, mut over) = around
        .for_clause
        .filter(|_| around.loop_source == LoopSource::Batches)?;
    while let Expr::Call(call) = over {
        over = call.arguments.args.first()?;
    }
    module.final_value(over, around.frame).rows()
}

/// A loop over batches in which gradients are computed, or one that computes them itself.
fn is_step(module: &Module<'_>, id: LoopId) -> bool {
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

/// The call as a statement of its own in the loop's body, or as what a `with` there enters; under
/// no condition, and with others beside it.
fn own_statement<'a>(module: &Module<'a>, call: &Call<'a>, id: LoopId) -> Option<&'a Stmt> {
    let body = module.loop_at(id).body;
    // A loop that tries again has a reason to make room first.
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
        // The same function, turned off, is a `with` as well.
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
        // What is written is for its author to choose.
        _ if function == "print" => None,
        _ => delete_line(module, statement.range()).map(|edit| Fix {
            edits: vec![edit],
            safety: Safety::Safe,
            title: "Leave it out".to_owned(),
        }),
    };
    Finding {
        rule: &RULE,
        range: TextRange::new(statement.start(), call.expr.end()),
        message: format!(
            "`{function}()` {what}, {}",
            every_step_label(module, Some(id))
        ),
        label: "done in every step".to_owned(),
        help: if function == "print" {
            "write every hundredth: if step % 100 == 0".to_owned()
        } else {
            "leave it out; or do it once, after the loop".to_owned()
        },
        fix,
    }
}
