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
//! busy. A long evaluation, a compilation or a large file looks the same for a while: it is never called sure. Where
//! the trainer was asked for its stacks and was in one function of the script each time, that is named.
//!
//! ## What to do
//!
//! Look at what ends the loop that is named; without one, see where it is:
//!
//! ```sh
//! py-spy dump --pid …
//! ```

use antifreeze_text::units;
use super::deadlock::stands_still;
use super::{Finding, Found};
use crate::case::Case;
use crate::ending::user_file;
use crate::verdict::Location;
use antifreeze_sense::Phase;

/// Of a core.
const BUSY: f64 = 0.5;

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
    let Some(call) = case.facts.stacks.within() else {
        let found = Found::new(case, 0.55, summary, "tree.cpu");
        return Finding::Found(found.remedy("see where it is:", Some("py-spy dump --pid PID".into())));
    };
    let location = Location {
        file: user_file(&call.frame.file, case.facts),
        line: call.frame.line,
        name: Some(call.function.clone()),
    };
    let seen = "each time it was asked, it was in the same function of the script";
    let found = Found::new(case, 0.7, summary, "tree.cpu")
        .and(case, seen.into(), "stacks")
        .at(Some(location));
    let place = found.place().unwrap_or_default();
    Finding::Found(found.remedy(format!("look at what ends the loop at {place}"), None))
}
