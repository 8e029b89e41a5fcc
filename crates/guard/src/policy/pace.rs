//! Computes the time until the next sample: short enough to see the room shrink before it is gone.

use super::assessment::Assessment;
use super::history::PolicyInput;
use antifreeze_record::event::Rung;
use core::time::Duration;

pub(super) const FASTEST: Duration = Duration::from_millis(75);
const SLOWEST: Duration = Duration::from_secs(2);
/// The longest interval once a warning is due.
const ALERT: Duration = Duration::from_millis(100);
/// Bytes a second that any program can fill, even one that has been idle.
const POSSIBLE_FILL: f64 = 1e9;
/// Samples to take before the room could be full.
const SAMPLES_BEFORE_FULL: f64 = 4.0;
/// How far back a faster fill counts.
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

/// The fastest fall of the room between two recent samples, and at least what any program can fill.
fn fill_rate(assessment: &Assessment) -> f64 {
    let newer = assessment.history.recent(RECENT_NS);
    let older = newer.clone().skip(1);
    newer
        .zip(older)
        .map(|(newer, older)| fall(newer, older))
        .fold(POSSIBLE_FILL, f64::max)
}

/// Bytes a second; samples closer than a millisecond count as a millisecond apart.
fn fall(newer: &PolicyInput, older: &PolicyInput) -> f64 {
    let time = newer.at.saturating_sub(older.at).max(1_000_000) as f64 / 1e9;
    (i128::from(older.room) - i128::from(newer.room)) as f64 / time
}
