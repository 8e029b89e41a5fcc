//! Histories to decide on: a machine of 16 GB with 1 GB kept for the person, on which a
//! trainer of 4 GB runs quietly unless a test says otherwise.

use antifreeze_guard::policy::{Bound, Config, Decision, History, PolicyInput, decide};
use antifreeze_record::event::Rung;
use std::time::Duration;

pub const MB: u64 = 1 << 20;
pub const GB: u64 = 1 << 30;
pub const SECOND: u64 = 1_000_000_000;
/// Stamps do not begin at zero: the machine has been up for a while.
pub const BOOT: u64 = 1000 * SECOND;

pub fn quiet() -> PolicyInput {
    PolicyInput {
        at: BOOT,
        room: 8 * GB as i64,
        bound: Bound::Machine,
        total: 16 * GB,
        available: 9 * GB,
        reserve: GB,
        footprint: 4 * GB,
        others: 3 * GB,
        stride: 8 * MB,
        swapped_in: Some(50_000),
        swapped_out: Some(50_000),
        swap_free: Some(4 * GB),
        scanned: Some(9_000_000),
        stalled_us: Some(1_000_000),
        shm_free: Some(8 * GB),
        disk_free: Some(200 * GB),
        ..PolicyInput::default()
    }
}

pub fn config() -> Config {
    Config {
        wall: true,
        can_save: false,
        dies_at_wall: false,
        attached: false,
        swap_is_memory: false,
        pages_out: false,
        pause_deadline: Duration::from_secs(300),
        stop_deadline: Duration::from_secs(10),
    }
}

/// Looks every `step` milliseconds; `shape` changes the quiet moment at a time in seconds.
pub fn history(seconds: f64, step: u64, shape: impl Fn(f64, &mut PolicyInput)) -> History {
    let mut history = History::new();
    extend(&mut history, seconds, step, shape);
    history
}

/// More looks after those there are; time goes on from zero for `shape`.
pub fn extend(
    history: &mut History,
    seconds: f64,
    step: u64,
    shape: impl Fn(f64, &mut PolicyInput),
) {
    let start = history
        .last()
        .map_or(BOOT, |input| input.at + step * 1_000_000);
    let looks = (seconds * 1000.0) as u64 / step;
    for look in 0..=looks {
        let mut input = PolicyInput {
            at: start + look * step * 1_000_000,
            ..quiet()
        };
        shape((look * step) as f64 / 1000.0, &mut input);
        history.push(input);
    }
}

pub fn now(history: &History) -> u64 {
    history.last().map_or(BOOT, |input| input.at)
}

/// So many seconds before now.
pub fn ago(history: &History, seconds: f64) -> u64 {
    now(history) - (seconds * 1e9) as u64
}

pub fn enter(history: &mut History, rung: Rung, seconds_ago: f64) {
    history.acts.rung = rung;
    history.acts.since = ago(history, seconds_ago);
}

/// The tree takes so many bytes of what is available.
pub fn takes(input: &mut PolicyInput, bytes: f64) {
    input.footprint += bytes as u64;
    leaves(input, bytes);
}

/// The others take so many bytes of what is available.
pub fn others_take(input: &mut PolicyInput, bytes: f64) {
    input.others += bytes as u64;
    leaves(input, bytes);
}

fn leaves(input: &mut PolicyInput, bytes: f64) {
    input.available = input.available.saturating_sub(bytes as u64);
    input.room -= bytes as i64;
}

/// Room and available memory, with what the others need for it.
pub fn available(input: &mut PolicyInput, bytes: u64) {
    input.available = bytes;
    input.room = bytes as i64 - input.reserve as i64;
    input.others = input.total - bytes.min(input.total) - input.footprint;
}

pub fn rung(history: &History, config: &Config) -> Rung {
    decide(history, config).rung
}

pub fn decision(history: &History) -> Decision {
    decide(history, &config())
}

pub fn saving() -> Config {
    Config {
        can_save: true,
        ..config()
    }
}

/// Half a minute of growth of the tree that leaves `room` at the end.
pub fn leak(rate: u64, room: i64) -> History {
    history(25.0, 100, |t, input| {
        let to_come = (25.0 - t) * rate as f64;
        let taken = input.room as f64 - room as f64 - to_come;
        takes(input, taken);
    })
}

/// The neighbour takes the last of it within ten seconds, down to `left` available.
pub fn squeezed(left: u64) -> History {
    history(20.0, 100, |t, input| {
        let taken = (input.available - left) as f64;
        others_take(input, taken * ((t - 10.0) / 9.0).clamp(0.0, 1.0));
    })
}

pub fn steady(shape: impl Fn(&mut PolicyInput)) -> History {
    history(20.0, 100, |_, input| shape(input))
}

/// Pages a second come back from swap, for the last seconds of twenty.
pub fn swapping(input: &mut PolicyInput, t: f64, rate: f64, seconds: f64) {
    let since = (t - (20.0 - seconds)).max(0.0);
    input.swapped_in = input.swapped_in.map(|count| count + (since * rate) as u64);
}

/// Everything waits for a share of the time while so many pages a second are scanned.
pub fn stalling(input: &mut PolicyInput, t: f64, share: f64, scanned: f64) {
    input.stalled_us = input.stalled_us.map(|us| us + (t * share * 1e6) as u64);
    input.scanned = input.scanned.map(|pages| pages + (t * scanned) as u64);
}
