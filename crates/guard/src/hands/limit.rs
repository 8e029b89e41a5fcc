//! Reads and sets the soft limit on the data of a process (RLIMIT_DATA) from outside.
//!
//! The hard limit is never changed, so that we or the process itself can undo what we do.

use antifreeze_sense::Pid;
use rustix::io::Errno;
use std::ptr::{null, null_mut};

/// A process's limits as they were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// None if there is no limit.
    pub soft: Option<u64>,
    hard: u64,
}

impl Limits {
    pub fn read(pid: Pid) -> Result<Limits, Errno> {
        let mut found = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: nothing is set; the answer goes into a local.
        match unsafe { libc::prlimit(pid.0 as i32, libc::RLIMIT_DATA, null(), &mut found) } {
            0 => Ok(Limits {
                soft: finite(found.rlim_cur),
                hard: found.rlim_max,
            }),
            _ => Err(last_errno()),
        }
    }

    /// The soft limit that [`Limits::move_to`] would set for this one.
    pub fn reachable(&self, soft: Option<u64>) -> Option<u64> {
        finite(soft.unwrap_or(libc::RLIM_INFINITY).min(self.hard))
    }

    /// Sets the soft limit; None raises it as far as the hard limit allows.
    pub fn move_to(&self, pid: Pid, soft: Option<u64>) -> Result<(), Errno> {
        let limit = libc::rlimit {
            rlim_cur: soft.unwrap_or(libc::RLIM_INFINITY).min(self.hard),
            rlim_max: self.hard,
        };
        // SAFETY: a valid limit; nothing is written back.
        match unsafe { libc::prlimit(pid.0 as i32, libc::RLIMIT_DATA, &limit, null_mut()) } {
            0 => Ok(()),
            _ => Err(last_errno()),
        }
    }
}

/// Restores the soft limit that the user had set.
pub fn lift(pid: Pid, ceiling: Option<u64>) {
    if let Ok(limits) = Limits::read(pid) {
        let _ = limits.move_to(pid, ceiling);
    }
}

fn finite(limit: u64) -> Option<u64> {
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Whether the kernel counts data without limiting it.
pub fn ignored_by_kernel() -> bool {
    std::fs::read("/sys/module/kernel/parameters/ignore_rlimit_data")
        .is_ok_and(|text| text.first() == Some(&b'Y'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_moves_and_the_hard_limit_stays() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid(child.id());
        let before = Limits::read(pid).unwrap();
        before.move_to(pid, Some(123 << 20)).unwrap();
        let moved = Limits::read(pid).unwrap();
        assert_eq!((moved.soft, moved.hard), (Some(123 << 20), before.hard));
        lift(pid, None);
        assert_eq!(Limits::read(pid), Ok(before));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Limits::read(pid), Err(Errno::SRCH));
    }
}
