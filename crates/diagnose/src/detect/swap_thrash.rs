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
//! antifreeze stopped the run for it. Ruled out when there was memory to be had at the last look and nothing
//! had waited.
//!
//! ## What to do
//!
//! Give the run a budget, so that it fails at its own line instead of freezing the machine, and make it smaller:
//!
//! ```sh
//! antifreeze run --budget 10GB -- python train.py
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::units;
use crate::verdict::EndKind;
use antifreeze_record::event::Why;

/// Of ten seconds, in which everything waited for memory.
const MUCH: f64 = 0.33;
/// Of the machine's memory; with more left it was not out.
const NOTABLE: f64 = 0.05;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let course = &case.story.course;
    let stopped = matches!(case.story.stop, Some(Why::SwapStorm | Why::Stalling));
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
            let pace = units::pace(course.worst_swap);
            found = found.and(case, format!("{pace} went to swap and back"), "paging");
        }
        let command = case.facts.command_line();
        let budget = units::bytes(case.facts.may_use()).replace(' ', "");
        return Finding::Found(found.remedy(
            "let it fail at its own line instead, with a budget; or a smaller batch",
            Some(format!("antifreeze run --budget {budget} -- {command}")),
        ));
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
