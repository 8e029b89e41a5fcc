//! Reduces a sample to what decisions need.
//!
//! This is pure, so a recorded sample gives the policy the same input as it gave the guard that took it.

use crate::policy::{Bound, Motion, PolicyInput};
use crate::room::{MemoryBounds, Room};
use antifreeze_sense::{Reading, Sample};

/// Reduces a sample to the input of the policy. `room` is the room of the same sample, `now` the time at which reading
/// it began; a sample alone holds neither stride nor motion.
pub fn from_sample(
    sample: &Sample,
    room: &Room,
    bounds: &MemoryBounds,
    now: u64,
    stride: u64,
    motion: Motion,
) -> PolicyInput {
    let footprint = sample.tree.footprint.value().unwrap_or(0);
    let whole = match room.bound {
        Bound::Cgroup => room.total,
        Bound::Machine | Bound::Budget => sample.memory.total.value().unwrap_or(0),
    };
    let scanned = [sample.paging.scanned_direct, sample.paging.scanned_kswapd]
        .into_iter()
        .filter_map(Reading::value)
        .reduce(|a, b| a + b);
    PolicyInput {
        at: now,
        room: room.bytes,
        kept_back: room.kept_back,
        bound: room.bound,
        total: room.total,
        available: room.available,
        reserve: bounds.reserve,
        footprint,
        others: whole
            .saturating_sub(room.available)
            .saturating_sub(footprint),
        stride,
        swapped_in: sample.paging.swapped_in.value(),
        swapped_out: sample.paging.swapped_out.value(),
        swap_free: sample.memory.swap_free.value(),
        swap_cached: sample.memory.swap_cached.value().unwrap_or(0),
        scanned,
        stalled_us: sample.pressure.memory_full_us.value(),
        shm_free: sample.shm.free.value(),
        disk_free: sample.disk.space.free.value(),
        swap_beyond: sample
            .tree
            .swap
            .value()
            .unwrap_or(0)
            .saturating_sub(bounds.allow_swap),
        steps: sample
            .tree
            .steps
            .value()
            .map(|steps| u32::try_from(steps).unwrap_or(u32::MAX)),
        motion,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    fn sample() -> Sample {
        let mut sample = Sample::default();
        sample.memory.total = Reading::Value(16_000 * MB);
        sample.memory.available = Reading::Value(9_000 * MB);
        sample.tree.footprint = Reading::Value(4_000 * MB);
        sample
    }

    fn input(sample: &Sample, bounds: &MemoryBounds) -> PolicyInput {
        from_sample(sample, &bounds.room(sample), bounds, 7, 0, Motion::Running)
    }

    #[test]
    fn what_the_tree_does_not_hold_the_others_do() {
        assert_eq!(
            input(&sample(), &MemoryBounds::default()).others,
            3_000 * MB
        );

        let mut contained = sample();
        contained.cgroup.limit = Reading::Value(8_000 * MB);
        contained.cgroup.limit_available = Reading::Value(3_500 * MB);
        let inside = input(&contained, &MemoryBounds::default());
        assert_eq!(
            (inside.bound, inside.others),
            (Bound::Cgroup, 500 * MB),
            "others in the same cgroup"
        );
    }

    #[test]
    fn only_swap_that_was_not_allowed_is_beyond() {
        let mut sample = sample();
        sample.tree.swap = Reading::Value(500 * MB);
        let bounds = MemoryBounds {
            allow_swap: 300 * MB,
            ..MemoryBounds::default()
        };
        assert_eq!(input(&sample, &bounds).swap_beyond, 200 * MB);
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_unknown_and_not_zero() {
        let untold = input(&sample(), &MemoryBounds::default());
        assert_eq!((untold.scanned, untold.swap_free), (None, None));

        let mut half_told = sample();
        half_told.paging.scanned_kswapd = Reading::Value(12);
        assert_eq!(
            input(&half_told, &MemoryBounds::default()).scanned,
            Some(12)
        );
    }
}
