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
//! a file given with `--kernel-log`.
//!
//! ## What to do
//!
//! Update kernel and graphics driver; if it names memory or a machine check, test the memory (`memtest86+`).

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::Kind;
use crate::verdict::EndKind;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let died = case.end == EndKind::MachineDied;
    let worst = |is_one: fn(&Kind) -> bool| case.incident(is_one);
    let found = worst(|kind| matches!(kind, Kind::Panic { .. }))
        .map(|incident| (0.95, incident))
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
    Finding::Found(
        Found::said(case, confidence, incident)
            .remedy("update the kernel and the graphics driver; if it comes back, test the memory (memtest86+)", None),
    )
}
