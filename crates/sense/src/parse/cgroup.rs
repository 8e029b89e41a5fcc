//! The memory controller's files, of cgroup version 1 and 2.

use super::memory::key_values;
use super::text::{lines, parse_decimal};
use crate::{Reading, Reason};

/// memory.stat, with everything below the cgroup included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CgroupMemoryStat {
    pub anon: Reading<u64>,
    pub shmem: Reading<u64>,
    /// Version 1 only; version 2 has a file of its own for it.
    pub swap: Reading<u64>,
    pub inactive_file: Reading<u64>,
    pub active_file: Reading<u64>,
    pub slab_reclaimable: Reading<u64>,
}

impl CgroupMemoryStat {
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

/// Of either version: a version 1 file also lists the cgroup without its children, under
/// the very names that version 2 uses, so its `total_` lines win when they come.
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

/// Version 1 writes "no limit" as the largest number of whole pages, which depends on the
/// page size; nothing real comes near it.
const NO_LIMIT: u64 = 1 << 62;

/// A file that holds a limit in bytes; None when there is no limit.
pub fn cgroup_limit(bytes: &[u8]) -> Reading<Option<u64>> {
    match lines(bytes).next() {
        Some(b"max") => Reading::Value(None),
        Some(line) => match parse_decimal(line) {
            Some(limit) => Reading::Value((limit < NO_LIMIT).then_some(limit)),
            None => Reading::Unavailable(Reason::Malformed),
        },
        None => Reading::Unavailable(Reason::Malformed),
    }
}

/// A file that holds one number.
pub fn single_number(bytes: &[u8]) -> Reading<u64> {
    match lines(bytes).next().and_then(parse_decimal) {
        Some(value) => Reading::Value(value),
        None => Reading::Unavailable(Reason::Malformed),
    }
}
