//! # thermal-throttle
//!
//! The processor became too hot and was slowed down to protect itself.
//!
//! ## How it looks
//!
//! Fans at full speed, steps that take longer the longer it runs, a laptop that switches itself off.
//!
//! ## How it is told
//!
//! The kernel's count of slow-downs for heat rose during the run; the hottest sensor is told with it. Ruled out
//! where the count is known and did not rise.
//!
//! ## What to do
//!
//! Let air in, clean the fans, and leave a core free:
//!
//! ```sh
//! OMP_NUM_THREADS=2 antifreeze run -- python train.py
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::Kind;
use crate::units;
use crate::verdict::EndKind;

/// Slow-downs in a minute that are felt.
const FELT: f64 = 1.0;
const REMEDY: &str = "let air in and leave a core free; fewer threads make less heat";

pub(super) fn look(case: &Case<'_>) -> Finding {
    if let Some(incident) = case.incident(|kind| matches!(kind, Kind::Overheated)) {
        let found = Found::said(case, 0.95, incident);
        return Finding::Found(found.remedy(REMEDY, None));
    }
    let (Some(first), Some(last)) = (case.first(), case.last()) else {
        return Finding::Nothing;
    };
    let Some((before, after)) = first.heat.throttled.value().zip(last.heat.throttled.value()) else {
        return Finding::Nothing;
    };
    let heat = last.heat.hottest.value();
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
