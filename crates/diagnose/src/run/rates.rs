//! Rates and shares of time over the whole run, at its worst and in its last minute. They come from counters that only
//! rise, so that two samples are enough for any interval between them.

use crate::time::between;
use antifreeze_sense::{Sample, Stamp};
use std::collections::VecDeque;
use std::time::Duration;

/// The interval between two samples that are kept.
const KEEP_EVERY: Duration = Duration::from_secs(5);
/// How many samples are kept: a little more than the last minute.
const MAX_KEPT: usize = 14;
/// The shortest interval over which the worst rates are measured.
const MIN_WORST_INTERVAL: Duration = Duration::from_secs(10);
const PAGE_BYTES: u64 = 4096;

/// Rates and shares of time of a run.
#[derive(Clone, Debug, Default)]
pub struct Rates {
    first: Option<Counters>,
    last: Option<Counters>,
    recent: VecDeque<Counters>,
    /// The largest share of an interval in which all tasks waited for memory.
    pub worst_memory_stall: f64,
    /// The highest rate of swapping in and out, in bytes a second.
    pub worst_swap_rate: f64,
    /// The largest number of threads.
    pub most_threads: u64,
    tree_cpu: RunningTotal,
    read: RunningTotal,
    requested: RunningTotal,
    runnable: u64,
    samples: u64,
    steps: u64,
    /// When the last step was made.
    last_step: Option<Stamp>,
    /// The longest time between two steps.
    pub longest_step: Duration,
}

/// Rates and shares over an interval of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Its length.
    pub time: Duration,
    /// Share of the time in which all tasks waited for memory.
    pub memory_stall: Option<f64>,
    /// Share of the time in which all tasks waited for a disk.
    pub io_stall: Option<f64>,
    /// Share of the time in which some task waited for a core.
    pub cpu_stall: Option<f64>,
    /// How many cores the run kept busy.
    pub cores: Option<f64>,
    /// Share of the time in which the disk was busy.
    pub disk_busy: Option<f64>,
    /// Bytes that the run read from disk.
    pub read: Option<u64>,
    /// Bytes that the run requested from files, cached or not.
    pub requested: Option<u64>,
    /// Swapping in and out, in bytes a second.
    pub swap: Option<f64>,
    /// Bytes of the run that were in swap at the beginning.
    pub in_swap: Option<u64>,
}

/// A total over processes that come and go. A process's counters disappear when it exits, so they are added up here.
#[derive(Clone, Copy, Debug, Default)]
struct RunningTotal {
    latest: u64,
    sum: Option<u64>,
}

impl RunningTotal {
    fn add(&mut self, now: Option<u64>) -> Option<u64> {
        if let Some(now) = now {
            let more = now.saturating_sub(self.latest);
            self.sum = Some(self.sum.unwrap_or(0).saturating_add(more));
            self.latest = now;
        }
        self.sum
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    at: Stamp,
    memory_full: Option<u64>,
    io_full: Option<u64>,
    cpu_some: Option<u64>,
    swapped: Option<u64>,
    tree_cpu: Option<u64>,
    disk_busy: Option<u64>,
    read: Option<u64>,
    requested: Option<u64>,
    in_swap: Option<u64>,
}

impl Rates {
    /// Adds a sample.
    pub(crate) fn add_sample(&mut self, sample: &Sample) {
        let mut now = Counters::of(sample);
        // The counters of the run begin at 0.
        self.first.get_or_insert(Counters {
            tree_cpu: Some(0),
            read: Some(0),
            requested: Some(0),
            ..now
        });
        now.tree_cpu = self.tree_cpu.add(now.tree_cpu);
        now.read = self.read.add(now.read);
        now.requested = self.requested.add(now.requested);
        self.last = Some(now);
        self.most_threads = self
            .most_threads
            .max(sample.tree.threads.value().unwrap_or(0));
        if let Some(runnable) = sample.cpu.runnable.value() {
            self.runnable = self.runnable.saturating_add(runnable);
            self.samples += 1;
        }
        self.add_steps(sample);
        let kept = self.recent.back().map(|latest| latest.at);
        if kept.is_some_and(|at| between(at, now.at) < KEEP_EVERY) {
            return;
        }
        let enough = self
            .recent
            .iter()
            .rev()
            .find(|past| between(past.at, now.at) >= MIN_WORST_INTERVAL);
        if let Some(past) = enough {
            let interval = past.until(&now);
            self.worst_memory_stall = self
                .worst_memory_stall
                .max(interval.memory_stall.unwrap_or(0.0));
            self.worst_swap_rate = self.worst_swap_rate.max(interval.swap.unwrap_or(0.0));
        }
        if self.recent.len() == MAX_KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
    }

    fn add_steps(&mut self, sample: &Sample) {
        let Some(steps) = sample.tree.steps.value().filter(|steps| *steps > 0) else {
            return;
        };
        if steps > self.steps {
            if let Some(before) = self.last_step {
                self.longest_step = self.longest_step.max(between(before, sample.at));
            }
            self.steps = steps;
            self.last_step = Some(sample.at);
        }
    }

    /// Over the whole run.
    pub fn whole_run(&self) -> Interval {
        match (&self.first, &self.last) {
            (Some(first), Some(last)) => first.until(last),
            _ => Interval::default(),
        }
    }

    /// Over the last minute, or the whole run where it was shorter.
    pub fn last_minute(&self) -> Interval {
        match (self.recent.front(), &self.last) {
            (Some(past), Some(last)) => past.until(last),
            _ => Interval::default(),
        }
    }

    /// The mean number of tasks that wanted a core.
    pub fn mean_runnable(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.runnable as f64 / self.samples as f64)
    }

    /// The time from the last step to the end of the record; None where no steps were made.
    pub fn time_since_step(&self) -> Option<Duration> {
        Some(between(self.last_step?, self.last?.at))
    }
}

impl Counters {
    fn of(sample: &Sample) -> Counters {
        let swapped = sample
            .paging
            .swapped_in
            .value()
            .zip(sample.paging.swapped_out.value());
        Counters {
            at: sample.at,
            memory_full: sample.pressure.memory_full_us.value(),
            io_full: sample.pressure.io_full_us.value(),
            cpu_some: sample.pressure.cpu_some_us.value(),
            swapped: swapped.map(|(pages_in, pages_out)| pages_in.saturating_add(pages_out)),
            tree_cpu: sample.tree.cpu.value(),
            disk_busy: sample.disk.busy_ms.value(),
            read: sample.tree.read_bytes.value(),
            requested: sample.tree.read_asked.value(),
            in_swap: sample.tree.swap.value(),
        }
    }

    fn until(&self, later: &Counters) -> Interval {
        let time = between(self.at, later.at);
        let seconds = time.as_secs_f64();
        if seconds <= 0.0 {
            return Interval::default();
        }
        let rise = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        // `each` is how much a counter rises in a second.
        let share = |before, after, each: f64| Some(rise(before, after)? as f64 / each / seconds);
        let part = |before, after, each| share(before, after, each).map(|share| share.min(1.0));
        Interval {
            time,
            memory_stall: part(self.memory_full, later.memory_full, 1e6),
            io_stall: part(self.io_full, later.io_full, 1e6),
            cpu_stall: part(self.cpu_some, later.cpu_some, 1e6),
            cores: share(self.tree_cpu, later.tree_cpu, 100.0),
            disk_busy: part(self.disk_busy, later.disk_busy, 1e3),
            read: rise(self.read, later.read),
            requested: rise(self.requested, later.requested),
            swap: share(self.swapped, later.swapped, 1.0).map(|pages| pages * PAGE_BYTES as f64),
            in_swap: self.in_swap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_sense::Reading;

    fn rates(seconds: u64, shape: impl Fn(u64, &mut Sample)) -> Rates {
        let mut rates = Rates::default();
        for second in 0..=seconds {
            let mut sample = Sample::default();
            sample.at.monotonic_ns = second * 1_000_000_000;
            shape(second, &mut sample);
            rates.add_sample(&sample);
        }
        rates
    }

    #[test]
    fn shares_and_rates_come_from_counters() {
        let rates = rates(100, |second, sample| {
            sample.pressure.memory_full_us = Reading::Value(second * 250_000);
            sample.tree.cpu = Reading::Value(second * 150);
            sample.tree.read_bytes = Reading::Value(second * 1000);
        });
        let whole = rates.whole_run();
        assert_eq!(whole.memory_stall, Some(0.25));
        assert_eq!(whole.cores, Some(1.5));
        assert_eq!(whole.read, Some(100_000));
        assert_eq!(whole.io_stall, None);
    }

    #[test]
    fn the_counters_of_processes_that_exited_still_count() {
        let rates = rates(200, |second, sample| {
            // At half-time all but one end.
            let all = if second < 100 {
                second * 200
            } else {
                (second - 100) * 100
            };
            sample.tree.cpu = Reading::Value(all);
        });
        let cores = rates.whole_run().cores.unwrap();
        assert!((1.4..1.6).contains(&cores), "{cores}");
        assert_eq!(rates.last_minute().cores, Some(1.0));
    }

    #[test]
    fn the_worst_and_the_last_minute_are_measured_apart_from_the_whole() {
        let stalled = |second: u64| second.clamp(300, 330) * 900_000;
        let rates = rates(600, |second, sample| {
            sample.pressure.memory_full_us = Reading::Value(stalled(second));
        });
        assert!(rates.worst_memory_stall > 0.85, "{rates:?}");
        assert!(rates.whole_run().memory_stall.unwrap() < 0.06);
        let ending = rates.last_minute();
        assert_eq!(ending.memory_stall, Some(0.0));
        assert!(ending.time >= Duration::from_secs(60) && ending.time < Duration::from_secs(80));
    }

    #[test]
    fn a_training_that_makes_no_steps_is_detected() {
        let rates = rates(300, |second, sample| {
            sample.tree.steps = Reading::Value(second.min(100) / 2);
        });
        assert_eq!(rates.time_since_step(), Some(Duration::from_secs(200)));
        assert_eq!(rates.longest_step, Duration::from_secs(2));
    }
}
