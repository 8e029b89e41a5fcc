//! # machine-reset
//!
//! The machine itself stopped in the middle of the run: a power cut, a reset, a hang that ended with the button.
//!
//! ## How it looks
//!
//! A black screen, a reboot without a word, or a frozen picture.
//!
//! ## How it is told
//!
//! The record has no end, the machine has been started again since, and nobody shut it down. What the last seconds
//! show narrows it: no pressure and no heat speak for power; the kernel's log of the boot before is asked for a
//! panic, a machine check, a lost card.
//!
//! ## What to do
//!
//! If it comes back: limit the power of card and processor, check the power supply and its cables, watch the heat.
//! Have the kernel keep its last words:
//!
//! ```sh
//! sudo mkdir -p /var/log/journal        # the journal survives a reboot
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::Kind;
use crate::units;
use crate::verdict::EndKind;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if case.end != EndKind::MachineDied {
        return Finding::Nothing;
    }
    if case.incident(|kind| matches!(kind, Kind::Shutdown)).is_some() {
        return Finding::RuledOut("the machine was shut down in good order".into());
    }
    let summary = "the record stops in the middle, and nobody shut the machine down";
    let mut found = Found::new(case, 0.6, summary.into(), "");
    if let Some(last) = case.last() {
        let free = last.memory.available.value();
        let heat = last.heat.hottest.value().map(|heat| format!("{} °C", heat / 1000));
        let free = free.map(|free| format!("{} free", units::bytes(free)));
        let seen: Vec<String> = [free, heat].into_iter().flatten().collect();
        if !seen.is_empty() {
            found = found.and(case, format!("at the last look: {}", seen.join(", ")), "");
        }
    }
    Finding::Found(found.remedy(
        "look at power and heat; have the journal survive a reboot, so that the kernel's last words are kept",
        Some("sudo mkdir -p /var/log/journal".into()),
    ))
}
