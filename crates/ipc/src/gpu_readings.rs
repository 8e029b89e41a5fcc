//! Exchanges GPU readings that need a vendor library. The guard is static and locked in memory and loads no library, so
//! a separate process, the probe, reads them and stores them in the state of the run. A hanging driver blocks only the
//! probe, and its readings become stale.

use crate::shared::Shared;
use crate::state::{GPU_READINGS, Probed};
use antifreeze_sense::{Gpus, Reading, Reason};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Readings older than this are not trusted.
const STALE_AFTER_NS: u64 = 30_000_000_000;
/// The time of readings that never change, such as a missing library.
pub const FOR_EVER: u64 = u64::MAX;

const NOT_YET: u64 = 0;
const VALUE: u64 = 1;
const REASON: u64 = 2;

/// Announces a probe, which may never answer.
pub fn expect(shared: Shared, now: u64) {
    shared.head().cards.at.store(now, Release);
}

/// Stores a reading of all GPUs, for the guard.
pub fn publish(shared: Shared, mut cards: Gpus, at: u64) {
    let place = &shared.head().cards;
    for (slot, reading) in place.readings.iter().zip(each(&mut cards)) {
        match *reading {
            Reading::Value(value) => {
                slot.value.store(value, Relaxed);
                slot.state.store(VALUE, Release);
            }
            Reading::Unavailable(Reason::NotYet) => slot.state.store(NOT_YET, Release),
            Reading::Unavailable(reason) => slot.state.store(REASON + reason as u64, Release),
        }
    }
    place.at.store(at, Release);
}

/// The last reading of the probe; None without a probe.
pub fn read(shared: Shared, now: u64) -> Option<Gpus> {
    let place: &Probed = &shared.head().cards;
    let at = place.at.load(Acquire);
    if at == 0 {
        return None;
    }
    let mut cards = Gpus::default();
    for (slot, reading) in place.readings.iter().zip(each(&mut cards)) {
        *reading = match slot.state.load(Acquire) {
            NOT_YET => Reading::Unavailable(Reason::NotYet),
            VALUE => Reading::Value(slot.value.load(Relaxed)),
            other => Reading::Unavailable(Reason::from_code(
                u8::try_from(other - REASON).unwrap_or(u8::MAX),
            )),
        };
    }
    Some(if now.saturating_sub(at) > STALE_AFTER_NS {
        cards.into_stale()
    } else {
        cards
    })
}

/// All readings in their order. Destructured without `..`, so that none is forgotten.
fn each(cards: &mut Gpus) -> [&mut Reading<u64>; GPU_READINGS] {
    let Gpus {
        memory_used,
        memory_total,
        busy_percent,
        hottest_millidegrees,
        power_microwatts,
        power_limit_microwatts,
        throttle_bits,
        fullest_permille,
        count,
        lost,
    } = cards;
    [
        memory_used,
        memory_total,
        busy_percent,
        hottest_millidegrees,
        power_microwatts,
        power_limit_microwatts,
        throttle_bits,
        fullest_permille,
        count,
        lost,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Unavailable, Value};

    const SECOND: u64 = 1_000_000_000;

    fn gpus() -> Gpus {
        Gpus {
            memory_used: Value(6000),
            memory_total: Value(8000),
            busy_percent: Value(0),
            lost: Value(0),
            ..Gpus::unavailable(Reason::Absent)
        }
    }

    #[test]
    fn what_the_probe_saw_is_what_the_guard_reads_and_nothing_is_not_zero() {
        let (shared, _) = Shared::create().unwrap();
        assert_eq!(read(shared, SECOND), None);
        expect(shared, SECOND);
        assert_eq!(read(shared, SECOND), Some(Gpus::default()));
        publish(shared, gpus(), 3 * SECOND);
        assert_eq!(read(shared, 4 * SECOND), Some(gpus()));
        // A value that was there and is no more.
        publish(shared, Gpus::unavailable(Reason::Gone), 5 * SECOND);
        assert_eq!(
            read(shared, 5 * SECOND),
            Some(Gpus::unavailable(Reason::Gone))
        );
    }

    #[test]
    fn a_probe_that_is_silent_is_told_as_a_sensor_that_does_not_answer() {
        let (shared, _) = Shared::create().unwrap();
        expect(shared, SECOND);
        let never = read(shared, 40 * SECOND).unwrap();
        assert_eq!(never.memory_used, Unavailable(Reason::Stale));
        publish(shared, gpus(), 40 * SECOND);
        let long_ago = read(shared, 90 * SECOND).unwrap();
        assert_eq!(long_ago.busy_percent, Unavailable(Reason::Stale));
        assert_eq!(long_ago.memory_total, Value(8000));
    }

    #[test]
    fn a_word_for_ever_never_grows_old() {
        let (shared, _) = Shared::create().unwrap();
        publish(shared, Gpus::unavailable(Reason::Absent), FOR_EVER);
        let cards = read(shared, 9000 * SECOND).unwrap();
        assert_eq!(cards.memory_used, Unavailable(Reason::Absent));
    }

    #[test]
    fn what_a_trainer_scribbles_there_is_read_as_some_reason() {
        let (shared, _) = Shared::create().unwrap();
        publish(shared, gpus(), SECOND);
        shared.head().cards.readings[0]
            .state
            .store(u64::MAX, Release);
        let cards = read(shared, SECOND).unwrap();
        assert_eq!(cards.memory_used, Unavailable(Reason::NotRecorded));
    }
}
