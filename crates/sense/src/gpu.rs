//! Rules for the readings of GPUs, whichever driver they come from: which of them become stale, and which vendor's GPUs
//! are recorded in a machine that has two.

use crate::{Gpus, Reading, Reason};

/// Why a GPU is slowed: the bits of NVIDIA's library (NVML).
pub mod throttle {
    /// The hardware halved the clock or more, because of heat or power.
    pub const HARDWARE: u64 = 0x8;
    /// The driver slowed it because of heat.
    pub const SOFTWARE_HEAT: u64 = 0x20;
    /// The hardware slowed it because of heat.
    pub const HARDWARE_HEAT: u64 = 0x40;
    /// It was slowed because of heat, by either.
    pub const HEAT: u64 = SOFTWARE_HEAT | HARDWARE_HEAT;
    /// The power supply demanded it.
    pub const POWER_BRAKE: u64 = 0x80;
}

/// Used memory in thousandths of the total; `None` for a GPU without memory of its own.
pub fn memory_permille(used: u64, total: u64) -> Option<u64> {
    used.min(total).saturating_mul(1000).checked_div(total)
}

impl Gpus {
    /// All values missing, for this reason.
    pub fn unavailable(reason: Reason) -> Gpus {
        let none = Reading::Unavailable(reason);
        Gpus {
            memory_used: none,
            memory_total: none,
            busy_percent: none,
            hottest_millidegrees: none,
            power_microwatts: none,
            power_limit_microwatts: none,
            throttle_bits: none,
            fullest_permille: none,
            count: none,
            lost: none,
        }
    }

    /// The same readings when they are old: what the GPUs have is still true, and what they do is no longer known. A
    /// value that could not be read keeps its reason.
    pub fn into_stale(self) -> Gpus {
        let stale = |reading| match reading {
            Reading::Value(_) | Reading::Unavailable(Reason::NotYet) => {
                Reading::Unavailable(Reason::Stale)
            }
            other => other,
        };
        Gpus {
            memory_used: stale(self.memory_used),
            busy_percent: stale(self.busy_percent),
            hottest_millidegrees: stale(self.hottest_millidegrees),
            power_microwatts: stale(self.power_microwatts),
            throttle_bits: stale(self.throttle_bits),
            fullest_permille: stale(self.fullest_permille),
            ..self
        }
    }

    /// Chooses between the GPUs of two vendors in one machine: those with more memory train, the others drive the
    /// screen. Both are not added up, because the sum would never be full. A lost GPU counts whichever vendor it is of.
    pub fn or_larger(self, others: Gpus) -> Gpus {
        let larger = match (self.memory_total, others.memory_total) {
            (Reading::Value(ours), Reading::Value(theirs)) if ours > theirs => self,
            (Reading::Value(_), Reading::Unavailable(Reason::NotYet)) => others,
            (Reading::Value(_), Reading::Unavailable(_)) => self,
            _ => others,
        };
        let lost = match (self.lost, others.lost) {
            (Reading::Value(ours), Reading::Value(theirs)) => Reading::Value(ours.max(theirs)),
            (Reading::Unavailable(_), told) | (told, _) => told,
        };
        Gpus { lost, ..larger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Unavailable, Value};

    fn cards(total: u64) -> Gpus {
        Gpus {
            memory_used: Value(total / 2),
            memory_total: Value(total),
            throttle_bits: Value(0),
            ..Gpus::unavailable(Reason::Absent)
        }
    }

    #[test]
    fn what_they_do_grows_old_and_what_they_have_does_not() {
        let old = Gpus {
            busy_percent: Unavailable(Reason::NotYet),
            ..cards(8000)
        }
        .into_stale();
        assert_eq!(old.memory_total, Value(8000));
        for gone in [old.memory_used, old.throttle_bits, old.busy_percent] {
            assert_eq!(gone, Unavailable(Reason::Stale));
        }
        assert_eq!(old.hottest_millidegrees, Unavailable(Reason::Absent));
    }

    #[test]
    fn the_kind_with_more_memory_counts() {
        let (small, large) = (cards(500), cards(8000));
        assert_eq!(small.or_larger(large), large);
        assert_eq!(large.or_larger(small), large);
        assert_eq!(
            large.into_stale().or_larger(small).memory_used,
            large.into_stale().memory_used
        );
    }

    #[test]
    fn one_that_has_not_answered_yet_is_waited_for_and_one_that_cannot_is_not() {
        let small = cards(500);
        assert_eq!(
            small.or_larger(Gpus::default()).memory_used,
            Unavailable(Reason::NotYet)
        );
        assert_eq!(small.or_larger(Gpus::unavailable(Reason::Absent)), small);
        // Memory that is the machine's: the rest of it is known.
        let unified = Gpus {
            busy_percent: Value(97),
            ..Gpus::unavailable(Reason::Absent)
        };
        assert_eq!(
            Gpus::unavailable(Reason::Absent)
                .or_larger(unified)
                .busy_percent,
            Value(97)
        );
    }

    #[test]
    fn a_lost_card_is_told_beside_another_that_is_there() {
        let lost = Gpus {
            lost: Value(1),
            ..Gpus::unavailable(Reason::Gone)
        };
        let told = cards(500).or_larger(lost);
        assert_eq!((told.memory_used, told.lost), (Value(250), Value(1)));
    }

    #[test]
    fn fullness_is_known_of_those_with_memory_of_their_own() {
        assert_eq!(memory_permille(6000, 8000), Some(750));
        assert_eq!(memory_permille(9000, 8000), Some(1000));
        assert_eq!(memory_permille(0, 0), None);
    }
}
