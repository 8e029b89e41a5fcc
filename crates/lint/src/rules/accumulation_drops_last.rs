//! # accumulation-drops-last (AF305)
//!
//! The batches that are left at the end of an epoch are computed, and never used.
//!
//! ## Why it freezes
//!
//! It does not: it wastes. When the number of batches is no multiple of the steps of
//! accumulation, the gradients of the last ones are cleared before the next epoch begins. Up to
//! `k - 1` batches of each epoch take their time and memory for nothing, and with few batches
//! that is a good part of the data.
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
//! When the number of batches is a multiple, or the last ones do not matter. A loop that counts
//! on over epochs is not reported.
//!
//! ## Fix
//!
//! Unsafe, as training goes another way afterwards: the step also comes with the last batch.

use super::accumulation_undefined_index::{counted, enumerated};
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
            && counts_anew(module, &accumulation)
            && clears_before(module, &accumulation)
            && clears_each_turn(module, &accumulation).is_none()
            && !steps_elsewhere(module, &accumulation)
        {
            findings.push(finding(module, &accumulation));
        }
    }
}

/// The count begins with the loop: `enumerate` of batches, and its index in the condition.
fn counts_anew(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> bool {
    let around = module.loop_at(accumulation.id);
    let Some((target, iter)) = around.for_clause else {
        return false;
    };
    let name = counted(target, iter);
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
    let is_list = matches!(iter, Expr::Call(call) if enumerated(call)
        .and_then(|enumerate| enumerate.arguments.args.first())
        .is_some_and(|batches| module.dotted_name(batches).is_some()));
    (around.loop_source == LoopSource::Batches || is_list) && is_counted && !is_recounted
}

/// The gradients that are left are cleared before the loop comes again: where epochs are the
/// turns of a loop around it, in each of them.
fn clears_before(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> bool {
    let around = module.loop_at(accumulation.id);
    module.calls().iter().any(|call| {
        call.context.frame == accumulation.frame
            && call.context.innermost_loop == around.parent
            && call.expr.start() < around.statement.start()
            && cleared_object(module, call).is_some()
    })
}

/// A step after the loop, or by whoever calls the function.
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
    let also = last_turn(module, accumulation);
    let test = module.source(&*accumulation.choice.test);
    Finding {
        rule: &RULE,
        range: accumulation.choice.test.range(),
        message: format!(
            "the last batches of the loop at {} are computed for nothing where their number is no multiple of `{every}`",
            module.line_label(module.loop_header(accumulation.id))
        ),
        label: "no step with the last batch".to_owned(),
        help: match &also {
            Some(also) => format!("step with the last batch as well: if {test} or {also}:"),
            None => "step once more after the loop for the batches that are left".to_owned(),
        },
        fix: also
            .filter(|_| accumulation.choice.test.is_compare_expr())
            .map(|also| Fix {
                edits: vec![Edit {
                    range: TextRange::empty(accumulation.choice.test.end()),
                    content: format!(" or {also}"),
                }],
                safety: Safety::Unsafe,
                title: "Step with the last batch as well".to_owned(),
            }),
    }
}

/// The condition that holds in the last turn: `i + 1 == len(loader)`.
fn last_turn(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> Option<String> {
    let (_, iter) = module.loop_at(accumulation.id).for_clause?;
    let Expr::Call(call) = iter else { return None };
    let enumerate = enumerated(call)?;
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
