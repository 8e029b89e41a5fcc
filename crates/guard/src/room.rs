//! Computes how much room the tree has left: pure arithmetic from a sample to the tightest bound.

use crate::policy::Bound;
use antifreeze_sense::{Reading, Sample};

const MB: u64 = 1_000_000;

/// The memory that this run may use, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBounds {
    pub reserve: u64,
    pub budget: Option<u64>,
    pub allow_swap: u64,
}

/// The tightest bound on the tree, and the room within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    pub bytes: i64,
    /// What the cushion may hand out between the wall and the bound. For the machine it comes out of the reserve,
    /// beyond the bound.
    pub kept_back: u64,
    pub bound: Bound,
    /// The size of the bound: the machine, the cgroup's limit, or the budget.
    pub total: u64,
    /// What the machine, or a tighter cgroup above us, has available.
    pub available: u64,
}

impl MemoryBounds {
    /// What the cushion may hand out beyond the wall: the landing strip, then the reserve for small requests. Both come
    /// out of memory that was kept back.
    pub fn cushion(&self) -> (u64, u64) {
        let kept = match self.budget {
            Some(budget) => budget / 8,
            None => self.reserve / 2,
        };
        let whole = kept.min(96 * MB);
        (whole / 3, whole - whole / 3)
    }

    pub fn room(&self, sample: &Sample) -> Room {
        let machine = Room {
            bytes: self.left(value(sample.memory.available), sample),
            kept_back: 0,
            bound: Bound::Machine,
            total: value(sample.memory.total),
            available: value(sample.memory.available),
        };
        let cgroup = match (sample.cgroup.limit, sample.cgroup.limit_available) {
            (Reading::Value(limit), Reading::Value(available)) => Some(Room {
                bytes: self.left(available, sample),
                kept_back: 0,
                bound: Bound::Cgroup,
                total: limit,
                available,
            }),
            _ => None,
        };
        let outer = cgroup
            .filter(|cgroup| cgroup.bytes < machine.bytes)
            .unwrap_or(machine);
        let (strip, small) = self.cushion();
        let budget = self.budget.map(|budget| Room {
            bytes: signed(budget) - signed(value(sample.tree.footprint)) - signed(strip + small),
            kept_back: strip + small,
            bound: Bound::Budget,
            total: budget,
            available: outer.available,
        });
        budget
            .filter(|budget| budget.bytes < outer.bytes)
            .unwrap_or(outer)
    }

    fn left(&self, available: u64, sample: &Sample) -> i64 {
        let swap = self
            .allow_swap
            .saturating_sub(value(sample.tree.swap))
            .min(value(sample.memory.swap_free));
        signed(available) - signed(self.reserve) + signed(swap)
    }

    /// Lets a run begin on a machine that is short of memory already: the reserve is at most half of what is available.
    pub fn fit(&mut self, sample: &Sample) {
        let available = [sample.memory.available, sample.cgroup.limit_available]
            .into_iter()
            .filter_map(Reading::value)
            .min();
        if let Some(available) = available {
            self.reserve = self.reserve.min(available / 2);
        }
    }
}

fn value(reading: Reading<u64>) -> u64 {
    reading.value().unwrap_or(0)
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(available: u64) -> Sample {
        let mut sample = Sample::default();
        sample.memory.total = Reading::Value(16_000 * MB);
        sample.memory.available = Reading::Value(available * MB);
        sample
    }

    #[test]
    fn the_machine_bounds_unless_something_is_tighter() {
        let bounds = MemoryBounds {
            reserve: 1_600 * MB,
            ..MemoryBounds::default()
        };
        let room = bounds.room(&sample(10_000));
        assert_eq!(
            (room.bytes, room.bound),
            (8_400 * MB as i64, Bound::Machine)
        );

        let mut contained = sample(10_000);
        contained.cgroup.limit = Reading::Value(8_000 * MB);
        contained.cgroup.limit_available = Reading::Value(5_000 * MB);
        let room = bounds.room(&contained);
        assert_eq!((room.bytes, room.bound), (3_400 * MB as i64, Bound::Cgroup));
        assert_eq!(room.total, 8_000 * MB);
    }

    #[test]
    fn a_budget_counts_the_tree_and_keeps_its_cushion_inside() {
        let bounds = MemoryBounds {
            reserve: 0,
            budget: Some(800 * MB),
            allow_swap: 0,
        };
        let mut sample = sample(10_000);
        sample.tree.footprint = Reading::Value(300 * MB);
        let room = bounds.room(&sample);
        assert_eq!((room.bytes, room.bound), (404 * MB as i64, Bound::Budget));
        sample.tree.footprint = Reading::Value(900 * MB);
        assert!(bounds.room(&sample).bytes < 0);
    }

    #[test]
    fn swap_is_room_only_where_it_was_allowed_and_is_free() {
        let mut sample = sample(2_000);
        sample.memory.swap_free = Reading::Value(500 * MB);
        sample.tree.swap = Reading::Value(100 * MB);
        let none = MemoryBounds {
            reserve: 1_000 * MB,
            ..MemoryBounds::default()
        };
        assert_eq!(none.room(&sample).bytes, 1_000 * MB as i64);
        let some = MemoryBounds {
            allow_swap: 300 * MB,
            ..none
        };
        assert_eq!(some.room(&sample).bytes, 1_200 * MB as i64);
        let more_than_there_is = MemoryBounds {
            allow_swap: 9_000 * MB,
            ..none
        };
        assert_eq!(more_than_there_is.room(&sample).bytes, 1_500 * MB as i64);
    }

    #[test]
    fn a_machine_that_is_short_already_lets_the_run_begin() {
        let mut bounds = MemoryBounds {
            reserve: 1_600 * MB,
            ..MemoryBounds::default()
        };
        bounds.fit(&sample(1_000));
        assert_eq!(bounds.reserve, 500 * MB);
        assert!(bounds.room(&sample(1_000)).bytes > 0);
    }
}
