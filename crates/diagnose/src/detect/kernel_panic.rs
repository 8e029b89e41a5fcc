//! # kernel-panic
//!
//! The kernel met an error that it could not go on from.
//!
//! ## How it looks
//!
//! A screen full of text, blinking keyboard lights, or a reboot.
//!
//! ## How it is told
//!
//! `Kernel panic - not syncing`, or an oops, in the log of the boot in which the machine died: the journal, pstore, or
//! a file given with `--kernel-log`; or the output, where a console carries both. Where the machine lived on, a panic is none of the run's; an oops or a processor
//! that did not come back is possible if the run was killed or fell.
//!
//! ## What to do
//!
//! Update kernel and graphics driver; if it names memory or a machine check, test the memory (`memtest86+`).

use super::{Finding, Found};
use crate::bearing::Part;
use crate::case::Case;
use crate::facts::Since;
use crate::kernel::Kind;
use crate::verdict::EndKind;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let died = case.end == EndKind::MachineDied;
    let worst = |is_one: fn(&Kind) -> bool| case.incident(is_one);
    // A record that stops, and nobody knows of what machine, may have stopped with it.
    let panicked = died || case.end == EndKind::Unknown && case.facts.since != Since::GuardGone;
    let panic = worst(|kind| matches!(kind, Kind::Panic { .. })).filter(|_| panicked);
    let found = panic
        .map(|incident| (if died { 0.95 } else { 0.75 }, incident))
        .or_else(|| {
            let oops = worst(|kind| matches!(kind, Kind::Oops { .. }))?;
            Some((if died { 0.85 } else { 0.5 }, oops))
        })
        .or_else(|| {
            let lockup = worst(|kind| matches!(kind, Kind::Lockup))?;
            Some((if died { 0.75 } else { 0.4 }, lockup))
        });
    let Some((confidence, incident)) = found else {
        return match died && case.knows_log() {
            true => Finding::RuledOut("the kernel's log of that boot tells of none".into()),
            false => Finding::Nothing,
        };
    };
    // What the script says it met was not the kernel.
    let is_possible = !matches!(case.end, EndKind::Exception | EndKind::Failed);
    let found = Found::failed(case, Part::Board, confidence, incident).filter(|_| is_possible);
    let remedy = "update the kernel and the graphics driver; if it comes back, test the memory (memtest86+)";
    found.map(|found| found.remedy(remedy, None)).into()
}
