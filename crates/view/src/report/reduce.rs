//! Reduces any number of samples in constant memory: the time of a run is cut into equal buckets, and each bucket
//! keeps its smallest and largest value, so that no peak is lost however long the run was.

use antifreeze_sense::Stamp;

/// The largest number of buckets; no screen shows more side by side.
pub(crate) const MAX_BUCKETS: u64 = 600;
/// The shortest bucket; the guard takes samples no more often.
const MIN_BUCKET_NS: u64 = 100_000_000;
/// A time without samples is a gap if it is longer than this and than several sampling intervals before it:
/// older samples are kept more sparsely.
const GAP_SECONDS: f64 = 15.0;
const GAP_INTERVALS: usize = 5;

/// The time axis that all charts share, divided into buckets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    begin: u64,
    span: u64,
    pub count: usize,
}

impl Axis {
    /// From one moment to another, in nanoseconds, in at most so many buckets.
    pub fn over(begin: u64, end: u64, most: u64) -> Axis {
        let span = end.saturating_sub(begin).max(1);
        Axis {
            begin,
            span,
            count: span.div_ceil(MIN_BUCKET_NS).min(most.clamp(1, MAX_BUCKETS)) as usize,
        }
    }

    pub fn seconds(&self) -> f64 {
        self.span as f64 / 1e9
    }

    /// Seconds from the beginning; negative before it.
    pub fn since(&self, at: Stamp) -> f64 {
        (i128::from(at.monotonic_ns) - i128::from(self.begin)) as f64 / 1e9
    }

    /// The bucket of a moment; none outside of the time.
    pub fn bucket(&self, at: u64) -> Option<usize> {
        let since = at
            .checked_sub(self.begin)
            .filter(|since| *since <= self.span)?;
        let index = u128::from(since) * self.count as u128 / u128::from(self.span);
        Some((index as usize).min(self.count - 1))
    }

    /// The middle of a bucket, as a share of the whole.
    pub fn middle(&self, bucket: usize) -> f64 {
        (bucket as f64 + 0.5) / self.count as f64
    }

    /// How many empty buckets between two samples are not yet a gap.
    fn gap(&self, pace: Option<usize>) -> usize {
        // The interval is not known before the third sample.
        let Some(pace) = pace else { return usize::MAX };
        let long = GAP_SECONDS / self.seconds() * self.count as f64;
        (long as usize)
            .max(pace.saturating_mul(GAP_INTERVALS))
            .max(2)
    }
}

/// The values within a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub low: f64,
    pub high: f64,
    sum: f64,
    weight: f64,
}

impl Seen {
    fn once(value: f64, weight: f64) -> Seen {
        Seen {
            low: value,
            high: value,
            sum: value * weight,
            weight,
        }
    }

    fn and(self, other: Seen) -> Seen {
        Seen {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            sum: self.sum + other.sum,
            weight: self.weight + other.weight,
        }
    }

    /// Each value counts as long as it lasted.
    pub fn mean(&self) -> f64 {
        if self.weight > 0.0 {
            (self.sum / self.weight).clamp(self.low, self.high)
        } else {
            self.high
        }
    }
}

/// One value over the whole run.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    axis: Axis,
    buckets: Vec<Option<Seen>>,
}

impl Track {
    pub fn new(axis: Axis) -> Track {
        Track {
            axis,
            buckets: vec![None; axis.count],
        }
    }

    /// A value at a moment.
    pub fn see(&mut self, at: Stamp, value: f64) {
        if let Some(bucket) = self.axis.bucket(at.monotonic_ns) {
            self.add(bucket, Seen::once(value, 1.0));
        }
    }

    /// A value that was the same, or is known only as a mean, from one moment to another.
    pub fn spread(&mut self, from: Stamp, to: Stamp, value: f64) {
        let last = self.axis.begin.saturating_add(self.axis.span);
        let from = from.monotonic_ns.max(self.axis.begin);
        let to = to.monotonic_ns.min(last);
        if from >= to {
            return;
        }
        let width = self.axis.span as f64 / self.axis.count as f64;
        let place = |at: u64| (at - self.axis.begin) as f64 / width;
        let (start, end) = (place(from), place(to));
        let buckets = self.axis.bucket(from).zip(self.axis.bucket(to));
        let Some((first, last)) = buckets else { return };
        for bucket in first..=last {
            let within = end.min(bucket as f64 + 1.0) - start.max(bucket as f64);
            if within > 0.0 || first == last {
                self.add(bucket, Seen::once(value, within.max(0.0)));
            }
        }
    }

    fn add(&mut self, bucket: usize, seen: Seen) {
        if let Some(slot) = self
            .buckets
            .get_mut(bucket)
            .filter(|_| seen.high.is_finite())
        {
            *slot = Some(slot.map_or(seen, |before| before.and(seen)));
        }
    }

    pub fn buckets(&self) -> &[Option<Seen>] {
        &self.buckets
    }

    pub fn highest(&self) -> Option<f64> {
        let seen = self.buckets.iter().flatten().map(|seen| seen.high);
        seen.max_by(f64::total_cmp)
    }

    pub fn lowest(&self) -> Option<f64> {
        let seen = self.buckets.iter().flatten().map(|seen| seen.low);
        seen.min_by(f64::total_cmp)
    }

    /// The stretches without a gap, each a list of buckets that hold something.
    pub fn stretches(&self) -> Vec<Vec<(usize, Seen)>> {
        let mut stretches: Vec<Vec<(usize, Seen)>> = Vec::new();
        let (mut latest, mut pace) = (None, None);
        for (bucket, seen) in self.buckets.iter().enumerate() {
            let Some(seen) = seen else { continue };
            let distance = latest.map(|latest: usize| bucket - latest);
            match (distance, stretches.last_mut()) {
                (Some(distance), Some(stretch)) if distance <= self.axis.gap(pace) => {
                    pace = Some(distance);
                    stretch.push((bucket, *seen));
                }
                _ => {
                    pace = None;
                    stretches.push(vec![(bucket, *seen)]);
                }
            }
            latest = Some(bucket);
        }
        stretches
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64) -> Stamp {
        Stamp {
            monotonic_ns: (seconds * 1e9) as u64,
            realtime_ns: 0,
        }
    }

    #[test]
    fn a_day_of_looks_fits_and_keeps_its_one_short_peak() {
        let mut track = Track::new(Axis::over(0, 86_400_000_000_000, MAX_BUCKETS));
        for look in 0..864_000u32 {
            let value = if look == 400_000 { 9.0 } else { 1.0 };
            track.see(at(f64::from(look) / 10.0), value);
        }
        assert_eq!(track.buckets().len(), 600);
        assert_eq!((track.lowest(), track.highest()), (Some(1.0), Some(9.0)));
        assert_eq!(track.stretches().len(), 1);
    }

    #[test]
    fn a_short_run_has_no_more_buckets_than_looks() {
        assert_eq!(Axis::over(0, 1_000_000_000, MAX_BUCKETS).count, 10);
        assert_eq!(Axis::over(5, 5, MAX_BUCKETS).count, 1);
    }

    #[test]
    fn a_mean_counts_by_the_time_it_lasted() {
        let mut track = Track::new(Axis::over(0, 600_000_000_000, MAX_BUCKETS));
        track.spread(at(0.0), at(0.75), 1.0);
        track.spread(at(0.75), at(10.0), 0.0);
        let first = track.buckets()[0].unwrap();
        assert_eq!((first.low, first.high, first.mean()), (0.0, 1.0, 0.75));
        assert_eq!(track.buckets()[9].unwrap().mean(), 0.0);
        assert_eq!(track.buckets()[11], None);
    }

    #[test]
    fn lines_go_on_over_sparse_looks_and_break_at_gaps() {
        let mut track = Track::new(Axis::over(0, 6_000_000_000_000, MAX_BUCKETS));
        for seconds in (0..1_000)
            .step_by(100)
            .chain(2_000..2_100)
            .chain(4_000..4_100)
        {
            track.see(at(f64::from(seconds)), 1.0);
        }
        let stretches = track.stretches();
        let firsts: Vec<usize> = stretches.iter().map(|stretch| stretch[0].0).collect();
        assert_eq!(firsts, [0, 200, 400]);
    }

    proptest! {
        #[test]
        fn no_peak_is_lost_and_memory_stays_constant(
            end in any::<u64>(),
            looks in proptest::collection::vec((0.0..=1.0f64, any::<u64>()), 1..200),
        ) {
            let axis = Axis::over(0, end, MAX_BUCKETS);
            let (mut moments, mut stretches) = (Track::new(axis), Track::new(axis));
            let mut before = Stamp::default();
            for (share, value) in &looks {
                let monotonic_ns = ((end as f64 * share) as u64).min(end);
                let at = Stamp { monotonic_ns, realtime_ns: 0 };
                moments.see(at, *value as f64);
                let (from, to) = if at.monotonic_ns < before.monotonic_ns { (at, before) } else { (before, at) };
                stretches.spread(from, to, *value as f64);
                before = at;
            }
            let values = || looks.iter().map(|(_, value)| *value as f64);
            prop_assert!(moments.buckets().len() <= 600);
            prop_assert_eq!(moments.highest(), values().max_by(f64::total_cmp));
            prop_assert_eq!(moments.lowest(), values().min_by(f64::total_cmp));
            let drawn: Vec<_> = moments.stretches().into_iter().flatten().collect();
            prop_assert_eq!(drawn.len(), moments.buckets().iter().flatten().count());
            for seen in stretches.buckets().iter().flatten() {
                prop_assert!(seen.low <= seen.mean() && seen.mean() <= seen.high);
            }
        }
    }
}
