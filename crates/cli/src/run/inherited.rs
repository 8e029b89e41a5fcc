//! What this process was started with, read before Rust's runtime changes it: the runtime opens `/dev/null` in place of
//! a standard stream that is closed, and ignores SIGPIPE. The command has to find both as they were.

use std::io;
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
    Ok(())
}
