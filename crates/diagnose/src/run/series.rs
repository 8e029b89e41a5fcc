//! A time series of any length in constant memory: the largest value of each interval. Intervals double whenever the
//! series outgrows them.

use antifreeze_sense::Stamp;

const BUCKETS: usize = 128;
/// Growth is not measured over fewer points.
const MIN_POINTS: usize = 4;
const FIRST_INTERVAL_NS: u64 = 100_000_000;

/// A time series in constant memory.
#[derive(Clone, Debug)]
pub struct Series {
    start: Option<u64>,
    interval: u64,
    /// None where there is no value: the machine was stopped, or the record has a gap.
    buckets: Vec<Option<u64>>,
}

/// The growth of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// The median of all slopes, so that single jumps do not count.
    pub bytes_per_second: f64,
    /// The share of pairs of points that rise: 1 for a leak, about 0.5 for noise.
    pub steadiness: f64,
    /// The rise from the first to the last point.
    pub gained: u64,
}

impl Default for Series {
    fn default() -> Series {
        Series {
            start: None,
            interval: FIRST_INTERVAL_NS,
            buckets: Vec::with_capacity(BUCKETS),
        }
    }
}

impl Series {
    /// Adds a value. A time before the latest one counts as the latest.
    pub fn push(&mut self, at: Stamp, value: u64) {
        let since = at
            .monotonic_ns
            .saturating_sub(*self.start.get_or_insert(at.monotonic_ns));
        while since / self.interval >= BUCKETS as u64 {
            self.halve();
        }
        let index = (since / self.interval) as usize;
        while self.buckets.len() <= index {
            self.buckets.push(None);
        }
        if let Some(bucket) = self.buckets.get_mut(index) {
            *bucket = (*bucket).max(Some(value));
        }
    }

    fn halve(&mut self) {
        let pairs = self.buckets.chunks(2);
        self.buckets = pairs
            .map(|pair| pair.iter().copied().flatten().max())
            .collect();
        self.interval = self.interval.saturating_mul(2);
    }

    /// At most `count` points over the whole time, each the largest value of its part. A part without values repeats the
    /// one before it.
    pub fn points(&self, count: usize) -> Vec<u64> {
        let len = self.buckets.len();
        let mut last = 0;
        (0..count.min(len))
            .map(|index| {
                let (from, to) = (
                    index * len / count.min(len),
                    (index + 1) * len / count.min(len),
                );
                let part = self.buckets.get(from..to).unwrap_or_default();
                last = part.iter().copied().flatten().max().unwrap_or(last);
                last
            })
            .collect()
    }

    /// The growth over the later half of the series, up to a moment or to its end; None where there are too few points.
    /// The interval of the moment itself does not count, since memory may already have been freed in it.
    pub fn growth_until(&self, at: Option<Stamp>) -> Option<Growth> {
        let known = self.known_until(at);
        // The later half of a run of a second or two has too few points.
        let half = known.len() / 2;
        growth(
            known
                .get(half..)
                .filter(|later| later.len() >= MIN_POINTS)
                .unwrap_or(&known),
        )
    }

    /// The growth since the series was last low: memory may be constant for long before it fills up.
    pub fn last_rise_until(&self, at: Option<Stamp>) -> Option<Growth> {
        let known = self.known_until(at);
        let (_, last) = *known.last()?;
        let lowest = known.iter().map(|(_, value)| *value).min()?;
        let low = lowest.saturating_add(last.saturating_sub(lowest) / 10);
        let since = known.iter().rposition(|(_, value)| *value <= low)?;
        growth(known.get(since..)?)
    }

    /// Seconds and values, up to a moment or to the end.
    fn known_until(&self, at: Option<Stamp>) -> Vec<(f64, u64)> {
        let count = match (at, self.start) {
            (Some(at), Some(start)) => at.monotonic_ns.saturating_sub(start) / self.interval,
            _ => u64::MAX,
        };
        let count = self
            .buckets
            .len()
            .min(usize::try_from(count).unwrap_or(usize::MAX));
        self.buckets
            .iter()
            .enumerate()
            .take(count)
            .filter_map(|(index, value)| {
                Some((index as f64 * self.interval as f64 / 1e9, (*value)?))
            })
            .collect()
    }
}

fn growth(points: &[(f64, u64)]) -> Option<Growth> {
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < MIN_POINTS {
        return None;
    }
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (index, (time, value)) in points.iter().enumerate() {
        for (later_time, later_value) in points.iter().skip(index + 1) {
            slopes.push((*later_value as f64 - *value as f64) / (later_time - time));
        }
    }
    slopes.sort_by(f64::total_cmp);
    let rising = slopes.iter().filter(|slope| **slope > 0.0).count();
    Some(Growth {
        bytes_per_second: slopes.get(slopes.len() / 2).copied()?,
        steadiness: rising as f64 / slopes.len() as f64,
        gained: last.1.saturating_sub(first.1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(values: impl IntoIterator<Item = (u64, u64)>) -> Series {
        let mut series = Series::default();
        for (millis, value) in values {
            series.push(
                Stamp {
                    monotonic_ns: millis * 1_000_000,
                    realtime_ns: 0,
                },
                value,
            );
        }
        series
    }

    #[test]
    fn a_day_of_samples_keeps_its_peak_and_shape() {
        let day = (0..86_400).map(|second| {
            (
                second * 1_000,
                if second == 40_000 { 900 } else { second / 864 },
            )
        });
        let points = series(day).points(10);
        assert_eq!(points.len(), 10);
        assert_eq!(points.iter().max(), Some(&900));
        assert!(points[9] >= 98 && points[0] <= 12, "{points:?}");
    }

    #[test]
    fn a_gap_repeats_the_value_before_it() {
        assert_eq!(
            series([(0, 5), (1_000, 7)]).points(11),
            [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 7]
        );
        assert!(series([]).points(10).is_empty());
    }

    #[test]
    fn a_leak_with_a_saw_tooth_is_steady_growth() {
        let saw = (0..2_000).map(|step| (step * 50, step * 4_000_000 + (step % 3) * 1_000_000));
        let growth = series(saw).growth_until(None).unwrap();
        assert!(
            (growth.bytes_per_second / 80e6 - 1.0).abs() < 0.05,
            "{growth:?}"
        );
        assert!(growth.steadiness > 0.95);
    }

    #[test]
    fn a_rise_after_a_long_constant_time_is_detected() {
        let late = |from: u64| {
            series(
                (0..1_000)
                    .map(move |step: u64| (step * 100, step.saturating_sub(from) * 1_000_000)),
            )
        };
        let growth = late(900).last_rise_until(None).unwrap();
        assert!(growth.steadiness > 0.95, "{growth:?}");
        assert!(late(900).growth_until(None).unwrap().steadiness < 0.85);
        // A single jump is not growth.
        let jump = (0..1_000).map(|step| (step * 100, if step < 999 { 5 } else { 900 }));
        assert_eq!(series(jump).last_rise_until(None), None);
    }

    #[test]
    fn a_plateau_after_a_ramp_is_no_growth() {
        let ramp = (0..1_000).map(|step| (step * 100, step.min(300) * 1_000_000));
        let growth = series(ramp).growth_until(None).unwrap();
        assert_eq!((growth.bytes_per_second, growth.gained), (0.0, 0));
        assert!(series([(0, 1), (200, 2)]).growth_until(None).is_none());
    }

    proptest! {
        #[test]
        fn memory_stays_constant_and_the_peak_is_never_lost(
            values in proptest::collection::vec((any::<u32>(), any::<u64>()), 1..300),
            count in 1usize..60,
        ) {
            let mut series = Series::default();
            let mut time = 0;
            for (gap, value) in &values {
                time += u64::from(*gap) * 10_000_000;
                series.push(Stamp { monotonic_ns: time, realtime_ns: 0 }, *value);
            }
            prop_assert!(series.buckets.len() <= BUCKETS);
            let points = series.points(count);
            prop_assert!(points.len() <= count);
            prop_assert_eq!(points.into_iter().max(), values.into_iter().map(|(_, value)| value).max());
        }
    }
}
