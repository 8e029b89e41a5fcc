//! # batch-too-large
//!
//! One request for memory, or one step, needs more than there is: a batch, a layer or an array that cannot fit.
//!
//! ## How it looks
//!
//! The run fails at once, or at the first batch of a new kind: evaluation, a longer sequence, the last layer.
//! The error names a number of bytes.
//!
//! ## How it is told
//!
//! A single request was refused that is at least a quarter of all that was held. A leak's last request is small
//! beside what it holds. Or the first step was under way, forward or backward, when there was no more memory: it
//! keeps what all layers made until it has gone back, and nothing can have leaked yet. Or `antifreeze.step` has taken
//! steps in parts. Of a log alone, by the number in the error: from a gigabyte on it is called likely; with less, or
//! without a number, a leak and a dataset in memory are named beside it. A library that cannot raise an error aborts
//! instead (`std::bad_alloc`).
//!
//! ## What to do
//!
//! Ask for less at once, and sum gradients over several batches, so that the training stays the same:
//!
//! ```python
//! for number, (x, y) in enumerate(loader):          # batch_size halved
//!     loss = criterion(model(x), y) / 2
//!     loss.backward()
//!     if number % 2 == 1:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```

use antifreeze_text::layout::cut;
use antifreeze_text::units;
use super::{Finding, Found, container_limit, dataset_in_memory, remedy, vram_exhausted};
use crate::case::Case;
use crate::shim::Split;
use crate::traceback::{Doing, Traceback};
use crate::verdict::EndKind;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if let Some(split) = case.facts.told.split {
        return Finding::Found(in_parts(case, split));
    }
    let Some(refusal) = case
        .large_request()
        .filter(|_| case.was_short_of_memory())
    else {
        return first_step(case).or_else(|| by_error(case)).into();
    };
    let summary = format!(
        "asked for {} at once while it held {}",
        units::bytes(refusal.bytes),
        units::bytes(refusal.footprint)
    );
    // Without growth before it there is little else that it can be.
    let confidence = match case.fills_up() {
        _ if case.is_asked_by_suspect() => 0.3,
        Some(_) if case.was_served(refusal) => 0.4,
        // It may be small enough for the machine.
        _ if container_limit::is_near(case) => 0.5,
        None if case.tells_of_memory() => 0.85,
        _ => 0.6,
    };
    let mut found = Found::new(case, confidence, summary, "tree.footprint").at(case.location());
    let room = case.facts.may_use().saturating_sub(refusal.footprint);
    let untouched = case.story.peak.as_ref().map_or(0, |peak| peak.untouched);
    if refusal.bytes < room && untouched > 0 {
        // Otherwise a refusal in front of free memory looks like a mistake.
        let mapped = units::bytes(untouched);
        found = found.and(case, format!("what it had mapped and not used yet, {mapped}, counts in part as well"), "");
    }
    let fits = fitting(case, refusal.bytes, room);
    Finding::Found(remedied(case, found, fits))
}

/// The change to the script that asks for less, or else advice in words.
fn remedied(case: &Case<'_>, found: Found, fits: Option<(u64, u64)>) -> Found {
    if let Some(remedy) = remedy::for_whole_set(case) {
        return found.remedy_by(remedy);
    }
    if let Some(remedy) = remedy::for_batch(case, fits.map(|(batch, _)| batch)) {
        return found.remedy_by(remedy);
    }
    let told = &case.facts.told;
    let has_batch_norm = told.batch.as_ref().is_some_and(|batch| batch.batch_norm);
    found.remedy(
        match fits {
            Some((batch, parts)) => {
                format!("a batch of {batch}, with gradients summed over {parts} of them, would have fitted")
            }
            None if told.has_loaded("torch") && told.batch.is_some() && !has_batch_norm => {
                "ask for less at once: a smaller batch, with gradients summed over two of them, or `antifreeze.step`, \
                 which does so (docs/sdk.md)"
                    .into()
            }
            None => "ask for less at once: a smaller batch, with gradients summed over two of them".into(),
        },
        None,
    )
}

/// What did not fit was taken in parts, which is the remedy too.
fn in_parts(case: &Case<'_>, split: Split) -> Found {
    let Split { size, of } = split;
    let parts = of.div_ceil(size.max(1));
    let summary = format!("a step with {of} items did not fit; {size} at a time did");
    Found::new(case, 0.9, summary, "tree.footprint").at(case.location()).remedy(
        format!(
            "it is taken in parts already. As quick, without trying first: a batch of {size}, with gradients summed \
             over {parts} of them"
        ),
        None,
    )
}

/// Many requests, of which none is large, that one step makes.
fn first_step(case: &Case<'_>) -> Option<Found> {
    if !case.tells_of_memory() || !case.is_first_step() || case.suspect().is_some() {
        return None;
    }
    let confidence = if dataset_in_memory::was_read(case) { 0.55 } else { 0.7 };
    let summary = "the first step needs more than there is".to_owned();
    let found = Found::new(case, confidence, summary, "tree.footprint").at(case.location());
    Some(remedied(case, found, None))
}

/// Nobody looked at its memory, and the error is all there is. Little that was asked for may be a leak's last, or a
/// dataset's.
fn by_error(case: &Case<'_>) -> Option<Found> {
    const MUCH: u64 = 1_000_000_000;
    if !is_only_told(case) {
        return None;
    }
    let asked = asked_for(&aborted(case).unwrap_or_else(|| case.error().to_owned()));
    let confidence = match asked {
        Some(asked) if asked >= MUCH => 0.75,
        _ if is_in_step(case) => 0.5,
        _ if is_in_import(case) => 0.2,
        _ => 0.4,
    };
    let summary = match asked {
        Some(asked) => format!("asked for {} at once", units::bytes(asked)),
        None => "there was no memory for what it asked for at once".into(),
    };
    let found = Found::new(case, confidence, summary, "").at(case.location());
    Some(remedied(case, with_abort(case, found), None))
}

/// That there was no memory is known from the error alone, and it was not a card's.
pub(super) fn is_only_told(case: &Case<'_>) -> bool {
    let is_told = case.tells_of_memory() || aborted(case).is_some();
    case.last().is_none() && is_told && vram_exhausted::said(case).is_none()
}

/// Libraries that cannot raise an error abort, and say why; with a record, what was refused is known.
pub(super) fn aborted(case: &Case<'_>) -> Option<String> {
    let ended = case.end == EndKind::Crashed && case.last().is_none();
    let line = case.line_with(&["std::bad_alloc", "memory allocation of "]).filter(|_| ended)?;
    (line.contains("bad_alloc") || line.ends_with("bytes failed")).then_some(line)
}

/// What a library said of that.
pub(super) fn with_abort(case: &Case<'_>, found: Found) -> Found {
    match aborted(case) {
        Some(line) => found.and(case, format!("a library found no memory, and aborted: {}", cut(&line, 160)), ""),
        None => found,
    }
}

/// It was loading a library, and had neither samples nor a batch.
pub(super) fn is_in_import(case: &Case<'_>) -> bool {
    case.printed.traceback.as_ref().is_some_and(Traceback::is_of_import)
}

/// It was raised in the middle of a step.
pub(super) fn is_in_step(case: &Case<'_>) -> bool {
    let doing = case.printed.traceback.as_ref().and_then(|traceback| traceback.doing);
    matches!(doing, Some(Doing::Forward | Doing::Backward | Doing::Updating))
}

/// `tried to allocate 4294967296 bytes`, `Unable to allocate 560. GiB for an array`, `malloc of size 8589934592 failed`.
fn asked_for(error: &str) -> Option<u64> {
    if let Some((_, after)) = error.split_once("malloc of size ") {
        return after.split(' ').next()?.parse().ok();
    }
    const UNITS: [(&str, f64); 7] = [
        ("bytes", 1.0),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
        ("MB", 1e6),
        ("GB", 1e9),
    ];
    let mut words = error.split(' ');
    while let Some(word) = words.next() {
        let mut after = words.clone();
        // `memory allocation of 8 bytes failed`.
        if word == "allocation" && after.clone().next() == Some("of") {
            after.next();
        }
        let number = after.next().filter(|_| word.contains("allocat"));
        let number: Option<f64> = number.and_then(|number| number.parse().ok());
        let unit = after.next().and_then(|word| UNITS.iter().find(|(unit, _)| word.starts_with(unit)));
        if let (Some(number), Some((_, each))) = (number.filter(|number| *number >= 0.0), unit) {
            return Some((number * each) as u64);
        }
    }
    None
}

/// The largest power-of-two part of the batch whose requests have room, and how many make up the whole.
fn fitting(case: &Case<'_>, asked: u64, room: u64) -> Option<(u64, u64)> {
    let batch = case.facts.told.hello.as_ref()?.batch?;
    let mut parts = 2;
    // What else a step takes is not known: half of the room is left to it.
    while asked / parts > room / 2 {
        parts *= 2;
        if parts > batch {
            return None;
        }
    }
    let size = batch / parts;
    (size > 0).then_some((size, parts))
}
