//! Writing a paused tree to swap through `memory.reclaim` of its cgroup, at the pace of the disk.
//!
//! The kernel queues all that it is asked to write. With the whole tree under writeback, any program that needs a
//! page while memory is short waits until the disk has written most of it.

use antifreeze_sense::file::ProcFile;
use antifreeze_sense::parse::meminfo;
use std::fs::File;
use std::io::Write;

const MILLISECOND: u64 = 1_000_000;
const PIECE: &[u8] = b"2M";
/// The next piece waits while more than this is under writeback, bytes,
const MAX_QUEUED: u64 = 2 << 20;
/// but not longer than this: other programs may keep the disk busy.
const PATIENCE: u64 = 250 * MILLISECOND;
/// How long pieces follow each other, where the disk is fast.
const ROUND: u64 = 25 * MILLISECOND;
const MEMINFO_BYTES: usize = 4096;

pub struct Reclaim {
    file: File,
    meminfo: Option<ProcFile>,
    last_piece: u64,
}

impl Reclaim {
    pub fn new(file: File) -> Reclaim {
        Reclaim {
            file,
            meminfo: ProcFile::open("/proc/meminfo").ok(),
            last_piece: 0,
        }
    }

    /// Has the kernel write pieces of the tree, for as long as the disk keeps up.
    pub fn make_room(&mut self, now: impl Fn() -> u64) {
        let began = now();
        let mut at = began;
        while at.saturating_sub(began) < ROUND {
            if !may_queue(self.queued(), at.saturating_sub(self.last_piece)) {
                return;
            }
            // The tree may have nothing left that can be written.
            if self.file.write_all(PIECE).is_err() {
                return;
            }
            at = now();
            self.last_piece = at;
        }
    }

    /// Bytes under writeback, to all disks; 0 where the kernel does not tell.
    fn queued(&self) -> u64 {
        let mut buffer = [0; MEMINFO_BYTES];
        self.meminfo
            .as_ref()
            .and_then(|file| file.read(&mut buffer).ok())
            .and_then(|bytes| meminfo(bytes).writeback.value())
            .unwrap_or(0)
    }
}

/// Whether another piece may be queued, with so many bytes under writeback, so long after the last.
fn may_queue(queued: u64, since_last: u64) -> bool {
    queued <= MAX_QUEUED || since_last >= PATIENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_waits_for_the_disk_but_not_for_ever() {
        assert!(may_queue(0, 0));
        assert!(may_queue(MAX_QUEUED, 0));
        assert!(!may_queue(MAX_QUEUED + 1, 0));
        assert!(!may_queue(64 << 20, PATIENCE - 1));
        assert!(may_queue(64 << 20, PATIENCE));
    }
}
