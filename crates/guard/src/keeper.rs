//! The keeper: a small process that lives only while the trainer is paused, and continues
//! it should the guard die meanwhile. Without it, killing guard and front together would
//! leave a trainer that is stopped for ever.

use antifreeze_sense::Pid;
use rustix::process::{Signal, WaitOptions, kill_process, waitpid};

/// The keeper at work; let go of, it ends.
pub struct Keeper {
    pid: rustix::process::Pid,
}

impl Keeper {
    /// Forks a keeper for these paused processes. None when there is no process to spare:
    /// the pause then rests on the guard alone.
    pub fn stand(paused: impl Iterator<Item = Pid>) -> Option<Keeper> {
        let guard = rustix::process::getpid();
        // SAFETY: the child calls nothing but raw system calls and code that neither
        // allocates nor locks, as a child of a process with threads must.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => keep(guard, paused),
            pid => Some(Keeper { pid: rustix::process::Pid::from_raw(pid)? }),
        }
    }

    pub fn pid(&self) -> Pid {
        Pid(self.pid.as_raw_nonzero().get() as u32)
    }

    pub fn dismiss(self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

fn keep(guard: rustix::process::Pid, paused: impl Iterator<Item = Pid>) -> ! {
    let _ = rustix::thread::set_name(c"pause-keeper");
    // SAFETY: plain system calls. A process group of its own keeps the terminal's signals
    // and a `kill` of the job away.
    unsafe { libc::setpgid(0, 0) };
    while rustix::process::getppid() == Some(guard) {
        let quarter = rustix::time::Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
        let _ = rustix::thread::nanosleep(&quarter);
    }
    for pid in paused {
        if let Some(pid) = rustix::process::Pid::from_raw(pid.0 as i32) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
    // SAFETY: ends the child without running what belongs to the guard.
    unsafe { libc::_exit(0) }
}
