//! Reads the cgroup that was made for the trainer.

use super::BUFFER_BYTES;
use crate::file::OptionalFile;
use crate::parse::{self, CgroupMemoryStat};
use crate::{Cgroup, Reading};
use std::path::Path;

/// The open files of one cgroup. The kernel counts each shared page once, whichever process maps it.
pub struct OwnCgroup {
    current: OptionalFile,
    stat: OptionalFile,
    /// Version 2 only: version 1 has it in memory.stat.
    swap: OptionalFile,
    events: OptionalFile,
}

impl OwnCgroup {
    /// Opens the files. `folder` is a cgroup of version 2, or of version 1's memory controller.
    pub fn open(folder: &Path) -> OwnCgroup {
        let open = |name: &str| OptionalFile::open(folder.join(name));
        let current = match folder.join("memory.current").exists() {
            true => open("memory.current"),
            false => open("memory.usage_in_bytes"),
        };
        OwnCgroup {
            current,
            stat: open("memory.stat"),
            swap: open("memory.swap.current"),
            events: open("memory.events"),
        }
    }

    /// Reads what the cgroup itself holds, and leaves the rest of `out` as it is.
    pub fn read(&self, out: &mut Cgroup) {
        let mut buffer = [0; BUFFER_BYTES];
        out.own_current = self.current.read_with(&mut buffer, parse::single_number);
        let stat = match self.stat.read(&mut buffer) {
            Ok(bytes) => parse::cgroup_memory_stat(bytes),
            Err(errno) => CgroupMemoryStat::unavailable(errno.into()),
        };
        out.own_anon = stat.anon;
        out.own_shmem = stat.shmem;
        let swap_alone = self.swap.read_with(&mut buffer, parse::single_number);
        out.own_swap = match swap_alone {
            Reading::Value(_) => swap_alone,
            Reading::Unavailable(_) => stat.swap,
        };
        out.own_high_events = self
            .events
            .read_with(&mut buffer, |bytes| parse::key_value(bytes, b"high"));
    }
}
