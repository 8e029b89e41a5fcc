//! Asking the guard to look again, and noticing that there is none.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use crate::page::{Head, STALE_NS};
use crate::sys;

/// The longest a small request waits for answers, all in all: the reserve is there for it.
const SHORT_PATIENCE_NS: u64 = 60_000_000;
/// The same of any other. A guard that the machine keeps from running answers late, and an error that need not have
/// been ends a training.
const LONG_PATIENCE_NS: u64 = 2_000_000_000;
/// Small requests of one process leave this much between two questions,
const PACE_NS: u64 = 20_000_000;
/// and this much after one that nobody answered.
const SILENCE_NS: u64 = 1_000_000_000;

/// From when on a small request may ask.
static ASK_AFTER: AtomicU64 = AtomicU64::new(0);

/// Nobody stands guard any more. A heartbeat from the future (the guard ticked meanwhile) is
/// fresh.
pub fn is_gone(head: &Head) -> bool {
    sys::now().saturating_sub(head.heartbeat.load(Acquire)) > STALE_NS
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

/// Asks, and tries again after each answer. Two answers, because the first may come from a
/// look that began before the question.
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
    granted
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
