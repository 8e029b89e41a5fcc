//! # memory-leak
//!
//! The script keeps data of every step, so memory grows until it runs out.
//!
//! ## Symptoms
//!
//! The run works for minutes or hours. Then the machine swaps, the kernel kills the process, or, under antifreeze, a
//! request of ordinary size fails. Often a list, a sum or an attribute keeps the tensor of every step, and with it its
//! graph.
//!
//! ## How it is detected
//!
//! Memory grew steadily over the later half of the run, up to the first refused request: more than 85 % of all pairs of
//! samples rise, and the gain is more than a tenth of the peak. A plateau after a warm-up, a saw-tooth and a cache that
//! levels off do not count. Where the shim runs, it names the variable that grew by as much, its growth per step and
//! the line, and confidence is high. From outside, reading a dataset into memory looks the same, so both causes are
//! named. From a log alone, an out-of-memory error after training had begun makes a leak possible.
//!
//! ## What to do
//!
//! Store values without their graphs, or drop old ones. In PyTorch, for a list:
//!
//! ```python
//! losses.append(loss.detach())   # not: losses.append(loss)
//! del history[:-100]             # after history.append(...)
//! ```
//!
//! TensorFlow, JAX and NumPy keep no graph: store the numbers that you use later instead of whole arrays. Where the
//! shim runs, antifreeze proposes a change to the line on which the variable grows. Where no change is certain to work,
//! it gives advice. If several variables grow, each is named.
//!
//! `antifreeze check train.py` finds the common patterns before a run.

use super::{CauseKind, Finding, Found, Role, batch_too_large, dataset_in_memory, remedy};
use crate::run::evidence::RunEvidence;
use crate::run::series::Growth;
use crate::run::summary::Refusal;
use crate::shim::{Holder, Suspect, SuspectKind};
use crate::verdict::place::{user_file, user_place};
use crate::verdict::{Code, EndKind, Location};
use antifreeze_text::{sanitize, units};

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::MemoryLeak,
    word: "memory-leak",
    title: "memory leak",
    role: Role::ExhaustsMemory,
    lint_rules: &[
        "graph-in-accumulator",
        "graph-in-container",
        "tensors-kept-forever",
        "undetached-state",
        "variable-or-function-in-loop",
    ],
    source: include_str!("memory_leak.rs"),
    detect,
};

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let Some(growth) = evidence.steady_growth() else {
        return match evidence.growth() {
            Some(growth) if growth.gained == 0 && evidence.was_short_of_memory() => {
                Finding::RuledOut("memory did not grow in the later half of the run".into())
            }
            _ => from_error(evidence).into(),
        };
    };
    let Some(suspect) = evidence.suspect() else {
        // One large request explains the end better than the growth before it.
        let is_new = |asked: Refusal| !evidence.was_satisfied_before(asked);
        let confidence = match evidence.large_refusal() {
            _ if dataset_in_memory::was_read(evidence)
                || dataset_in_memory::is_kept_by_pipeline(evidence) =>
            {
                0.3
            }
            // Steps that were split need their memory.
            _ if evidence.facts.shim.split.is_some() => return Finding::Nothing,
            _ if evidence.ended_in_first_step() => 0.3,
            Some(asked) if is_new(asked) => 0.3,
            Some(_) => 0.55,
            // An attached process has no cushion that reports refused requests.
            None if evidence.end == EndKind::Walled && evidence.summary.refusals.count == 0 => 0.55,
            None => 0.65,
        };
        let found = Found::new(
            evidence,
            confidence,
            describe_growth(growth),
            "tree.footprint",
        );
        return Finding::Found(
            found
                .at_location(evidence.error_location())
                .with_remedy(remedy::advice_on_leak(evidence), None),
        );
    };
    // A variable that is filled before training is meant to be kept; without known steps it may be either.
    let is_minor = |refusal: Refusal| suspect.holder.bytes < refusal.footprint / 4;
    let confidence = match suspect.kind {
        _ if evidence.large_refusal().is_some_and(is_minor) && !evidence.suspect_made_request() => {
            0.3
        }
        SuspectKind::GrowsPerStep(_) => 0.94,
        SuspectKind::KeepsGraphs => 0.9,
        SuspectKind::GrowsPerSecond(_) | SuspectKind::HoldsMost
            if evidence.facts.shim.hello.is_none() =>
        {
            0.3
        }
        SuspectKind::GrowsPerSecond(_) | SuspectKind::HoldsMost => 0.75,
    };
    Finding::Found(from_holder(evidence, confidence, &suspect, growth))
}

/// Only the error is known, and training had begun.
fn from_error(evidence: &RunEvidence<'_>) -> Option<Found> {
    let can_be = evidence.has_trained() && !batch_too_large::failed_in_import(evidence);
    if !batch_too_large::is_known_from_output_only(evidence) || !can_be {
        return None;
    }
    let summary = "memory ran out after training had begun: data of every step may be kept";
    let found =
        Found::new(evidence, 0.45, summary.into(), "").at_location(evidence.error_location());
    Some(
        batch_too_large::with_abort_line(evidence, found)
            .with_remedy(remedy::advice_on_leak(evidence), None),
    )
}

pub(super) fn describe_growth(growth: Growth) -> String {
    let pace = units::growth_rate(growth.bytes_per_second);
    format!("memory grew {pace} until it ran out")
}

/// Names the variable that fills the memory.
pub(super) fn from_holder(
    evidence: &RunEvidence<'_>,
    confidence: f64,
    suspect: &Suspect<'_>,
    growth: Growth,
) -> Found {
    let holder = suspect.holder;
    let name = sanitize::escape(holder.name.as_bytes());
    let location = holder.lines.first().map(|line| Location {
        file: user_file(holder.file.as_bytes(), evidence.facts),
        line: *line,
        name: Some(holder.name.clone()),
    });
    let summary = format!("`{name}` {}", suspect.does());
    let mut found = Found::new(evidence, confidence, summary, "tree.footprint")
        .with_evidence(evidence, describe_growth(growth), "tree.footprint")
        .at_location(evidence.error_location())
        .at_location(location);
    let others = suspect.accomplices();
    for other in &others {
        found = found.with_evidence(evidence, describe_other(evidence, other), "");
    }
    for grower in [holder].into_iter().chain(others) {
        found = match remedy::for_holder(evidence, grower) {
            Some(remedy) => found.with_edits(remedy),
            None => match place_of(evidence, grower) {
                Some(place) => found.with_remedy(remedy::advice_on_holder(grower, &place), None),
                None => found.with_remedy(remedy::advice_on_leak(evidence), None),
            },
        };
    }
    found
}

/// Describes another variable: "`frames` grows as well, by 120 MB (train.py:81)".
fn describe_other(evidence: &RunEvidence<'_>, holder: &Holder) -> String {
    let name = sanitize::escape(holder.name.as_bytes());
    let place = place_of(evidence, holder).unwrap_or_default();
    match u64::try_from(holder.grown) {
        Ok(grown) if grown > 0 && holder.new_nodes <= 0 => {
            format!(
                "`{name}` grows as well, by {} ({place})",
                units::bytes(grown)
            )
        }
        _ => format!("`{name}` keeps graphs as well ({place})"),
    }
}

pub(super) fn place_of(evidence: &RunEvidence<'_>, holder: &Holder) -> Option<String> {
    let line = holder.lines.first()?;
    Some(user_place(holder.file.as_bytes(), *line, evidence.facts))
}
