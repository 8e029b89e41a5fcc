//! Starts the GPU probe once, and reaps it like any other child.

use antifreeze_ipc::shared::Memory;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsRawFd;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// How long to wait for the probe at the end. It takes a millisecond, unless the driver hangs.
const PATIENCE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ProbeProcess {
    pub pid: Pid,
}

impl ProbeProcess {
    /// Starts the probe. It shares no output, terminal or session with the command, so that no program waits for
    /// it, and it outlives a front that dies.
    pub fn start(memory: &Memory, signal_mask: libc::sigset_t) -> io::Result<ProbeProcess> {
        let memory = [memory.page.as_raw_fd(), memory.state.as_raw_fd()];
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("antifreeze")
            .arg("probe-cards")
            .args(memory.map(|fd| fd.to_string()))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: only calls that are safe between fork and exec, on values moved in.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                libc::sigprocmask(libc::SIG_SETMASK, &signal_mask, std::ptr::null_mut());
                // What we inherited from a shell, such as the pipe of a substitution, is not for it.
                libc::syscall(
                    libc::SYS_close_range,
                    3,
                    libc::c_uint::MAX,
                    libc::CLOSE_RANGE_CLOEXEC,
                );
                for fd in memory {
                    libc::fcntl(fd, libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
        let child = command.spawn()?;
        let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::NotFound)?;
        Ok(ProbeProcess { pid })
    }

    /// Ends the probe: there is no run whose GPUs it would read.
    pub fn end(self) {
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }

    /// Reaps the probe once the guard has closed the record, which ends it.
    pub fn collect(self) {
        if let Ok(ends) = pidfd_open(self.pid, PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&ends, PollFlags::IN)], Some(&PATIENCE));
        }
        let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
    }
}
