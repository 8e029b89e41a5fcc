//! Starts the guard from memory, watches it, and replaces it if it dies.

use super::inherited;
use super::signals;
use super::streams::Streams;
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_ipc::shared::Memory;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// It takes a millisecond, unless it is kept from running.
const GOING: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

pub struct GuardProcess {
    pub pid: Pid,
}

/// What every guard of this run is given.
pub struct Equipment<'a> {
    pub guard_args: &'a GuardArgs,
    /// The guard's program. Keepers of one guard are known by it to the next.
    pub program: BorrowedFd<'a>,
    pub memory: &'a Memory,
    pub wake: BorrowedFd<'a>,
    pub front_lives: BorrowedFd<'a>,
    pub streams: &'a Streams,
    pub folder: &'a Path,
    pub command: &'a [OsString],
    pub signal_mask: libc::sigset_t,
    /// The folder that puts the shim into a Python that is started.
    pub shim: Option<&'a Path>,
}

impl GuardProcess {
    /// Starts a guard; with `adopt`, for a trainer that runs already.
    pub fn start(equipment: &Equipment<'_>, adopt: Option<Pid>) -> io::Result<GuardProcess> {
        let mut guard_args = equipment.guard_args.clone();
        guard_args.page = equipment.memory.page.as_raw_fd();
        guard_args.state = equipment.memory.state.as_raw_fd();
        guard_args.wake = equipment.wake.as_raw_fd();
        guard_args.front_lives = equipment.front_lives.as_raw_fd();
        guard_args.read = [-1; 2];
        guard_args.pass = [-1; 2];
        guard_args.give = [-1; 2];
        for pair in [
            &mut guard_args.intake_read,
            &mut guard_args.intake_write,
            &mut guard_args.outlet_read,
            &mut guard_args.outlet_write,
        ] {
            *pair = [-1; 2];
        }
        guard_args.signal_mask = signals::kernel_set(&equipment.signal_mask);
        guard_args.adopt = adopt.map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
        for (i, stream) in equipment.streams.each() {
            guard_args.read[i] = stream.read.as_raw_fd();
            guard_args.pass[i] = stream.pass.as_raw_fd();
            guard_args.intake_read[i] = stream.intake.read.as_raw_fd();
            guard_args.intake_write[i] = stream.intake.write.as_raw_fd();
            guard_args.outlet_read[i] = stream.outlet.read.as_raw_fd();
            guard_args.outlet_write[i] = stream.outlet.write.as_raw_fd();
            guard_args.give[i] = stream.give.as_ref().map_or(-1, |give| give.as_raw_fd());
        }
        if equipment.streams.joined {
            guard_args.give[1] = guard_args.give[0];
        }
        let handed_over: Vec<RawFd> = guard_args
            .kept_descriptors()
            .chain(guard_args.give)
            .filter(|fd| *fd >= 0)
            .collect();

        let mut command = Command::new(format!("/proc/self/fd/{}", equipment.program.as_raw_fd()));
        command
            .arg0("antifreeze-guard")
            .arg(guard_args.to_argument())
            .arg(equipment.folder)
            .args(equipment.command);
        command.envs(environment(equipment));
        // All signals stay blocked: what is sent to the process group now must not end it.
        // SAFETY: only calls that are safe between fork and exec, on values moved in.
        unsafe {
            command.pre_exec(move || {
                inherited::restore_sigchld();
                for fd in &handed_over {
                    libc::fcntl(*fd, libc::F_SETFD, 0);
                }
                inherited::restore_limits();
                Ok(())
            });
        }
        let child = command.spawn()?;
        let pid = Pid::from_raw(child.id() as i32).ok_or(io::ErrorKind::NotFound)?;
        Ok(GuardProcess { pid })
    }

    /// Waits a moment for one that has closed the record, and has only to go.
    pub fn wait_for_end(&self) {
        if let Ok(ends) = pidfd_open(self.pid, PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&ends, PollFlags::IN)], Some(&GOING));
        }
    }

    /// Whether it has ended; it is reaped then.
    pub fn has_ended(&self) -> bool {
        !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None))
    }
}

/// What the command inherits from the guard besides what we inherited ourselves.
fn environment(equipment: &Equipment<'_>) -> Vec<(&'static str, OsString)> {
    let Some(shim) = equipment.shim else {
        return Vec::new();
    };
    let mut path = OsString::from(shim);
    if let Some(theirs) = std::env::var_os("PYTHONPATH").filter(|path| !path.is_empty()) {
        path.push(":");
        path.push(theirs);
    }
    let folder = equipment.folder;
    vec![
        ("PYTHONPATH", path),
        ("ANTIFREEZE_RUN", folder.into()),
        ("ANTIFREEZE_SAVES", folder.join("saves").into()),
    ]
}
