//! Sets up the signals of the guard: it ends when its work is done and not on Ctrl-C, and the end of a child wakes the
//! deciding thread.

use antifreeze_ipc::shared::Shared;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicPtr, AtomicU32};

/// The futex word that the deciding thread sleeps on.
static KICK: AtomicPtr<AtomicU32> = AtomicPtr::new(null_mut());

/// Signals that are not ignored: faults, and those that the guard uses itself.
const KEPT: [i32; 9] = [
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGCHLD,
    libc::SIGCONT,
];

/// Ignores signals meant for the trainer or the front, including pending ones (the guard starts with all signals
/// blocked). A child that ends, stops or continues interrupts the sleep of the deciding thread.
pub fn settle(shared: Shared) {
    KICK.store(std::ptr::from_ref(&shared.page().kick).cast_mut(), Release);
    // SAFETY: plain calls; the handler only adds to an atomic.
    unsafe {
        // Those of the C library's own (32 and 33) are left out by it, and stay blocked.
        for signal in (1..=libc::SIGRTMAX()).filter(|signal| *signal != libc::SIGCHLD) {
            libc::signal(signal, libc::SIG_IGN);
        }
        for signal in KEPT {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = wake as *const () as libc::sighandler_t;
        libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut());
        let mut set = std::mem::zeroed();
        libc::sigfillset(&mut set);
        libc::sigprocmask(libc::SIG_UNBLOCK, &set, null_mut());
    }
}

/// Blocks SIGCHLD in every other thread, so that the end of a child always reaches the deciding one.
pub fn block_child_signals() {
    // SAFETY: a set that lives here.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut());
    }
}

/// Interrupts the sleep; the changed word prevents one that is about to begin.
extern "C" fn wake(_signal: libc::c_int) {
    // SAFETY: null, or part of a page that is never unmapped.
    if let Some(kick) = unsafe { KICK.load(Acquire).as_ref() } {
        kick.fetch_add(1, Release);
    }
}
