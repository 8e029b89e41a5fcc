//! Asks the guard for a new tick, and notices that there is no guard.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::page::{Head, STALE_NS};
use crate::{seccomp, shared, sys};

/// The longest total wait of a small request for answers: the reserve is there for it.
const SHORT_PATIENCE_NS: u64 = 60_000_000;
/// The same for any other request. A guard that gets no CPU time answers late, and a needless error ends a training.
const LONG_PATIENCE_NS: u64 = 2_000_000_000;
/// Small requests of one process are at least this far apart,
const PACE_NS: u64 = 20_000_000;
/// and this far after one without an answer.
const SILENCE_NS: u64 = 1_000_000_000;

/// A large request waits this long, twice, before it is refused: frameworks free a batch in another thread shortly
/// after they ask for the next one.
const SECOND_CHANCES_NS: [u64; 2] = [20_000_000, 60_000_000];
/// These waits are at least this far apart, so that a program that is refused repeatedly is not slowed down.
const SECOND_CHANCE_PACE_NS: u64 = 300_000_000;

/// The time from which a small request may ask.
static ASK_AFTER: AtomicU64 = AtomicU64::new(0);
/// The time from which a large request may wait for memory that another thread frees.
static WAIT_AFTER: AtomicU64 = AtomicU64::new(0);

/// The lead of the guard's clock over that of this process, modulo 2^64. Not 0 in another time namespace.
static AHEAD: AtomicU64 = AtomicU64::new(0);
/// Two clock readings differ by less than this unless a clock was set meanwhile.
const SAME_CLOCK_NS: u64 = 1_000_000_000;

/// CLOCK_MONOTONIC as the guard sees it; all times of the page are in it.
pub fn now() -> u64 {
    sys::now().wrapping_add(AHEAD.load(Relaxed))
}

/// Finds out whether this process is in another time namespace than the guard, which can only be so from its start.
/// Called before `main`, and by a child after fork.
pub fn find_clock() {
    let Some(head) = shared::head().filter(|_| !seccomp::is_filtered()) else {
        return;
    };
    let is_same = |ahead: u64| ahead.wrapping_add(SAME_CLOCK_NS) < 2 * SAME_CLOCK_NS;
    if is_same(ahead(head).wrapping_sub(AHEAD.load(Relaxed))) {
        return;
    }
    // The real time may have been set since the guard's last tick.
    ask_for_tick(head);
    let ahead = ahead(head);
    AHEAD.store(if is_same(ahead) { 0 } else { ahead }, Relaxed);
}

fn ahead(head: &Head) -> u64 {
    match head.realtime_offset.load(Acquire) {
        0 => 0,
        offset => sys::realtime()
            .wrapping_sub(sys::now())
            .wrapping_sub(offset),
    }
}

/// Nobody stands guard any more. A heartbeat from the future (the guard ticked meanwhile) is
/// fresh.
pub fn is_gone(head: &Head) -> bool {
    now().saturating_sub(head.heartbeat.load(Acquire)) > STALE_NS
}

/// Whether a small request may ask now. Many fail in a row at the wall, and the reserve is
/// there for them: they ask once in a while, and one thread at a time.
pub fn may_ask_for_little() -> bool {
    let after = ASK_AFTER.load(Relaxed);
    let now = sys::now();
    let next = now.saturating_add(PACE_NS);
    now >= after
        && ASK_AFTER
            .compare_exchange(after, next, Relaxed, Relaxed)
            .is_ok()
}

/// Asks the guard, and repeats the attempt after each answer. Two answers, because the first may come from a tick that
/// began before the question.
pub fn ask(head: &Head, is_small: bool, attempt: &mut dyn FnMut() -> bool) -> bool {
    let patience = match is_small {
        true => SHORT_PATIENCE_NS,
        false => LONG_PATIENCE_NS,
    };
    let deadline = sys::now().saturating_add(patience);
    let mut pause = PACE_NS;
    let mut granted = false;
    for _ in 0..2 {
        if !is_answered(head, deadline) {
            pause = SILENCE_NS;
            break;
        }
        granted = attempt();
        if granted {
            break;
        }
    }
    ASK_AFTER.store(sys::now().saturating_add(pause), Relaxed);
    granted || !is_small && pause == PACE_NS && waits_for_memory(head, deadline, attempt)
}

/// Asks again a little later, and once more. True when the request was met.
fn waits_for_memory(head: &Head, deadline: u64, attempt: &mut dyn FnMut() -> bool) -> bool {
    if sys::now() < WAIT_AFTER.load(Relaxed) {
        return false;
    }
    let is_met = SECOND_CHANCES_NS.iter().any(|&nanoseconds| {
        sys::futex_wait(&AtomicU32::new(0), 0, nanoseconds);
        is_answered(head, deadline) && attempt()
    });
    WAIT_AFTER.store(sys::now().saturating_add(SECOND_CHANCE_PACE_NS), Relaxed);
    is_met
}

/// Asks the guard for a tick, and waits for it briefly.
pub fn ask_for_tick(head: &Head) {
    is_answered(head, sys::now().saturating_add(SHORT_PATIENCE_NS));
}

fn is_answered(head: &Head, deadline: u64) -> bool {
    let tick = head.tick.load(Acquire);
    head.kick.fetch_add(1, AcqRel);
    sys::futex_wake(&head.kick);
    loop {
        if head.tick.load(Acquire) != tick {
            return true;
        }
        let left = deadline.saturating_sub(sys::now());
        if left == 0 {
            return false;
        }
        sys::futex_wait(&head.tick, tick, left);
    }
}
