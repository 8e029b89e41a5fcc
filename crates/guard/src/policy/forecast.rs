//! Forecasts when the tree reaches its bound.
//!
//! The time comes from the fall of the room, which others can cause too; the reported growth is that of the footprint.
//! A short window sees a fast leak, the whole history a slow one.

use super::history::{Forecast, History, Motion, PolicyInput};
use super::trend::{self, Trend};
use core::time::Duration;

const SHORT_WINDOW_NS: u64 = 5_000_000_000;
const LONG_WINDOW_NS: u64 = u64::MAX;
/// A window of this quality is used without a longer one.
const GOOD_QUALITY: f64 = 0.5;
/// Below this quality a line does not describe the past.
const MIN_QUALITY: f64 = 0.1;
/// A rise below this share of the total is noise.
const MIN_RISE_SHARE: f64 = 1.0 / 4096.0;
/// Anything further away is no forecast, seconds.
const MAX_FORECAST_S: f64 = 86_400.0;

/// How the room falls and the footprint grows. Both stay as they are when a constant is
/// added to all rooms: more memory must never make the tree look worse.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outlook {
    pub fall: Option<Trend>,
    pub growth: Option<Trend>,
}

impl Outlook {
    pub fn from_history(history: &History) -> Outlook {
        Outlook {
            fall: best(history, |input| input.room.saturating_neg()),
            growth: best(history, |input| {
                i64::try_from(input.footprint).unwrap_or(i64::MAX)
            }),
        }
    }

    /// Whether the footprint rises along a line of good quality.
    pub fn tree_grows(&self) -> bool {
        self.growth
            .is_some_and(|growth| growth.quality >= GOOD_QUALITY)
    }

    /// The forecast for this input.
    pub fn from(&self, now: &PolicyInput) -> Option<Forecast> {
        let fall = self.fall?;
        let time = now.room.max(0) as f64 / fall.slope;
        if fall.quality < MIN_QUALITY || !(0.0..MAX_FORECAST_S).contains(&time) {
            return None;
        }
        // A second of growth says little about the next minute: loading a model looks like a leak until it ends.
        // Confidence reaches as far ahead as the window reaches back.
        let reach = (fall.span / time).min(1.0);
        Some(Forecast {
            time: Duration::try_from_secs_f64(time).ok()?,
            growth: self.growth.map_or(0.0, |growth| growth.slope),
            confidence: fall.quality * reach,
        })
    }
}

/// Time until the tree reaches its bound. None if it does not grow towards it, or if too little was seen of it running.
pub fn forecast(history: &History) -> Option<Forecast> {
    Outlook::from_history(history).from(history.last()?)
}

/// The trend over the window that describes it best.
fn best(history: &History, height: impl Fn(&PolicyInput) -> i64 + Copy) -> Option<Trend> {
    let least = history.last()?.total as f64 * MIN_RISE_SHARE;
    let rises = |trend: &Trend| trend.slope > 0.0 && trend.rise >= least.max(1.0);
    let long = trend::of_peaks(heights(history, LONG_WINDOW_NS, height)).filter(rises);
    let short = trend::of_peaks(heights(history, SHORT_WINDOW_NS, height))
        .filter(rises)
        .filter(|trend| beyond_earlier(history, trend, height));
    match (short, long) {
        // The longer window supports a forecast further ahead, if both agree.
        (Some(short), Some(long)) if short.quality >= GOOD_QUALITY => {
            let same = (0.67..1.5).contains(&(short.slope / long.slope));
            Some(if same && long.quality >= GOOD_QUALITY {
                long
            } else {
                short
            })
        }
        (Some(short), Some(long)) if short.quality >= long.quality => Some(short),
        (short, long) => long.or(short),
    }
}

/// Whether the short window rises above what was reached before it. A slow sawtooth also rises for seconds, to where it
/// has been.
fn beyond_earlier(
    history: &History,
    short: &Trend,
    height: impl Fn(&PolicyInput) -> i64 + Copy,
) -> bool {
    let now = history.last().map_or(0, |input| input.at);
    let earlier = heights(history, LONG_WINDOW_NS, height)
        .skip_while(|(at, _)| now.saturating_sub(*at) <= SHORT_WINDOW_NS)
        .map(|(_, value)| value)
        .max();
    earlier.is_none_or(|earlier| short.top.saturating_sub(earlier) as f64 >= 0.25 * short.rise)
}

/// Heights over the last `window` nanoseconds, newest first, as long as the tree ran.
fn heights(
    history: &History,
    window: u64,
    height: impl Fn(&PolicyInput) -> i64 + Copy,
) -> impl Iterator<Item = (u64, i64)> + Clone {
    history
        .recent(window)
        .take_while(|input| input.motion == Motion::Running)
        .map(move |input| (input.at, height(input)))
}
