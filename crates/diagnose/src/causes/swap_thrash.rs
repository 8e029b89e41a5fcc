//! # swap-thrash
//!
//! Memory was so short that the machine spent its time swapping pages out and in.
//!
//! ## Symptoms
//!
//! The mouse stutters, programs take seconds to respond, the disk is busy, the training crawls. Often the user switches
//! the machine off.
//!
//! ## How it is detected
//!
//! For at least ten seconds all tasks waited for memory for a third of the time or more (pressure "full"), or
//! antifreeze stopped the run for it. Or the kernel's log says that it killed the run because memory ran out, and no
//! growth explains it. Or only the run crawled: a tenth or more of it was in swap, and the swap rate would bring all of
//! it back within a minute. Ruled out if memory was available in the last sample and nothing had waited for it.
//!
//! ## What to do
//!
//! Give the run a budget, so that it fails at its own line instead of freezing the machine, and make it smaller:
//!
//! ```sh
//! antifreeze run --budget 10GB -- python train.py
//! ```

use super::native_crash::kernel_death_line;
use super::{CauseKind, Finding, Found, Role};
use crate::kernel::attribution::{Attribution, LIKELY_CONFIDENCE};
use crate::kernel::{Constraint, Incident, Kind};
use crate::run::evidence::{RunEvidence, incidents_near_end};
use crate::verdict::{Code, EndKind};
use antifreeze_record::event::Trigger;
use antifreeze_text::units;
use std::time::Duration;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::SwapThrash,
    word: "swap-thrash",
    title: "out of memory",
    role: Role::ExhaustsMemory,
    lint_rules: &[],
    source: include_str!("swap_thrash.rs"),
    detect,
};

/// All tasks waited for memory for this share of ten seconds.
const MIN_STALL_SHARE: f64 = 0.33;
/// At least this share of the peak was in swap.
const MIN_SWAP_SHARE: f64 = 0.1;
/// All of it is swapped in within this time, so it is not cold data.
const SWAPPED_IN_WITHIN: Duration = Duration::from_secs(60);
/// It lasted at least so long.
const MIN_TIME: Duration = Duration::from_secs(10);
/// With more than this share of memory available it has not run out.
const AVAILABLE_SHARE: f64 = 0.05;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let course = &evidence.summary.rates;
    let stopped = matches!(
        evidence.summary.stop,
        Some(Trigger::SwapStorm | Trigger::Stalling)
    );
    if course.worst_memory_stall >= MIN_STALL_SHARE || stopped {
        let waited = units::percent(course.worst_memory_stall);
        let summary = match course.worst_memory_stall >= MIN_STALL_SHARE {
            true => format!("all tasks waited for memory for up to {waited} of the time"),
            false => "the machine was thrashing swap".into(),
        };
        // If growth filled the memory, this is the consequence.
        let confidence = match evidence.end {
            EndKind::MachineDied | EndKind::Running => 0.7,
            _ if evidence.steady_growth().is_some() => 0.2,
            _ => 0.6,
        };
        let mut found = Found::new(evidence, confidence, summary, "pressure.memory_full");
        if course.worst_swap_rate > 1e6 {
            let pace = units::growth_rate(course.worst_swap_rate);
            found = found.with_evidence(
                evidence,
                format!("{pace} were swapped out and in"),
                "paging",
            );
        }
        return Finding::Found(add_remedies(evidence, found));
    }
    if let Some(found) = from_own_swapping(evidence) {
        return Finding::Found(found);
    }
    if kernel_death_line(evidence).is_some() {
        let summary = "the notebook's kernel died, usually because memory ran out";
        let found = Found::new(evidence, 0.5, summary.into(), "");
        let remedy = "guard it from the first cell on, and have its end explained";
        return Finding::Found(found.with_remedy(remedy, Some("%load_ext antifreeze".into())));
    }
    if let Some(found) = from_oom_kill(evidence) {
        return Finding::Found(found);
    }
    if evidence.end != EndKind::MachineDied {
        return Finding::Nothing;
    }
    let memory = evidence.last_sample().map(|last| last.memory);
    let left = memory.and_then(|memory| memory.total.value().zip(memory.available.value()));
    match left {
        Some((total, available)) if available as f64 >= total as f64 * AVAILABLE_SHARE => {
            Finding::RuledOut(format!(
                "{} free in the last sample",
                units::bytes(available)
            ))
        }
        _ => Finding::Nothing,
    }
}

/// Only the run crawls: it needs the pages that it has in swap again and again.
fn from_own_swapping(evidence: &RunEvidence<'_>) -> Option<Found> {
    let ending = evidence.summary.rates.last_minute();
    let (pace, held) = (ending.swap?, ending.in_swap?);
    let is_much = held as f64 >= evidence.peak_bytes() as f64 * MIN_SWAP_SHARE;
    // Half of the swapped pages are swapped in.
    let comes_back = held as f64 <= pace / 2.0 * SWAPPED_IN_WITHIN.as_secs_f64();
    if ending.time < MIN_TIME || !is_much || !comes_back {
        return None;
    }
    let summary = format!(
        "{} of it were in swap, and {} were swapped out and in",
        units::bytes(held),
        units::growth_rate(pace)
    );
    let confidence = if evidence.steady_growth().is_some() {
        0.2
    } else {
        0.7
    };
    Some(add_remedies(
        evidence,
        Found::new(evidence, confidence, summary, "paging"),
    ))
}

/// The kernel killed it before tasks had to wait.
fn from_oom_kill(evidence: &RunEvidence<'_>) -> Option<Found> {
    let is_kill = |incident: &&Incident| matches!(&incident.kind, Kind::OomKill { constraint, .. } if !matches!(constraint, Constraint::Cgroup(_)));
    let is_ours = |incident: &&Incident| evidence.attribute(incident).is_ours();
    let incident = incidents_near_end(evidence.facts, evidence.summary)
        .filter(is_ours)
        .rfind(is_kill);
    let incident = incident.filter(|_| evidence.end == EndKind::OomKilled)?;
    let confidence = match evidence.attribute(incident) {
        _ if evidence.steady_growth().is_some() => 0.2,
        Attribution::OurRun => 0.75,
        _ => LIKELY_CONFIDENCE,
    };
    let mut found = Found::from_log_line(evidence, confidence, incident);
    found.summary = "the kernel killed it because memory ran out".into();
    Some(add_remedies(evidence, found))
}

fn add_remedies(evidence: &RunEvidence<'_>, found: Found) -> Found {
    let command = evidence.facts.command_line();
    if evidence.facts.total == 0 {
        let guarded = Some(format!("antifreeze run -- {command}"));
        return found.with_remedy(
            "run it under a guard, so that it fails at its own line instead; or use a smaller batch",
            guarded,
        );
    }
    let budget = units::bytes(evidence.facts.usable_memory()).replace(' ', "");
    found.with_remedy(
        "give it a budget, so that it fails at its own line instead; or use a smaller batch",
        Some(format!("antifreeze run --budget {budget} -- {command}")),
    )
}
