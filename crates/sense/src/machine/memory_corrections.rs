//! Memory that /proc/meminfo does not show as what it is.
//!
//! zram looks like any used memory, and is swap that was compressed. The cache of ZFS looks
//! like used memory too, and is given back when somebody needs it: a guard that does not
//! know that fires on an idle file server.

use crate::file::OptionalFile;
use crate::parse;
use crate::{Memory, Reading};
use std::path::Path;

pub struct MemoryCorrections {
    zram: Box<[OptionalFile]>,
    arcstats: OptionalFile,
}

/// More of these devices than anybody makes.
const MAX_ZRAM_DEVICES: usize = 16;

impl MemoryCorrections {
    pub fn open(proc: &Path, sys: &Path) -> MemoryCorrections {
        let block = sys.join("block");
        MemoryCorrections {
            zram: (0..MAX_ZRAM_DEVICES)
                .map(|number| block.join(format!("zram{number}/mm_stat")))
                .filter(|path| path.exists())
                .map(OptionalFile::open)
                .collect(),
            arcstats: OptionalFile::open(proc.join("spl/kstat/zfs/arcstats")),
        }
    }

    pub fn apply_to(&self, memory: &mut Memory, buffer: &mut [u8]) {
        for device in &self.zram {
            let used = device.read_with(buffer, parse::zram_used);
            memory.compressed = parse::sum_readings(memory.compressed, used);
        }
        let reclaimable = self.arcstats.read_with(buffer, parse::arc_reclaimable);
        if let (Reading::Value(available), Reading::Value(arc), Reading::Value(total)) =
            (memory.available, reclaimable, memory.total)
        {
            memory.available = Reading::Value(available.saturating_add(arc).min(total));
        }
    }
}
