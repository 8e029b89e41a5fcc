//! Notices that a process filters its own system calls.
//!
//! A filter may end the process at any call that the program itself does not make, such as `openat` and `prlimit64`, by
//! which the cushion reads the wall. So once a filter is installed the cushion makes no system call, and the guard
//! treats the process like one without a cushion.

use core::ffi::{c_int, c_long};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{Relaxed, Release};

use crate::limit::Limit;
use crate::next::Next;
use crate::{loader, shared, sys};

/// `PR_SET_SECCOMP` of prctl(2).
const SET_SECCOMP: c_int = 22;
/// `SECCOMP_SET_MODE_STRICT` and `SECCOMP_SET_MODE_FILTER` of seccomp(2). The others only ask.
const SET_MODES: [usize; 2] = [0, 1];

type Prctl = unsafe extern "C" fn(c_int, usize, usize, usize, usize) -> c_int;
type Syscall = unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

// SAFETY: prctl(2) takes five words at most; on the processors that this library is built for, variable arguments are
// passed as named ones are.
static NEXT_PRCTL: Next<Prctl> = unsafe { Next::new(c"prctl") };
// SAFETY: as above, with seven words.
static NEXT_SYSCALL: Next<Syscall> = unsafe { Next::new(c"syscall") };

/// A filter was installed, by any thread. A child after fork inherits both.
static FILTERED: AtomicBool = AtomicBool::new(false);

/// Whether a filter may end the process for a system call of the cushion's.
pub fn is_filtered() -> bool {
    FILTERED.load(Relaxed)
}

/// Looks up the next definitions while there is one thread.
pub fn resolve() {
    let _ = (NEXT_PRCTL.get(), NEXT_SYSCALL.get());
}

/// Makes the call that installs a filter. All that the cushion has to do is done before it.
fn install(call: impl FnOnce() -> bool) {
    {
        let _errno = sys::KeptErrno::new();
        // The limit may be raised for a library.
        loader::before_request(0);
        if let Some(slot) = shared::slot() {
            let soft = Limit::read_any().map_or(u64::MAX, |limit| limit.soft);
            slot.before_exec.store(soft.max(1), Release);
        }
    }
    let was_filtered = FILTERED.swap(true, Relaxed);
    if call() || was_filtered {
        return;
    }
    FILTERED.store(false, Relaxed);
    let _errno = sys::KeptErrno::new();
    if let Some(slot) = shared::slot() {
        slot.before_exec.store(0, Release);
    }
}

/// # Safety
/// As prctl(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    let Some(next) = NEXT_PRCTL.get() else {
        sys::set_errno(sys::EINVAL);
        return -1;
    };
    let mut code = -1;
    // SAFETY: passed on as it came.
    let mut call = || unsafe {
        code = next(option, a, b, c, d);
        code == 0
    };
    if option == SET_SECCOMP {
        install(call);
    } else {
        call();
    }
    code
}

/// # Safety
/// As syscall(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let Some(next) = NEXT_SYSCALL.get() else {
        sys::set_errno(sys::EINVAL);
        return -1;
    };
    if number != sys::SECCOMP || !SET_MODES.contains(&a) {
        // SAFETY: passed on as it came.
        return unsafe { next(number, a, b, c, d, e, f) };
    }
    let mut code = -1;
    // SAFETY: as above.
    install(|| unsafe {
        code = next(number, a, b, c, d, e, f);
        code == 0
    });
    code
}
