//! Writes a paused tree to swap through `memory.reclaim` of its cgroup, at the pace of the disk.
//!
//! The kernel queues everything it is asked to write. With the whole tree queued, any program that needs a page while
//! memory is short waits until most of it was written.

use antifreeze_sense::file::ProcFile;
use antifreeze_sense::parse::meminfo;
use std::fs::File;
use std::io::Write;

const MILLISECOND_NS: u64 = 1_000_000;
const PIECE: &[u8] = b"2M";
/// The next piece waits while more than this is under writeback, bytes,
const MAX_QUEUED: u64 = 2 << 20;
/// but not longer than this: other programs may keep the disk busy.
const MAX_WAIT_NS: u64 = 250 * MILLISECOND_NS;
/// How long pieces follow each other, where the disk is fast.
const ROUND_NS: u64 = 25 * MILLISECOND_NS;
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

    /// Makes the kernel write pieces of the tree, as long as the disk keeps up.
    pub fn make_room(&mut self, now: impl Fn() -> u64) {
        let began = now();
        let mut at = began;
        while at.saturating_sub(began) < ROUND_NS {
            if !may_queue(self.queued(), at.saturating_sub(self.last_piece)) {
                return;
            }
            // There may be nothing left that can be written.
            if self.file.write_all(PIECE).is_err() {
                return;
            }
            at = now();
            self.last_piece = at;
        }
    }

    /// Bytes under writeback, to all disks; 0 if the kernel does not report it.
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
    queued <= MAX_QUEUED || since_last >= MAX_WAIT_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_waits_for_the_disk_but_not_for_ever() {
        assert!(may_queue(0, 0));
        assert!(may_queue(MAX_QUEUED, 0));
        assert!(!may_queue(MAX_QUEUED + 1, 0));
        assert!(!may_queue(64 << 20, MAX_WAIT_NS - 1));
        assert!(may_queue(64 << 20, MAX_WAIT_NS));
    }
}
