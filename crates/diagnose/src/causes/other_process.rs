//! # other-process
//!
//! Another program grew and took the memory that the training needed.
//!
//! ## Symptoms
//!
//! The same script worked yesterday. Today a browser, a second notebook or a backup is running.
//!
//! ## How it is detected
//!
//! Other programs grew while the run did not, or antifreeze paused or stopped the run because of them. The one that
//! grew most is named if it could be seen. Ruled out if the rest of the machine hardly grew.
//!
//! ## What to do
//!
//! Close large programs, or let antifreeze pause the run while they need the memory: it resumes by itself.

use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use crate::verdict::phrases::process;
use antifreeze_record::event::Trigger;
use antifreeze_sense::Sample;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::OtherProcess,
    word: "other-process",
    title: "another program took the memory",
    role: Role::ExhaustsMemory,
    lint_rules: &[],
    source: include_str!("other_process.rs"),
    detect,
};

/// Growth of other programs counts from this share of memory on.
const MIN_GROWTH_SHARE: f64 = 0.05;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if !evidence.was_short_of_memory() {
        return Finding::Nothing;
    }
    let grower = evidence
        .summary
        .pauses
        .grower
        .filter(|(name, _, _)| !name.as_bytes().is_empty());
    let blamed =
        evidence.summary.pauses.count > 0 || evidence.summary.stop == Some(Trigger::OthersGrew);
    let grew = others_growth(evidence);
    let notable = evidence.facts.binding_budget().is_none()
        && grew.is_some_and(|grew| grew as f64 >= evidence.facts.total as f64 * MIN_GROWTH_SHARE);
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
        Found::new(evidence, confidence, summary, "memory.available").with_remedy(
            "close other programs that use much memory, or train when they are idle",
            None,
        ),
    )
}

/// By how much other programs grew between the first and the last sample.
fn others_growth(evidence: &RunEvidence<'_>) -> Option<u64> {
    let others = |sample: &Sample| {
        let (total, available) = (
            sample.memory.total.value()?,
            sample.memory.available.value()?,
        );
        let used = total.checked_sub(available)?;
        Some(used.saturating_sub(sample.tree.footprint.value()?))
    };
    Some(others(evidence.last_sample()?)?.saturating_sub(others(evidence.first_sample()?)?))
}
