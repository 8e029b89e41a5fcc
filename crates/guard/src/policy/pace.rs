//! When to look again: often enough to see the room go before it is gone.

use super::assessment::Assessment;
use super::history::PolicyInput;
use antifreeze_record::event::Rung;
use core::time::Duration;

pub(super) const FASTEST: Duration = Duration::from_millis(75);
const SLOWEST: Duration = Duration::from_secs(2);
/// The slowest once something is the matter.
const ALERT: Duration = Duration::from_millis(100);
/// Bytes a second that any program can fill, even one that has been quiet so far.
const POSSIBLE_FILL: f64 = 1e9;
/// Looks wanted before the room could be full.
const SAMPLES_BEFORE_FULL: f64 = 4.0;
/// The past in which a faster fill counts, nanoseconds.
const RECENT_NS: u64 = 5_000_000_000;

pub(super) fn for_rung(assessment: &Assessment, rung: Rung) -> Duration {
    let room = assessment.room().max(0.0);
    let wait = room / fill_rate(assessment) / SAMPLES_BEFORE_FULL;
    let slowest = if rung >= Rung::Warn || room < assessment.total() / 10.0 {
        ALERT
    } else {
        SLOWEST
    };
    Duration::try_from_secs_f64(wait)
        .unwrap_or(SLOWEST)
        .clamp(FASTEST, slowest)
}

/// The fastest fall of the room between two looks lately, at least what is possible.
fn fill_rate(assessment: &Assessment) -> f64 {
    let newer = assessment.history.recent(RECENT_NS);
    let older = newer.clone().skip(1);
    newer
        .zip(older)
        .map(|(newer, older)| fall(newer, older))
        .fold(POSSIBLE_FILL, f64::max)
}

/// Bytes a second; looks closer than a millisecond are taken as a millisecond apart.
fn fall(newer: &PolicyInput, older: &PolicyInput) -> f64 {
    let time = newer.at.saturating_sub(older.at).max(1_000_000) as f64 / 1e9;
    (i128::from(older.room) - i128::from(newer.room)) as f64 / time
}
