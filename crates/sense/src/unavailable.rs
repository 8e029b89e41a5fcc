//! Parts of a sample that have no value, and one reason for it: what a parser starts from,
//! and what stands there when a whole file could not be read.

use crate::{Disk, FsSpace, Memory, Paging, Pressure, Reading, Reason};

impl Memory {
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

    /// Whether nothing is missing.
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
    pub fn unavailable(reason: Reason) -> FsSpace {
        let none = Reading::Unavailable(reason);
        FsSpace {
            total: none,
            free: none,
        }
    }
}

impl Disk {
    /// No counters of the device; space and mount, which come from elsewhere, not yet read.
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
