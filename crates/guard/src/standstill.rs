//! Notices that a training makes no more steps, and says when to ask where it is: three times in a row, so that
//! whoever reads it can tell one that waits from one that goes on.

/// Nanoseconds without a step that no training takes for nothing.
const LONG: u64 = 60_000_000_000;
/// And times the longest time that it had taken until then.
const TIMES: u64 = 10;
/// Between two times of asking.
const PACE: u64 = 3_000_000_000;
/// In a row.
const OFTEN: u32 = 3;
/// Before it is asked again, and how often in all.
const AGAIN: u64 = 300_000_000_000;
const ROUNDS: u32 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub struct Standstill {
    steps: u64,
    stepped_at: u64,
    longest: u64,
    asked_at: u64,
    /// How often since the last step.
    asked: u32,
}

impl Standstill {
    /// Whether it is time to ask, with so many steps made.
    pub fn asks(&mut self, now: u64, steps: u64) -> bool {
        if steps != self.steps {
            if self.steps > 0 {
                let took = now.saturating_sub(self.stepped_at);
                self.longest = self.longest.max(took);
            }
            *self = Standstill {
                steps,
                stepped_at: now,
                asked: 0,
                ..*self
            };
            return false;
        }
        let since = now.saturating_sub(self.stepped_at);
        let stands = steps > 0 && since >= LONG && since > self.longest.saturating_mul(TIMES);
        let round_begins = self.asked.is_multiple_of(OFTEN);
        let pause = match (self.asked, round_begins) {
            (0, _) => 0,
            (_, true) => AGAIN,
            (_, false) => PACE,
        };
        let is_time = now.saturating_sub(self.asked_at) >= pause;
        if !stands || !is_time || self.asked >= OFTEN * ROUNDS {
            return false;
        }
        self.asked_at = now;
        self.asked += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The seconds at which it asks, if steps come as told.
    fn asked(seconds: u64, steps: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut standstill = Standstill::default();
        (0..seconds)
            .filter(|second| standstill.asks(1000 * SECOND + second * SECOND, steps(*second)))
            .collect()
    }

    #[test]
    fn one_that_stands_still_is_asked_three_times_and_again_later() {
        assert_eq!(asked(200, |second| second.min(30) + 1), [90, 93, 96]);
        let long = asked(5000, |second| second.min(30) + 1);
        assert_eq!(long.len(), 12);
        assert!(long[3] >= 96 + 300, "{long:?}");
    }

    #[test]
    fn one_that_goes_on_or_has_not_begun_is_left_alone() {
        assert!(asked(500, |second| second).is_empty());
        assert!(asked(500, |_| 0).is_empty());
        // Each takes 20 seconds: two minutes are nothing.
        assert!(asked(600, |second| (second.min(400)) / 20 + 1).is_empty());
    }
}
