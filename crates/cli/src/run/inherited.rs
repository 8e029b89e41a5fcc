//! What this process was started with and the command has to find as it was: closed standard streams and an ignored
//! SIGPIPE, which are read before Rust's runtime changes them, limits that antifreeze raises for itself, and descriptors.

use antifreeze_guard::limits::{self, Limits};
use std::io;
use std::os::fd::RawFd;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// One bit for each standard stream that was closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);
/// 1 where SIGPIPE was ignored.
static IGNORED_SIGPIPE: AtomicU32 = AtomicU32::new(0);

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
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
        {
            IGNORED_SIGPIPE.store(1, Relaxed);
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
static LIMITS: OnceLock<(Limits, bool)> = OnceLock::new();

/// Raises limits that front and guard could run into with work of their own. A write beyond a limit that cannot be raised
/// fails, and does not end this process. Called once.
pub fn raise_limits() {
    // SAFETY: a system call on plain numbers.
    let ignored = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_IGN;
    let _ = LIMITS.set((limits::raise(), ignored));
}

/// Puts the limits back for a child, between `fork` and `exec`.
pub fn restore_limits() {
    let Some((limits, ignored)) = LIMITS.get() else {
        return;
    };
    limits.restore();
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
    Ok(())
}
