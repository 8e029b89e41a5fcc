//! # dataset-in-memory
//!
//! All samples are read or made into memory at once, and there are more of them than fit.
//!
//! ## How it looks
//!
//! Memory rises from the start, before the first step, while files are read; the run fails or freezes before it
//! has learnt anything.
//!
//! ## How it is told
//!
//! Memory grew steadily until there was no room, before any step was made. If about as many bytes were read
//! from files as memory grew by, it is called likely; where the shim knows the name that was filled, and that
//! nothing had been trained yet, likelier. A pipeline of tf.data with `cache()` or a large `shuffle` is called likely
//! where no name of the script holds as much. Samples that are made rather than read look like a leak from outside:
//! then both are named, and neither is called sure. So they are where an error in a log is all there is.
//!
//! ## What to do
//!
//! Read samples when they are needed:
//!
//! ```python
//! data = np.load("x.npy", mmap_mode="r")   # not: np.load("x.npy")
//! ```
//!
//! or in a `Dataset` whose `__getitem__` opens one sample; or keep a smaller type (`float16`, `uint8`).

use antifreeze_text::units;
use super::memory_leak::{grew, place_of, with_holder};
use super::{Finding, Found, batch_too_large, remedy};
use crate::case::Case;
use crate::shim::How;

/// Of the growth, this share was read from files.
const READ_SHARE: f64 = 0.3;

/// How sure it is that a pipeline which keeps samples is what fills the memory: how much it keeps cannot be seen.
const PIPELINE: f64 = 0.65;

const ADVICE: &str = "read samples when they are needed instead of all at once, or keep them in a smaller type (`uint8`)";

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some(growth) = case.fills_up() else {
        return by_error(case).into();
    };
    if case.facts.told.split.is_some() && case.suspect().is_none() {
        return Finding::Nothing;
    }
    if let Some(suspect) = case.suspect() {
        let confidence = match suspect.how {
            How::Step(_) | How::Graphs => return Finding::Nothing,
            _ if case.large_request().is_some() && !case.is_asked_by_suspect() => return Finding::Nothing,
            How::Second(_) | How::Holds if case.facts.told.hello.is_none() => 0.75,
            How::Second(_) | How::Holds => 0.3,
        };
        let mut found = with_holder(case, confidence, &suspect, growth);
        found.remedies.clear();
        return Finding::Found(match remedy::for_holder(case, suspect.holder) {
            Some(remedy) => found.remedy_by(remedy),
            None => match place_of(case, suspect.holder).filter(|_| suspect.holder.joined) {
                Some(place) => found.remedy(remedy::advice_on_holder(suspect.holder, &place), None),
                None => found.remedy(ADVICE, None),
            },
        });
    }
    if let Some(remedy) = remedy::for_pipeline(case)
        && case.large_request().is_none()
    {
        let place = remedy::first_place(&remedy);
        let summary = "a pipeline of tf.data keeps samples in memory, and no name of the script holds as much".to_owned();
        let found = Found::new(case, PIPELINE, summary, "").and(case, grew(growth), "tree.footprint");
        return Finding::Found(found.at(place).remedy_by(remedy));
    }
    let (confidence, summary) = if was_read(case) && case.large_request().is_none() {
        let read = case.story.course.whole().asked.unwrap_or(0);
        let summary = format!(
            "{} were read from files while memory grew, before any step was made",
            units::bytes(read)
        );
        (0.7, summary)
    } else {
        let alike = "filling a list or an array with all samples looks the same from outside";
        let confidence = if case.large_request().is_some() {
            0.2
        } else {
            0.25
        };
        (confidence, alike.to_owned())
    };
    Finding::Found(
        Found::new(case, confidence, summary, "tree.footprint")
            .at(case.location())
            .remedy(ADVICE, None),
    )
}

/// Nobody looked, and it had not trained yet when there was no memory.
fn by_error(case: &Case<'_>) -> Option<Found> {
    let is_elsewhere = batch_too_large::is_in_step(case) || batch_too_large::is_in_import(case);
    if !batch_too_large::is_only_told(case) || is_elsewhere {
        return None;
    }
    let (confidence, when) = match case.has_trained() {
        true => (0.3, "there was no memory, and no step is named that needed it"),
        false => (0.45, "there was no memory before any step was printed"),
    };
    let found = Found::new(case, confidence, format!("{when}: all samples may be kept at once"), "");
    let found = batch_too_large::with_abort(case, found.at(case.location()));
    Some(found.remedy(ADVICE, None))
}

/// No name of the script fills the memory, and a pipeline of tf.data keeps samples.
pub(super) fn is_kept_by_pipeline(case: &Case<'_>) -> bool {
    case.suspect().is_none() && case.large_request().is_none() && remedy::for_pipeline(case).is_some()
}

/// Nothing was trained, and what memory grew by was read from files.
pub(super) fn was_read(case: &Case<'_>) -> bool {
    let Some(growth) = case.fills_up() else {
        return false;
    };
    let read = case.story.course.whole().asked;
    case.story.steps.is_none_or(|steps| steps == 0)
        && !case.is_first_step()
        && read.is_some_and(|read| read as f64 >= growth.gained as f64 * READ_SHARE)
}
