//! # dataset-in-memory
//!
//! All samples are loaded or generated in memory at once, and they do not fit.
//!
//! ## Symptoms
//!
//! Memory rises from the start, before the first step, while files are read. The run fails or freezes before it has
//! trained.
//!
//! ## How it is detected
//!
//! Memory grew steadily until it ran out, before any step. It is likely if about as many bytes were read from files as
//! memory grew by, and more so where the shim names the variable that was filled. A tf.data pipeline with `cache()` or
//! a large `shuffle` is likely where no variable of the script holds as much. Samples that are generated look like a
//! leak from outside, so both causes are named, with low confidence; the same holds for an error in a log alone.
//!
//! ## What to do
//!
//! Load samples when they are needed:
//!
//! ```python
//! data = np.load("x.npy", mmap_mode="r")   # not: np.load("x.npy")
//! ```
//!
//! or in a `Dataset` whose `__getitem__` opens one sample; or use a smaller type (`float16`, `uint8`).

use super::memory_leak::{describe_growth, from_holder, place_of};
use super::{CauseKind, Finding, Found, Role, batch_too_large, remedy};
use crate::run::evidence::RunEvidence;
use crate::shim::SuspectKind;
use crate::verdict::Code;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::DatasetInMemory,
    word: "dataset-in-memory",
    title: "dataset held in memory",
    role: Role::ExhaustsMemory,
    lint_rules: &["dataset-in-ram"],
    source: include_str!("dataset_in_memory.rs"),
    detect,
};

/// At least this share of the growth was read from files.
const MIN_READ_SHARE: f64 = 0.3;

/// The confidence that a pipeline which keeps samples fills the memory. How much it keeps is not known.
const PIPELINE_CONFIDENCE: f64 = 0.65;

const ADVICE: &str =
    "load samples when they are needed instead of all at once, or use a smaller type (`uint8`)";

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let Some(growth) = evidence.steady_growth() else {
        return from_error(evidence).into();
    };
    if evidence.facts.shim.split.is_some() && evidence.suspect().is_none() {
        return Finding::Nothing;
    }
    if let Some(suspect) = evidence.suspect() {
        let confidence = match suspect.kind {
            SuspectKind::GrowsPerStep(_) | SuspectKind::KeepsGraphs => return Finding::Nothing,
            _ if evidence.large_refusal().is_some() && !evidence.suspect_made_request() => {
                return Finding::Nothing;
            }
            SuspectKind::GrowsPerSecond(_) | SuspectKind::HoldsMost
                if evidence.facts.shim.hello.is_none() =>
            {
                0.75
            }
            SuspectKind::GrowsPerSecond(_) | SuspectKind::HoldsMost => 0.3,
        };
        let mut found = from_holder(evidence, confidence, &suspect, growth);
        found.remedies.clear();
        return Finding::Found(match remedy::for_holder(evidence, suspect.holder) {
            Some(remedy) => found.with_edits(remedy),
            None => match place_of(evidence, suspect.holder).filter(|_| suspect.holder.joined) {
                Some(place) => {
                    found.with_remedy(remedy::advice_on_holder(suspect.holder, &place), None)
                }
                None => found.with_remedy(ADVICE, None),
            },
        });
    }
    if let Some(remedy) = remedy::for_pipeline(evidence)
        && evidence.large_refusal().is_none()
    {
        let place = remedy::first_place(&remedy);
        let summary = "a tf.data pipeline keeps samples in memory, and no variable of the script holds as much".to_owned();
        let found = Found::new(evidence, PIPELINE_CONFIDENCE, summary, "").with_evidence(
            evidence,
            describe_growth(growth),
            "tree.footprint",
        );
        return Finding::Found(found.at_location(place).with_edits(remedy));
    }
    let (confidence, summary) = if was_read(evidence) && evidence.large_refusal().is_none() {
        let read = evidence.summary.rates.whole_run().requested.unwrap_or(0);
        let summary = format!(
            "{} were read from files while memory grew, before any step was made",
            units::bytes(read)
        );
        (0.7, summary)
    } else {
        let alike = "filling a list or an array with all samples looks the same from outside";
        let confidence = if evidence.large_refusal().is_some() {
            0.2
        } else {
            0.25
        };
        (confidence, alike.to_owned())
    };
    Finding::Found(
        Found::new(evidence, confidence, summary, "tree.footprint")
            .at_location(evidence.error_location())
            .with_remedy(ADVICE, None),
    )
}

/// Only the error is known, and training may not have begun.
fn from_error(evidence: &RunEvidence<'_>) -> Option<Found> {
    let is_elsewhere =
        batch_too_large::failed_in_step(evidence) || batch_too_large::failed_in_import(evidence);
    if !batch_too_large::is_known_from_output_only(evidence) || is_elsewhere {
        return None;
    }
    let (confidence, when) = match evidence.has_trained() {
        true => (0.3, "memory ran out, and not in a training step"),
        false => (0.45, "memory ran out before any step was printed"),
    };
    let found = Found::new(
        evidence,
        confidence,
        format!("{when}: all samples may be in memory at once"),
        "",
    );
    let found =
        batch_too_large::with_abort_line(evidence, found.at_location(evidence.error_location()));
    Some(found.with_remedy(ADVICE, None))
}

/// Whether no variable of the script fills the memory, and a tf.data pipeline keeps samples.
pub(super) fn is_kept_by_pipeline(evidence: &RunEvidence<'_>) -> bool {
    evidence.suspect().is_none()
        && evidence.large_refusal().is_none()
        && remedy::for_pipeline(evidence).is_some()
}

/// Whether memory grew by what was read from files, before any step.
pub(super) fn was_read(evidence: &RunEvidence<'_>) -> bool {
    let Some(growth) = evidence.steady_growth() else {
        return false;
    };
    let read = evidence.summary.rates.whole_run().requested;
    evidence.summary.steps.is_none_or(|steps| steps == 0)
        && !evidence.ended_in_first_step()
        && read.is_some_and(|read| read as f64 >= growth.gained as f64 * MIN_READ_SHARE)
}
