//! Converts the stamps of records to timestamps and durations.

use antifreeze_sense::Stamp;
use std::time::Duration;

/// None for a time that no calendar holds: a broken clock, a damaged record.
pub fn timestamp(at: Stamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_nanosecond(i128::from(at.realtime_ns)).ok()
}

/// From one stamp to a later one, on the clock that never jumps.
pub fn between(from: Stamp, to: Stamp) -> Duration {
    Duration::from_nanos(to.monotonic_ns.saturating_sub(from.monotonic_ns))
}
