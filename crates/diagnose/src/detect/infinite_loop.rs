//! # infinite-loop
//!
//! The script computes without end and without a step.
//!
//! ## How it looks
//!
//! A core is fully busy, nothing is printed, the training does not go on.
//!
//! ## How it is told
//!
//! Steps were made, and then none for a minute or more and ten times the longest step, while the tree kept a core
//! busy. A long evaluation, a compilation or a large file looks the same for a while: it is called possible, not
//! sure.
//!
//! ## What to do
//!
//! See where it is:
//!
//! ```sh
//! py-spy dump --pid …
//! ```

use super::deadlock::stands_still;
use super::{Finding, Found};
use crate::case::Case;
use crate::units;
use antifreeze_sense::Phase;

/// Of a core.
const BUSY: f64 = 0.9;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some(stands) = stands_still(case) else {
        return Finding::Nothing;
    };
    let phase = case.last().and_then(|last| last.tree.phase.value());
    let is_at_work = [Phase::Evaluation, Phase::Saving].map(|phase| Some(phase as u64));
    let cores = case.story.course.ending().cores.unwrap_or(0.0);
    if cores < BUSY || is_at_work.contains(&phase) {
        return Finding::Nothing;
    }
    let summary = format!(
        "no step for {} while it kept {cores:.1} cores busy",
        units::duration(stands)
    );
    Finding::Found(
        Found::new(case, 0.55, summary, "tree.cpu")
            .remedy("see where it is:", Some("py-spy dump --pid PID".into())),
    )
}
