//! How it went: shares of time and rates, over the whole run, at its worst and at its end. From counters
//! that only rise, so that two looks are enough for any stretch between them.

use crate::time::between;
use antifreeze_sense::{Sample, Stamp};
use std::collections::VecDeque;
use std::time::Duration;

/// Between two looks that are kept.
const PACE: Duration = Duration::from_secs(5);
/// How many of them: the last minute, and a little more.
const KEPT: usize = 14;
/// What is called the worst lasted at least so long.
const LASTING: Duration = Duration::from_secs(10);
const PAGE: u64 = 4096;

#[derive(Clone, Debug, Default)]
pub struct Course {
    first: Option<Counters>,
    last: Option<Counters>,
    recent: VecDeque<Counters>,
    /// The largest share of a stretch in which everything waited for memory, and the most bytes that went
    /// to swap and came back in a second of one.
    pub worst_stall: f64,
    pub worst_swap: f64,
    pub most_threads: u64,
    tree_cpu: Total,
    read: Total,
    asked: Total,
    runnable: u64,
    looks: u64,
    steps: u64,
    /// When the last step was seen to be made, and the longest time between two.
    stepped: Option<Stamp>,
    pub longest_step: Duration,
}

/// What happened in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    pub time: Duration,
    /// Shares of the time in which everything waited for memory or for the disk, and somebody for a core.
    pub memory_stall: Option<f64>,
    pub io_stall: Option<f64>,
    pub cpu_stall: Option<f64>,
    /// How many cores the tree kept busy.
    pub cores: Option<f64>,
    /// Share of the time in which the disk was busy; bytes that the tree read from it.
    pub disk_busy: Option<f64>,
    pub read: Option<u64>,
    /// Bytes that it asked of files.
    pub asked: Option<u64>,
    /// Bytes a second to swap and back.
    pub swap: Option<f64>,
    /// Bytes of the tree that lay there when it began.
    pub in_swap: Option<u64>,
}

/// Of what the living have counted, all that was ever counted: whoever ends takes his count along.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    latest: u64,
    sum: Option<u64>,
}

impl Total {
    fn with(&mut self, now: Option<u64>) -> Option<u64> {
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
    asked: Option<u64>,
    in_swap: Option<u64>,
}

impl Course {
    pub(crate) fn see(&mut self, sample: &Sample) {
        let mut now = Counters::of(sample);
        // What the tree counts began with it.
        self.first.get_or_insert(Counters {
            tree_cpu: Some(0),
            read: Some(0),
            asked: Some(0),
            ..now
        });
        now.tree_cpu = self.tree_cpu.with(now.tree_cpu);
        now.read = self.read.with(now.read);
        now.asked = self.asked.with(now.asked);
        self.last = Some(now);
        self.most_threads = self
            .most_threads
            .max(sample.tree.threads.value().unwrap_or(0));
        if let Some(runnable) = sample.cpu.runnable.value() {
            self.runnable = self.runnable.saturating_add(runnable);
            self.looks += 1;
        }
        self.see_steps(sample);
        let kept = self.recent.back().map(|latest| latest.at);
        if kept.is_some_and(|at| between(at, now.at) < PACE) {
            return;
        }
        let enough = self
            .recent
            .iter()
            .rev()
            .find(|past| between(past.at, now.at) >= LASTING);
        if let Some(past) = enough {
            let stretch = past.until(&now);
            self.worst_stall = self.worst_stall.max(stretch.memory_stall.unwrap_or(0.0));
            self.worst_swap = self.worst_swap.max(stretch.swap.unwrap_or(0.0));
        }
        if self.recent.len() == KEPT {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
    }

    fn see_steps(&mut self, sample: &Sample) {
        let Some(steps) = sample.tree.steps.value().filter(|steps| *steps > 0) else {
            return;
        };
        if steps > self.steps {
            if let Some(before) = self.stepped {
                self.longest_step = self.longest_step.max(between(before, sample.at));
            }
            self.steps = steps;
            self.stepped = Some(sample.at);
        }
    }

    pub fn whole(&self) -> Stretch {
        match (&self.first, &self.last) {
            (Some(first), Some(last)) => first.until(last),
            _ => Stretch::default(),
        }
    }

    /// The last minute, or all where there is less.
    pub fn ending(&self) -> Stretch {
        match (self.recent.front(), &self.last) {
            (Some(past), Some(last)) => past.until(last),
            _ => Stretch::default(),
        }
    }

    /// Tasks that wanted a core, on average.
    pub fn runnable(&self) -> Option<f64> {
        (self.looks > 0).then(|| self.runnable as f64 / self.looks as f64)
    }

    /// How long no step had been made when the record stops, where steps were made before.
    pub fn since_step(&self) -> Option<Duration> {
        Some(between(self.stepped?, self.last?.at))
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
            asked: sample.tree.read_asked.value(),
            in_swap: sample.tree.swap.value(),
        }
    }

    fn until(&self, later: &Counters) -> Stretch {
        let time = between(self.at, later.at);
        let seconds = time.as_secs_f64();
        if seconds <= 0.0 {
            return Stretch::default();
        }
        let rise = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        // Of counters that count so many a second.
        let share = |before, after, each: f64| Some(rise(before, after)? as f64 / each / seconds);
        let part = |before, after, each| share(before, after, each).map(|share| share.min(1.0));
        Stretch {
            time,
            memory_stall: part(self.memory_full, later.memory_full, 1e6),
            io_stall: part(self.io_full, later.io_full, 1e6),
            cpu_stall: part(self.cpu_some, later.cpu_some, 1e6),
            cores: share(self.tree_cpu, later.tree_cpu, 100.0),
            disk_busy: part(self.disk_busy, later.disk_busy, 1e3),
            read: rise(self.read, later.read),
            asked: rise(self.asked, later.asked),
            swap: share(self.swapped, later.swapped, 1.0).map(|pages| pages * PAGE as f64),
            in_swap: self.in_swap,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_sense::Reading;

    fn course(seconds: u64, shape: impl Fn(u64, &mut Sample)) -> Course {
        let mut course = Course::default();
        for second in 0..=seconds {
            let mut sample = Sample::default();
            sample.at.monotonic_ns = second * 1_000_000_000;
            shape(second, &mut sample);
            course.see(&sample);
        }
        course
    }

    #[test]
    fn shares_and_rates_come_from_counters() {
        let course = course(100, |second, sample| {
            sample.pressure.memory_full_us = Reading::Value(second * 250_000);
            sample.tree.cpu = Reading::Value(second * 150);
            sample.tree.read_bytes = Reading::Value(second * 1000);
        });
        let whole = course.whole();
        assert_eq!(whole.memory_stall, Some(0.25));
        assert_eq!(whole.cores, Some(1.5));
        assert_eq!(whole.read, Some(100_000));
        assert_eq!(whole.io_stall, None);
    }

    #[test]
    fn what_those_that_ended_have_done_still_counts() {
        let course = course(200, |second, sample| {
            // At half-time all but one end.
            let all = if second < 100 {
                second * 200
            } else {
                (second - 100) * 100
            };
            sample.tree.cpu = Reading::Value(all);
        });
        let cores = course.whole().cores.unwrap();
        assert!((1.4..1.6).contains(&cores), "{cores}");
        assert_eq!(course.ending().cores, Some(1.0));
    }

    #[test]
    fn the_worst_and_the_end_are_told_apart_from_the_whole() {
        let stalled = |second: u64| second.clamp(300, 330) * 900_000;
        let course = course(600, |second, sample| {
            sample.pressure.memory_full_us = Reading::Value(stalled(second));
        });
        assert!(course.worst_stall > 0.85, "{course:?}");
        assert!(course.whole().memory_stall.unwrap() < 0.06);
        let ending = course.ending();
        assert_eq!(ending.memory_stall, Some(0.0));
        assert!(ending.time >= Duration::from_secs(60) && ending.time < Duration::from_secs(80));
    }

    #[test]
    fn a_training_that_stands_still_is_seen() {
        let course = course(300, |second, sample| {
            sample.tree.steps = Reading::Value(second.min(100) / 2);
        });
        assert_eq!(course.since_step(), Some(Duration::from_secs(200)));
        assert_eq!(course.longest_step, Duration::from_secs(2));
    }
}
