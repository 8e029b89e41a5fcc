//! Receives signals through a descriptor, passes them on to the command, and applies their default action.

use antifreeze_ipc::group_signals::SET_BYTES;
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::io;

/// A set of signals as the kernel has it, with every signal in it. Those of the C library leave out two real-time
/// signals that it uses itself, for what the front does not do.
pub static ALL: u64 = u64::MAX;

/// Whether a signal ends a process that has set nothing for it and was not started with it ignored.
pub fn ends_by_default(signal: i32) -> bool {
    let does_nothing = [libc::SIGCHLD, libc::SIGCONT, libc::SIGURG, libc::SIGWINCH];
    // SAFETY: a query into a structure that lives here.
    let ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    };
    !ignored && !stops(signal) && !does_nothing.contains(&signal)
}

/// As rt_sigprocmask(2). It changes the mask of the calling thread.
///
/// # Safety
/// `before` must be null or valid for a write.
unsafe fn change_mask(how: i32, set: u64, before: *mut libc::sigset_t) -> libc::c_long {
    // SAFETY: the caller's promise; the kernel's set is shorter than that of the C library.
    unsafe {
        let set = &raw const set;
        libc::syscall(libc::SYS_rt_sigprocmask, how, set, before, SET_BYTES)
    }
}

/// A set of the C library as the kernel has it: the first of its words.
pub fn kernel_set(set: &libc::sigset_t) -> u64 {
    // SAFETY: it is longer than that, and plain numbers.
    unsafe { std::ptr::read_unaligned(std::ptr::from_ref(set).cast()) }
}

/// Blocks all signals for this thread. The C library unblocks two of them (32 and 33) in each thread that it starts, and in
/// the thread that starts the first one.
fn block_all() {
    // SAFETY: nothing is written.
    unsafe { change_mask(libc::SIG_BLOCK, ALL, std::ptr::null_mut()) };
}

/// Starts a thread of the front. No thread but the first receives signals, by the descriptor of [`Signals`].
pub fn spawn_thread(name: &str, life: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            block_all();
            life();
        })?;
    block_all();
    Ok(())
}

/// Blocks all signals and takes them from a descriptor instead. Any process may send any signal to the command that it
/// has started, so all of them are watched. A fault of the front's own ends the front even where its signal is blocked.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

/// One signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub signal: i32,
    /// Who has sent it, as the kernel says: 0 or less for a process, see sigaction(2).
    pub code: i32,
    /// The process that has sent it, where there is one.
    pub sender: u32,
}

impl Arrived {
    /// Sent by a process and not by the kernel.
    pub fn was_sent(&self) -> bool {
        self.code <= 0
    }

    /// About the front itself: it has written to a pipe that nobody reads or to a file that is too large, or it has
    /// used up a limit for the processor. The command gets its own.
    pub fn is_our_own(&self) -> bool {
        self.sender == std::process::id()
            || self.signal == libc::SIGXCPU && self.code == libc::SI_KERNEL
    }
}

/// The signals whose default action stops a process.
pub fn stops(signal: i32) -> bool {
    [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal)
}

impl Signals {
    /// Must be called before any thread is started.
    pub fn watch() -> io::Result<Signals> {
        // SAFETY: plain calls on sets that live here.
        unsafe {
            let mut before = std::mem::zeroed();
            if change_mask(libc::SIG_BLOCK, ALL, &raw mut before) != 0 {
                return Err(io::Error::last_os_error());
            }
            // Signals that are blocked are kept even where they are ignored, but for these: a child's end would not be
            // reported, and the Rust runtime ignores SIGPIPE. The command's are put back by `inherited::restore`.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            let fd = libc::syscall(libc::SYS_signalfd4, -1, &raw const ALL, SET_BYTES, flags);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Signals {
                fd: OwnedFd::from_raw_fd(fd as i32),
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
            code: info.ssi_code,
            sender: info.ssi_pid,
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Room for what rt_sigaction(2) reads and writes. Zeroes are the default action. The C library's functions refuse two
/// signals.
#[derive(Default)]
#[repr(C)]
struct KernelAction([u64; 8]);

/// Suffers the default action of a signal: the process is stopped, and continues here, or it ends. Returns at once
/// where the kernel ignores the signal, as it does for the first process of a container.
pub fn take_default_action(signal: i32) {
    // SAFETY: plain calls on sets that live here.
    unsafe {
        let default = KernelAction::default();
        let mut before = KernelAction::default();
        let changed = libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            &raw const default,
            &raw mut before,
            SET_BYTES,
        );
        let set = 1 << (signal - 1);
        libc::kill(libc::getpid(), signal);
        change_mask(libc::SIG_UNBLOCK, set, std::ptr::null_mut());
        change_mask(libc::SIG_BLOCK, set, std::ptr::null_mut());
        if changed == 0 {
            let none = std::ptr::null_mut::<KernelAction>();
            let before = &raw const before;
            libc::syscall(libc::SYS_rt_sigaction, signal, before, none, SET_BYTES);
        }
    }
}

/// Ends this process by the signal that has ended the command, so that the caller sees what it would have seen. Returns
/// where that is not possible.
pub fn end_by(signal: i32) {
    // SAFETY: system calls on plain numbers and a structure that lives here.
    unsafe {
        // The command has left the core dump, if any.
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
    }
    take_default_action(signal);
}

/// Whether job control could stop the command if it were run alone: a member of its process group has a parent in the
/// session but outside of the group (POSIX: the group is not orphaned).
pub fn has_job_control() -> bool {
    // SAFETY: system calls on plain numbers.
    let (group, session) = unsafe { (libc::getpgrp(), libc::getsid(0)) };
    let mut pid = rustix::process::getppid();
    while let Some(parent) = pid {
        let raw = parent.as_raw_nonzero().get();
        // SAFETY: as above.
        let (its_group, its_session) = unsafe { (libc::getpgid(raw), libc::getsid(raw)) };
        if its_session != session {
            return false;
        }
        if its_group != group {
            return true;
        }
        pid = std::fs::read(format!("/proc/{raw}/stat"))
            .ok()
            .and_then(|stat| antifreeze_sense::parse::process_stat(&stat))
            .and_then(|stat| rustix::process::Pid::from_raw(stat.parent.0 as i32));
    }
    false
}
