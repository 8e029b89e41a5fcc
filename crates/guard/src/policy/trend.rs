//! Fits a straight line to the peaks of a series, so that outliers cannot bend it.
//!
//! Training allocates and frees at every step, so the value of one sample means little. The window is cut into equal
//! spans of time and only the highest sample of each counts; through those peaks goes the median of all pairwise slopes
//! (Theil–Sen). A sawtooth of steady height is flat by this measure if its period is below a span, and samples may come
//! at any spacing. Adding a constant to every value changes nothing.

/// Spans a window is cut into. 66 pairs keep a trend far below the 50 µs it may cost.
const SPANS: usize = 12;
const PAIRS: usize = SPANS * (SPANS - 1) / 2;
/// Fewer samples than this give no trend.
const MIN_SAMPLES: usize = 4;
/// More samples than this add no quality. Fewer can coincide with the steps of the trainer so that a sawtooth seems to
/// rise slowly.
const ENOUGH_SAMPLES: f64 = 16.0;
/// The quality of a trend that has ended is multiplied by this.
const ENDED_TRUST: f64 = 0.3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trend {
    /// Units a second; negative when falling.
    pub slope: f64,
    /// How much the line rises over the window.
    pub rise: f64,
    /// Length of the window in seconds.
    pub span: f64,
    /// 0 to 1: agreement of the slopes, the share of change that the line explains, and whether there were enough
    /// samples.
    pub quality: f64,
    /// The highest value of the window.
    pub top: i64,
}

#[derive(Clone, Copy)]
struct Peak {
    at: u64,
    value: i64,
}

impl Peak {
    /// Seconds and units from an older peak to this one.
    fn since(self, older: Peak) -> (f64, f64) {
        (
            seconds(self.at.saturating_sub(older.at)),
            difference(self.value, older.value),
        )
    }
}

/// The trend of `(nanoseconds, value)`, newest first with times that never rise. None if there are too few samples or
/// no time passed between them.
pub(super) fn of_peaks(points: impl Iterator<Item = (u64, i64)> + Clone) -> Option<Trend> {
    let (newest, _) = points.clone().next()?;
    let (oldest, looks) = points
        .clone()
        .fold((newest, 0), |(_, looks), (at, _)| (at, looks + 1));
    let window = newest.saturating_sub(oldest);
    if looks < MIN_SAMPLES || window == 0 {
        return None;
    }

    let peaks = peaks(points, newest, window);
    let known = || peaks.iter().flatten().copied();
    let first = known().next_back()?;
    let last = known().next()?;
    let top = known().map(|peak| peak.value).max()?;

    let mut slopes = [0.0; PAIRS];
    let mut pairs = 0;
    let mut balance = 0.0;
    for (later, &newer) in peaks.iter().enumerate() {
        let Some(newer) = newer else { continue };
        for &older in peaks.iter().skip(later + 1).flatten() {
            let (time, change) = newer.since(older);
            let Some(slot) = slopes.get_mut(pairs) else {
                continue;
            };
            if time > 0.0 {
                *slot = change / time;
                balance += f64::from((change > 0.0) as i8 - (change < 0.0) as i8);
                pairs += 1;
            }
        }
    }
    let slope = median(slopes.get_mut(..pairs)?)?;
    let (span, _) = last.since(first);
    let rise = slope * span;

    let agreement = (balance / pairs as f64).abs();
    let spread = spread(&peaks, first, slope);
    // Peaks of random height wander by about their spread: that must not pass for a rise.
    let explained = rise.abs() / (rise.abs() + 4.0 * spread).max(1.0);
    let enough = (looks as f64 / ENOUGH_SAMPLES).min(1.0);
    let lasting = if still_going(&peaks, slope, span) {
        1.0
    } else {
        ENDED_TRUST
    };
    Some(Trend {
        slope,
        rise,
        span,
        quality: (agreement * explained * enough * lasting).clamp(0.0, 1.0),
        top,
    })
}

/// The highest sample of each span, newest span first.
fn peaks(
    points: impl Iterator<Item = (u64, i64)>,
    newest: u64,
    window: u64,
) -> [Option<Peak>; SPANS] {
    let mut peaks = [None::<Peak>; SPANS];
    let span = window / SPANS as u64 + 1;
    for (at, value) in points {
        let index = newest.saturating_sub(at) / span;
        if let Some(slot) = peaks.get_mut(index as usize)
            && slot.is_none_or(|peak| value > peak.value)
        {
            *slot = Some(Peak { at, value });
        }
    }
    peaks
}

/// The median distance of the peaks from their line.
fn spread(peaks: &[Option<Peak>; SPANS], first: Peak, slope: f64) -> f64 {
    let mut rests = [0.0; SPANS];
    let mut count = 0;
    for (slot, peak) in rests.iter_mut().zip(peaks.iter().flatten()) {
        let (time, change) = peak.since(first);
        *slot = change - slope * time;
        count += 1;
    }
    let Some(rests) = rests.get_mut(..count) else {
        return 0.0;
    };
    let Some(middle) = median(rests) else {
        return 0.0;
    };
    for rest in rests.iter_mut() {
        *rest = (*rest - middle).abs();
    }
    median(rests).unwrap_or(0.0)
}

/// Whether the newest quarter continues the line: a cache that has filled up leaves a rise behind that is over.
fn still_going(peaks: &[Option<Peak>; SPANS], slope: f64, span: f64) -> bool {
    let quarter = SPANS / 4;
    let highest = |from: usize| {
        peaks
            .iter()
            .skip(from)
            .take(quarter)
            .flatten()
            .map(|peak| peak.value)
            .max()
    };
    match (highest(0), highest(quarter)) {
        (Some(now), Some(before)) => {
            let expected = slope * span / 4.0;
            difference(now, before) * expected.signum() >= 0.3 * expected.abs()
        }
        _ => true,
    }
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *values.get(middle.checked_sub(1)?)?;
    Some((lower + upper) / 2.0)
}

pub(super) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

fn difference(a: i64, b: i64) -> f64 {
    (i128::from(a) - i128::from(b)) as f64
}
