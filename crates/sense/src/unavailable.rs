//! Parts of a sample in which every value is missing for the same reason: what a parser starts from, and the result where
//! a whole file could not be read.

use crate::{Disk, FsSpace, Memory, Paging, Pressure, Reading, Reason};

impl Memory {
    /// All values missing, for this reason.
    pub fn unavailable(reason: Reason) -> Memory {
        let none = Reading::Unavailable(reason);
        Memory {
            total: none,
            available: none,
            free: none,
            anon: none,
            shmem: none,
            cached: none,
            reclaimable: none,
            dirty: none,
            writeback: none,
            committed: none,
            swap_total: none,
            swap_free: none,
            compressed: none,
            swap_cached: none,
        }
    }
}

impl Paging {
    /// All values missing, for this reason.
    pub fn unavailable(reason: Reason) -> Paging {
        let none = Reading::Unavailable(reason);
        Paging {
            swapped_in: none,
            swapped_out: none,
            major_faults: none,
            scanned_direct: none,
            scanned_kswapd: none,
            refaults: none,
            oom_kills: none,
        }
    }

    /// Whether every value was read.
    pub fn is_complete(&self) -> bool {
        let Paging {
            swapped_in,
            swapped_out,
            major_faults,
            scanned_direct,
            scanned_kswapd,
            refaults,
            oom_kills,
        } = self;
        let all = [
            swapped_in,
            swapped_out,
            major_faults,
            scanned_direct,
            scanned_kswapd,
            refaults,
            oom_kills,
        ];
        all.iter().all(|reading| reading.value().is_some())
    }
}

impl Pressure {
    /// All values missing, for this reason.
    pub fn unavailable(reason: Reason) -> Pressure {
        let none = Reading::Unavailable(reason);
        Pressure {
            cpu_some_us: none,
            memory_some_us: none,
            memory_full_us: none,
            io_some_us: none,
            io_full_us: none,
        }
    }
}

impl FsSpace {
    /// All values missing, for this reason.
    pub fn unavailable(reason: Reason) -> FsSpace {
        let none = Reading::Unavailable(reason);
        FsSpace {
            total: none,
            free: none,
        }
    }
}

impl Disk {
    /// The counters of the device missing, for this reason. Space and mount are read elsewhere, and stay not yet read.
    pub fn without_counters(reason: Reason) -> Disk {
        let none = Reading::Unavailable(reason);
        Disk {
            space: FsSpace::default(),
            inodes_free: Reading::default(),
            network: Reading::default(),
            reads: none,
            read_bytes: none,
            read_ms: none,
            writes: none,
            written_bytes: none,
            write_ms: none,
            busy_ms: none,
            in_flight: none,
        }
    }
}
