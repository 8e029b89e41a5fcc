//! Finds which process outside the tree grew, so that a pause can name its cause. Only reads; no process outside the
//! tree is ever changed.

use antifreeze_sense::file::ProcFile;
use antifreeze_sense::parse::{self, ProcessStatus};
use antifreeze_sense::{Pid, ProcessName};
use rustix::fs::{Mode, OFlags, RawDir, openat};
use std::io::Write;
use std::mem::MaybeUninit;

/// How many processes are remembered between two calls.
const MAX_REMEMBERED: usize = 1024;

/// Growth below this is ignored.
const MIN_GROWTH_BYTES: u64 = 16 << 20;

/// A process outside the tree that grew since the call before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grower {
    pub pid: Pid,
    pub name: ProcessName,
    pub grew: u64,
}

pub struct Others {
    /// The memory of each process when it was first seen since the last renewal.
    seen: Vec<(Pid, u64)>,
    looks: u32,
}

impl Default for Others {
    fn default() -> Self {
        Others {
            seen: Vec::with_capacity(MAX_REMEMBERED),
            looks: 0,
        }
    }
}

impl Others {
    /// The process that grew most over the last calls, if any grew by 16 MB or more.
    pub fn find_grower(&mut self, ours: impl Fn(Pid) -> bool) -> Option<Grower> {
        // Growth is counted from a fixed time that is renewed now and then: this finds a slow grower, and forgets one
        // that stopped long ago.
        self.looks += 1;
        let renew = self.looks.is_multiple_of(30);
        let mut most: Option<Grower> = None;
        let mut kept = 0;
        let folder = openat(
            rustix::fs::CWD,
            c"/proc",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok()?;
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut entries = RawDir::new(&folder, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let number = entry
                .file_name()
                .to_str()
                .ok()
                .and_then(|name| name.parse().ok());
            let Some(pid) = number.map(Pid).filter(|pid| !ours(*pid)) else {
                continue;
            };
            let Some((name, bytes)) = anonymous(pid) else {
                continue;
            };
            match self.seen[kept..]
                .iter()
                .position(|(known, _)| *known == pid)
            {
                Some(index) => self.seen.swap(kept, kept + index),
                None if self.seen.len() < MAX_REMEMBERED => {
                    // Born since the last call: all of its memory is growth.
                    let before = if self.looks == 1 { bytes } else { 0 };
                    self.seen.push((pid, before));
                    let last = self.seen.len() - 1;
                    self.seen.swap(kept, last);
                }
                None => continue,
            }
            let grew = bytes.saturating_sub(self.seen[kept].1);
            if grew >= MIN_GROWTH_BYTES && most.is_none_or(|most| most.grew < grew) {
                most = Some(Grower { pid, name, grew });
            }
            if renew {
                self.seen[kept].1 = bytes;
            }
            kept += 1;
        }
        self.seen.truncate(kept);
        most
    }
}

/// Name and anonymous memory, including swap. None for kernel threads and ended processes.
pub fn anonymous(pid: Pid) -> Option<(ProcessName, u64)> {
    let status = status(pid)?;
    let bytes = status.rss_anon.value()? + status.swap.value().unwrap_or(0);
    Some((status.name, bytes))
}

/// The state letter of a process in `/proc/PID/status`.
pub fn state(pid: Pid) -> Option<u8> {
    status(pid).map(|status| status.state)
}

/// The status file of a process that is read repeatedly, kept open.
pub struct StatusFile(ProcFile);

impl StatusFile {
    pub fn open(pid: Pid) -> Option<StatusFile> {
        let mut path = [0u8; 32];
        let mut rest = &mut path[..];
        write!(rest, "/proc/{}/status", pid.0).ok()?;
        let length = 32 - rest.len();
        ProcFile::open(&path[..length]).ok().map(StatusFile)
    }

    /// As [`state`]; None once the process has ended, even if its PID was reused.
    pub fn state(&self) -> Option<u8> {
        self.read().map(|status| status.state)
    }

    fn read(&self) -> Option<ProcessStatus> {
        let mut buffer = [0u8; 2048];
        Some(parse::process_status(self.0.read(&mut buffer).ok()?))
    }
}

fn status(pid: Pid) -> Option<ProcessStatus> {
    StatusFile::open(pid)?.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_grew_is_named_and_the_tree_is_not() {
        let mut others = Others::default();
        assert_eq!(
            others.find_grower(|_| false),
            None,
            "nobody has grown at the first look"
        );
        let ours = Pid(std::process::id());
        let block = vec![1u8; 64 << 20];
        let grower = others
            .find_grower(|_| false)
            .expect("this process grew by 64 MB");
        assert!(grower.grew >= 16 << 20, "{grower:?}");
        assert_ne!(
            others
                .find_grower(|pid| pid == ours)
                .map(|grower| grower.pid),
            Some(ours)
        );
        drop(block);
    }
}
