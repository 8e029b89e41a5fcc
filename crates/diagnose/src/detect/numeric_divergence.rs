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
//! The shim saw the loss rise far above what it had been, and names the step. A loss may rise for a good reason (a
//! new phase of a schedule, a harder part of the data): it is called likely, not sure.
//!
//! ## What to do
//!
//! A smaller learning rate, a warm-up, or clipped gradients:
//!
//! ```python
//! torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
//! ```

use super::Finding;
use super::numeric_nan::{first, told};
use crate::case::Case;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let found = first(case).filter(|first| !matches!(first.first.as_str(), "nan" | "inf"));
    found
        .map(|first| told(case, 0.7, "ran away", first))
        .into()
}
