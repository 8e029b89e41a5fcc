//! Identifies a process by PID and start time. After a process has ended, its PID may belong to another.

use antifreeze_sense::file::ProcFile;
use antifreeze_sense::{Pid, parse};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::io::Write;

const PATH_BYTES: usize = 32;
/// Size of `/proc/PID/stat` up to the start time at least.
const STAT_BYTES: usize = 1024;

/// The start time of the process with this PID, in clock ticks since boot.
pub fn started(pid: Pid) -> Option<u64> {
    let mut path = [0u8; PATH_BYTES];
    let file = ProcFile::open(path_of(pid, "stat", &mut path)?).ok()?;
    let mut buffer = [0u8; STAT_BYTES];
    Some(parse::process_stat(file.read(&mut buffer).ok()?)?.started)
}

/// Whether the PID still belongs to the process that started then.
pub fn is_same(pid: Pid, since: u64) -> bool {
    started(pid) == Some(since)
}

/// Sends a signal to the process with this PID and start time, and to no other.
pub fn signal(pid: Pid, since: u64, signal: Signal) -> Result<(), Errno> {
    let number = i32::try_from(pid.0)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .ok_or(Errno::SRCH)?;
    match pidfd_open(number, PidfdFlags::empty()) {
        // The start time is unchanged after the descriptor was opened, so the descriptor is of the same process.
        Ok(process) if is_same(pid, since) => pidfd_send_signal(process, signal),
        Err(Errno::NOSYS | Errno::PERM | Errno::MFILE | Errno::NFILE) if is_same(pid, since) => {
            kill_process(number, signal)
        }
        _ => Err(Errno::SRCH),
    }
}

/// Whether a process runs the guard's own program: a keeper of this guard, or of one that this one replaces.
pub fn is_helper(pid: Pid) -> bool {
    let mut path = [0u8; PATH_BYTES];
    let file = |path: &str| stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino));
    let theirs = path_of(pid, "exe", &mut path).and_then(file);
    theirs.is_some() && theirs == file("/proc/self/exe")
}

fn path_of<'a>(pid: Pid, name: &str, buffer: &'a mut [u8; PATH_BYTES]) -> Option<&'a str> {
    let mut rest = &mut buffer[..];
    write!(rest, "/proc/{}/{name}", pid.0).ok()?;
    let length = PATH_BYTES - rest.len();
    std::str::from_utf8(&buffer[..length]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_came_to_mean_another_process_is_not_signalled() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = Pid(child.id());
        let since = started(pid).unwrap();
        assert_eq!(signal(pid, since + 1, Signal::KILL), Err(Errno::SRCH));
        assert!(child.try_wait().unwrap().is_none());
        assert_eq!(signal(pid, since, Signal::KILL), Ok(()));
        child.wait().unwrap();
        assert_eq!(signal(pid, since, Signal::KILL), Err(Errno::SRCH));
        assert_eq!(
            signal(Pid(u32::MAX), since, Signal::KILL),
            Err(Errno::SRCH),
            "such a number would mean all processes"
        );
    }

    #[test]
    fn a_helper_runs_our_own_program() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        assert!(is_helper(Pid(std::process::id())));
        assert!(!is_helper(Pid(child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
