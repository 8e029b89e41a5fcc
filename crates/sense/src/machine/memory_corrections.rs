//! Corrects /proc/meminfo, which shows two kinds of memory as used.
//!
//! zram is compressed swap. The cache of ZFS is given back when a process needs memory: without this correction
//! the guard would act on an idle file server.

use crate::file::OptionalFile;
use crate::parse;
use crate::{Memory, Reading};
use std::path::Path;

/// The open files that the corrections are read from.
pub struct MemoryCorrections {
    zram: Box<[OptionalFile]>,
    arcstats: OptionalFile,
}

/// More zram devices than machines have.
const MAX_ZRAM_DEVICES: usize = 16;

impl MemoryCorrections {
    /// Opens the files of zram and ZFS, where they exist.
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

    /// Adds zram to the compressed memory, and what ZFS would give back to the available memory.
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
