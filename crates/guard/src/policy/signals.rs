//! Computes the signals other than the forecast from the recent past: swap storms, stalls, which side grew, low space.
//!
//! Every signal that depends on how much memory is left gets weaker when more is left.

use super::forecast::Outlook;
use super::history::{History, PolicyInput};
use super::trend::seconds;

const SECOND_NS: u64 = 1_000_000_000;

/// Swap-in is measured over at least this length: single samples are too bursty.
const PIECE_NS: u64 = SECOND_NS * 2 / 5;
/// Pages a second that come back from swap in a storm.
const STORM_RATE: f64 = 1000.0;
/// Seconds after which swap-in is a storm; a start-up burst is shorter.
const STORM_AFTER: f64 = 1.0;
/// Share of time in which all processes wait for memory that counts as stalling.
pub(super) const STALL_SHARE: f64 = 0.15;
/// Pages scanned a second that count as reclaim.
const RECLAIM_RATE: f64 = 1000.0;
/// How far back growth is measured, and what part of it counts as now.
const GROWTH_WINDOW_NS: u64 = 30 * SECOND_NS;
const GROWTH_NOW_NS: u64 = SECOND_NS;
/// Room counts as regained or lost once it has lasted this long.
pub(super) const SETTLED_NS: u64 = 2 * SECOND_NS;
/// Free space below these is low. A container's /dev/shm is often 64 MB in all.
const DISK_LOW_BYTES: u64 = 1 << 30;
const SHM_LOW_BYTES: u64 = 16 << 20;
/// Space is also low if it would be gone within this many seconds.
const SPACE_SOON: f64 = 10.0;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Signals {
    /// Seconds for which pages have come back from swap at storm rate without a break.
    pub storm_for: f64,
    /// Seconds since the last storm.
    pub quiet_for: f64,
    /// Share of about the last second in which all processes waited for memory, while reclaim went on.
    pub stalled: f64,
    /// Bytes by which the others and the tree rose recently.
    pub others_rise: f64,
    pub tree_rise: f64,
    /// Bytes that rise and fall all the time.
    pub noise: f64,
    /// The footprint rises, even if slowly.
    pub growing: bool,
    /// The tree grew by more than noise, and is part of the cause.
    pub tree_grew: bool,
    /// The footprint falls.
    pub shrinking: bool,
    /// How fast available memory fell recently, bytes a second.
    pub available_fall: f64,
    /// How fast the others grew recently, bytes a second.
    pub others_growth: f64,
    /// The extremes of the last two seconds.
    pub least_room: i64,
    pub least_available: u64,
    pub most_available: u64,
    pub disk_low: bool,
    pub shm_low: bool,
}

impl Signals {
    pub fn from_history(history: &History, now: &PolicyInput, outlook: &Outlook) -> Signals {
        let (storm_for, quiet_for) = storm(history);
        let others_rise = rise(history, Edge::Low, |input| input.others);
        let tree_rise = rise(history, Edge::High, |input| input.footprint);
        let total = now.total as f64;
        let lately = || history.recent(SETTLED_NS);
        Signals {
            storm_for,
            quiet_for,
            stalled: stalled(history, now),
            others_rise,
            tree_rise,
            noise: total / 64.0,
            growing: outlook.tree_grows() || tree_rise > (total / 256.0).max(1.0),
            tree_grew: outlook.tree_grows()
                || tree_rise > (total / 64.0).max(others_rise / 4.0).max(1.0),
            shrinking: change(history, now, |input| Some(input.footprint))
                < -0.01 * now.footprint as f64,
            available_fall: -change(history, now, |input| Some(input.available)).min(0.0),
            others_growth: change(history, now, |input| Some(input.others)).max(0.0),
            least_room: lately().map(|input| input.room).min().unwrap_or(now.room),
            least_available: lately()
                .map(|input| input.available)
                .min()
                .unwrap_or(now.available),
            most_available: lately()
                .map(|input| input.available)
                .max()
                .unwrap_or(now.available),
            disk_low: space_low(history, now, DISK_LOW_BYTES, |input| input.disk_free),
            shm_low: space_low(history, now, SHM_LOW_BYTES, |input| input.shm_free),
        }
    }

    /// Whether pages keep coming back from swap as fast as they go.
    pub fn storm(&self) -> bool {
        self.storm_for >= STORM_AFTER
    }

    /// Whether other programs grew more than the tree, and by more than the noise of small programs.
    pub fn others_grew(&self) -> bool {
        self.others_rise > self.tree_rise && self.others_rise > self.noise
    }
}

/// Seconds of storm up to now, and seconds since the last storm.
fn storm(history: &History) -> (f64, f64) {
    let mut inputs = history.recent(u64::MAX);
    let Some(mut end) = inputs.next() else {
        return (0.0, f64::MAX);
    };
    let now = end.at;
    let mut hot_until = None;
    let mut pieces = 0;
    for input in inputs {
        let length = end.at.saturating_sub(input.at);
        if length < PIECE_NS {
            continue;
        }
        let (Some(late), Some(early)) = (end.swapped_in, input.swapped_in) else {
            break;
        };
        let rate = late.saturating_sub(early) as f64 / seconds(length);
        // Pages also come back when memory is plentiful again; that is recovery, not a storm.
        let hot = rate > STORM_RATE && end.available < end.reserve.saturating_mul(2);
        match (hot, hot_until) {
            (true, None) => {
                hot_until = Some(end.at);
                pieces = 1;
            }
            (true, Some(_)) => pieces += 1,
            (false, Some(until)) => return measured(now, until, end.at, pieces),
            (false, None) => {}
        }
        end = input;
    }
    match hot_until {
        Some(until) => measured(now, until, end.at, pieces),
        None => (0.0, f64::MAX),
    }
}

fn measured(now: u64, until: u64, from: u64, pieces: u32) -> (f64, f64) {
    let lasted = if until == now && pieces >= 2 {
        seconds(until.saturating_sub(from))
    } else {
        0.0
    };
    (lasted, seconds(now.saturating_sub(until)))
}

/// Share of time in which all processes waited for memory while pages were scanned. A compressed swap reports waiting
/// while memory is plentiful, so waiting without reclaim does not count.
fn stalled(history: &History, now: &PolicyInput) -> f64 {
    let waited = change(history, now, |input| input.stalled_us) / 1e6;
    let reclaiming = match now.scanned {
        Some(_) => change(history, now, |input| input.scanned) >= RECLAIM_RATE,
        None => now.available < now.reserve,
    };
    if reclaiming { waited.max(0.0) } else { 0.0 }
}

/// Change of a value per second over about the last second; 0 if nothing that old is remembered.
fn change(
    history: &History,
    now: &PolicyInput,
    value: impl Fn(&PolicyInput) -> Option<u64>,
) -> f64 {
    let before = history
        .recent(u64::MAX)
        .find(|input| now.at.saturating_sub(input.at) >= SECOND_NS);
    let Some(before) = before else { return 0.0 };
    let (Some(late), Some(early)) = (value(now), value(before)) else {
        return 0.0;
    };
    (i128::from(late) - i128::from(early)) as f64 / seconds(now.at.saturating_sub(before.at))
}

/// Which edge of a series shows growth rather than fluctuation.
#[derive(Clone, Copy)]
enum Edge {
    /// The peaks of the tree: it returns to old ones at every step.
    High,
    /// The lows of the others: what they never free.
    Low,
}

/// How much an edge rose from the past half minute to now.
fn rise(history: &History, edge: Edge, value: impl Fn(&PolicyInput) -> u64) -> f64 {
    let now = history.last().map_or(0, |input| input.at);
    let is_now = |input: &&PolicyInput| now.saturating_sub(input.at) < GROWTH_NOW_NS;
    let pick = |best: Option<u64>, value: u64| match (edge, best) {
        (_, None) => Some(value),
        (Edge::High, Some(best)) => Some(best.max(value)),
        (Edge::Low, Some(best)) => Some(best.min(value)),
    };
    let inputs = || history.recent(GROWTH_WINDOW_NS);
    let late = inputs()
        .take_while(is_now)
        .fold(None, |best, input| pick(best, value(input)));
    let early = inputs()
        .skip_while(is_now)
        .fold(None, |best, input| pick(best, value(input)))
        // If only a second is remembered, its beginning is the past.
        .or_else(|| inputs().last().map(&value));
    match (late, early) {
        (Some(late), Some(early)) => late.saturating_sub(early) as f64,
        _ => 0.0,
    }
}

fn space_low(
    history: &History,
    now: &PolicyInput,
    low: u64,
    free: impl Fn(&PolicyInput) -> Option<u64>,
) -> bool {
    let Some(left) = free(now) else { return false };
    let fall = -change(history, now, free);
    left < low || (fall > 0.0 && (left as f64) < fall * SPACE_SOON)
}
