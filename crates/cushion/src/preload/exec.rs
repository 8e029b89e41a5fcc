//! Starting another program in this process.
//!
//! The limit was cut for what this program holds. The next one begins with nothing and maps its libraries before
//! any code of ours runs in it, so it is given room for them, and takes its share afterwards ([`crate::birth`]).

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering::{Acquire, Release};

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
    if let Some(room) = raised {
        room.slot.before_exec.store(0, Release);
        if let Some(limit) = Limit::read().filter(|limit| limit.soft == room.raised) {
            move_to(room.slot, limit, room.before);
        }
        loader::end(room.slot, room.announced_at, room.announced_before);
    }
    code
}

/// Looks up the next definitions while there is one thread.
pub fn resolve() {
    let _ = (NEXT_EXECVE.get(), NEXT_EXECVPE.get());
    let _ = (NEXT_EXECV.get(), NEXT_EXECVP.get());
}

/// What was done to the limit for the next program.
struct RoomToStart {
    slot: &'static Slot,
    before: u64,
    raised: u64,
    announced_at: u64,
    /// By another thread, which may be loading a library.
    announced_before: u64,
}

fn make_room() -> Option<RoomToStart> {
    let head = shared::head()?;
    if head.wall.load(Acquire) != 1 {
        return None;
    }
    let slot = shared::slot()?;
    let announced_before = slot.loading.load(Acquire);
    let announced_at = loader::begin(head, slot);
    let Some(limit) = Limit::read_any() else {
        loader::end(slot, announced_at, announced_before);
        return None;
    };
    // Where it stands higher already the guard has only to leave it there.
    let ceiling = loader::ceiling(Some(head)).min(ROOM_TO_START);
    let wanted = limit.raised(ceiling.saturating_sub(limit.soft));
    let mut raised = limit.soft;
    slot.before_exec.store(limit.soft.max(1), Release);
    if let Some(wanted) = wanted
        && move_to(slot, limit, wanted)
    {
        raised = wanted;
    }
    Some(RoomToStart {
        slot,
        before: limit.soft,
        raised,
        announced_at,
        announced_before,
    })
}

/// Says so in the slot first, or the guard would take the limit for one that the program chose.
fn move_to(slot: &Slot, limit: Limit, soft: u64) -> bool {
    slot.own_limit.store(soft, Release);
    limit.move_to(soft)
}
