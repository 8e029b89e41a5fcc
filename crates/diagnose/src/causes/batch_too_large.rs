//! # batch-too-large
//!
//! One request for memory, or one step, needs more than is available: a batch, a layer or an array that does not fit.
//!
//! ## Symptoms
//!
//! The run fails at once, or at the first batch of a new kind: evaluation, a longer sequence, the last layer. The error
//! names a number of bytes.
//!
//! ## How it is detected
//!
//! A single request was refused that is at least a quarter of the memory in use; the last request of a leak is small in
//! comparison. Or memory ran out in the forward or backward pass of the first step, when nothing can have leaked yet.
//! Or `antifreeze.step` had to split steps. From a log alone, the number in the error decides: a gigabyte or more makes
//! it likely; with less, or without a number, a leak and a dataset in memory are named as well. A library that cannot
//! raise an error aborts instead (`std::bad_alloc`).
//!
//! ## What to do
//!
//! Request less at once, and accumulate gradients over several batches, so that the training stays the same:
//!
//! ```python
//! for number, (x, y) in enumerate(loader):          # batch_size halved
//!     loss = criterion(model(x), y) / 2
//!     loss.backward()
//!     if number % 2 == 1:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```

use super::{
    CauseKind, Finding, Found, Role, container_limit, dataset_in_memory, remedy, vram_exhausted,
};
use crate::output::traceback::{Activity, Traceback};
use crate::run::evidence::RunEvidence;
use crate::shim::Split;
use crate::verdict::{Code, EndKind};
use antifreeze_text::layout::cut;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::BatchTooLarge,
    word: "batch-too-large",
    title: "batch or array too large",
    role: Role::ExhaustsMemory,
    lint_rules: &["full-batch", "batch-too-large-here", "dataset-in-ram"],
    source: include_str!("batch_too_large.rs"),
    detect,
};

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if let Some(split) = evidence.facts.shim.split {
        return Finding::Found(from_split_steps(evidence, split));
    }
    let Some(refusal) = evidence
        .large_refusal()
        .filter(|_| evidence.was_short_of_memory())
    else {
        return from_first_step(evidence)
            .or_else(|| from_error(evidence))
            .into();
    };
    let summary = format!(
        "requested {} at once while it held {}",
        units::bytes(refusal.bytes),
        units::bytes(refusal.footprint)
    );
    // Without growth before it there is hardly another explanation.
    let confidence = match evidence.steady_growth() {
        _ if evidence.suspect_made_request() => 0.3,
        Some(_) if evidence.was_satisfied_before(refusal) => 0.4,
        // The machine itself may have enough memory.
        _ if container_limit::reached_limit(evidence) => 0.5,
        None if evidence.reports_out_of_memory() => 0.85,
        _ => 0.6,
    };
    let mut found = Found::new(evidence, confidence, summary, "tree.footprint")
        .at_location(evidence.error_location());
    let room = evidence
        .facts
        .usable_memory()
        .saturating_sub(refusal.footprint);
    let untouched = evidence
        .summary
        .peak
        .as_ref()
        .map_or(0, |peak| peak.untouched);
    if refusal.bytes < room && untouched > 0 {
        // Otherwise a refusal while memory is free looks like a mistake.
        let mapped = units::bytes(untouched);
        found = found.with_evidence(
            evidence,
            format!("{mapped} that it mapped and has not used yet count in part as well"),
            "",
        );
    }
    let fits = largest_fitting_batch(evidence, refusal.bytes, room);
    Finding::Found(add_remedies(evidence, found, fits))
}

/// Adds the change to the script that requests less, or else advice.
fn add_remedies(evidence: &RunEvidence<'_>, found: Found, fits: Option<(u64, u64)>) -> Found {
    if let Some(remedy) = remedy::for_whole_set(evidence) {
        return found.with_edits(remedy);
    }
    if let Some(remedy) = remedy::for_batch(evidence, fits.map(|(batch, _)| batch)) {
        return found.with_edits(remedy);
    }
    let told = &evidence.facts.shim;
    let has_batch_norm = told.batch.as_ref().is_some_and(|batch| batch.batch_norm);
    found.with_remedy(
        match fits {
            Some((batch, parts)) => {
                format!("a batch of {batch}, with gradients accumulated over {parts} of them, would have fitted")
            }
            None if told.has_loaded("torch") && told.batch.is_some() && !has_batch_norm => {
                "use a smaller batch, with gradients accumulated over two of them, or `antifreeze.step`, \
                 which does that (docs/sdk.md)"
                    .into()
            }
            None => "use a smaller batch, with gradients accumulated over two of them".into(),
        },
        None,
    )
}

/// `antifreeze.step` split a step that did not fit, which is also the remedy.
fn from_split_steps(evidence: &RunEvidence<'_>, split: Split) -> Found {
    let Split { size, of } = split;
    let parts = of.div_ceil(size.max(1));
    let summary = format!("a step with {of} items did not fit; {size} at a time did");
    Found::new(evidence, 0.9, summary, "tree.footprint").at_location(evidence.error_location()).with_remedy(
        format!(
            "antifreeze splits it already. As fast, without a failed attempt: a batch of {size}, with gradients \
             accumulated over {parts} of them"
        ),
        None,
    )
}

/// The first step makes many requests, none of which is large.
fn from_first_step(evidence: &RunEvidence<'_>) -> Option<Found> {
    if !evidence.reports_out_of_memory()
        || !evidence.ended_in_first_step()
        || evidence.suspect().is_some()
    {
        return None;
    }
    let confidence = if dataset_in_memory::was_read(evidence) {
        0.55
    } else {
        0.7
    };
    let summary = "the first step needs more memory than is available".to_owned();
    let found = Found::new(evidence, confidence, summary, "tree.footprint")
        .at_location(evidence.error_location());
    Some(add_remedies(evidence, found, None))
}

/// Only the error is known, and not the memory of the run. A small request may be the last one of a leak or a dataset.
fn from_error(evidence: &RunEvidence<'_>) -> Option<Found> {
    const LARGE_REQUEST_BYTES: u64 = 1_000_000_000;
    if !is_known_from_output_only(evidence) {
        return None;
    }
    let asked = parse_requested_bytes(
        &allocation_abort_line(evidence).unwrap_or_else(|| evidence.error().to_owned()),
    );
    let confidence = match asked {
        Some(asked) if asked >= LARGE_REQUEST_BYTES => 0.75,
        _ if failed_in_step(evidence) => 0.5,
        _ if failed_in_import(evidence) => 0.2,
        _ => 0.4,
    };
    let summary = match asked {
        Some(asked) => format!("requested {} at once", units::bytes(asked)),
        None => "a request for memory failed".into(),
    };
    let found =
        Found::new(evidence, confidence, summary, "").at_location(evidence.error_location());
    Some(add_remedies(
        evidence,
        with_abort_line(evidence, found),
        None,
    ))
}

/// Whether only the error shows that memory ran out, and it was not GPU memory.
pub(super) fn is_known_from_output_only(evidence: &RunEvidence<'_>) -> bool {
    let is_told = evidence.reports_out_of_memory() || allocation_abort_line(evidence).is_some();
    evidence.last_sample().is_none()
        && is_told
        && vram_exhausted::out_of_memory_line(evidence).is_none()
}

/// The message of a library that aborted because memory ran out. Not used with a record, which has the refused requests.
pub(super) fn allocation_abort_line(evidence: &RunEvidence<'_>) -> Option<String> {
    let ended = evidence.end == EndKind::Crashed && evidence.last_sample().is_none();
    let line = evidence
        .find_line(&["std::bad_alloc", "memory allocation of "])
        .filter(|_| ended)?;
    (line.contains("bad_alloc") || line.ends_with("bytes failed")).then_some(line)
}

/// Adds that message to the evidence.
pub(super) fn with_abort_line(evidence: &RunEvidence<'_>, found: Found) -> Found {
    match allocation_abort_line(evidence) {
        Some(line) => found.with_evidence(
            evidence,
            format!(
                "a library ran out of memory and aborted: {}",
                cut(&line, 160)
            ),
            "",
        ),
        None => found,
    }
}

/// Whether it failed while importing a library, before it had samples or a batch.
pub(super) fn failed_in_import(evidence: &RunEvidence<'_>) -> bool {
    evidence
        .printed
        .traceback
        .as_ref()
        .is_some_and(Traceback::is_of_import)
}

/// Whether the error was raised in a training step.
pub(super) fn failed_in_step(evidence: &RunEvidence<'_>) -> bool {
    let doing = evidence
        .printed
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.activity);
    matches!(
        doing,
        Some(Activity::Forward | Activity::Backward | Activity::Updating)
    )
}

/// Parses the size of a request: `tried to allocate 4294967296 bytes`, `Unable to allocate 560. GiB for an array`, `malloc of size 8589934592 failed`.
fn parse_requested_bytes(error: &str) -> Option<u64> {
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
        let unit = after
            .next()
            .and_then(|word| UNITS.iter().find(|(unit, _)| word.starts_with(unit)));
        if let (Some(number), Some((_, each))) = (number.filter(|number| *number >= 0.0), unit) {
            return Some((number * each) as u64);
        }
    }
    None
}

/// The largest batch that fits, as the original divided by a power of two, and that divisor.
fn largest_fitting_batch(evidence: &RunEvidence<'_>, asked: u64, room: u64) -> Option<(u64, u64)> {
    let batch = evidence.facts.shim.hello.as_ref()?.batch?;
    let mut parts = 2;
    // What else a step needs is not known, so half of the memory is left for it.
    while asked / parts > room / 2 {
        parts *= 2;
        if parts > batch {
            return None;
        }
    }
    let size = batch / parts;
    (size > 0).then_some((size, parts))
}
