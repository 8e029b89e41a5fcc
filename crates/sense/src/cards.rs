//! What can be said of graphics cards without asking them: how readings grow old, and which of two kinds in one
//! machine counts.

use crate::{Cards, Reading, Reason};

/// Why a card is slowed, as NVIDIA's library numbers it.
pub mod throttle {
    /// Something is too hot or draws too much, and the clock was halved or more.
    pub const HARDWARE: u64 = 0x8;
    /// The driver, and the card itself, for heat.
    pub const SOFTWARE_HEAT: u64 = 0x20;
    pub const HARDWARE_HEAT: u64 = 0x40;
    pub const HEAT: u64 = SOFTWARE_HEAT | HARDWARE_HEAT;
    /// The power supply asked for it.
    pub const POWER_BRAKE: u64 = 0x80;
}

/// In thousandths of all its memory; None of a card that has none of its own.
pub fn fullness(used: u64, total: u64) -> Option<u64> {
    used.min(total).saturating_mul(1000).checked_div(total)
}

impl Cards {
    /// No value at all, for one reason.
    pub fn unavailable(reason: Reason) -> Cards {
        let none = Reading::Unavailable(reason);
        Cards {
            used: none,
            total: none,
            busy: none,
            hottest: none,
            draw: none,
            limit: none,
            throttle: none,
            fullest: none,
            count: none,
            lost: none,
        }
    }

    /// The same, long after they were read: what they have is still so, what they do is not known. What could
    /// not be read then has its reason already.
    pub fn stale(self) -> Cards {
        let stale = |reading| match reading {
            Reading::Value(_) | Reading::Unavailable(Reason::NotYet) => {
                Reading::Unavailable(Reason::Stale)
            }
            other => other,
        };
        Cards {
            used: stale(self.used),
            busy: stale(self.busy),
            hottest: stale(self.hottest),
            draw: stale(self.draw),
            throttle: stale(self.throttle),
            fullest: stale(self.fullest),
            ..self
        }
    }

    /// Of two kinds of cards in one machine the one that trains: it has more memory, the other shows pictures. A
    /// sum of both would never be full. That one of the others is lost is told all the same.
    pub fn or_larger(self, others: Cards) -> Cards {
        let larger = match (self.total, others.total) {
            (Reading::Value(ours), Reading::Value(theirs)) if ours > theirs => self,
            (Reading::Value(_), Reading::Unavailable(Reason::NotYet)) => others,
            (Reading::Value(_), Reading::Unavailable(_)) => self,
            _ => others,
        };
        let lost = match (self.lost, others.lost) {
            (Reading::Value(ours), Reading::Value(theirs)) => Reading::Value(ours.max(theirs)),
            (Reading::Unavailable(_), told) | (told, _) => told,
        };
        Cards { lost, ..larger }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reading::{Unavailable, Value};

    fn cards(total: u64) -> Cards {
        Cards {
            used: Value(total / 2),
            total: Value(total),
            throttle: Value(0),
            ..Cards::unavailable(Reason::Absent)
        }
    }

    #[test]
    fn what_they_do_grows_old_and_what_they_have_does_not() {
        let old = Cards {
            busy: Unavailable(Reason::NotYet),
            ..cards(8000)
        }
        .stale();
        assert_eq!(old.total, Value(8000));
        for gone in [old.used, old.throttle, old.busy] {
            assert_eq!(gone, Unavailable(Reason::Stale));
        }
        assert_eq!(old.hottest, Unavailable(Reason::Absent));
    }

    #[test]
    fn the_kind_with_more_memory_counts() {
        let (small, large) = (cards(500), cards(8000));
        assert_eq!(small.or_larger(large), large);
        assert_eq!(large.or_larger(small), large);
        assert_eq!(large.stale().or_larger(small).used, large.stale().used);
    }

    #[test]
    fn one_that_has_not_answered_yet_is_waited_for_and_one_that_cannot_is_not() {
        let small = cards(500);
        assert_eq!(
            small.or_larger(Cards::default()).used,
            Unavailable(Reason::NotYet)
        );
        assert_eq!(small.or_larger(Cards::unavailable(Reason::Absent)), small);
        // Memory that is the machine's: the rest of it is known.
        let unified = Cards {
            busy: Value(97),
            ..Cards::unavailable(Reason::Absent)
        };
        assert_eq!(
            Cards::unavailable(Reason::Absent).or_larger(unified).busy,
            Value(97)
        );
    }

    #[test]
    fn a_lost_card_is_told_beside_another_that_is_there() {
        let lost = Cards {
            lost: Value(1),
            ..Cards::unavailable(Reason::Gone)
        };
        let told = cards(500).or_larger(lost);
        assert_eq!((told.used, told.lost), (Value(250), Value(1)));
    }

    #[test]
    fn fullness_is_known_of_those_with_memory_of_their_own() {
        assert_eq!(fullness(6000, 8000), Some(750));
        assert_eq!(fullness(9000, 8000), Some(1000));
        assert_eq!(fullness(0, 0), None);
    }
}
