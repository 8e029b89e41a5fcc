//! What this process was started with, read before Rust's runtime and the front change it: the runtime opens
//! `/dev/null` in place of a standard stream that is closed, and ignores SIGPIPE; the front needs SIGCHLD. The command
//! has to find all of it as it was.

use antifreeze_guard::orders::Timers;
use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// One bit for each standard stream that was closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);
/// 1 where SIGPIPE was ignored.
static IGNORED_SIGPIPE: AtomicU32 = AtomicU32::new(0);
/// 1 where SIGCHLD was ignored.
static IGNORED_SIGCHLD: AtomicU32 = AtomicU32::new(0);

/// The loader calls this before `main`, and so before Rust's runtime starts.
#[used]
#[unsafe(link_section = ".init_array")]
static READ: extern "C" fn() = read;

extern "C" fn read() {
    // SAFETY: system calls on plain numbers and on a structure that lives here.
    unsafe {
        for fd in 0..3 {
            if libc::fcntl(fd, libc::F_GETFD) < 0 {
                CLOSED.fetch_or(1 << fd, Relaxed);
            }
        }
        for (signal, ignored) in [
            (libc::SIGPIPE, &IGNORED_SIGPIPE),
            (libc::SIGCHLD, &IGNORED_SIGCHLD),
        ] {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
            {
                ignored.store(1, Relaxed);
            }
        }
    }
}

/// One bit for each standard stream that was closed.
pub fn closed_streams() -> u32 {
    CLOSED.load(Relaxed)
}

pub fn is_closed(fd: i32) -> bool {
    closed_streams() & (1 << fd) != 0
}

/// 1 where SIGPIPE was ignored.
pub fn ignored_sigpipe() -> u32 {
    IGNORED_SIGPIPE.load(Relaxed)
}

/// Ignores SIGCHLD again where it was ignored, between `fork` and `exec`.
pub fn restore_sigchld() {
    if IGNORED_SIGCHLD.load(Relaxed) != 0 {
        // SAFETY: a system call on plain numbers.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    }
}

/// Takes the interval timers, such as an alarm that the caller has set before it became us: they are the command's, and
/// a process does not inherit them from its parent.
pub fn take_timers() -> Timers {
    [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF].map(|timer| {
        let micros = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
        // SAFETY: system calls on structures that live here; zeroes disarm a timer.
        unsafe {
            let none: libc::itimerval = std::mem::zeroed();
            let mut was = none;
            match libc::syscall(libc::SYS_setitimer, timer, &raw const none, &raw mut was) {
                0 => [micros(was.it_value), micros(was.it_interval)],
                _ => [0; 2],
            }
        }
    })
}

/// Puts all of it back, between `fork` and `exec`, for a program that takes this one's place.
pub fn restore() -> io::Result<()> {
    // SAFETY: system calls on plain numbers.
    unsafe {
        for fd in (0..3).filter(|fd| is_closed(*fd)) {
            libc::close(fd);
        }
        if ignored_sigpipe() != 0 {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        }
    }
    restore_sigchld();
    Ok(())
}
