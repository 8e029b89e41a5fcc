//! # memory-leak
//!
//! The script keeps something of every step, so that memory grows until there is none left.
//!
//! ## How it looks
//!
//! It runs well for minutes or hours; then the machine swaps, the kernel ends the process, or, under
//! antifreeze, a request of ordinary size fails. Most often a list, a sum or an attribute keeps a tensor of
//! every step, and with it the graph that it came from.
//!
//! ## How it is told
//!
//! Memory grew steadily over the later half of the run, up to the first refused request: more than 85 % of
//! all pairs of looks rise, and the gain is more than a tenth of the peak. A plateau after a warm-up, a saw-tooth
//! and a cache that levels off do not. Where the shim runs, the name that grew by as much, the bytes it grows
//! by with each step and the line on which it grows are named, and it is called sure. From outside alone a
//! dataset that is read into memory looks the same, and both are named. Of a log alone, an error for want of memory
//! after it had trained is all that speaks for it, and it is called possible.
//!
//! ## What to do
//!
//! Store values without their graphs, or let go of what is old. In PyTorch, for a list:
//!
//! ```python
//! losses.append(loss.detach())   # not: losses.append(loss)
//! del history[:-100]             # after history.append(...)
//! ```
//!
//! In TensorFlow, JAX and NumPy no graph is kept: store the numbers that are used later instead of whole arrays. Where
//! the shim runs, the change is made for the line on which the name grows, from what it holds and how the file uses it;
//! where no change is certain to run, it is said in words. Several names that grow are named each.
//!
//! `antifreeze check train.py` finds the usual ones before a run.

use antifreeze_text::{sanitize, units};
use super::{Finding, Found, batch_too_large, dataset_in_memory, remedy};
use crate::case::Case;
use crate::ending::{user_file, user_place};
use crate::series::Growth;
use crate::shim::{Holder, How, Suspect};
use crate::story::Refusal;
use crate::verdict::{EndKind, Location};

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some(growth) = case.fills_up() else {
        return match case.growth() {
            Some(growth) if growth.gained == 0 && case.was_short_of_memory() => {
                Finding::RuledOut("memory did not grow in the later half of the run".into())
            }
            _ => by_error(case).into(),
        };
    };
    let Some(suspect) = case.suspect() else {
        // One large request explains the end better than the growth before it.
        let is_new = |asked: Refusal| !case.was_served(asked);
        let confidence = match case.large_request() {
            _ if dataset_in_memory::was_read(case) || dataset_in_memory::is_kept_by_pipeline(case) => 0.3,
            // Whatever the steps need goes on being needed.
            _ if case.facts.told.split.is_some() => return Finding::Nothing,
            _ if case.is_first_step() => 0.3,
            Some(asked) if is_new(asked) => 0.3,
            Some(_) => 0.55,
            // What was attached to has no cushion that reports a refusal.
            None if case.end == EndKind::Walled && case.story.refusals.count == 0 => 0.55,
            None => 0.65,
        };
        let found = Found::new(case, confidence, grew(growth), "tree.footprint");
        return Finding::Found(found.at(case.location()).remedy(remedy::advice_on_leak(case), None));
    };
    // What is filled before anything is trained is meant to be there; where steps cannot be seen, it may
    // be either.
    let is_minor = |refusal: Refusal| suspect.holder.bytes < refusal.footprint / 4;
    let confidence = match suspect.how {
        _ if case.large_request().is_some_and(is_minor) && !case.is_asked_by_suspect() => 0.3,
        How::Step(_) => 0.94,
        How::Graphs => 0.9,
        How::Second(_) | How::Holds if case.facts.told.hello.is_none() => 0.3,
        How::Second(_) | How::Holds => 0.75,
    };
    Finding::Found(with_holder(case, confidence, &suspect, growth))
}

/// Nobody looked, and it had trained for a while before there was no memory.
fn by_error(case: &Case<'_>) -> Option<Found> {
    let can_be = case.has_trained() && !batch_too_large::is_in_import(case);
    if !batch_too_large::is_only_told(case) || !can_be {
        return None;
    }
    let summary = "it had trained before there was no memory: something of every step may be kept";
    let found = Found::new(case, 0.45, summary.into(), "").at(case.location());
    Some(batch_too_large::with_abort(case, found).remedy(remedy::advice_on_leak(case), None))
}

pub(super) fn grew(growth: Growth) -> String {
    let pace = units::growth_rate(growth.bytes_per_second);
    format!("memory grew {pace} until there was no room")
}

/// Blames the name that fills the memory.
pub(super) fn with_holder(
    case: &Case<'_>,
    confidence: f64,
    suspect: &Suspect<'_>,
    growth: Growth,
) -> Found {
    let holder = suspect.holder;
    let name = sanitize::escape(holder.name.as_bytes());
    let location = holder.lines.first().map(|line| Location {
        file: user_file(holder.file.as_bytes(), case.facts),
        line: *line,
        name: Some(holder.name.clone()),
    });
    let summary = format!("`{name}` {}", suspect.does());
    let mut found = Found::new(case, confidence, summary, "tree.footprint")
        .and(case, grew(growth), "tree.footprint")
        .at(case.location())
        .at(location);
    let others = suspect.accomplices();
    for other in &others {
        found = found.and(case, beside(case, other), "");
    }
    for grower in [holder].into_iter().chain(others) {
        found = match remedy::for_holder(case, grower) {
            Some(remedy) => found.remedy_by(remedy),
            None => match place_of(case, grower) {
                Some(place) => found.remedy(remedy::advice_on_holder(grower, &place), None),
                None => found.remedy(remedy::advice_on_leak(case), None),
            },
        };
    }
    found
}

/// "`frames` grows as well, by 120 MB (train.py:81)".
fn beside(case: &Case<'_>, holder: &Holder) -> String {
    let name = sanitize::escape(holder.name.as_bytes());
    let place = place_of(case, holder).unwrap_or_default();
    match u64::try_from(holder.grown) {
        Ok(grown) if grown > 0 && holder.new_nodes <= 0 => {
            format!("`{name}` grows as well, by {} ({place})", units::bytes(grown))
        }
        _ => format!("`{name}` keeps graphs as well ({place})"),
    }
}

pub(super) fn place_of(case: &Case<'_>, holder: &Holder) -> Option<String> {
    let line = holder.lines.first()?;
    Some(user_place(holder.file.as_bytes(), *line, case.facts))
}
