//! Collects a stretch of a run, sample by sample and in constant memory: every line of every chart, the training
//! phases, and the wall-clock time.

use super::charts::{CHARTS, Chart, Line, Measure, Rate};
use super::reduce::{Axis, Track};
use antifreeze_diagnose::time::timestamp;
use antifreeze_sense::{Phase, Reading, Sample, Stamp};
use jiff::tz::TimeZone;

/// The shortest time over which a rate is computed; shorter ones are mostly noise.
const MIN_RATE_SECONDS: f64 = 1.0;
/// A rate is computed after this time at the latest.
const MAX_RATE_SECONDS: f64 = 30.0;
/// The shortest time for the last rate of a run.
const MIN_LAST_RATE_SECONDS: f64 = 0.2;
/// The wall clock was set, or the machine slept, if it moved by this much against the monotonic clock.
const CLOCK_MOVE_SECONDS: f64 = 1.0;
/// At most this many moves of the clock are kept; later ones are ignored.
const MAX_CLOCK_MOVES: usize = 64;

pub(crate) const PHASES: [(Phase, &str); 6] = [
    (Phase::Data, "waiting for data"),
    (Phase::Forward, "forward"),
    (Phase::Backward, "backward"),
    (Phase::Optimizer, "optimizer"),
    (Phase::Evaluation, "evaluation"),
    (Phase::Saving, "saving"),
];

/// The share of each phase.
pub(crate) type Shares = [f64; PHASES.len()];
/// The phases are drawn in at most this many parts, each of which has enough samples.
const MAX_PHASE_PARTS: usize = 120;
const SAMPLES_PER_PHASE_PART: usize = 4;

pub(crate) struct Timeline {
    pub axis: Axis,
    /// Seconds into the run at which the stretch begins.
    pub begin: f64,
    zone: TimeZone,
    charts: Vec<(&'static Chart, Vec<Gathered>)>,
    /// The number of samples in each phase, for each bucket.
    phases: Vec<[u32; PHASES.len()]>,
    /// From each of these seconds on, so much is to be added to get to the seconds that the
    /// reader's clock counts from 1970.
    pub clock: Vec<(f64, f64)>,
    latest: Option<usize>,
}

struct Gathered {
    line: &'static Line,
    track: Track,
    /// Where a rate was last known.
    before: Option<(Stamp, f64, f64)>,
    now: Option<(Stamp, f64, f64)>,
}

impl Timeline {
    pub fn new(axis: Axis, begin: f64, zone: &TimeZone) -> Timeline {
        let gather = |chart: &'static Chart| {
            let lines = chart.lines.iter().map(|line| Gathered {
                line,
                track: Track::new(axis),
                before: None,
                now: None,
            });
            (chart, lines.collect())
        };
        Timeline {
            axis,
            begin,
            zone: zone.clone(),
            charts: CHARTS
                .iter()
                .flat_map(|chart| [Some(chart), chart.instead])
                .flatten()
                .map(gather)
                .collect(),
            phases: vec![[0; PHASES.len()]; axis.count],
            clock: Vec::new(),
            latest: None,
        }
    }

    pub fn add_sample(&mut self, sample: &Sample) {
        let Some(bucket) = self.axis.bucket(sample.at.monotonic_ns) else {
            return;
        };
        if self.latest != Some(bucket) {
            self.latest = Some(bucket);
            self.set_clock(sample.at);
        }
        for gathered in self.charts.iter_mut().flat_map(|(_, lines)| lines) {
            gathered.add_sample(sample);
        }
        let trains = sample.tree.steps.value().is_some_and(|steps| steps > 0);
        let phase = sample.tree.phase.value().filter(|_| trains);
        let place = PHASES
            .iter()
            .position(|(known, _)| Some(*known as u64) == phase);
        if let Some((counts, place)) = self.phases.get_mut(bucket).zip(place)
            && let Some(count) = counts.get_mut(place)
        {
            *count = count.saturating_add(1);
        }
    }

    fn set_clock(&mut self, at: Stamp) {
        let Some(time) = timestamp(at) else { return };
        let zone = self.zone.to_offset(time).seconds();
        let since = self.axis.since(at);
        let local = at.realtime_ns as f64 / 1e9 + f64::from(zone) - since;
        let moved = |(_, before): &(f64, f64)| (local - before).abs() >= CLOCK_MOVE_SECONDS;
        if self.clock.len() < MAX_CLOCK_MOVES && self.clock.last().is_none_or(moved) {
            self.clock.push((since, local));
        }
    }

    /// Ends the timeline: there are no more samples.
    pub fn close(&mut self) {
        for gathered in self.charts.iter_mut().flat_map(|(_, lines)| lines) {
            gathered.close();
        }
    }

    /// "02:13:07" on the reader's clock, so many seconds in.
    pub fn clock_at(&self, seconds: f64) -> String {
        let set = self.clock.iter().rev().find(|(from, _)| *from <= seconds);
        let Some((_, local)) = set.or(self.clock.first()) else {
            return String::new();
        };
        let of_day = (local + seconds).rem_euclid(86_400.0) as u32;
        let (hours, minutes) = (of_day / 3_600, of_day / 60 % 60);
        format!("{hours:02}:{minutes:02}:{:02}", of_day % 60)
    }

    /// The charts that have something to show, and the lines of each that have.
    pub fn charts(&self) -> Vec<Shown<'_>> {
        let mut shown: Vec<Shown<'_>> = Vec::new();
        for (chart, lines) in &self.charts {
            let lines: Vec<_> = lines
                .iter()
                .filter(|gathered| gathered.track.highest().is_some())
                .map(|gathered| (gathered.line, &gathered.track))
                .collect();
            let is_twin = shown
                .last()
                .is_some_and(|last| last.chart.title == chart.title);
            if !lines.is_empty() && !is_twin {
                shown.push(Shown { chart, lines });
            }
        }
        shown
    }

    /// The share of each phase over the time, in fewer and wider parts than the buckets: a
    /// share of a single sample means nothing. None if nothing is known.
    pub fn phases(&self) -> Option<Vec<Option<Shares>>> {
        let shares = |buckets: &[[u32; PHASES.len()]]| {
            let mut sums = Shares::default();
            for counts in buckets {
                let pairs = sums.iter_mut().zip(counts);
                pairs.for_each(|(sum, count)| *sum += f64::from(*count));
            }
            let all: f64 = sums.iter().sum();
            (all > 0.0).then(|| sums.map(|sum| sum / all))
        };
        let looks: usize = self
            .phases
            .iter()
            .flatten()
            .map(|count| *count as usize)
            .sum();
        let parts = (looks / SAMPLES_PER_PHASE_PART).clamp(1, MAX_PHASE_PARTS);
        let wide = self.phases.len().div_ceil(parts).max(1);
        let known: Vec<_> = self.phases.chunks(wide).map(shares).collect();
        known.iter().any(Option::is_some).then_some(known)
    }
}

/// A chart that has data.
pub(crate) struct Shown<'a> {
    pub chart: &'static Chart,
    pub lines: Vec<(&'static Line, &'a Track)>,
}

impl Gathered {
    fn add_sample(&mut self, sample: &Sample) {
        match self.line.measure {
            Measure::High(_) | Measure::Low(_) => {
                if let Reading::Value(value) = self.line.measure.reading(sample) {
                    self.track.see(sample.at, value);
                }
            }
            Measure::Rate(rate) => self.count(rate, sample),
        }
    }

    fn count(&mut self, rate: Rate, sample: &Sample) {
        let Reading::Value(amount) = (rate.amount)(sample) else {
            return;
        };
        let per = match rate.per.map(|per| per(sample)) {
            None => sample.at.monotonic_ns as f64 / 1e9,
            Some(Reading::Value(per)) => per,
            Some(Reading::Unavailable(_)) => return,
        };
        let now = (sample.at, amount, per);
        let Some((from, earlier, _)) = self.before else {
            self.before = Some(now);
            return;
        };
        let seconds = sample.at.monotonic_ns.saturating_sub(from.monotonic_ns) as f64 / 1e9;
        self.now = Some(now);
        // What falls was counted anew, or of others: processes that have ended no longer count.
        if amount < earlier || sample.at.monotonic_ns < from.monotonic_ns {
            self.before = Some(now);
            self.now = None;
        } else if seconds >= MIN_RATE_SECONDS
            && (amount - earlier >= rate.enough || seconds >= MAX_RATE_SECONDS)
        {
            self.settle(rate);
        }
    }

    fn settle(&mut self, rate: Rate) {
        let (Some((from, earlier, before)), Some(now)) = (self.before, self.now.take()) else {
            return;
        };
        let (to, later, after) = now;
        if after > before {
            let value = ((later - earlier) / (after - before)).min(rate.most);
            self.track.spread(from, to, value);
        }
        self.before = Some(now);
    }

    fn close(&mut self) {
        if let Measure::Rate(rate) = self.line.measure
            && let (Some((from, ..)), Some((to, ..))) = (self.before, self.now)
            && to.monotonic_ns.saturating_sub(from.monotonic_ns) as f64 / 1e9
                >= MIN_LAST_RATE_SECONDS
        {
            self.settle(rate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64) -> Sample {
        let nanos = (seconds * 1e9) as u64;
        Sample {
            at: Stamp {
                monotonic_ns: nanos,
                realtime_ns: 1_794_708_540_000_000_000 + nanos,
            },
            ..Sample::default()
        }
    }

    fn timeline(samples: impl IntoIterator<Item = Sample>) -> Timeline {
        let mut timeline = Timeline::new(Axis::over(0, 60_000_000_000, 600), 0.0, &TimeZone::UTC);
        samples
            .into_iter()
            .for_each(|sample| timeline.add_sample(&sample));
        timeline.close();
        timeline
    }

    fn find_track<'a>(shown: &'a [Shown<'_>], title: &str, name: &str) -> &'a Track {
        let chart = shown
            .iter()
            .find(|shown| shown.chart.title == title)
            .unwrap();
        chart
            .lines
            .iter()
            .find(|(line, _)| line.name == name)
            .unwrap()
            .1
    }

    #[test]
    fn counters_become_rates() {
        let timeline = timeline((0..600).map(|tenth| {
            let mut sample = sample(f64::from(tenth) / 10.0);
            let tenth = u64::try_from(tenth).unwrap();
            sample.pressure.memory_some_us = Reading::Value(tenth * 25_000);
            sample.disk.read_bytes = Reading::Value(tenth * 1_000_000);
            sample.cpu.core_count = 4;
            sample.tree.cpu = Reading::Value(tenth * 20);
            sample.tree.steps = Reading::Value(tenth / 20);
            sample
        }));
        let shown = timeline.charts();
        for (title, name, expected, off) in [
            ("Waiting", "for memory", 0.25, 0.01),
            ("Disk", "read", 10e6, 0.01),
            ("CPU", "this run", 0.5, 0.01),
            // The rest at the end has half a step too few.
            ("Steps", "steps", 0.5, 0.25),
        ] {
            for seen in find_track(&shown, title, name).buckets().iter().flatten() {
                let is_near = (seen.mean() / expected - 1.0).abs() < off;
                assert!(is_near, "{name} {seen:?}");
            }
        }
    }

    #[test]
    fn a_counter_that_falls_gives_no_rate() {
        let timeline = timeline((0..20).map(|second| {
            let mut sample = sample(f64::from(second));
            let ticks = if second < 10 { 100 * second } else { 5 };
            sample.tree.cpu = Reading::Value(u64::try_from(ticks).unwrap());
            sample
        }));
        let shown = timeline.charts();
        let track = find_track(&shown, "CPU", "this run");
        assert_eq!((track.lowest(), track.highest()), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn charts_without_data_are_left_out_and_one_stands_in_for_another() {
        assert!(timeline([]).charts().is_empty());
        let timeline = timeline((0..9).map(|second| {
            let mut sample = sample(f64::from(second));
            sample.tree.read_bytes = Reading::Value(7);
            sample
        }));
        let shown = timeline.charts();
        let titles: Vec<_> = shown.iter().map(|shown| shown.lines[0].0.name).collect();
        assert_eq!(titles, ["read by this run"]);
    }

    #[test]
    fn a_clock_that_was_set_is_followed() {
        let mut looks: Vec<Sample> = (0..60).map(|second| sample(f64::from(second))).collect();
        for look in &mut looks[30..] {
            look.at.realtime_ns += 7_200_000_000_000;
        }
        let clock = timeline(looks).clock;
        let told: Vec<_> = clock.iter().map(|(since, _)| *since).collect();
        assert_eq!(told, [0.0, 30.0]);
        assert_eq!(clock[1].1 - clock[0].1, 7_200.0);
    }
}
