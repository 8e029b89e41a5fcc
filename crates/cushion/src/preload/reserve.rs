//! Grants a process memory beyond the wall: the small reserve, in steps, and the landing strip, once.
//!
//! Both become available again when the limit is no longer the one that this process set last: then the guard has moved
//! it and knows of the draw.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::limit::Limit;
use crate::page::{SMALL_RESERVE, STRIP};
use crate::shared::{head, slot};
use crate::{loader, sys};

/// How often a thread yields to one that is raising the limit before it continues without: it must never hang, not even
/// in a signal handler on top of that thread.
const PATIENCE: u32 = 200;

static RAISING: AtomicBool = AtomicBool::new(false);
/// A futex word that is never woken: waiting on it is a sleep.
static REST: AtomicU32 = AtomicU32::new(0);
/// The soft limit that this process set itself last; 0 for never.
static OWN: AtomicU64 = AtomicU64::new(0);
static DRAWN: AtomicU64 = AtomicU64::new(0);
static LANDED: AtomicBool = AtomicBool::new(false);

/// Makes sure that the limit is above `seen`, drawing `step` from the small reserve unless another thread has just
/// raised it. False if the reserve is used up.
pub fn draw(seen: &mut u64, step: u64) -> bool {
    let Some(turn) = Turn::take() else {
        return true;
    };
    let Some(limit) = turn.limit() else {
        return false;
    };
    if limit.soft > *seen {
        *seen = limit.soft;
        return true;
    }
    let drawn = DRAWN.load(Relaxed).saturating_add(step);
    if drawn > size(SMALL_RESERVE, |head| &head.small_reserve) {
        return false;
    }
    let Some(raised) = limit.raised(step) else {
        return false;
    };
    DRAWN.store(drawn, Relaxed);
    *seen = raised;
    turn.raise(limit, raised)
}

/// Opens the landing strip, unless it is open.
pub fn land() {
    let Some(turn) = Turn::take() else { return };
    let Some(limit) = turn.limit() else { return };
    if LANDED.swap(true, Relaxed) {
        return;
    }
    if let Some(raised) = limit.raised(size(STRIP, |head| &head.strip)) {
        turn.raise(limit, raised);
    }
}

/// Room made by [`make_room`].
pub struct Room {
    before: u64,
    raised: u64,
}

/// Raises the limit by a mapping that is not meant to be filled. None if it cannot be raised, or only beyond the limit
/// that the user had set.
pub fn make_room(bytes: u64) -> Option<Room> {
    let turn = Turn::take()?;
    let limit = turn.limit()?;
    let ceiling = loader::ceiling(head());
    let raised = limit.raised(bytes).filter(|raised| *raised <= ceiling)?;
    turn.raise(limit, raised).then_some(Room {
        before: limit.soft,
        raised,
    })
}

impl Room {
    /// Lowers the limit again, unless another process has moved it since.
    pub fn give_back(self) {
        let Some(turn) = Turn::take() else { return };
        if let Some(limit) = turn.limit()
            && limit.soft == self.raised
        {
            turn.raise(limit, self.before);
        }
    }
}

/// Resets a child after fork: it has granted itself nothing, and the thread that may have been raising the limit is not
/// in it.
pub fn forget() {
    OWN.store(0, Relaxed);
    DRAWN.store(0, Relaxed);
    LANDED.store(false, Relaxed);
    RAISING.store(false, Relaxed);
}

fn size(built_in: u64, field: impl Fn(&crate::page::Head) -> &AtomicU64) -> u64 {
    match head().map(|head| field(head).load(Relaxed)) {
        None | Some(0) => built_in,
        Some(bytes) => bytes,
    }
}

/// Held by the only thread that may change the limit and the counts above. Two at a time would take each other's raise
/// for that of the guard and reset the reserve again and again.
pub struct Turn;

impl Turn {
    pub fn take() -> Option<Self> {
        for _ in 0..PATIENCE {
            if RAISING
                .compare_exchange_weak(false, true, Acquire, Relaxed)
                .is_ok()
            {
                return Some(Self);
            }
            sys::yield_now();
        }
        // The thread that holds it may not get CPU time.
        sys::futex_wait(&REST, 0, 1_000_000);
        None
    }

    /// The present limit. Resets everything if the guard has moved it.
    fn limit(&self) -> Option<Limit> {
        let limit = Limit::read()?;
        if limit.soft != OWN.load(Relaxed) {
            DRAWN.store(0, Relaxed);
            LANDED.store(false, Relaxed);
        }
        Some(limit)
    }

    /// Announces the limit in the slot before it is set, or the guard would find a limit that it cannot explain.
    pub fn raise(&self, limit: Limit, soft: u64) -> bool {
        OWN.store(soft, Relaxed);
        if let Some(slot) = slot() {
            slot.drawn.store(DRAWN.load(Relaxed), Relaxed);
            slot.landed.store(u32::from(LANDED.load(Relaxed)), Relaxed);
            slot.own_limit.store(soft, Release);
        }
        limit.move_to(soft)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        RAISING.store(false, Release);
    }
}
