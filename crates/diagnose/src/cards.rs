//! How the graphics cards fared: what they held, how busy and how hot they were, and how long they were slowed.

use crate::series::{Growth, Series};
use crate::time::between;
use antifreeze_sense::gpu::throttle;
use antifreeze_sense::{Gpus, Phase, Reading, Reason, Sample, Stamp};
use std::time::Duration;

/// Cards are read at this pace; the same reading twice tells nothing of growth.
const PACE: Duration = Duration::from_secs(2);
/// In thousandths of a card's memory.
const FULL: u64 = 970;
/// Of the most they held, in thousandths: what is less at the end was let go before it.
const HIGH: u64 = 900;
/// Of pairs of looks, so many must rise: a framework takes memory from a card in large pieces, and now and then.
const STEADY: f64 = 0.7;
/// Of what was held at most, in thousandths.
const TELLING_GAIN: u64 = 100;

#[derive(Clone, Debug, Default)]
pub struct CardStory {
    used: Series,
    pushed: Option<(Stamp, u64)>,
    /// The last look at which as much was held as at the peak, nearly.
    pub high: Option<Held>,
    pub peak: Option<Held>,
    /// The last look at which something was known of them.
    pub last: Option<(Stamp, Gpus)>,
    /// At the very last look there was nothing any more, for this reason.
    pub silent: Option<Reason>,
    /// The fewest and the most that were lost at a look.
    lost: Option<(u64, u64)>,
    pub hottest: Option<u64>,
    fullest: Option<u64>,
    busy: Share,
    hot: Share,
    braked: Share,
    slowed: Share,
    paces: [Pace; 2],
    before: Option<(Stamp, u64)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub at: Stamp,
    pub used: u64,
    pub total: Option<u64>,
    /// Of the fullest of several cards, in thousandths of its own memory.
    pub fullest: Option<u64>,
}

/// A part of the looks at which something was known.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    sum: u64,
    looks: u64,
}

impl Share {
    fn see(&mut self, part: u64) {
        self.sum = self.sum.saturating_add(part);
        self.looks += 1;
    }

    fn of(self) -> Option<f64> {
        (self.looks > 0).then(|| self.sum as f64 / self.looks as f64)
    }
}

/// How fast steps were made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    pub time: Duration,
    pub steps: u64,
}

impl Pace {
    pub fn per_second(self) -> f64 {
        self.steps as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl CardStory {
    pub(crate) fn see(&mut self, sample: &Sample) {
        let cards = &sample.gpus;
        if let Some(lost) = cards.lost.value() {
            let (fewest, most) = self.lost.unwrap_or((lost, lost));
            self.lost = Some((fewest.min(lost), most.max(lost)));
        }
        self.see_pace(sample);
        if let Some(used) = cards.memory_used.value() {
            self.see_held(Held {
                at: sample.at,
                used,
                total: cards.memory_total.value(),
                fullest: cards
                    .fullest_permille
                    .value()
                    .filter(|_| cards.count.value().is_some_and(|count| count > 1)),
            });
            self.fullest = self.fullest.max(cards.fullest_permille.value());
        }
        if let Some(busy) = cards.busy_percent.value() {
            self.busy.see(busy);
        }
        self.hottest = self.hottest.max(cards.hottest_millidegrees.value());
        if let Some(bits) = cards.throttle_bits.value() {
            let is_hot = bits & throttle::HEAT != 0;
            self.hot.see(is_hot.into());
            self.braked.see((bits & throttle::POWER_BRAKE != 0).into());
            // Heat sets it too.
            self.slowed
                .see((bits & throttle::HARDWARE != 0 && !is_hot).into());
        }
        self.silent = match (cards.memory_used, cards.busy_percent) {
            (Reading::Unavailable(why), Reading::Unavailable(_)) => Some(why),
            _ => None,
        };
        if self.silent.is_none() {
            self.last = Some((sample.at, *cards));
        }
    }

    fn see_held(&mut self, held: Held) {
        if self.peak.is_none_or(|peak| held.used > peak.used) {
            self.peak = Some(held);
        }
        let peak = self.peak.map_or(0, |peak| peak.used);
        if held.used >= peak / 1000 * HIGH {
            self.high = Some(held);
        }
        let is_news = self
            .pushed
            .is_none_or(|(at, used)| used != held.used || between(at, held.at) >= PACE);
        if is_news {
            self.pushed = Some((held.at, held.used));
            self.used.push(held.at, held.used);
        }
    }

    /// Apart for the times in which a card was full and in which none was.
    fn see_pace(&mut self, sample: &Sample) {
        let phase = sample.tree.phase.value().unwrap_or(0);
        let makes_steps = phase != Phase::Evaluation as u64 && phase != Phase::Saving as u64;
        let steps = sample
            .tree
            .steps
            .value()
            .filter(|steps| *steps > 0 && makes_steps);
        let before = self.before;
        self.before = steps.map(|steps| (sample.at, steps));
        let (Some((at, past)), Some(steps), Some(fullest)) =
            (before, steps, sample.gpus.fullest_permille.value())
        else {
            return;
        };
        let pace = &mut self.paces[usize::from(fullest >= FULL)];
        pace.time += between(at, sample.at);
        pace.steps += steps.saturating_sub(past);
    }

    /// How fast steps were made while there was room, and while a card was full.
    pub fn paces(&self) -> (Pace, Pace) {
        (self.paces[0], self.paces[1])
    }

    /// How many fell off the bus while it ran.
    pub fn lost(&self) -> u64 {
        self.lost.map_or(0, |(fewest, most)| most - fewest)
    }

    /// The busiest, on average; a share of one.
    pub fn busy(&self) -> Option<f64> {
        self.busy.of().map(|percent| percent / 100.0)
    }

    /// Shares of the time in which they were slowed for heat, because the power supply asked for it, and by
    /// themselves for neither.
    pub fn slowed_for_heat(&self) -> Option<f64> {
        self.hot.of()
    }

    pub fn braked(&self) -> Option<f64> {
        self.braked.of()
    }

    pub fn slowed(&self) -> Option<f64> {
        self.slowed.of()
    }

    /// How what they hold grew over the later half, if it did so until the end of what was held. None also where
    /// too little is known.
    pub fn growth(&self) -> Option<Growth> {
        let (high, peak) = (self.high?, self.peak?);
        let growth = self.used.growth_until(Some(high.at))?;
        let is_steady =
            growth.steadiness >= STEADY && growth.gained >= peak.used / 1000 * TELLING_GAIN;
        Some(growth).filter(|_| is_steady)
    }

    /// It is known that it did not grow in the later half.
    pub fn levelled_off(&self) -> bool {
        let until = self.high.map(|high| high.at);
        let peak = self.peak.map_or(0, |peak| peak.used);
        let growth = until.and_then(|at| self.used.growth_until(Some(at)));
        growth.is_some_and(|growth| growth.gained < peak / 1000 * TELLING_GAIN / 2)
    }

    /// One of them was nearly full.
    pub fn was_full(&self) -> bool {
        self.fullest.is_some_and(|fullest| fullest >= HIGH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// Looks a fifth of a second apart at cards that are read every two.
    fn story(seconds: u64, used: impl Fn(u64) -> Reading<u64>) -> CardStory {
        let mut story = CardStory::default();
        for fifth in 0..seconds * 5 {
            let mut sample = Sample::default();
            sample.at.monotonic_ns = fifth * 200_000_000;
            sample.gpus = Gpus {
                memory_used: used(fifth / 10 * 2),
                memory_total: Reading::Value(8_000 * MB),
                fullest_permille: used(fifth / 10 * 2).map(|used| used / (8 * MB)),
                ..Gpus::unavailable(Reason::Absent)
            };
            story.see(&sample);
        }
        story
    }

    #[test]
    fn a_leak_in_stairs_is_growth_and_is_seen_though_all_is_let_go_at_the_end() {
        let leak = story(200, |second| match second {
            190.. => Reading::Value(300 * MB),
            _ => Reading::Value(1_000 * MB + second / 6 * 200 * MB),
        });
        let growth = leak.growth().unwrap();
        assert!(growth.steadiness > 0.8, "{growth:?}");
        assert!(leak.was_full() && !leak.levelled_off());
        assert!(leak.high.unwrap().used > 7_000 * MB);
    }

    #[test]
    fn what_levels_off_after_the_first_steps_does_not_grow() {
        let cache = story(200, |second| {
            Reading::Value((1_000 + second * 300).min(7_600) * MB)
        });
        assert_eq!(cache.growth(), None);
        assert!(cache.levelled_off() && cache.was_full());
    }

    #[test]
    fn of_cards_that_tell_nothing_nothing_is_known() {
        let none = story(60, |_| Reading::Unavailable(Reason::Absent));
        assert!(none.peak.is_none() && none.growth().is_none());
        assert!(!none.levelled_off() && !none.was_full());
        assert_eq!(none.slowed_for_heat(), None);
        assert_eq!(none.silent, Some(Reason::Absent));
    }

    #[test]
    fn the_pace_is_told_apart_for_a_full_card() {
        let mut story = CardStory::default();
        for second in 0..200 {
            let mut sample = Sample::default();
            sample.at.monotonic_ns = second * 1_000_000_000;
            let is_full = second >= 100;
            sample.gpus.fullest_permille = Reading::Value(if is_full { 990 } else { 800 });
            sample.tree.steps =
                Reading::Value(1 + second.min(100) * 10 + second.saturating_sub(100));
            story.see(&sample);
        }
        let (room, full) = story.paces();
        assert!((room.per_second() - 10.0).abs() < 0.5, "{room:?}");
        assert!((full.per_second() - 1.0).abs() < 0.5, "{full:?}");
    }
}
