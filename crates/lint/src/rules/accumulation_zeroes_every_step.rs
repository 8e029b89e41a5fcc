//! # accumulation-zeroes-every-step (AF302)
//!
//! Gradients should accumulate over several batches, but are cleared in every iteration.
//!
//! ## Why it crashes
//!
//! Gradient accumulation replaces a batch that does not fit in memory. With `zero_grad()` in every
//! iteration only the last batch before the step counts; the others are computed and thrown away.
//! Training costs the time of the large batch, but its gradients are as noisy as those of the small
//! one.
//!
//! ## Wrong
//!
//! ```python
//! for i, (x, y) in enumerate(loader):
//!     optimizer.zero_grad()
//!     loss = criterion(model(x), y) / 4
//!     loss.backward()
//!     if (i + 1) % 4 == 0:
//!         optimizer.step()
//! ```
//!
//! ## Right
//!
//! ```python
//! for i, (x, y) in enumerate(loader):
//!     loss = criterion(model(x), y) / 4
//!     loss.backward()
//!     if (i + 1) % 4 == 0:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## When it is fine
//!
//! When the `if` trains something else, such as the generator of a GAN every few iterations.
//! Nothing is reported where gradients are computed inside the `if`, or where an optimizer steps
//! outside it.
//!
//! ## Fix
//!
//! Unsafe, because it changes the training: `zero_grad()` moves to after the step.

use crate::finding::{Finding, Fix, Safety};
use crate::model::{Call, Module, ValueKind};
use crate::queries::optimizer_steps::{
    Accumulation, cleared_object, delete_line, find_accumulations, insert_line_after,
    is_unconditional,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Stmt;
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF302",
    name: "accumulation-zeroes-every-step",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("accumulation_zeroes_every_step.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for accumulation in find_accumulations(module) {
        if let Some(clearing) = clears_each_turn(module, &accumulation) {
            findings.push(finding(module, &accumulation, clearing));
        }
    }
}

/// Returns the call that clears the gradients in every iteration.
pub fn clears_each_turn<'m, 'a>(
    module: &'m Module<'a>,
    accumulation: &Accumulation<'m, 'a>,
) -> Option<&'m Call<'a>> {
    let body = module.loop_at(accumulation.id).body;
    module.calls().iter().find(|call| {
        call.context.innermost_loop == Some(accumulation.id)
            && cleared_object(module, call)
                .is_some_and(|name| clears_accumulated(module, accumulation, call, name))
            && !accumulation.is_in_choice(call.expr)
            && is_unconditional(body, call.expr.range())
    })
}

/// Whether a call clears the accumulated gradients: those of the optimizer, or of the model it was
/// created for.
fn clears_accumulated(
    module: &Module<'_>,
    accumulation: &Accumulation<'_, '_>,
    call: &Call<'_>,
    name: &str,
) -> bool {
    if call
        .receiver
        .is_some_and(|receiver| receiver.is(ValueKind::Model))
    {
        let last = name.rsplit('.').next().unwrap_or(name);
        let parameters = format!("{last}.parameters");
        return module.calls().iter().any(|made| {
            made.result.is(ValueKind::Optimizer) && module.source(made.expr).contains(&parameters)
        });
    }
    accumulation.optimizers.contains(&name)
}

fn finding(
    module: &Module<'_>,
    accumulation: &Accumulation<'_, '_>,
    clearing: &Call<'_>,
) -> Finding {
    let every = module.source(accumulation.every());
    let source = module.source(clearing.expr);
    Finding {
        rule: &RULE,
        range: clearing.expr.range(),
        message: format!(
            "`{source}` clears the gradients in every iteration, but the step at {} runs every `{every}` iterations: only the last batch counts",
            module.line_label(accumulation.choice)
        ),
        label: "discards the accumulated gradients".to_owned(),
        help: format!("clear them only after the step, inside the `if`: {source}"),
        fix: fix(module, accumulation, clearing),
    }
}

fn fix(
    module: &Module<'_>,
    accumulation: &Accumulation<'_, '_>,
    clearing: &Call<'_>,
) -> Option<Fix> {
    let step = accumulation.steps.last()?;
    // Only a call that is a statement of its own can be moved.
    let body = module.loop_at(accumulation.id).body;
    let statement = body.iter().find(|statement| {
        matches!(statement, Stmt::Expr(_)) && statement.range() == clearing.expr.range()
    })?;
    let away = delete_line(module, statement.range())?;
    let after = insert_line_after(module, step.expr.range(), module.source(clearing.expr))?;
    let edits = if away.range.start() < after.range.start() {
        vec![away, after]
    } else {
        vec![after, away]
    };
    Some(Fix {
        edits,
        safety: Safety::Unsafe,
        title: "Clear the gradients after the step".to_owned(),
    })
}
