//! # swap-thrash
//!
//! Memory was so short that the machine spent its time moving pages to the disk and back, and got little done.
//!
//! ## How it looks
//!
//! The mouse stutters, programs take seconds to answer, the disk is busy, the training crawls. Often the person
//! pulls the plug.
//!
//! ## How it is told
//!
//! For at least ten seconds everything waited for memory for a third of the time or more (pressure "full"), or
//! antifreeze stopped the run for it; or the kernel's log says that it killed the run for want of memory, and nothing
//! that grew explains it. Or the machine was well and the run crawled: a tenth or more of it lay in swap,
//! and so much went there and back that all of it was needed again within a minute. Ruled out when there was memory to
//! be had at the last look and nothing had waited.
//!
//! ## What to do
//!
//! Give the run a budget, so that it fails at its own line instead of freezing the machine, and make it smaller:
//!
//! ```sh
//! antifreeze run --budget 10GB -- python train.py
//! ```

use antifreeze_text::units;
use super::native_crash::notebook_died;
use super::{Finding, Found};
use crate::case::{Case, last_incidents};
use crate::kernel::{Constraint, Incident, Kind};
use crate::verdict::EndKind;
use crate::whose::{LIKELY, Whose};
use antifreeze_record::event::Trigger;
use std::time::Duration;

/// Of ten seconds, in which everything waited for memory.
const MUCH: f64 = 0.33;
/// Of what it held at most, in swap.
const MUCH_IN_SWAP: f64 = 0.1;
/// Within which all of that comes back, so that it is no cold data; and for how long it went so at least.
const COMES_BACK: Duration = Duration::from_secs(60);
const LASTING: Duration = Duration::from_secs(10);
/// Of the machine's memory; with more left it was not out.
const NOTABLE: f64 = 0.05;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let course = &case.story.course;
    let stopped = matches!(case.story.stop, Some(Trigger::SwapStorm | Trigger::Stalling));
    if course.worst_stall >= MUCH || stopped {
        let waited = units::percent(course.worst_stall);
        let summary = match course.worst_stall >= MUCH {
            true => format!("everything waited for memory for {waited} of the time at the worst"),
            false => "the machine swapped as fast as it could".into(),
        };
        // Something filled it: this is what came of that, unless nothing else is known.
        let confidence = match case.end {
            EndKind::MachineDied | EndKind::Running => 0.7,
            _ if case.fills_up().is_some() => 0.2,
            _ => 0.6,
        };
        let mut found = Found::new(case, confidence, summary, "pressure.memory_full");
        if course.worst_swap > 1e6 {
            let pace = units::growth_rate(course.worst_swap);
            found = found.and(case, format!("{pace} went to swap and back"), "paging");
        }
        return Finding::Found(remedied(case, found));
    }
    if let Some(found) = lives_on_swap(case) {
        return Finding::Found(found);
    }
    if notebook_died(case).is_some() {
        let summary = "the notebook's kernel died: most often it was killed for want of memory";
        let found = Found::new(case, 0.5, summary.into(), "");
        let remedy = "have its memory watched from the first cell on, and explained afterwards";
        return Finding::Found(found.remedy(remedy, Some("%load_ext antifreeze".into())));
    }
    if let Some(found) = killed_by_kernel(case) {
        return Finding::Found(found);
    }
    if case.end != EndKind::MachineDied {
        return Finding::Nothing;
    }
    let memory = case.last().map(|last| last.memory);
    let left = memory.and_then(|memory| memory.total.value().zip(memory.available.value()));
    match left {
        Some((total, available)) if available as f64 >= total as f64 * NOTABLE => {
            Finding::RuledOut(format!("{} free at the last look", units::bytes(available)))
        }
        _ => Finding::Nothing,
    }
}

/// The machine may be well, and the run crawl: what it has in swap it needs again and again.
fn lives_on_swap(case: &Case<'_>) -> Option<Found> {
    let ending = case.story.course.ending();
    let (pace, held) = (ending.swap?, ending.in_swap?);
    let is_much = held as f64 >= case.peak() as f64 * MUCH_IN_SWAP;
    // Half of what moves comes back.
    let comes_back = held as f64 <= pace / 2.0 * COMES_BACK.as_secs_f64();
    if ending.time < LASTING || !is_much || !comes_back {
        return None;
    }
    let summary = format!(
        "{} of it lay in swap, and {} went there and back",
        units::bytes(held),
        units::growth_rate(pace)
    );
    let confidence = if case.fills_up().is_some() { 0.2 } else { 0.7 };
    Some(remedied(case, Found::new(case, confidence, summary, "paging")))
}

/// It never came to a stall: the kernel was quicker.
fn killed_by_kernel(case: &Case<'_>) -> Option<Found> {
    let is_kill = |incident: &&Incident| {
        matches!(&incident.kind, Kind::OomKill { constraint, .. } if !matches!(constraint, Constraint::Cgroup(_)))
    };
    let is_ours = |incident: &&Incident| case.whose(incident).is_ours();
    let incident = last_incidents(case.facts, case.story).filter(is_ours).rfind(is_kill);
    let incident = incident.filter(|_| case.end == EndKind::OomKilled)?;
    let confidence = match case.whose(incident) {
        _ if case.fills_up().is_some() => 0.2,
        Whose::Ours => 0.75,
        _ => LIKELY,
    };
    let mut found = Found::said(case, confidence, incident);
    found.summary = "the kernel killed it for want of memory".into();
    Some(remedied(case, found))
}

fn remedied(case: &Case<'_>, found: Found) -> Found {
    let command = case.facts.command_line();
    if case.facts.total == 0 {
        let guarded = Some(format!("antifreeze run -- {command}"));
        return found.remedy("let it fail at its own line instead, under a guard; or a smaller batch", guarded);
    }
    let budget = units::bytes(case.facts.may_use()).replace(' ', "");
    found.remedy(
        "let it fail at its own line instead, with a budget; or a smaller batch",
        Some(format!("antifreeze run --budget {budget} -- {command}")),
    )
}
