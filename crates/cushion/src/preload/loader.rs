//! The dynamic loader, while it adds libraries to the process.
//!
//! The loader maps the data of a library with an `mmap` of its own. No wrapper sees that request, so it cannot
//! ask the guard, and a refusal is final: "failed to map segment from shared object". The kernel counts all of
//! that data against the limit, hundreds of megabytes for PyTorch, although it takes memory only where it is
//! written to. So the limit is raised out of the way while the loader maps.
//!
//! How it is known: for each library the loader first allocates its description with `calloc`, which is ours,
//! called from the loader's own text. From then on the limit is out of the way. The C library keeps `_r_debug`
//! for debuggers, whose state is `RT_ADD` from just after the first of these calls until all libraries of the set
//! are mapped. The first request of any thread after that puts the limit back, further by what was mapped: nothing
//! but libraries gets in between.
//!
//! The guard may be about to lower the limit at the same time. `loading` and `moving` in the slot order the two:
//! each side sets its own word before it reads the other's.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use crate::limit::{Limit, data_bytes};
use crate::page::{Head, LIMIT_UNIT, SMALL_REQUEST, Slot};
use crate::reserve::Turn;
use crate::{elf, guard, shared, sys};

/// `RT_ADD` of `<link.h>`: libraries are being added.
const ADDING: u32 = 1;
/// Where `struct r_debug` has its state, and the address of the loader.
const STATE_OFFSET: usize = 24;
const BASE_OFFSET: usize = 32;
/// The description of a library is larger than this, and is asked for as one piece. Other requests of the loader,
/// for the storage of threads most of all, are not.
const DESCRIPTION_BYTES: usize = 512;
/// How long a large request of another thread waits for the loader to finish.
const LOADER_PATIENCE_NS: u64 = 200_000_000;
/// How long the loader waits for a guard that is moving the limit. It takes microseconds, unless the guard is
/// kept from running in the middle of it.
const GUARD_PATIENCE_NS: u64 = 2_000_000_000;
const NAP_NS: u64 = 1_000_000;
/// The limit before it was raised: there was none.
const NONE: u64 = u64::MAX;

/// Stands in for the loader's state where there is none.
static IDLE: AtomicU32 = AtomicU32::new(0);
static STATE: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const IDLE).cast_mut());
/// A word that no one wakes: waiting on it is a nap.
static REST: AtomicU32 = AtomicU32::new(0);

/// The text of the loader; empty where it is not known.
static TEXT_BEGIN: AtomicUsize = AtomicUsize::new(0);
static TEXT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The limit is out of the way, and the fields below say where it stood.
static RAISED: AtomicBool = AtomicBool::new(false);
static LIMIT_BEFORE: AtomicU64 = AtomicU64::new(NONE);
static LIMIT_RAISED: AtomicU64 = AtomicU64::new(NONE);
static DATA_BEFORE: AtomicU64 = AtomicU64::new(0);
/// What libraries have mapped and the limit was not put back by, because it moves in whole units.
static REMAINDER: AtomicU64 = AtomicU64::new(0);
/// A finite limit was raised at some time.
static HAS_RAISED: AtomicBool = AtomicBool::new(false);
/// The thread for which it was raised.
static LOADER: AtomicU32 = AtomicU32::new(0);
/// `RT_ADD` has been seen since: when it is over, so is the loading.
static SEEN_ADDING: AtomicBool = AtomicBool::new(false);
/// This process was forked while another thread of its parent loaded: that thread is not here, the state says
/// `RT_ADD` until the next library is loaded, and the limit is not out of the way.
static ORPHANED: AtomicBool = AtomicBool::new(false);

/// Finds the loader's state and its text. Called before `main`.
pub fn find() {
    let debug = sys::definition(c"_r_debug").cast::<u8>();
    if debug.is_null() {
        return;
    }
    // SAFETY: glibc's `_r_debug` is a `struct r_debug`, which lives as long as the process.
    let (state, base) = unsafe {
        let base = debug.add(BASE_OFFSET).cast::<*const u8>().read();
        (debug.add(STATE_OFFSET), base)
    };
    // SAFETY: the loader is mapped from its first byte on, and stays.
    if let Some((begin, bytes)) = unsafe { elf::text(base) } {
        TEXT_BEGIN.store(begin, Relaxed);
        TEXT_BYTES.store(bytes, Relaxed);
        STATE.store(state.cast(), Release);
    }
}

/// Whether this C library tells when it loads.
pub fn is_known() -> bool {
    TEXT_BYTES.load(Relaxed) != 0
}

#[inline(always)]
fn is_adding() -> bool {
    // SAFETY: it points to `IDLE` or to the state of `_r_debug`, an aligned word that stays.
    unsafe { &*STATE.load(Relaxed) }.load(Relaxed) == ADDING
}

/// Whether this return address is the loader's.
#[inline(always)]
fn is_of_loader(caller: usize) -> bool {
    caller.wrapping_sub(TEXT_BEGIN.load(Relaxed)) < TEXT_BYTES.load(Relaxed)
}

/// To be called before each `calloc`, with its return address: the loader may be about to map a library.
#[inline(always)]
pub fn before_calloc(count: usize, size: usize, caller: usize) {
    if is_of_loader(caller) {
        if count.min(size) == 1 && count.max(size) > DESCRIPTION_BYTES {
            raise();
        }
    } else if RAISED.load(Relaxed) {
        settle(count.saturating_mul(size));
    }
}

/// The same of `malloc`.
#[inline(always)]
pub fn before_malloc(bytes: usize, caller: usize) {
    if RAISED.load(Relaxed) && !is_of_loader(caller) {
        settle(bytes);
    }
}

/// To be called before any other request for memory, so that none is met by a limit raised for libraries.
#[inline(always)]
pub fn before_request(bytes: usize) {
    if RAISED.load(Relaxed) {
        settle(bytes);
    }
}

/// Puts the limit back once the loader is done. Until then small requests pass, and large ones wait a little.
#[cold]
#[inline(never)]
fn settle(bytes: usize) {
    let _errno = sys::KeptErrno::new();
    let thread = sys::tid();
    let is_loading = || {
        if is_adding() {
            SEEN_ADDING.store(true, Relaxed);
            return true;
        }
        // Between its request and RT_ADD, as far as another thread can tell.
        !SEEN_ADDING.load(Relaxed) && LOADER.load(Relaxed) != thread && is_raised()
    };
    if is_loading() {
        if ORPHANED.load(Relaxed) || !is_large(bytes) || LOADER.load(Relaxed) == thread {
            return;
        }
        wait_while(LOADER_PATIENCE_NS, is_loading);
    }
    put_back();
}

fn is_large(bytes: usize) -> bool {
    bytes as u64 > SMALL_REQUEST
}

/// Raises the limit for what the loader is about to map. A limit that was lowered again since the last library is
/// raised again.
#[cold]
#[inline(never)]
fn raise() {
    let _errno = sys::KeptErrno::new();
    let head = shared::head();
    // No wall of the guard's: the limit is the user's own.
    if head.is_some_and(|head| head.wall.load(Acquire) != 1) {
        return;
    }
    if let (Some(head), Some(slot)) = (head, shared::slot()) {
        begin(head, slot);
    }
    // Another thread that moves the limit may be kept from running for long.
    let deadline = sys::now().saturating_add(GUARD_PATIENCE_NS);
    let turn = loop {
        match Turn::take() {
            Some(turn) => break turn,
            None if sys::now() < deadline => {}
            None => return,
        }
    };
    let (Some(limit), Some(data)) = (Limit::read_any(), data_bytes()) else {
        return;
    };
    LOADER.store(sys::tid(), Relaxed);
    SEEN_ADDING.store(is_adding(), Relaxed);
    let was_raised = is_raised();
    if was_raised && limit.soft == LIMIT_RAISED.load(Relaxed) {
        return;
    }
    if was_raised {
        announce(data);
    }
    ORPHANED.store(false, Relaxed);
    RAISED.store(true, Release);
    DATA_BEFORE.store(data, Relaxed);
    let raised = limit.highest(ceiling(head));
    LIMIT_BEFORE.store(limit.soft, Relaxed);
    LIMIT_RAISED.store(raised, Relaxed);
    if raised > limit.soft {
        HAS_RAISED.store(true, Release);
        turn.raise(limit, raised);
    }
}

/// Tells the guard that libraries are about to be mapped, after which it does not move the limit.
pub fn begin(head: &Head, slot: &Slot) {
    slot.loading.store(sys::now().max(1), SeqCst);
    let is_moving = || slot.moving.load(SeqCst) == 1 && !guard::is_gone(head);
    wait_while(GUARD_PATIENCE_NS, is_moving);
}

/// Puts the limit back to where it stood, and beyond it by what the loader has mapped.
fn put_back() {
    let _errno = sys::KeptErrno::new();
    let Some(turn) = Turn::take() else { return };
    if is_adding() || !RAISED.load(Acquire) {
        return;
    }
    if ORPHANED.swap(false, Relaxed) {
        RAISED.store(false, Release);
        return;
    }
    let (Some(limit), Some(data)) = (Limit::read_any(), data_bytes()) else {
        return;
    };
    let mapped = announce(data).saturating_add(REMAINDER.load(Relaxed));
    let before = LIMIT_BEFORE.load(Relaxed);
    // Unless the program, or the guard, has moved it since.
    if before != NONE && limit.soft == LIMIT_RAISED.load(Relaxed) {
        // Never further than what was announced: the guard would take the rest for a draw on the reserve.
        let remainder = mapped % LIMIT_UNIT;
        REMAINDER.store(remainder, Relaxed);
        let after = before.saturating_add(mapped - remainder);
        turn.raise(limit, limit.soft.min(after));
    }
    RAISED.store(false, Release);
    if let Some(slot) = shared::slot() {
        slot.loading.store(0, Release);
    }
}

/// Reports what was mapped since the limit was raised. Before the limit moves, or the guard would find a limit
/// that it cannot explain.
fn announce(data: u64) -> u64 {
    let mapped = data.saturating_sub(DATA_BEFORE.load(Relaxed));
    if let Some(slot) = shared::slot() {
        slot.libraries.fetch_add(mapped, AcqRel);
    }
    mapped
}

/// A child after fork. The thread that loaded, if any, is not in it.
pub fn forget() {
    let is_orphaned = is_adding();
    ORPHANED.store(is_orphaned, Relaxed);
    RAISED.store(is_orphaned, Relaxed);
}

fn is_raised() -> bool {
    RAISED.load(Acquire) && !ORPHANED.load(Relaxed)
}

/// Whether an infinite limit may be our doing, and was finite before.
pub fn has_raised() -> bool {
    HAS_RAISED.load(Acquire)
}

/// A new program: all that is mapped by now is its libraries'.
pub fn after_exec(slot: &Slot) {
    slot.files.store(0, Release);
    slot.libraries.store(data_bytes().unwrap_or(0), Release);
}

fn ceiling(head: Option<&Head>) -> u64 {
    match head.map(|head| head.ceiling.load(Relaxed)) {
        None | Some(0) => NONE,
        Some(ceiling) => ceiling,
    }
}

fn wait_while(patience: u64, is_so: impl Fn() -> bool) {
    let deadline = sys::now().saturating_add(patience);
    let mut tries = 0;
    while is_so() && sys::now() < deadline {
        match tries {
            0..50 => sys::yield_now(),
            _ => sys::futex_wait(&REST, 0, NAP_NS),
        }
        tries += 1;
    }
}
