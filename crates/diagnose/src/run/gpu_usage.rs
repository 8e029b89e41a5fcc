//! How the GPUs were used: their memory, utilisation and temperature, and how long they were throttled.

use crate::run::series::{Growth, Series};
use crate::time::between;
use antifreeze_sense::gpu::throttle;
use antifreeze_sense::{Gpus, Phase, Reading, Reason, Sample, Stamp};
use std::time::Duration;

/// GPUs are read this often. The same reading within that time is not a new one.
const READ_EVERY: Duration = Duration::from_secs(2);
/// A GPU is full from so many thousandths of its memory on.
const FULL_PER_MILLE: u64 = 970;
/// Memory use is high from so many thousandths of the peak on. Lower use at the end means that memory was freed before.
const HIGH_PER_MILLE: u64 = 900;
/// Growth is steady where at least this share of all pairs of samples rises. Frameworks allocate large pieces, and rarely.
const STEADY_SHARE: f64 = 0.7;
/// Growth counts from so many thousandths of the peak on.
const MIN_GAIN_PER_MILLE: u64 = 100;

/// The use of all GPUs during a run.
#[derive(Clone, Debug, Default)]
pub struct GpuUsage {
    used: Series,
    pushed: Option<(Stamp, u64)>,
    /// The last sample with nearly as much memory in use as at the peak.
    pub high: Option<GpuMemory>,
    /// The sample with the most memory in use.
    pub peak: Option<GpuMemory>,
    /// The last sample that had readings of GPUs.
    pub last: Option<(Stamp, Gpus)>,
    /// Why the very last sample had no readings.
    pub silent: Option<Reason>,
    /// The smallest and largest number of lost GPUs in a sample.
    lost: Option<(u64, u64)>,
    /// The highest temperature, in thousandths of a degree.
    pub hottest: Option<u64>,
    fullest: Option<u64>,
    busy: Mean,
    hot: Mean,
    braked: Mean,
    slowed: Mean,
    /// The step rate while no GPU was full, and while one was.
    step_rates: [StepRate; 2],
    previous_steps: Option<(Stamp, u64)>,
}

/// GPU memory in use at one time.
#[derive(Clone, Copy, Debug)]
pub struct GpuMemory {
    /// The time of the sample.
    pub at: Stamp,
    /// Bytes in use on all GPUs.
    pub used: u64,
    /// Bytes on all GPUs.
    pub total: Option<u64>,
    /// How full the fullest of several GPUs was, in thousandths.
    pub fullest: Option<u64>,
}

/// The mean of a value over the samples that have it.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: u64,
    samples: u64,
}

impl Mean {
    fn add(&mut self, value: u64) {
        self.sum = self.sum.saturating_add(value);
        self.samples += 1;
    }

    fn value(self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum as f64 / self.samples as f64)
    }
}

/// How many steps were made in how much time.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepRate {
    /// The time.
    pub time: Duration,
    /// The steps.
    pub steps: u64,
}

impl StepRate {
    /// Steps a second.
    pub fn per_second(self) -> f64 {
        self.steps as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl GpuUsage {
    /// Adds a sample.
    pub(crate) fn add_sample(&mut self, sample: &Sample) {
        let gpus = &sample.gpus;
        if let Some(lost) = gpus.lost.value() {
            let (fewest, most) = self.lost.unwrap_or((lost, lost));
            self.lost = Some((fewest.min(lost), most.max(lost)));
        }
        self.add_steps(sample);
        if let Some(used) = gpus.memory_used.value() {
            self.add_memory(GpuMemory {
                at: sample.at,
                used,
                total: gpus.memory_total.value(),
                fullest: gpus
                    .fullest_permille
                    .value()
                    .filter(|_| gpus.count.value().is_some_and(|count| count > 1)),
            });
            self.fullest = self.fullest.max(gpus.fullest_permille.value());
        }
        if let Some(busy) = gpus.busy_percent.value() {
            self.busy.add(busy);
        }
        self.hottest = self.hottest.max(gpus.hottest_millidegrees.value());
        if let Some(bits) = gpus.throttle_bits.value() {
            let is_hot = bits & throttle::HEAT != 0;
            self.hot.add(is_hot.into());
            self.braked.add((bits & throttle::POWER_BRAKE != 0).into());
            // Heat sets this bit as well.
            self.slowed
                .add((bits & throttle::HARDWARE != 0 && !is_hot).into());
        }
        self.silent = match (gpus.memory_used, gpus.busy_percent) {
            (Reading::Unavailable(why), Reading::Unavailable(_)) => Some(why),
            _ => None,
        };
        if self.silent.is_none() {
            self.last = Some((sample.at, *gpus));
        }
    }

    fn add_memory(&mut self, held: GpuMemory) {
        if self.peak.is_none_or(|peak| held.used > peak.used) {
            self.peak = Some(held);
        }
        let peak = self.peak.map_or(0, |peak| peak.used);
        if held.used >= peak / 1000 * HIGH_PER_MILLE {
            self.high = Some(held);
        }
        let is_news = self
            .pushed
            .is_none_or(|(at, used)| used != held.used || between(at, held.at) >= READ_EVERY);
        if is_news {
            self.pushed = Some((held.at, held.used));
            self.used.push(held.at, held.used);
        }
    }

    /// Counts steps separately while a GPU was full and while none was.
    fn add_steps(&mut self, sample: &Sample) {
        let phase = sample.tree.phase.value().unwrap_or(0);
        let makes_steps = phase != Phase::Evaluation as u64 && phase != Phase::Saving as u64;
        let steps = sample
            .tree
            .steps
            .value()
            .filter(|steps| *steps > 0 && makes_steps);
        let before = self.previous_steps;
        self.previous_steps = steps.map(|steps| (sample.at, steps));
        let (Some((at, past)), Some(steps), Some(fullest)) =
            (before, steps, sample.gpus.fullest_permille.value())
        else {
            return;
        };
        let rate = &mut self.step_rates[usize::from(fullest >= FULL_PER_MILLE)];
        rate.time += between(at, sample.at);
        rate.steps += steps.saturating_sub(past);
    }

    /// The step rate while no GPU was full, and while one was.
    pub fn step_rates(&self) -> (StepRate, StepRate) {
        (self.step_rates[0], self.step_rates[1])
    }

    /// How many GPUs were lost during the run.
    pub fn lost(&self) -> u64 {
        self.lost.map_or(0, |(fewest, most)| most - fewest)
    }

    /// The mean utilisation of the busiest GPU, 0 to 1.
    pub fn busy(&self) -> Option<f64> {
        self.busy.value().map(|percent| percent / 100.0)
    }

    /// The share of the time in which a GPU was throttled because of heat.
    pub fn throttled_for_heat(&self) -> Option<f64> {
        self.hot.value()
    }

    /// The share of the time in which a GPU was throttled because the power supply asked for it.
    pub fn throttled_by_power_brake(&self) -> Option<f64> {
        self.braked.value()
    }

    /// The share of the time in which a GPU was throttled by its hardware, but not because of heat.
    pub fn throttled_by_hardware(&self) -> Option<f64> {
        self.slowed.value()
    }

    /// How GPU memory grew over the later half of the run, if it grew steadily. None also where too little is known.
    pub fn growth(&self) -> Option<Growth> {
        let (high, peak) = (self.high?, self.peak?);
        let growth = self.used.growth_until(Some(high.at))?;
        let is_steady = growth.steadiness >= STEADY_SHARE
            && growth.gained >= peak.used / 1000 * MIN_GAIN_PER_MILLE;
        Some(growth).filter(|_| is_steady)
    }

    /// Whether it is known that GPU memory did not grow in the later half of the run.
    pub fn levelled_off(&self) -> bool {
        let until = self.high.map(|high| high.at);
        let peak = self.peak.map_or(0, |peak| peak.used);
        let growth = until.and_then(|at| self.used.growth_until(Some(at)));
        growth.is_some_and(|growth| growth.gained < peak / 1000 * MIN_GAIN_PER_MILLE / 2)
    }

    /// Whether a GPU was nearly full.
    pub fn was_full(&self) -> bool {
        self.fullest
            .is_some_and(|fullest| fullest >= HIGH_PER_MILLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// Five samples a second of GPUs that are read every two seconds.
    fn usage(seconds: u64, used: impl Fn(u64) -> Reading<u64>) -> GpuUsage {
        let mut usage = GpuUsage::default();
        for fifth in 0..seconds * 5 {
            let mut sample = Sample::default();
            sample.at.monotonic_ns = fifth * 200_000_000;
            sample.gpus = Gpus {
                memory_used: used(fifth / 10 * 2),
                memory_total: Reading::Value(8_000 * MB),
                fullest_permille: used(fifth / 10 * 2).map(|used| used / (8 * MB)),
                ..Gpus::unavailable(Reason::Absent)
            };
            usage.add_sample(&sample);
        }
        usage
    }

    #[test]
    fn a_leak_in_steps_is_growth_although_memory_is_freed_at_the_end() {
        let leak = usage(200, |second| match second {
            190.. => Reading::Value(300 * MB),
            _ => Reading::Value(1_000 * MB + second / 6 * 200 * MB),
        });
        let growth = leak.growth().unwrap();
        assert!(growth.steadiness > 0.8, "{growth:?}");
        assert!(leak.was_full() && !leak.levelled_off());
        assert!(leak.high.unwrap().used > 7_000 * MB);
    }

    #[test]
    fn memory_that_levels_off_after_the_first_steps_does_not_grow() {
        let cache = usage(200, |second| {
            Reading::Value((1_000 + second * 300).min(7_600) * MB)
        });
        assert_eq!(cache.growth(), None);
        assert!(cache.levelled_off() && cache.was_full());
    }

    #[test]
    fn without_readings_nothing_is_known() {
        let none = usage(60, |_| Reading::Unavailable(Reason::Absent));
        assert!(none.peak.is_none() && none.growth().is_none());
        assert!(!none.levelled_off() && !none.was_full());
        assert_eq!(none.throttled_for_heat(), None);
        assert_eq!(none.silent, Some(Reason::Absent));
    }

    #[test]
    fn the_step_rate_is_measured_apart_for_a_full_gpu() {
        let mut usage = GpuUsage::default();
        for second in 0..200 {
            let mut sample = Sample::default();
            sample.at.monotonic_ns = second * 1_000_000_000;
            let is_full = second >= 100;
            sample.gpus.fullest_permille = Reading::Value(if is_full { 990 } else { 800 });
            sample.tree.steps =
                Reading::Value(1 + second.min(100) * 10 + second.saturating_sub(100));
            usage.add_sample(&sample);
        }
        let (room, full) = usage.step_rates();
        assert!((room.per_second() - 10.0).abs() < 0.5, "{room:?}");
        assert!((full.per_second() - 1.0).abs() < 0.5, "{full:?}");
    }
}
