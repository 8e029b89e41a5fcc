//! # accumulation-zeroes-every-step (AF302)
//!
//! Gradients are to add up over several batches, but are cleared with each batch.
//!
//! ## Why it crashes
//!
//! Accumulation stands in for a batch that does not fit into memory. With `zero_grad()` in each
//! turn only the last batch before the step counts: the others are computed and thrown away,
//! and training goes on with batches as small, and gradients as noisy, as before. It costs the
//! time of the large batch and diverges like the small one.
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
//! When the `if` trains something else, such as the generator of a GAN every few turns of its
//! critic. Where gradients are computed inside the `if`, or anything steps outside of it,
//! nothing is reported.
//!
//! ## Fix
//!
//! Unsafe, as training goes another way afterwards: `zero_grad()` moves to after the step.

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

/// The call that clears the gradients in each turn.
pub fn clears_each_turn<'m, 'a>(
    module: &'m Module<'a>,
    accumulation: &Accumulation<'m, 'a>,
) -> Option<&'m Call<'a>> {
    let body = module.loop_at(accumulation.id).body;
    module.calls().iter().find(|call| {
        call.context.innermost_loop == Some(accumulation.id)
            && cleared_object(module, call)
                .is_some_and(|name| is_of(module, accumulation, call, name))
            && !accumulation.is_in_choice(call.expr)
            && is_unconditional(body, call.expr.range())
    })
}

/// Whether these are the gradients that add up: of the optimizer itself, or of the model that
/// it was made for.
fn is_of(
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
            "`{source}` clears the gradients in each turn, the step at {} comes only every `{every}` turns: all but the last batch is computed for nothing",
            module.line_label(accumulation.choice)
        ),
        label: "throws away what should add up".to_owned(),
        help: format!("clear them only after a step, inside the `if`: {source}"),
        fix: fix(module, accumulation, clearing),
    }
}

fn fix(
    module: &Module<'_>,
    accumulation: &Accumulation<'_, '_>,
    clearing: &Call<'_>,
) -> Option<Fix> {
    let step = accumulation.steps.last()?;
    // Only what is a statement of its own can move.
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
