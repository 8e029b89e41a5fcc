//! The limits above us: a container's, a slice's, a session's.

use super::{BUFFER, Folder, Location, Version};
use crate::file::ProcFile;
use crate::parse::{self, MemoryStat};
use crate::{Cgroup, Reading, Reason};
use std::path::Path;

/// Every cgroup from ours to the top that could have a limit. Limits may be set and lifted
/// while we run, so all of them are read each time; where there was none, every fourth time.
pub struct Above {
    charges: Box<[Charge]>,
    buffer: Box<[u8]>,
    /// So many of the next calls read nothing, because there was no limit.
    skips: u32,
}

const SKIPS: u32 = 3;

/// One count of memory, and the limits that hold for it.
struct Charge {
    limits: [Option<ProcFile>; 2],
    usage: ProcFile,
    stat: ProcFile,
}

/// The names of a charge's files, limits first.
struct Names {
    limits: [Option<&'static str>; 2],
    usage: &'static str,
}

/// At `high` a cgroup is slowed until it crawls: for a training run that is the end too.
const V2: &[Names] = &[Names {
    limits: [Some("memory.max"), Some("memory.high")],
    usage: "memory.current",
}];

const V1: &[Names] = &[
    Names {
        limits: [Some("memory.limit_in_bytes"), None],
        usage: "memory.usage_in_bytes",
    },
    Names {
        limits: [Some("memory.memsw.limit_in_bytes"), None],
        usage: "memory.memsw.usage_in_bytes",
    },
];

impl Above {
    pub fn open(location: &Location) -> Above {
        let charges = location
            .memory_folder()
            .map(|(version, folder)| charges(version, folder))
            .unwrap_or_default();
        Above {
            charges,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            skips: 0,
        }
    }

    /// Fills the tightest limit, and touches nothing else.
    pub fn read(&mut self, out: &mut Cgroup) {
        if self.skips > 0 {
            self.skips -= 1;
            return;
        }
        let tightest = self
            .charges
            .iter()
            .filter_map(|charge| charge.room(&mut self.buffer))
            .min_by_key(|room| room.available);
        match tightest {
            Some(room) => {
                out.limit = Reading::Value(room.limit);
                out.limit_available = Reading::Value(room.available);
            }
            None => {
                self.skips = SKIPS;
                out.limit = Reading::Unavailable(Reason::Absent);
                out.limit_available = Reading::Unavailable(Reason::Absent);
            }
        }
    }
}

fn charges(version: Version, folder: &Folder) -> Box<[Charge]> {
    let names = match version {
        Version::V1 => V1,
        Version::V2 => V2,
    };
    folder
        .upwards()
        .flat_map(|folder| names.iter().filter_map(|names| Charge::open(folder, names)))
        .collect()
}

struct Room {
    limit: u64,
    available: u64,
}

impl Charge {
    /// None where the controller is not switched on, as at the root.
    fn open(folder: &Path, names: &Names) -> Option<Charge> {
        let open = |name| ProcFile::open(folder.join(name)).ok();
        Some(Charge {
            limits: names.limits.map(|name| name.and_then(open)),
            usage: open(names.usage)?,
            stat: open("memory.stat")?,
        })
    }

    /// None without a limit, and for a cgroup that has gone.
    fn room(&self, buffer: &mut [u8]) -> Option<Room> {
        let limit = self
            .limits
            .iter()
            .flatten()
            .filter_map(|file| parse::limit(file.read(buffer).ok()?).value().flatten())
            .min()?;
        let usage = parse::single(self.usage.read(buffer).ok()?).value()?;
        let stat = parse::memory_stat(self.stat.read(buffer).ok()?);
        Some(Room {
            limit,
            available: limit.saturating_sub(usage.saturating_sub(reclaimable(&stat))),
        })
    }
}

/// What the kernel drops without much ado. Page cache fills every limit sooner or later, so
/// it must not count as used; but of the active half some is the libraries that run, and
/// dropping those is where thrashing begins.
fn reclaimable(stat: &MemoryStat) -> u64 {
    let of = |reading: Reading<u64>| reading.value().unwrap_or(0);
    of(stat.inactive_file)
        .saturating_add(of(stat.active_file) / 2)
        .saturating_add(of(stat.slab_reclaimable))
}
