//! What happens to a request that failed: the one place where that is decided.
//!
//! In this order: is it the wall at all; ask the guard to look again; lift the wall when
//! there is no guard; let small requests and thread starts draw on the reserve; refuse, and
//! open the landing strip so that the error can be handled.

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
/// Draws of one request; the reserve is used up long before.
const MAX_DRAWS: u32 = 256;
/// Moves of the wall for one mapping.
const MAX_MOVES: u32 = 4;

#[derive(Clone, Copy)]
pub enum Request {
    /// Of the malloc family.
    Heap(usize),
    /// A private writable mapping.
    Mapping(usize),
    /// The same of a file, or reserved, and large.
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

    /// What it maps and is not meant to fill.
    fn reserves(self) -> Option<u64> {
        match self {
            Self::Heap(_) | Self::Mapping(_) => None,
            Self::Reserved(_) | Self::Thread(_) => Some(self.bytes()),
        }
    }

    /// A mapping of just this size is small too: it is what Python's allocator asks for.
    fn is_small(self) -> bool {
        match self {
            Self::Heap(bytes) => (bytes as u64) < SMALL_REQUEST,
            Self::Mapping(bytes) => bytes as u64 <= SMALL_REQUEST,
            Self::Reserved(_) => false,
            Self::Thread(_) => true,
        }
    }

    /// What it draws from the small reserve at a time. It leaves no room for a large request, which would otherwise be
    /// met there instead of being refused, as often as a small one comes before it.
    fn step(self) -> u64 {
        match self {
            Self::Thread(_) => self.bytes(),
            Self::Heap(_) | Self::Mapping(_) | Self::Reserved(_) => {
                rounded(self.bytes().saturating_add(SMALL_OVERHEAD))
            }
        }
    }

    fn fails_at(self, limit: Limit) -> bool {
        // Beyond any address space: no limit would admit it.
        if self.bytes() > isize::MAX as u64 {
            return false;
        }
        let needs = self.bytes().saturating_add(OVERHEAD);
        data_bytes().is_none_or(|data| data.saturating_add(needs) > limit.soft)
    }
}

/// Called when `request` has failed; `attempt` makes it again and says whether it was met.
/// True when it was met after all. Leaves errno as it was.
#[cold]
#[inline(never)]
pub fn rescue(request: Request, attempt: &mut dyn FnMut() -> bool) -> bool {
    let _errno = sys::KeptErrno::new();
    // None also where system calls are filtered: the cushion makes none there.
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
        // No wall of the guard's: the limit is the user's own.
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

/// Even a guard that seems gone is asked before the wall is lifted: after a suspended
/// machine wakes, its heartbeat is old and it is alive.
fn appeal(head: &Head, request: Request, attempt: &mut dyn FnMut() -> bool) -> bool {
    let may_ask = !request.is_small() || guard::is_gone(head) || guard::may_ask_for_little();
    if may_ask {
        // Said before asking, so that one answer to many does not promise the same twice.
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

/// Moves the wall by what is mapped and not meant to be filled. The guard may move it back in the same moment, and does not the next
/// time, for it has heard of the mapping.
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

/// The strip opens for the malloc family alone. A failed mapping is not yet an error of the
/// program: allocators try again in another way, Python's falls back to malloc, and a leak
/// would eat the strip before anybody has seen an error.
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
