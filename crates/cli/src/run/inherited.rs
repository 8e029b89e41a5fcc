//! What this process was started with, read before Rust's runtime and the front change it: the runtime opens
//! `/dev/null` in place of a standard stream that is closed, and ignores SIGPIPE; the front needs SIGCHLD, raises limits for
//! itself, and lets inherited descriptors go. The command has to find all of it as it was.

use antifreeze_ipc::guard_args::Timers;
use antifreeze_ipc::user_limits::{self, UserLimits};
use rustix::process::Rlimit;
use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
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

/// The limit of the stack, which everything here needs more of.
static STACK: OnceLock<Rlimit> = OnceLock::new();

extern "C" fn read() {
    let _ = STACK.set(user_limits::raise_stack());
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

/// The limits before they were raised, and whether SIGXFSZ was ignored.
static LIMITS: OnceLock<(UserLimits, bool)> = OnceLock::new();

/// Raises limits that front and guard could run into with work of their own. A write beyond a limit that cannot be raised
/// fails, and does not end this process. Called once.
pub fn raise_limits() {
    // SAFETY: a system call on plain numbers.
    let ignored = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_IGN;
    let _ = LIMITS.set((user_limits::raise(), ignored));
}

/// Puts the limits back for a child, between `fork` and `exec`.
pub fn restore_limits() {
    let Some((limits, ignored)) = LIMITS.get() else {
        return;
    };
    limits.restore();
    if let Some(stack) = STACK.get() {
        user_limits::restore_stack(*stack);
    }
    if !ignored {
        // SAFETY: a system call on plain numbers.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    }
}

/// The signals that are blocked now.
pub fn signal_mask() -> libc::sigset_t {
    // SAFETY: plain calls on a set that lives here.
    unsafe {
        let mut mask = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, std::ptr::null(), &mut mask);
        mask
    }
}

/// Puts /dev/null in place of a standard stream: the caller's reader or writer on the other side is let go.
pub fn replace_by_null(stream: RawFd) {
    use std::os::fd::AsRawFd;
    if let Ok(null) = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        // SAFETY: a system call on plain numbers; a standard stream has no owner that would be surprised.
        unsafe { libc::dup2(null.as_raw_fd(), stream) };
    }
}

/// Closes what this process was given besides the standard streams, and standard input where it is no terminal. The
/// command has it by now, and alone holds it as it would without us.
pub fn let_go() {
    use std::io::IsTerminal;
    let open: Vec<RawFd> = std::fs::read_dir("/proc/self/fd")
        .map(|entries| {
            let names = entries.flatten().map(|entry| entry.file_name());
            names
                .filter_map(|name| name.to_str()?.parse().ok())
                .collect()
        })
        .unwrap_or_default();
    for fd in open.into_iter().filter(|fd| *fd > 2) {
        // SAFETY: system calls on plain numbers. What is ours is closed on exec, so what is not was inherited and has
        // no owner here.
        unsafe {
            if libc::fcntl(fd, libc::F_GETFD) == 0 {
                libc::close(fd);
            }
        }
    }
    if !io::stdin().is_terminal() {
        replace_by_null(0);
    }
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

/// Puts the interval timers back, for a command that takes the place of this process.
pub fn put_back_timers(timers: Timers) {
    let clocks = [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF];
    for (timer, [value, interval]) in clocks.into_iter().zip(timers) {
        let time = |micros: u64| libc::timeval {
            tv_sec: (micros / 1_000_000) as libc::time_t,
            tv_usec: (micros % 1_000_000) as libc::suseconds_t,
        };
        let new = libc::itimerval {
            it_value: time(value),
            it_interval: time(interval),
        };
        if value > 0 {
            let none = std::ptr::null_mut::<libc::itimerval>();
            // SAFETY: a system call on structures that live here.
            unsafe { libc::syscall(libc::SYS_setitimer, timer, &raw const new, none) };
        }
    }
}

/// Puts all of it back, between `fork` and `exec`, for a program that takes this one's place.
pub fn restore() -> io::Result<()> {
    restore_limits();
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
