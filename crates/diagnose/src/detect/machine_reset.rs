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
//! show narrows it: a card that drew nearly all that it may, with no heat, no want of memory and no word from the
//! kernel, speaks for power; the kernel's log of the boot before is asked for a panic, a machine check, a lost card.
//!
//! ## What to do
//!
//! If it comes back: limit the power of card and processor, check the power supply and its cables, watch the heat.
//! Have the kernel keep its last words:
//!
//! ```sh
//! sudo nvidia-smi -pl 350               # a card of 450 W: little slower, and far from its peaks
//! sudo mkdir -p /var/log/journal        # the journal survives a reboot
//! ```

use antifreeze_text::units;
use super::{Finding, Found, power_limit};
use crate::case::Case;
use crate::kernel::Kind;
use crate::verdict::EndKind;
use antifreeze_sense::gpu::throttle;

/// Of what a card may draw.
const NEARLY_ALL: f64 = 0.9;
/// From here on it may have been the heat.
const HOT: u64 = 85_000;
/// Of the machine's memory, still to be had.
const NOTABLE: f64 = 0.05;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if case.end != EndKind::MachineDied {
        return Finding::Nothing;
    }
    if case.incident(|kind| matches!(kind, Kind::Shutdown)).is_some() {
        return Finding::RuledOut("the machine was shut down in good order".into());
    }
    let stops = "the record stops in the middle, and nobody shut the machine down";
    let journal = "look at power and heat; have the journal survive a reboot, so that the kernel's last words are kept";
    let seen = seen(case).join(", ");
    let found = if let Some(confidence) = was_power(case) {
        let found = Found::new(case, confidence, format!("power, most likely: {seen}"), "cards.draw");
        found.and(case, stops.into(), "").remedy(
            "set a power limit and try again; check the power supply's rating and its cables",
            power_limit::lower(case),
        )
    } else {
        let found = Found::new(case, 0.6, stops.into(), "");
        match seen.is_empty() {
            true => found,
            false => found.and(case, format!("at the last look: {seen}"), ""),
        }
    };
    Finding::Found(found.remedy(journal, Some("sudo mkdir -p /var/log/journal".into())))
}

/// What the last look shows.
fn seen(case: &Case<'_>) -> Vec<String> {
    let Some(last) = case.last() else {
        return Vec::new();
    };
    let degrees = |heat: u64| format!("{} °C", heat / 1000);
    let draw = last.gpus.power_microwatts.value().and_then(|draw| power_limit::drawn(draw, last.gpus.power_limit_microwatts.value()));
    let draw = draw.map(|draw| match last.gpus.hottest_millidegrees.value() {
        Some(heat) => format!("the card drew {draw} at {}", degrees(heat)),
        None => format!("the card drew {draw}"),
    });
    let heat = last.thermal.hottest_millidegrees.value().map(|heat| match draw {
        Some(_) => format!("the machine at {}", degrees(heat)),
        None => degrees(heat),
    });
    let free = last.memory.available.value().map(|free| format!("{} free", units::bytes(free)));
    let silence = (case.knows_log() && is_silent(case)).then(|| "no word from the kernel".into());
    [draw, heat, free, silence].into_iter().flatten().collect()
}

/// How sure that is: a card at its limit, and nothing else that was wrong.
fn was_power(case: &Case<'_>) -> Option<f64> {
    let last = case.last()?;
    let (draw, limit) = (last.gpus.power_microwatts.value()?, last.gpus.power_limit_microwatts.value()?);
    let is_hot = last.gpus.hottest_millidegrees.value().is_some_and(|heat| heat >= HOT)
        || last.thermal.hottest_millidegrees.value().is_some_and(|heat| heat >= HOT)
        || last.gpus.throttle_bits.value().is_some_and(|bits| bits & throttle::HEAT != 0);
    let (total, available) = (last.memory.total.value()?, last.memory.available.value()?);
    let is_short = (available as f64) < total as f64 * NOTABLE;
    let is_it = draw as f64 >= limit as f64 * NEARLY_ALL && !is_hot && !is_short && is_silent(case);
    is_it.then(|| if case.knows_log() { 0.71 } else { 0.65 })
}

/// The kernel said nothing of what could have taken the machine down.
fn is_silent(case: &Case<'_>) -> bool {
    case.incident(|kind| !matches!(kind, Kind::PowerLimit { .. })).is_none()
}
