//! Starts another program in this process, and prepares its limit.
//!
//! The limit was set for what this program holds. The next one begins with nothing and maps its libraries before any
//! code of ours runs in it, so it is given room for them, and takes its share afterwards ([`crate::birth`]).

use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering::{Acquire, Release};

use crate::aside::{self, Aside, Environment, Found, Words};
use crate::limit::Limit;
use crate::next::Next;
use crate::page::Slot;
use crate::{loader, pageout_signal, seccomp, shared, sys, terminal};

type Execve = unsafe extern "C" fn(*const c_char, Words, Words) -> c_int;
type Execv = unsafe extern "C" fn(*const c_char, Words) -> c_int;
/// File actions, attributes, arguments and variables.
type SpawnRest = (*const c_void, *const c_void, Words, Words);
type Spawn = unsafe extern "C" fn(
    *mut c_int,
    *const c_char,
    *const c_void,
    *const c_void,
    Words,
    Words,
) -> c_int;

// SAFETY: each with the signature that exec(3) gives it.
static NEXT_EXECVE: Next<Execve> = unsafe { Next::new(c"execve") };
// SAFETY: as above.
static NEXT_EXECVPE: Next<Execve> = unsafe { Next::new(c"execvpe") };
// SAFETY: as above.
static NEXT_EXECV: Next<Execv> = unsafe { Next::new(c"execv") };
// SAFETY: as above.
static NEXT_EXECVP: Next<Execv> = unsafe { Next::new(c"execvp") };
// SAFETY: as posix_spawn(3) has it; actions and attributes pass through unseen.
static NEXT_SPAWN: Next<Spawn> = unsafe { Next::new(c"posix_spawn") };
// SAFETY: as above.
static NEXT_SPAWNP: Next<Spawn> = unsafe { Next::new(c"posix_spawnp") };

/// More data than the libraries of any known program have: CUDA's are 400 MB. A program without a cushion is limited to
/// this for its first seconds.
const ROOM_TO_START: u64 = 1 << 30;

/// # Safety
/// As execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: Words, envp: Words) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        start_aside(path, argv, envp, false)
            .or_else(|| start_without_cushion(&NEXT_EXECVE, path, argv, envp))
            .unwrap_or_else(|| {
                with_terminal(envp, || {
                    with_room(&NEXT_EXECVE, |next| next(path, argv, envp))
                })
            })
    }
}

/// # Safety
/// As execvpe(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: Words, envp: Words) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        start_aside(file, argv, envp, true)
            .or_else(|| start_without_cushion(&NEXT_EXECVPE, file, argv, envp))
            .unwrap_or_else(|| {
                with_terminal(envp, || {
                    with_room(&NEXT_EXECVPE, |next| next(file, argv, envp))
                })
            })
    }
}

/// # Safety
/// As execv(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: Words) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let envp = sys::all_environment();
        start_aside(path, argv, envp, false)
            .or_else(|| start_without_cushion(&NEXT_EXECVE, path, argv, envp))
            .unwrap_or_else(|| {
                with_terminal(envp, || with_room(&NEXT_EXECV, |next| next(path, argv)))
            })
    }
}

/// # Safety
/// As execvp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: Words) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let envp = sys::all_environment();
        start_aside(file, argv, envp, true)
            .or_else(|| start_without_cushion(&NEXT_EXECVPE, file, argv, envp))
            .unwrap_or_else(|| {
                with_terminal(envp, || with_room(&NEXT_EXECVP, |next| next(file, argv)))
            })
    }
}

/// # Safety
/// As posix_spawn(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut c_int,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Words,
    envp: Words,
) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let rest = (actions, attributes, argv, envp);
        spawn_aside(pid, path, rest, false).unwrap_or_else(|| spawn(&NEXT_SPAWN, pid, path, rest))
    }
}

/// # Safety
/// As posix_spawnp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut c_int,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    argv: Words,
    envp: Words,
) -> c_int {
    // SAFETY: passed on as it came.
    unsafe {
        let rest = (actions, attributes, argv, envp);
        spawn_aside(pid, file, rest, true).unwrap_or_else(|| spawn(&NEXT_SPAWNP, pid, file, rest))
    }
}

unsafe fn spawn(
    next: &Next<Spawn>,
    pid: *mut c_int,
    path: *const c_char,
    (actions, attributes, argv, envp): SpawnRest,
) -> c_int {
    let Some(next) = next.get() else {
        return sys::ENOMEM;
    };
    if seccomp::is_filtered() || is_cushion_reachable() {
        // SAFETY: passed on as it came.
        return unsafe { next(pid, path, actions, attributes, argv, envp) };
    }
    // SAFETY: as above.
    unsafe { spawn_without_cushion(next, pid, path, (actions, attributes, argv, envp)) }
}

#[inline(never)]
unsafe fn spawn_without_cushion(
    next: Spawn,
    pid: *mut c_int,
    path: *const c_char,
    (actions, attributes, argv, envp): SpawnRest,
) -> c_int {
    let mut environment = Environment::EMPTY;
    // SAFETY: the caller's promise, with other variables.
    unsafe {
        let envp = environment.fill(envp).unwrap_or(envp);
        next(pid, path, actions, attributes, argv, envp)
    }
}

/// The file that is about to be executed, if it must run without the cushion.
unsafe fn aside_for(name: *const c_char, envp: Words, is_searched: bool) -> Option<Found> {
    if seccomp::is_filtered() || name.is_null() {
        return None;
    }
    let _errno = sys::KeptErrno::new();
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let found = Found::search(name, is_searched)?;
    // SAFETY: as above.
    unsafe { aside::is_due(found.path(), envp) }.then_some(found)
}

/// None if the program may have the cushion; otherwise returns only if it could not be started.
#[inline(never)]
unsafe fn start_aside(
    name: *const c_char,
    argv: Words,
    envp: Words,
    is_searched: bool,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let found = unsafe { aside_for(name, envp, is_searched) }?;
    let next = NEXT_EXECVE.get()?;
    let mut environment = Environment::EMPTY;
    // SAFETY: as above.
    let envp = unsafe { environment.fill(envp) }?;
    let aside = Aside::step();
    let pager = pageout_signal::before_exec();
    // SAFETY: as above.
    let code = unsafe { next(found.path().as_ptr(), argv, envp) };
    let _errno = sys::KeptErrno::new();
    pageout_signal::after_failed_exec(pager);
    if let Some(aside) = aside {
        aside.step_back();
    }
    Some(code)
}

/// None if the cushion can be loaded; otherwise returns only if the program could not be started.
#[inline(never)]
unsafe fn start_without_cushion(
    next: &Next<Execve>,
    name: *const c_char,
    argv: Words,
    envp: Words,
) -> Option<c_int> {
    if seccomp::is_filtered() || is_cushion_reachable() {
        return None;
    }
    let mut environment = Environment::EMPTY;
    // SAFETY: the caller's promise.
    let envp = unsafe { environment.fill(envp) }?;
    // SAFETY: as above.
    let start = || with_room(next, |next| unsafe { next(name, argv, envp) });
    // SAFETY: as above.
    Some(unsafe { with_terminal(envp, start) })
}

fn is_cushion_reachable() -> bool {
    let _errno = sys::KeptErrno::new();
    aside::is_cushion_reachable()
}

/// None where the program is none to step aside for.
///
/// # Safety
/// As posix_spawn(3).
#[inline(never)]
unsafe fn spawn_aside(
    pid: *mut c_int,
    name: *const c_char,
    (actions, attributes, argv, envp): SpawnRest,
    is_searched: bool,
) -> Option<c_int> {
    // SAFETY: the caller's promise.
    let found = unsafe { aside_for(name, envp, is_searched) }?;
    let next = NEXT_SPAWN.get()?;
    let mut environment = Environment::EMPTY;
    // SAFETY: as above.
    let envp = unsafe { environment.fill(envp) }?;
    let mut child = 0;
    let aside = Aside::step();
    // SAFETY: as above.
    let code = unsafe {
        let path = found.path().as_ptr();
        next(&raw mut child, path, actions, attributes, argv, envp)
    };
    let _errno = sys::KeptErrno::new();
    if code == 0 {
        aside::note_child(child);
        // SAFETY: null, or the caller's.
        if let Some(pid) = unsafe { pid.as_mut() } {
            *pid = child;
        }
    }
    if let Some(aside) = aside {
        aside.step_back();
    }
    Some(code)
}

/// Starts a program with the real terminal, if it will not have the cushion or cannot reach the page.
///
/// # Safety
/// `envp` as for execve(2).
unsafe fn with_terminal(envp: Words, start: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    if seccomp::is_filtered() || unsafe { aside::will_have_cushion(envp) } {
        return start();
    }
    let handed_over = terminal::hand_over();
    let code = start();
    handed_over.take_back();
    code
}

/// Returns only if the program could not be started. Writes only to the stack and the page: after vfork(2) the memory
/// belongs to the parent.
fn with_room<F: Copy>(next: &Next<F>, start: impl FnOnce(F) -> c_int) -> c_int {
    let Some(next) = next.get() else {
        sys::set_errno(sys::ENOMEM);
        return -1;
    };
    if seccomp::is_filtered() {
        return start(next);
    }
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
    let _ = (NEXT_SPAWN.get(), NEXT_SPAWNP.get());
}

/// How the limit was changed for the next program.
struct RoomToStart {
    slot: &'static Slot,
    before: u64,
    raised: u64,
    announced_at: u64,
    /// Raised by another thread, which may be loading a library.
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
    // If it is higher already, the guard has only to leave it there.
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

/// Announced in the slot first, or the guard would take the limit for a choice of the program.
fn move_to(slot: &Slot, limit: Limit, soft: u64) -> bool {
    slot.own_limit.store(soft, Release);
    limit.move_to(soft)
}
