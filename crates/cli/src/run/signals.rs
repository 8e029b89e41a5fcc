//! The signals the front gets, as a descriptor to wait on, and which of them to pass on.

use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;

/// Signals that keep their usual effect on the front: SIGKILL and SIGSTOP cannot be caught, job control has to stop the
/// front together with the trainer, and the kernel sends SIGPIPE for a write of the front's own.
const NOT_WATCHED: [i32; 6] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGPIPE,
];

/// Whether a signal ends a process that has set nothing for it and was not started with it ignored.
pub fn ends_by_default(signal: i32) -> bool {
    let does_nothing = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    // SAFETY: a query into a structure that lives here.
    let ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    !ignored && !does_nothing.contains(&signal)
}

/// Blocks the watched signals and takes them from a descriptor instead. Any process may send any signal to the command
/// that it has started, so all of them are watched. A fault of the front's own ends the front even where its signal is
/// blocked.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// One signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub signal: i32,
    /// Sent by a process with `kill`, as against by the terminal, which sent it to the
    /// trainer as well.
    pub sent: bool,
}

impl Signals {
    /// Must be called before any thread is started.
    pub fn watch() -> io::Result<Signals> {
        // SAFETY: plain calls on sets that live here.
        unsafe {
            let mut set = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigfillset(&mut set);
            for signal in NOT_WATCHED {
                libc::sigdelset(&mut set, signal);
            }
            if libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals {
                fd: OwnedFd::from_raw_fd(fd),
                before,
            })
        }
    }

    /// The mask as it was, for the children.
    pub fn before(&self) -> libc::sigset_t {
        self.before
    }

    pub fn next(&self) -> Option<Arrived> {
        let mut buffer = [0u8; size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.fd, &mut buffer).ok()?;
        if read < buffer.len() {
            return None;
        }
        // SAFETY: the kernel filled the whole structure, which is plain numbers.
        let info: libc::signalfd_siginfo =
            unsafe { std::ptr::read_unaligned(buffer.as_ptr().cast()) };
        Some(Arrived {
            signal: info.ssi_signo as i32,
            sent: info.ssi_code <= 0,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
