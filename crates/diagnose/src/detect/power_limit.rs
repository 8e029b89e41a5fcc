//! # power-limit
//!
//! The processor or the card was slowed down because it drew as much power as it may.
//!
//! ## How it looks
//!
//! Slower than the same machine elsewhere; a laptop on its battery or a weak charger.
//!
//! ## How it is told
//!
//! By the kernel's notes of a power limit; of a card of NVIDIA, by its driver's word that the power supply made it
//! slow down (power brake), or that its hardware did so and not for heat, for a tenth of the time or more. That a
//! card is held at its own limit by its driver is normal at full load and is not called a cause.
//!
//! ## What to do
//!
//! Plug in the right charger, choose the performance profile; look at the cables of the card and at what the power
//! supply can give:
//!
//! ```sh
//! powerprofilesctl set performance
//! nvidia-smi -q -d PERFORMANCE,POWER
//! ```

use antifreeze_text::units;
use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::Kind;
use std::time::Duration;

/// Notes of it in a run that are more than a moment's.
const MANY: usize = 10;
/// Of a card: the share of the time, and for how long at least. A change of clocks may look like it for a moment.
const FELT_SHARE: f64 = 0.1;
const FELT_TIME: Duration = Duration::from_secs(30);

pub(super) fn look(case: &Case<'_>) -> Finding {
    if let Some(found) = card(case) {
        return Finding::Found(found);
    }
    let is_one = |kind: &Kind| matches!(kind, Kind::PowerLimit { .. });
    let times = case.incidents().filter(|incident| is_one(&incident.kind)).count();
    if times < MANY {
        return Finding::Nothing;
    }
    let summary = format!(
        "the kernel noted a power limit {}",
        units::count(times as u64, "time")
    );
    Finding::Found(
        Found::new(case, 0.5, summary, "kernel").remedy(
            "plug in the right charger, and choose the performance profile",
            Some("powerprofilesctl set performance".into()),
        ),
    )
}

/// A card that its power supply, or its own protection, slowed down.
fn card(case: &Case<'_>) -> Option<Found> {
    let cards = &case.story.cards;
    let felt = |share: &f64| *share >= FELT_SHARE && case.story.duration().mul_f64(share.min(1.0)) >= FELT_TIME;
    let (confidence, share, by) = match (cards.braked().filter(felt), cards.slowed().filter(felt)) {
        (Some(share), _) => (0.65, share, "because the power supply asked for it"),
        (None, Some(share)) => (0.5, share, "by its own hardware, and not for heat"),
        (None, None) => return None,
    };
    let time = units::percent(share);
    let summary = format!("the graphics card was slowed for {time} of the time, {by}");
    let mut found = Found::new(case, confidence, summary, "cards.throttle");
    if let Some(draw) = cards.last.and_then(|(_, last)| drawn(last.power_microwatts.value()?, last.power_limit_microwatts.value())) {
        found = found.and(case, format!("at the last look it drew {draw}"), "cards.draw");
    }
    Some(found.remedy(
        "look at the card's power cables and at what the power supply can give; see what the driver says:",
        Some("nvidia-smi -q -d PERFORMANCE,POWER".into()),
    ))
}

/// "447 of 450 W".
pub(super) fn drawn(draw: u64, limit: Option<u64>) -> Option<String> {
    const WATT: u64 = 1_000_000;
    (draw > 0).then(|| match limit {
        Some(limit) => format!("{} of {} W", draw / WATT, limit / WATT),
        None => format!("{} W", draw / WATT),
    })
}

/// The command that has each card draw a good fifth less than it may now: that costs little speed, and is the first
/// thing to try. Only NVIDIA's driver tells why a card is slowed, so it is theirs that is asked.
pub(super) fn lower(case: &Case<'_>) -> Option<String> {
    let (_, last) = case.story.cards.last?;
    last.throttle_bits.value()?;
    let each = last.power_limit_microwatts.value()? / last.count.value()?.max(1);
    let watts = each / 9 * 7 / 10_000_000 * 10;
    (watts > 0).then(|| format!("sudo nvidia-smi -pl {watts}"))
}
