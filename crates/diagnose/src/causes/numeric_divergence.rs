//! # numeric-divergence
//!
//! The loss grows instead of falling.
//!
//! ## Symptoms
//!
//! It falls for a while, then rises by orders of magnitude, and often becomes NaN in the end.
//!
//! ## How it is detected
//!
//! The shim saw the loss rise far above its earlier values, and names the step. Without the shim, the loss that was
//! printed most often was a hundred times its earlier value in the last three lines or more; losses of adversarial
//! networks do not count. A loss may rise for a good reason (a new phase of a schedule, a harder part of the data), so
//! confidence is limited.
//!
//! ## What to do
//!
//! Use a smaller learning rate, a warm-up, or gradient clipping:
//!
//! ```python
//! torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
//! ```

use super::numeric_nan::{add_remedies, first_bad_value, from_bad_value};
use super::{CauseKind, Finding, Found, Role};
use crate::output::divergence;
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::NumericDivergence,
    word: "numeric-divergence",
    title: "loss diverged",
    role: Role::Bearable,
    lint_rules: &[],
    source: include_str!("numeric_divergence.rs"),
    detect,
};

const MAX_COLUMNS: usize = 160;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let found =
        first_bad_value(evidence).filter(|first| !matches!(first.first.as_str(), "nan" | "inf"));
    if let Some(first) = found {
        return Finding::Found(from_bad_value(evidence, 0.7, "diverged", first));
    }
    // A shim would have reported it.
    let seen = evidence.facts.shim.hello.is_some();
    let printed = divergence::find(evidence.printed.lines())
        .filter(|_| !seen)
        .map(|divergence| {
            let summary = format!(
                "the printed loss diverged: {}",
                cut(&divergence.last, MAX_COLUMNS)
            );
            let found = Found::new(evidence, 0.7, summary, "");
            add_remedies(found.with_evidence(
                evidence,
                format!("at first: {}", cut(&divergence.first, MAX_COLUMNS)),
                "",
            ))
        });
    printed.into()
}
