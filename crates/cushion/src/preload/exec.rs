//! Starting another program in this process.
//!
//! The limit was cut for what this program holds. The next one begins with nothing and maps its libraries before
//! any code of ours runs in it, so it is given room for them, and takes its share afterwards ([`crate::birth`]).

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use crate::limit::Limit;
use crate::next::Next;
use crate::page::Slot;
use crate::{loader, pageout_signal, shared, sys};

type Words = *const *const c_char;
type Execve = unsafe extern "C" fn(*const c_char, Words, Words) -> c_int;
type Execv = unsafe extern "C" fn(*const c_char, Words) -> c_int;

// SAFETY: each with the signature that exec(3) gives it.
static NEXT_EXECVE: Next<Execve> = unsafe { Next::new(c"execve") };
// SAFETY: as above.
static NEXT_EXECVPE: Next<Execve> = unsafe { Next::new(c"execvpe") };
// SAFETY: as above.
static NEXT_EXECV: Next<Execv> = unsafe { Next::new(c"execv") };
// SAFETY: as above.
static NEXT_EXECVP: Next<Execv> = unsafe { Next::new(c"execvp") };

/// More data than the libraries of any program we know have: CUDA's are 400 MB. A program without a cushion is
/// held to this for its first seconds.
const ROOM_TO_START: u64 = 1 << 30;

/// # Safety
/// As execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Words, envp: Words) -> c_int {
    // SAFETY: passed on as it came.
    with_room(&NEXT_EXECVE, |next| unsafe { next(path, argv, envp) })
}

/// # Safety
/// As execvpe(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Words, envp: Words) -> c_int {
    // SAFETY: passed on as it came.
    with_room(&NEXT_EXECVPE, |next| unsafe { next(file, argv, envp) })
}

/// # Safety
/// As execv(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Words) -> c_int {
    // SAFETY: passed on as it came.
    with_room(&NEXT_EXECV, |next| unsafe { next(path, argv) })
}

/// # Safety
/// As execvp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Words) -> c_int {
    // SAFETY: passed on as it came.
    with_room(&NEXT_EXECVP, |next| unsafe { next(file, argv) })
}

/// Returns only when the program could not be started. Nothing but the stack and the page is written to: after
/// vfork(2) the memory is the parent's.
fn with_room<F: Copy>(next: &Next<F>, start: impl FnOnce(F) -> c_int) -> c_int {
    let Some(next) = next.get() else {
        sys::set_errno(sys::ENOMEM);
        return -1;
    };
    let errno = sys::KeptErrno::new();
    let raised = make_room();
    let pager = pageout_signal::before_exec();
    drop(errno);
    let code = start(next);
    let _errno = sys::KeptErrno::new();
    pageout_signal::after_failed_exec(pager);
    if let Some((slot, raised)) = raised {
        let before = slot.before_exec.swap(0, AcqRel);
        if let Some(limit) = Limit::read().filter(|limit| limit.soft == raised) {
            move_to(slot, limit, before);
        }
        slot.loading.store(0, Release);
    }
    code
}

/// The slot, and what the limit was raised to, where it was.
fn make_room() -> Option<(&'static Slot, u64)> {
    let head = shared::head()?;
    if head.wall.load(Acquire) != 1 {
        return None;
    }
    let slot = shared::slot()?;
    loader::begin(head, slot);
    let raised = Limit::read().and_then(|limit| {
        let raised = limit.raised(ROOM_TO_START.saturating_sub(limit.soft))?;
        slot.before_exec.store(limit.soft, Release);
        move_to(slot, limit, raised).then_some((slot, raised))
    });
    if raised.is_none() {
        slot.loading.store(0, Release);
    }
    raised
}

/// Says so in the slot first, or the guard would take the limit for one that the program chose.
fn move_to(slot: &Slot, limit: Limit, soft: u64) -> bool {
    slot.own_limit.store(soft, Release);
    limit.move_to(soft)
}
