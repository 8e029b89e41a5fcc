//! # thermal-throttle
//!
//! The processor or the graphics card became too hot and was slowed down to protect itself.
//!
//! ## How it looks
//!
//! Fans at full speed, steps that take longer the longer it runs, a laptop that switches itself off.
//!
//! ## How it is told
//!
//! The kernel's count of slow-downs for heat rose during the run; the hottest sensor is told with it. Of a card of
//! NVIDIA its driver says that it is slowed for heat: for a tenth of the time or more, and half a minute at least, it
//! is felt. Ruled out where the count is known and did not rise.
//!
//! ## What to do
//!
//! Let air in, clean the fans, and leave a core free; a card that may draw less stays cooler, at little cost:
//!
//! ```sh
//! OMP_NUM_THREADS=2 antifreeze run -- python train.py
//! sudo nvidia-smi -pl 300
//! ```

use antifreeze_text::units;
use super::{Finding, Found, power_limit};
use crate::case::Case;
use crate::kernel::Kind;
use crate::verdict::EndKind;
use antifreeze_sense::gpu::throttle;
use std::time::Duration;

/// Slow-downs in a minute that are felt.
const FELT: f64 = 1.0;
/// Of a card: the share of the time, and for how long at least.
const FELT_SHARE: f64 = 0.1;
const FELT_TIME: Duration = Duration::from_secs(30);
const REMEDY: &str = "let air in and leave a core free; fewer threads make less heat";

pub(super) fn look(case: &Case<'_>) -> Finding {
    let is_off = matches!(case.end, EndKind::MachineDied | EndKind::Unknown | EndKind::Killed);
    let overheated = case.incident(|kind| matches!(kind, Kind::Overheated));
    if let Some(incident) = overheated.filter(|_| is_off) {
        let found = Found::said(case, 0.95, incident);
        return Finding::Found(found.remedy(REMEDY, None));
    }
    if let Some(found) = card(case) {
        return Finding::Found(found);
    }
    let (Some(first), Some(last)) = (case.first(), case.last()) else {
        return Finding::Nothing;
    };
    let Some((before, after)) = first.thermal.throttle_count.value().zip(last.thermal.throttle_count.value()) else {
        return Finding::Nothing;
    };
    let heat = last.thermal.hottest_millidegrees.value();
    let heat = heat.map_or_else(String::new, |heat| format!("{} °C, ", heat / 1000));
    let times = after.saturating_sub(before);
    if times == 0 {
        return match case.end {
            EndKind::MachineDied => Finding::RuledOut(format!("{heat}no core was slowed")),
            _ => Finding::Nothing,
        };
    }
    let minutes = case.story.duration().as_secs_f64() / 60.0;
    if (times as f64) < FELT * minutes && case.end != EndKind::MachineDied {
        return Finding::Nothing;
    }
    let summary = format!("{heat}cores were slowed for heat {}", units::count(times, "time"));
    Finding::Found(
        Found::new(case, 0.6, summary, "heat.throttled").remedy(
            REMEDY,
            Some(format!("OMP_NUM_THREADS=2 antifreeze run -- {}", case.facts.command_line())),
        ),
    )
}

/// A card that was slowed for heat long enough to be felt, or when the machine died.
fn card(case: &Case<'_>) -> Option<Found> {
    let cards = &case.story.cards;
    let share = cards.slowed_for_heat()?;
    let is_felt = share >= FELT_SHARE && case.story.duration().mul_f64(share.min(1.0)) >= FELT_TIME;
    let (_, last) = cards.last?;
    let was_hot = last.throttle_bits.value().is_some_and(|bits| bits & throttle::HEAT != 0);
    let died_hot = was_hot && case.end == EndKind::MachineDied;
    if !is_felt && !died_hot {
        return None;
    }
    let heat = cards.hottest.map_or_else(String::new, |heat| format!(", {} °C at most", heat / 1000));
    let time = units::percent(share);
    let summary = format!("the graphics card was slowed for heat for {time} of the time{heat}");
    Some(Found::new(case, 0.65, summary, "cards.throttle").remedy(
        "let air in and clean the fans; a card that may draw less stays cooler, at little cost",
        power_limit::lower(case),
    ))
}
