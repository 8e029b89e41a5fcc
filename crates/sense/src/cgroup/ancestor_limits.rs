//! The limits of the cgroups above this process: of a container, a slice or a session.

use super::{BUFFER_BYTES, CgroupFolder, CgroupLocation, CgroupVersion};
use crate::file::ProcFile;
use crate::parse::{self, CgroupMemoryStat};
use crate::{Cgroup, Reading, Reason};
use std::path::Path;

/// The open files of every cgroup from ours up to the mount that could have a limit. Limits may be set and lifted
/// during a run, so all of them are read each time; while there is none, every fourth time.
pub struct AncestorLimits {
    charges: Box<[MemoryCharge]>,
    buffer: Box<[u8]>,
    /// How many of the next calls read nothing, because there was no limit.
    skips: u32,
}

/// How many calls read nothing after one that found no limit.
const READS_SKIPPED_WITHOUT_LIMIT: u32 = 3;

/// One counter of memory, and the limits on it.
struct MemoryCharge {
    limits: [Option<ProcFile>; 2],
    usage: ProcFile,
    stat: ProcFile,
}

/// The names of the files of a charge.
struct ChargeFiles {
    limits: [Option<&'static str>; 2],
    usage: &'static str,
}

/// memory.high counts as a limit: a cgroup at it is slowed so much that a training run does not get ahead.
const V2_CHARGES: &[ChargeFiles] = &[ChargeFiles {
    limits: [Some("memory.max"), Some("memory.high")],
    usage: "memory.current",
}];

const V1_CHARGES: &[ChargeFiles] = &[
    ChargeFiles {
        limits: [Some("memory.limit_in_bytes"), None],
        usage: "memory.usage_in_bytes",
    },
    ChargeFiles {
        limits: [Some("memory.memsw.limit_in_bytes"), None],
        usage: "memory.memsw.usage_in_bytes",
    },
];

impl AncestorLimits {
    /// Opens the files of the cgroups above this location.
    pub fn open(location: &CgroupLocation) -> AncestorLimits {
        let charges = location
            .memory_folder()
            .map(|(version, folder)| open_charges(version, folder))
            .unwrap_or_default();
        AncestorLimits {
            charges,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            skips: 0,
        }
    }

    /// Reads the tightest limit, and leaves the rest of `out` as it is.
    pub fn read(&mut self, out: &mut Cgroup) {
        if self.skips > 0 {
            self.skips -= 1;
            return;
        }
        let tightest = self
            .charges
            .iter()
            .filter_map(|charge| charge.read_room(&mut self.buffer))
            .min_by_key(|room| room.available);
        match tightest {
            Some(room) => {
                out.limit = Reading::Value(room.limit);
                out.limit_available = Reading::Value(room.available);
            }
            None => {
                self.skips = READS_SKIPPED_WITHOUT_LIMIT;
                out.limit = Reading::Unavailable(Reason::Absent);
                out.limit_available = Reading::Unavailable(Reason::Absent);
            }
        }
    }
}

fn open_charges(version: CgroupVersion, folder: &CgroupFolder) -> Box<[MemoryCharge]> {
    let names = match version {
        CgroupVersion::V1 => V1_CHARGES,
        CgroupVersion::V2 => V2_CHARGES,
    };
    folder
        .ancestors_to_mount()
        .flat_map(|folder| {
            names
                .iter()
                .filter_map(|names| MemoryCharge::open(folder, names))
        })
        .collect()
}

struct LimitRoom {
    limit: u64,
    available: u64,
}

impl MemoryCharge {
    /// `None` where the memory controller is not enabled, as at the root.
    fn open(folder: &Path, names: &ChargeFiles) -> Option<MemoryCharge> {
        let open = |name| ProcFile::open(folder.join(name)).ok();
        Some(MemoryCharge {
            limits: names.limits.map(|name| name.and_then(open)),
            usage: open(names.usage)?,
            stat: open("memory.stat")?,
        })
    }

    /// `None` without a limit, and for a cgroup that was removed.
    fn read_room(&self, buffer: &mut [u8]) -> Option<LimitRoom> {
        let limit = self
            .limits
            .iter()
            .flatten()
            .filter_map(|file| {
                parse::cgroup_limit(file.read(buffer).ok()?)
                    .value()
                    .flatten()
            })
            .min()?;
        let usage = parse::single_number(self.usage.read(buffer).ok()?).value()?;
        let stat = parse::cgroup_memory_stat(self.stat.read(buffer).ok()?);
        Some(LimitRoom {
            limit,
            available: limit.saturating_sub(usage.saturating_sub(reclaimable_bytes(&stat))),
        })
    }
}

/// What the kernel can drop cheaply. Page cache fills every limit sooner or later, so it must not count as used. Half
/// of the active part is left out: libraries in use are in it, and dropping them is where thrashing begins.
fn reclaimable_bytes(stat: &CgroupMemoryStat) -> u64 {
    let bytes_or_zero = |reading: Reading<u64>| reading.value().unwrap_or(0);
    bytes_or_zero(stat.inactive_file)
        .saturating_add(bytes_or_zero(stat.active_file) / 2)
        .saturating_add(bytes_or_zero(stat.slab_reclaimable))
}
