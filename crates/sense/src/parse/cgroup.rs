//! Parses the files of the memory controller, of cgroup version 1 and 2.

use super::memory::key_values;
use super::text::{lines, parse_decimal};
use crate::{Reading, Reason};

/// memory.stat in bytes, with everything below the cgroup included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupMemoryStat {
    /// Anonymous memory.
    pub anon: Reading<u64>,
    /// Shared memory.
    pub shmem: Reading<u64>,
    /// Swap, of version 1 only: version 2 has a file of its own for it.
    pub swap: Reading<u64>,
    /// Page cache that was not used lately.
    pub inactive_file: Reading<u64>,
    /// Page cache that was used lately.
    pub active_file: Reading<u64>,
    /// Memory of the kernel that it would give back.
    pub slab_reclaimable: Reading<u64>,
}

impl CgroupMemoryStat {
    /// All values missing, for this reason.
    pub fn unavailable(reason: Reason) -> CgroupMemoryStat {
        let none = Reading::Unavailable(reason);
        CgroupMemoryStat {
            anon: none,
            shmem: none,
            swap: none,
            inactive_file: none,
            active_file: none,
            slab_reclaimable: none,
        }
    }
}

/// Parses memory.stat of either version. A file of version 1 also lists the cgroup without its children, under the
/// names of version 2, so its `total_` lines, which come later, replace them.
pub fn cgroup_memory_stat(bytes: &[u8]) -> CgroupMemoryStat {
    let mut stat = CgroupMemoryStat::unavailable(Reason::Absent);
    for (key, value) in key_values(bytes) {
        match key {
            b"anon" | b"total_rss" => stat.anon = value,
            b"shmem" | b"total_shmem" => stat.shmem = value,
            b"total_swap" => stat.swap = value,
            b"inactive_file" | b"total_inactive_file" => stat.inactive_file = value,
            b"active_file" | b"total_active_file" => stat.active_file = value,
            b"slab_reclaimable" => stat.slab_reclaimable = value,
            _ => {}
        }
    }
    stat
}

/// Version 1 writes "no limit" as the largest number of whole pages, which depends on the page size. Real limits are
/// far below this.
const NO_LIMIT_FROM_BYTES: u64 = 1 << 62;

/// Parses a file that holds a limit in bytes; `None` when there is no limit.
pub fn cgroup_limit(bytes: &[u8]) -> Reading<Option<u64>> {
    match lines(bytes).next() {
        Some(b"max") => Reading::Value(None),
        Some(line) => match parse_decimal(line) {
            Some(limit) => Reading::Value((limit < NO_LIMIT_FROM_BYTES).then_some(limit)),
            None => Reading::Unavailable(Reason::Malformed),
        },
        None => Reading::Unavailable(Reason::Malformed),
    }
}

/// Parses a file that holds one number.
pub fn single_number(bytes: &[u8]) -> Reading<u64> {
    match lines(bytes).next().and_then(parse_decimal) {
        Some(value) => Reading::Value(value),
        None => Reading::Unavailable(Reason::Malformed),
    }
}
