//! Keeps the limit out of the way of the dynamic loader while it adds libraries.
//!
//! The loader maps the data of a library with an `mmap` of its own. No wrapper sees that request, so it cannot ask the
//! guard, and a refusal is final: "failed to map segment from shared object". The kernel counts all of that data
//! against the limit, hundreds of megabytes for PyTorch, although it takes memory only where it is written to. So the
//! limit is raised while the loader maps.
//!
//! For each library the loader first allocates its description with `calloc`, which is ours, called from the text of
//! the loader. At that call the limit is raised. The C library keeps `_r_debug` for debuggers, whose state is `RT_ADD`
//! from just after the first of these calls until all libraries of the set are mapped. The first request of any thread
//! after that puts the limit back, plus what was mapped: nothing but libraries was mapped in between.
//!
//! The guard may be about to lower the limit at the same time. `loading` and `moving` in the slot order the two: each
//! side sets its own field before it reads the other.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};

use crate::limit::{Limit, data_bytes};
use crate::next::Next;
use crate::page::{Head, LIMIT_UNIT, SMALL_REQUEST, Slot};
use crate::reserve::Turn;
use crate::{elf, guard, seccomp, shared, sys};

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
/// From its first request on, the loader says within microseconds that it adds a library, unless it is kept from running.
const BEGIN_PATIENCE_NS: u64 = 1_000_000_000;
/// The limit before it was raised: there was none.
const NONE: u64 = u64::MAX;

/// The state where there is no loader.
static IDLE: AtomicU32 = AtomicU32::new(0);
static STATE: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const IDLE).cast_mut());
/// A futex word that is never woken: waiting on it is a sleep.
static REST: AtomicU32 = AtomicU32::new(0);

/// The text of the loader; empty where it is not known.
static TEXT_BEGIN: AtomicUsize = AtomicUsize::new(0);
static TEXT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The limit is raised, and the fields below hold its earlier value.
static RAISED: AtomicBool = AtomicBool::new(false);
static LIMIT_BEFORE: AtomicU64 = AtomicU64::new(NONE);
static LIMIT_RAISED: AtomicU64 = AtomicU64::new(NONE);
static DATA_BEFORE: AtomicU64 = AtomicU64::new(0);
/// What libraries have mapped and the limit was not put back by, because it moves in whole units.
static REMAINDER: AtomicU64 = AtomicU64::new(0);
/// The thread for which it was raised, and when.
static LOADER: AtomicU32 = AtomicU32::new(0);
static RAISED_AT: AtomicU64 = AtomicU64::new(0);
/// What the slot's `loading` was set to then.
static ANNOUNCED_AT: AtomicU64 = AtomicU64::new(0);
/// The program's allocator stands before ours, so the loader does not call it: the limit is raised in `dlopen`.
static IS_BYPASSED: AtomicBool = AtomicBool::new(false);
/// `RT_ADD` has been seen since: when it is over, so is the loading.
static SEEN_ADDING: AtomicBool = AtomicBool::new(false);
/// This process was forked while another thread of its parent loaded: that thread is not here, the state says
/// `RT_ADD` until the next library is loaded, and the limit is not out of the way.
static ORPHANED: AtomicBool = AtomicBool::new(false);

/// Finds the loader's state and its text. Called before `main`.
pub fn find() {
    IS_BYPASSED.store(!crate::heap::is_used(), Relaxed);
    // The loader's own: a program that names `_r_debug` may have a copy of it, which stays as it was at the start.
    let debug = sys::next_definition(c"_r_debug").cast::<u8>();
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

/// Whether the cushion sees each library that is loaded at the start of a program.
pub fn is_known() -> bool {
    TEXT_BYTES.load(Relaxed) != 0 && !is_bypassed()
}

pub fn is_bypassed() -> bool {
    IS_BYPASSED.load(Relaxed)
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

/// To be called before each `calloc`, with its return address: the loader may be about to map a library. False when
/// the request is to be refused; so of the following.
#[inline(always)]
pub fn before_calloc(count: usize, size: usize, caller: usize) -> bool {
    if is_of_loader(caller) {
        if count.min(size) == 1 && count.max(size) > DESCRIPTION_BYTES {
            raise();
        }
        return true;
    }
    before_request(count.saturating_mul(size))
}

/// The same of `malloc` and `realloc`, which the loader calls between its first request and the mapping.
#[inline(always)]
pub fn before_malloc(bytes: usize, caller: usize) -> bool {
    is_of_loader(caller) || before_request(bytes)
}

/// To be called before any other request for memory, so that none is met by a limit raised for libraries.
#[inline(always)]
pub fn before_request(bytes: usize) -> bool {
    !RAISED.load(Relaxed) || settle(bytes)
}

/// Puts the limit back once the loader is done. Until then small requests pass. Large ones wait a little and are held
/// to the head-room that the guard has published. False when such a request does not fit.
#[cold]
#[inline(never)]
fn settle(bytes: usize) -> bool {
    if seccomp::is_filtered() {
        return true;
    }
    let _errno = sys::KeptErrno::new();
    let thread = sys::tid();
    let is_loading = || {
        if is_adding() {
            SEEN_ADDING.store(true, Relaxed);
            return true;
        }
        // Between its request and RT_ADD. The thread that loads asks for nothing meanwhile, but its allocator may.
        let is_other = LOADER.load(Relaxed) != thread || is_bypassed();
        let begins = || sys::now().saturating_sub(RAISED_AT.load(Relaxed)) < BEGIN_PATIENCE_NS;
        !SEEN_ADDING.load(Relaxed) && is_other && is_raised() && begins()
    };
    if is_loading() {
        if ORPHANED.load(Relaxed) || !is_large(bytes) {
            return true;
        }
        if LOADER.load(Relaxed) != thread {
            wait_while(LOADER_PATIENCE_NS, is_loading);
        }
        if is_loading() {
            return fits(bytes);
        }
    }
    put_back();
    true
}

/// Whether a request fits while no limit holds. A refusal is reported as any other.
fn fits(bytes: usize) -> bool {
    let fits = shared::head().is_none_or(|head| head.headroom.load(Acquire) >= bytes as u64);
    if !fits {
        shared::report_refusal(bytes as u64);
    }
    fits
}

fn is_large(bytes: usize) -> bool {
    bytes as u64 > SMALL_REQUEST
}

/// Raises the limit for what the loader is about to map. A limit that was lowered again since the last library is
/// raised again.
#[cold]
#[inline(never)]
fn raise() {
    if seccomp::is_filtered() {
        return;
    }
    let _errno = sys::KeptErrno::new();
    let head = shared::head();
    // No wall of the guard's: the limit is the user's own.
    if head.is_some_and(|head| head.wall.load(Acquire) != 1) {
        return;
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
    // While no other thread can put the limit back, which takes the announcement away.
    if let (Some(head), Some(slot)) = (head, shared::slot()) {
        ANNOUNCED_AT.store(begin(head, slot), Relaxed);
    }
    let (Some(limit), Some(data)) = (Limit::read_any(), data_bytes()) else {
        return;
    };
    RAISED_AT.store(sys::now(), Relaxed);
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
        turn.raise(limit, raised);
    }
}

/// Tells the guard that libraries are about to be mapped, after which it does not move the limit. Returns what stands
/// in the slot: another thread may announce libraries of its own there, and each takes back only what it announced.
pub fn begin(head: &Head, slot: &Slot) -> u64 {
    let at = guard::now().max(1);
    slot.loading.store(at, SeqCst);
    let is_moving = || slot.moving.load(SeqCst) == 1 && !guard::is_gone(head);
    wait_while(GUARD_PATIENCE_NS, is_moving);
    at
}

/// Takes an announcement back, unless another has replaced it.
pub fn end(slot: &Slot, announced_at: u64, announced_before: u64) {
    let _ = slot
        .loading
        .compare_exchange(announced_at, announced_before, AcqRel, Acquire);
}

/// Called by `dlopen` before the C library's, with the limit still in place. Returns that function.
extern "C" fn before_dlopen() -> usize {
    if is_bypassed() {
        raise();
    }
    let unknown: Dlopen = no_dlopen;
    NEXT_DLOPEN.get().unwrap_or(unknown) as usize
}

type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
// SAFETY: the signature of dlopen(3).
static NEXT_DLOPEN: Next<Dlopen> = unsafe { Next::new(c"dlopen") };

unsafe extern "C" fn no_dlopen(_: *const c_char, _: c_int) -> *mut c_void {
    core::ptr::null_mut()
}

/// Jumps to the C library's, which looks at its return address to know whose `RUNPATH` holds.
///
/// # Safety
/// As dlopen(3).
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlopen(_file: *const c_char, _flags: c_int) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "endbr64",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        before = sym before_dlopen,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "hint #34",
        "stp x0, x1, [sp, #-32]!",
        "str x30, [sp, #16]",
        "bl {before}",
        "mov x16, x0",
        "ldr x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        before = sym before_dlopen,
    );
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
    let Some(limit) = Limit::read_any() else {
        return;
    };
    // Without a free descriptor it is not known what was mapped. The guard sees it.
    let data = data_bytes().unwrap_or_else(|| DATA_BEFORE.load(Relaxed));
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
        end(slot, ANNOUNCED_AT.load(Relaxed), 0);
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

/// A new program: all that is mapped by now is its libraries'.
pub fn after_exec(slot: &Slot) {
    slot.files.store(0, Release);
    slot.reserved.store(0, Release);
    slot.zeroed.store(0, Release);
    slot.libraries.store(data_bytes().unwrap_or(0), Release);
}

/// The most that the guard lets a limit be raised to.
pub fn ceiling(head: Option<&Head>) -> u64 {
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
