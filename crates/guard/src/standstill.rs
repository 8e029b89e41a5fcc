//! Notices that a training makes no more steps, or that a run does nothing at all, and decides when to ask for its
//! stacks: three times in a row, so that a reader can tell a hang from slow progress.

/// Time without a step, or without work, below which nothing is suspected,
const MIN_STANDSTILL_NS: u64 = 60_000_000_000;
/// and the same as a multiple of the longest step so far.
const LONGEST_STEP_FACTOR: u64 = 10;
/// CPU time that does not count as work: one part in this many of the time that passes (0.5 % of a core), and this much
/// in all, two ticks of its clock.
const IDLE_PART: u64 = 200;
const MIN_WORK_NS: u64 = 20_000_000;
/// The length of a clock tick of CPU time.
const TICK_NS: u64 = 10_000_000;
/// The interval between two requests.
const ASK_INTERVAL_NS: u64 = 3_000_000_000;
/// Requests in a row.
const ASKS_PER_ROUND: u32 = 3;
/// The interval between two rounds, and how many there are.
const ROUND_INTERVAL_NS: u64 = 300_000_000_000;
const MAX_ROUNDS: u32 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub struct Standstill {
    steps: u64,
    stepped_at: u64,
    longest: u64,
    asked_at: u64,
    /// Requests since the last step.
    asked: u32,
    /// CPU time, in ticks, when it last worked.
    worked: u64,
    worked_at: u64,
}

impl Standstill {
    /// Whether stacks should be requested now, given the steps made and the CPU ticks used so far.
    pub fn should_ask(&mut self, now: u64, steps: u64, ticks: u64) -> bool {
        let idles = self.idles(now, ticks);
        if steps != self.steps {
            if self.steps > 0 {
                let took = now.saturating_sub(self.stepped_at);
                self.longest = self.longest.max(took);
            }
            self.steps = steps;
            self.stepped_at = now;
            self.asked = 0;
            return false;
        }
        let since = now.saturating_sub(self.stepped_at);
        let stands = match steps {
            0 => idles,
            _ => {
                since >= MIN_STANDSTILL_NS
                    && since > self.longest.saturating_mul(LONGEST_STEP_FACTOR)
            }
        };
        let round_begins = self.asked.is_multiple_of(ASKS_PER_ROUND);
        let pause = match (self.asked, round_begins) {
            (0, _) => 0,
            (_, true) => ROUND_INTERVAL_NS,
            (_, false) => ASK_INTERVAL_NS,
        };
        if steps == 0 && !idles {
            self.asked = 0;
        }
        let is_time = now.saturating_sub(self.asked_at) >= pause;
        if !stands || !is_time || self.asked >= ASKS_PER_ROUND * MAX_ROUNDS {
            return false;
        }
        self.asked_at = now;
        self.asked += 1;
        true
    }

    /// Whether no process has worked for long.
    fn idles(&mut self, now: u64, ticks: u64) -> bool {
        let since = now.saturating_sub(self.worked_at);
        let worked = ticks.abs_diff(self.worked).saturating_mul(TICK_NS);
        if self.worked_at == 0 || worked > MIN_WORK_NS.max(since / IDLE_PART) {
            self.worked = ticks;
            self.worked_at = now;
        }
        now.saturating_sub(self.worked_at) >= MIN_STANDSTILL_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// The seconds at which it asks, with these steps and constant work.
    fn asked(seconds: u64, steps: impl Fn(u64) -> u64) -> Vec<u64> {
        looked(seconds, steps, |second| second * 100)
    }

    fn looked(seconds: u64, steps: impl Fn(u64) -> u64, ticks: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut standstill = Standstill::default();
        let mut at = |second| {
            let now = 1000 * SECOND + second * SECOND;
            standstill.should_ask(now, steps(second), ticks(second))
        };
        (0..seconds).filter(|second| at(*second)).collect()
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

    #[test]
    fn one_whose_steps_are_not_known_is_asked_when_nobody_works() {
        let at_40 = |second: u64| second.min(40) * 100;
        assert_eq!(looked(200, |_| 0, at_40), [100, 103, 106]);
        // A tick every ten seconds is no work, five a second are.
        assert!(!looked(200, |_| 0, |second| at_40(second) + second / 10).is_empty());
        assert!(looked(200, |_| 0, |second| at_40(second) + second * 5).is_empty());
    }
}
