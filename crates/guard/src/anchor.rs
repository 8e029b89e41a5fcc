//! The anchor: a process that does nothing but belong to the trainer's process group.
//!
//! The kernel hangs up a process group that has a stopped member and becomes orphaned, that is, when no member has a
//! parent in another group of the same session any more. The guard is such a parent of the trainer. Where no shell with
//! job control is above it (cron, systemd, docker, CI) it is the only one, and a paused trainer would die by SIGHUP when
//! the guard dies. The anchor is a child of a keeper, which is in the guard's group, so the trainer's group stays
//! connected as long as that keeper lives.

use antifreeze_sense::Pid;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::process::{WaitOptions, waitpid};

pub struct Anchor {
    pid: rustix::process::Pid,
    /// Ends when it does.
    lives: OwnedFd,
}

impl Anchor {
    /// Forks an anchor into this process group. Needs a process with one thread. None if no process can be started, or
    /// there is no such group.
    pub fn cast(group: Pid) -> Option<Anchor> {
        let (lives, held) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
        let parent = std::process::id();
        // SAFETY: the process has one thread, so the child may use everything.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => rest(group, parent, &held),
            pid => Some(Anchor {
                pid: rustix::process::Pid::from_raw(pid)?,
                lives,
            }),
        }
    }

    /// Whether it was killed; if so, it is reaped.
    pub fn is_gone(&self) -> bool {
        !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None))
    }

    /// Ends it; [`Anchor::collect`] waits for that.
    pub fn end(&self) {
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
    }

    pub fn collect(self) {
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }

    /// What to wait on for its end.
    pub fn ends(&self) -> PollFd<'_> {
        PollFd::new(&self.lives, PollFlags::IN)
    }
}

/// Before Linux 5.9, descriptors up to this number are closed one by one.
const MAX_DESCRIPTORS: i32 = 4096;

fn close_all_but(kept: i32) {
    let close = |first: i32, last: libc::c_uint| {
        // SAFETY: nothing uses them any more.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
    };
    let below = kept == 0 || close(0, kept as libc::c_uint - 1);
    if !(below && close(kept + 1, libc::c_uint::MAX)) {
        for fd in (0..MAX_DESCRIPTORS).filter(|fd| *fd != kept) {
            // SAFETY: as above.
            unsafe { libc::close(fd) };
        }
    }
}

/// Runs until it is killed or its parent has ended.
fn rest(group: Pid, parent: u32, held: &OwnedFd) -> ! {
    let _ = rustix::thread::set_name(c"af-anchor");
    antifreeze_ipc::process_title::set(b"af-anchor");
    // SAFETY: system calls on plain numbers and on a set that lives here.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Signals to the group are not meant for it, such as Ctrl-Z and Ctrl-C.
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        let is_orphan = libc::getppid() as u32 != parent;
        if is_orphan || libc::setpgid(0, group.0 as i32) != 0 {
            libc::_exit(1);
        }
        // It must not hold files, pipes and the terminal of the command open.
        close_all_but(held.as_fd().as_raw_fd());
        libc::chdir(c"/".as_ptr());
        loop {
            libc::pause();
        }
    }
}
