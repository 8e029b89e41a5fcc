//! # accumulation-drops-last (AF305)
//!
//! The batches left over at the end of an epoch are computed, but their gradients are never used.
//!
//! ## Why it matters
//!
//! It wastes work. If the number of batches is not a multiple of the accumulation steps, the last
//! gradients are cleared before the next epoch. Up to `k - 1` batches of each epoch cost time and
//! memory for nothing; with few batches that is a large part of the data.
//!
//! ## Wrong
//!
//! ```python
//! optimizer.zero_grad()
//! for i, (x, y) in enumerate(loader):
//!     (criterion(model(x), y) / k).backward()
//!     if (i + 1) % k == 0:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## Right
//!
//! ```python
//! optimizer.zero_grad()
//! for i, (x, y) in enumerate(loader):
//!     (criterion(model(x), y) / k).backward()
//!     if (i + 1) % k == 0 or i + 1 == len(loader):
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## When it is fine
//!
//! When the number of batches is a multiple of the accumulation steps, or the last batches do not
//! matter. A loop whose counter continues across epochs is not reported.
//!
//! ## Fix
//!
//! Unsafe, because it changes the training: the optimizer also steps on the last batch.

use super::accumulation_undefined_index::{enumerate_counter, find_enumerate};
use super::accumulation_zeroes_every_step::clears_each_turn;
use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{LoopSource, Module};
use crate::queries::optimizer_steps::{
    Accumulation, OptimizerSteps, cleared_object, find_accumulations,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Number, Operator};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF305",
    name: "accumulation-drops-last",
    severity: Severity::Info,
    stage: Stage::Stable,
    source: include_str!("accumulation_drops_last.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for accumulation in find_accumulations(module) {
        if accumulation.is_plain
            && counter_restarts(module, &accumulation)
            && clears_before_loop(module, &accumulation)
            && clears_each_turn(module, &accumulation).is_none()
            && !steps_elsewhere(module, &accumulation)
        {
            findings.push(finding(module, &accumulation));
        }
    }
}

/// Whether the counter restarts with the loop: `enumerate` over batches, with its index in the
/// condition.
fn counter_restarts(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> bool {
    let around = module.loop_at(accumulation.id);
    let Some((target, iter)) = around.for_clause else {
        return false;
    };
    let name = enumerate_counter(target, iter);
    let is_index =
        |expression: &Expr| matches!(expression, Expr::Name(own) if Some(own.id.as_str()) == name);
    let is_counted = match accumulation.counter() {
        Expr::BinOp(sum) if sum.op == Operator::Add => {
            is_index(&sum.left) && sum.right.is_number_literal_expr()
        }
        other => is_index(other),
    };
    let is_recounted = module.stores().iter().any(|store| {
        module.is_inside_loop(&store.context, accumulation.id)
            && module.dotted_name(store.target) == name
    });
    let is_list = matches!(iter, Expr::Call(call) if find_enumerate(call)
        .and_then(|enumerate| enumerate.arguments.args.first())
        .is_some_and(|batches| module.dotted_name(batches).is_some()));
    (around.loop_source == LoopSource::Batches || is_list) && is_counted && !is_recounted
}

/// Whether the remaining gradients are cleared before the loop starts again, also in a loop over
/// epochs.
fn clears_before_loop(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> bool {
    let around = module.loop_at(accumulation.id);
    module.calls().iter().any(|call| {
        call.context.frame == accumulation.frame
            && call.context.innermost_loop == around.parent
            && call.expr.start() < around.statement.start()
            && cleared_object(module, call).is_some()
    })
}

/// Whether an optimizer also steps after the loop or in a caller of the function.
fn steps_elsewhere(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> bool {
    let steps = OptimizerSteps::collect(module);
    let callers: Vec<_> = module
        .calls()
        .iter()
        .filter(|call| call.local_function == Some(accumulation.frame))
        .map(|call| call.context.frame)
        .collect();
    steps.calls().any(|(call, _)| {
        let is_the_loop =
            call.local_function == Some(accumulation.frame) || accumulation.is_in_choice(call.expr);
        let is_near =
            call.context.frame == accumulation.frame || callers.contains(&call.context.frame);
        is_near && !is_the_loop
    })
}

fn finding(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> Finding {
    let every = module.source(accumulation.every());
    let also = last_iteration_condition(module, accumulation);
    let test = module.source(&*accumulation.choice.test);
    Finding {
        rule: &RULE,
        range: accumulation.choice.test.range(),
        message: format!(
            "the last batches of the loop at {} are wasted if their number is not a multiple of `{every}`",
            module.line_label(module.loop_header(accumulation.id))
        ),
        label: "no step after the last batch".to_owned(),
        help: match &also {
            Some(also) => format!("also step after the last batch: if {test} or {also}:"),
            None => "step once more after the loop for the remaining batches".to_owned(),
        },
        fix: also
            .filter(|_| accumulation.choice.test.is_compare_expr())
            .map(|also| Fix {
                edits: vec![Edit {
                    range: TextRange::empty(accumulation.choice.test.end()),
                    content: format!(" or {also}"),
                }],
                safety: Safety::Unsafe,
                title: "Also step after the last batch".to_owned(),
            }),
    }
}

/// Returns the condition that holds in the last iteration: `i + 1 == len(loader)`.
fn last_iteration_condition(
    module: &Module<'_>,
    accumulation: &Accumulation<'_, '_>,
) -> Option<String> {
    let (_, iter) = module.loop_at(accumulation.id).for_clause?;
    let Expr::Call(call) = iter else { return None };
    let enumerate = find_enumerate(call)?;
    let mut batches = enumerate.arguments.args.first()?;
    if let Expr::Call(bar) = batches {
        let is_bar = module.source(&*bar.func).ends_with("tqdm");
        batches = bar.arguments.args.first().filter(|_| is_bar)?;
    }
    module.dotted_name(batches)?;
    let start = enumerate.arguments.args.get(1).or_else(|| {
        enumerate
            .arguments
            .find_keyword("start")
            .map(|start| &start.value)
    });
    let is_one = |expression: &Expr| {
        matches!(expression, Expr::NumberLiteral(number)
            if matches!(&number.value, Number::Int(int) if int.as_u8() == Some(1)))
    };
    let counts_from_one = match (accumulation.counter(), start) {
        (Expr::BinOp(sum), None) => is_one(&sum.right),
        (Expr::Name(_), Some(start)) => is_one(start),
        _ => false,
    };
    let counter = module.source(accumulation.counter());
    counts_from_one.then(|| format!("{counter} == len({})", module.source(batches)))
}
