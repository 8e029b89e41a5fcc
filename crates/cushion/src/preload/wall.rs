//! Decides what happens to a request that failed.
//!
//! In this order: is it the wall at all; ask the guard for a new tick; lift the wall if there is no guard; let small
//! requests and thread starts draw on the reserve; refuse, and open the landing strip so that the error can be handled.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::limit::{Limit, data_bytes, rounded};
use crate::page::{Head, SMALL_REQUEST};
use crate::{guard, loader, reserve, shared, sys};

/// Allocators take more from the kernel than they were asked for (arenas, segments,
/// alignment, a thread's stack). A request that fails with more room than this above its own
/// size failed for another reason than the wall.
const OVERHEAD: u64 = 64 << 20;
/// What an allocator takes beside a small request: the space it keeps at the top of its heap, and rounding.
const SMALL_OVERHEAD: u64 = 256 << 10;
/// The stack that glibc gives a thread by default, and what starting it takes besides.
const THREAD_STEP: u64 = (8 << 20) + THREAD_EXTRA;
pub const THREAD_EXTRA: u64 = 1 << 20;
/// The most draws of one request; the reserve is used up long before.
const MAX_DRAWS: u32 = 256;
/// The most moves of the wall for one mapping.
const MAX_MOVES: u32 = 4;

#[derive(Clone, Copy)]
pub enum Request {
    /// An allocation of the malloc family.
    Heap(usize),
    /// A private writable mapping.
    Mapping(usize),
    /// A large private writable mapping of a file, or one that only reserves.
    Reserved(usize),
    /// A thread, and the size of its stack.
    Thread(usize),
}

impl Request {
    fn bytes(self) -> u64 {
        match self {
            Self::Heap(bytes) | Self::Mapping(bytes) | Self::Reserved(bytes) => bytes as u64,
            Self::Thread(stack) => THREAD_STEP.max((stack as u64).saturating_add(THREAD_EXTRA)),
        }
    }

    /// What it maps without meaning to fill it.
    fn reserves(self) -> Option<u64> {
        match self {
            Self::Heap(_) | Self::Mapping(_) => None,
            Self::Reserved(_) | Self::Thread(_) => Some(self.bytes()),
        }
    }

    /// A mapping of exactly this size counts as small: Python's allocator asks for it.
    fn is_small(self) -> bool {
        match self {
            Self::Heap(bytes) => (bytes as u64) < SMALL_REQUEST,
            Self::Mapping(bytes) => bytes as u64 <= SMALL_REQUEST,
            Self::Reserved(_) => false,
            Self::Thread(_) => true,
        }
    }

    /// What it draws from the small reserve at a time. The rest is too small for a large request, which would otherwise
    /// succeed there whenever a small one comes first.
    fn step(self) -> u64 {
        match self {
            Self::Thread(_) => self.bytes(),
            Self::Heap(_) | Self::Mapping(_) | Self::Reserved(_) => {
                rounded(self.bytes().saturating_add(SMALL_OVERHEAD))
            }
        }
    }

    fn fails_at(self, limit: Limit) -> bool {
        // More than any address space: no limit would allow it.
        if self.bytes() > isize::MAX as u64 {
            return false;
        }
        let needs = self.bytes().saturating_add(OVERHEAD);
        data_bytes().is_none_or(|data| data.saturating_add(needs) > limit.soft)
    }
}

/// Called when `request` has failed; `attempt` repeats it and returns whether it succeeded. True if it succeeded in the
/// end. Leaves errno as it was.
#[cold]
#[inline(never)]
pub fn rescue(request: Request, attempt: &mut dyn FnMut() -> bool) -> bool {
    let _errno = sys::KeptErrno::new();
    // Also None if system calls are filtered: the cushion makes none then.
    let Some(limit) = Limit::read() else {
        return false;
    };
    if !request.fails_at(limit) {
        return false;
    }
    let least = request.bytes().saturating_add(SMALL_OVERHEAD);
    if limit.is_users(least, loader::ceiling(shared::head())) {
        return false;
    }
    if let Some(head) = shared::head() {
        // The guard sets no limit: this one is the user's own.
        if head.wall.load(Acquire) != 1 {
            return false;
        }
        if let Some(bytes) = request.reserves()
            && make_room(bytes, attempt)
        {
            return true;
        }
        if appeal(head, request, attempt) {
            return true;
        }
    }
    if request.is_small() && draw(request, attempt) {
        return true;
    }
    refuse(request);
    false
}

/// Asks the guard, even one that seems gone, before the wall is lifted: after a suspended machine wakes, its heartbeat
/// is old although it is alive.
fn appeal(head: &Head, request: Request, attempt: &mut dyn FnMut() -> bool) -> bool {
    let may_ask = !request.is_small() || guard::is_gone(head) || guard::may_ask_for_little();
    if may_ask {
        // Announced before asking, so that one tick that answers many does not promise the same memory twice.
        let slot = shared::slot();
        let wants = |bytes| {
            if let Some(slot) = slot {
                slot.wanted.store(bytes, Release);
            }
        };
        wants(request.bytes());
        let granted = guard::ask(head, request.is_small(), attempt);
        wants(0);
        if granted {
            return true;
        }
    }
    guard::is_gone(head) && lift() && attempt()
}

/// Raises the limit by what is mapped without being filled. The guard may lower it again at the same time, but not a
/// second time, because it has then heard of the mapping.
fn make_room(bytes: u64, attempt: &mut dyn FnMut() -> bool) -> bool {
    for _ in 0..MAX_MOVES {
        match reserve::make_room(bytes) {
            Some(room) => {
                if attempt() {
                    return true;
                }
                room.give_back();
            }
            None => return false,
        }
    }
    false
}

fn lift() -> bool {
    let lifted = Limit::read().is_some_and(Limit::lift);
    if lifted && let Some(slot) = shared::slot() {
        slot.lifted.store(1, Relaxed);
    }
    lifted
}

fn draw(request: Request, attempt: &mut dyn FnMut() -> bool) -> bool {
    // Read again: the guard may have moved it since the request failed.
    let Some(limit) = Limit::read() else {
        return attempt();
    };
    let mut seen = limit.soft;
    for _ in 0..MAX_DRAWS {
        if !reserve::draw(&mut seen, request.step()) {
            return false;
        }
        if attempt() {
            return true;
        }
    }
    false
}

/// The strip opens only for the malloc family. A failed mapping is not yet an error of the program: allocators try
/// again in another way, Python's falls back to malloc, and a leak would use up the strip before the program has seen
/// an error.
fn refuse(request: Request) {
    match request {
        Request::Heap(bytes) => {
            reserve::land();
            shared::report_refusal(bytes as u64);
        }
        Request::Mapping(bytes) | Request::Reserved(bytes) if !request.is_small() => {
            shared::report_refusal(bytes as u64);
        }
        Request::Mapping(_) | Request::Reserved(_) | Request::Thread(_) => {}
    }
}
