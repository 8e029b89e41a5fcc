//! The cgroup that was made for the trainer.

use super::BUFFER;
use crate::file::Source;
use crate::parse::{self, MemoryStat};
use crate::{Cgroup, Reading};
use std::path::Path;

/// One cgroup's memory, counted by the kernel: shared pages once, whoever maps them.
pub struct Own {
    current: Source,
    stat: Source,
    /// Version 2; version 1 tells it in memory.stat.
    swap: Source,
    events: Source,
}

impl Own {
    /// `folder` is a cgroup of version 2, or of version 1's memory controller.
    pub fn open(folder: &Path) -> Own {
        let open = |name: &str| Source::open(folder.join(name));
        let current = match folder.join("memory.current").exists() {
            true => open("memory.current"),
            false => open("memory.usage_in_bytes"),
        };
        Own {
            current,
            stat: open("memory.stat"),
            swap: open("memory.swap.current"),
            events: open("memory.events"),
        }
    }

    /// Fills what the cgroup itself holds, and touches nothing else.
    pub fn read(&self, out: &mut Cgroup) {
        let mut buffer = [0; BUFFER];
        out.own_current = self.current.reading(&mut buffer, parse::single);
        let stat = match self.stat.read(&mut buffer) {
            Ok(bytes) => parse::memory_stat(bytes),
            Err(errno) => MemoryStat::unavailable(errno.into()),
        };
        out.own_anon = stat.anon;
        out.own_shmem = stat.shmem;
        let swap_alone = self.swap.reading(&mut buffer, parse::single);
        out.own_swap = match swap_alone {
            Reading::Value(_) => swap_alone,
            Reading::Unavailable(_) => stat.swap,
        };
        out.own_high_events = self
            .events
            .reading(&mut buffer, |bytes| parse::pair(bytes, b"high"));
    }
}
