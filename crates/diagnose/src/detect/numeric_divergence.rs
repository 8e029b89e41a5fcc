//! # numeric-divergence
//!
//! The loss grows instead of falling.
//!
//! ## How it looks
//!
//! It falls for a while, then rises by orders of magnitude; often it becomes NaN in the end.
//!
//! ## How it is told
//!
//! The shim saw the loss rise far above what it had been, and names the step. Without the shim, the loss that was printed
//! most often was at the end, for three lines or more, a hundred times what it had been; the losses of networks that
//! play against each other are not asked. A loss may rise for a good reason (a new phase of a schedule, a harder part of
//! the data): it is called likely, not sure.
//!
//! ## What to do
//!
//! A smaller learning rate, a warm-up, or clipped gradients:
//!
//! ```python
//! torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
//! ```

use antifreeze_text::layout::cut;
use super::numeric_nan::{first, remedied, told};
use super::{Finding, Found};
use crate::case::Case;
use crate::runaway;

const WIDEST: usize = 160;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let found = first(case).filter(|first| !matches!(first.first.as_str(), "nan" | "inf"));
    if let Some(first) = found {
        return Finding::Found(told(case, 0.7, "ran away", first));
    }
    // Whoever looked from inside would have told.
    let seen = case.facts.told.hello.is_some();
    let printed = runaway::of(case.printed.lines()).filter(|_| !seen).map(|runaway| {
        let summary = format!("the loss that it printed ran away: {}", cut(&runaway.last, WIDEST));
        let found = Found::new(case, 0.7, summary, "");
        remedied(found.and(case, format!("at first: {}", cut(&runaway.first, WIDEST)), ""))
    });
    printed.into()
}
