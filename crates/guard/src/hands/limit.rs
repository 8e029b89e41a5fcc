//! The soft limit on a process's data (RLIMIT_DATA), read and moved from outside.
//!
//! The hard limit is never touched, so that what we do can always be undone, by us or by
//! the process itself.

use antifreeze_sense::Pid;
use rustix::io::Errno;
use std::ptr::{null, null_mut};

/// The soft limit now. None: there is none.
pub fn soft(pid: Pid) -> Result<Option<u64>, Errno> {
    read(pid).map(|limit| finite(limit.rlim_cur))
}

/// Moves the soft limit; None takes it away as far as the hard limit allows.
pub fn set_soft(pid: Pid, soft: Option<u64>) -> Result<(), Errno> {
    let mut limit = read(pid)?;
    limit.rlim_cur = soft.unwrap_or(libc::RLIM_INFINITY).min(limit.rlim_max);
    // SAFETY: a valid limit; nothing is written back.
    match unsafe { libc::prlimit(pid.0 as i32, libc::RLIMIT_DATA, &limit, null_mut()) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

fn read(pid: Pid) -> Result<libc::rlimit, Errno> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: nothing is set; the answer goes into a local.
    match unsafe { libc::prlimit(pid.0 as i32, libc::RLIMIT_DATA, null(), &mut limit) } {
        0 => Ok(limit),
        _ => Err(last_errno()),
    }
}

fn finite(limit: u64) -> Option<u64> {
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// Whether the kernel was told to count data but not to limit it.
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
        let hard = read(pid).unwrap().rlim_max;
        set_soft(pid, Some(123 << 20)).unwrap();
        assert_eq!(soft(pid), Ok(Some(123 << 20)));
        set_soft(pid, None).unwrap();
        assert_eq!(read(pid).unwrap().rlim_max, hard);
        assert_eq!(soft(pid), Ok(finite(hard)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(soft(pid), Err(Errno::SRCH));
    }
}
