//! # other-process
//!
//! Another program grew and took the memory that the training needed.
//!
//! ## How it looks
//!
//! The same script ran well yesterday. A browser, a second notebook or a backup is open today.
//!
//! ## How it is told
//!
//! Everybody else grew while the tree did not, or antifreeze paused or stopped the run for it; the one that grew
//! most is named where it could be seen. Ruled out when the rest of the machine hardly grew.
//!
//! ## What to do
//!
//! Close what is large, or let antifreeze pause the run while it is needed: it resumes by itself.

use antifreeze_text::units;
use super::{Finding, Found};
use crate::case::Case;
use crate::words::process;
use antifreeze_record::event::Trigger;
use antifreeze_sense::Sample;

/// Others that grew by less than this share of memory did not decide anything.
const NOTABLE: f64 = 0.05;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.was_short_of_memory() {
        return Finding::Nothing;
    }
    let grower = case
        .story
        .pauses
        .grower
        .filter(|(name, _, _)| !name.as_bytes().is_empty());
    let blamed = case.story.pauses.count > 0 || case.story.stop == Some(Trigger::OthersGrew);
    let grew = others_growth(case);
    let notable = case.facts.binding_budget().is_none()
        && grew.is_some_and(|grew| grew as f64 >= case.facts.total as f64 * NOTABLE);
    let (confidence, summary) = match (grower, grew) {
        (Some((name, pid, by)), _) if blamed => {
            let (who, by) = (process(name, pid), units::bytes(by));
            (0.75, format!("{who} grew by {by} while memory was short"))
        }
        (None, Some(0)) if blamed => {
            let grew = "programs outside the run grew while memory was short";
            (0.7, grew.to_owned())
        }
        (None, Some(grew)) if blamed || notable => {
            let confidence = if blamed { 0.7 } else { 0.4 };
            let by = units::bytes(grew);
            (confidence, format!("programs outside the run grew by {by}"))
        }
        (None, Some(_)) => {
            return Finding::RuledOut("programs outside the run hardly grew".into());
        }
        _ => return Finding::Nothing,
    };
    Finding::Found(
        Found::new(case, confidence, summary, "memory.available").remedy(
            "close other programs that hold much memory, or train when they are idle",
            None,
        ),
    )
}

/// How much everybody else gained between the first and the last look.
fn others_growth(case: &Case<'_>) -> Option<u64> {
    let others = |sample: &Sample| {
        let (total, available) = (sample.memory.total.value()?, sample.memory.available.value()?);
        let used = total.checked_sub(available)?;
        Some(used.saturating_sub(sample.tree.footprint.value()?))
    };
    Some(others(case.last()?)?.saturating_sub(others(case.first()?)?))
}
