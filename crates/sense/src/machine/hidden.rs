//! Memory that /proc/meminfo does not show as what it is.
//!
//! zram looks like any used memory, and is swap that was compressed. The cache of ZFS looks
//! like used memory too, and is given back when somebody needs it: a guard that does not
//! know that fires on an idle file server.

use crate::file::Source;
use crate::parse;
use crate::{Memory, Reading};
use std::path::Path;

pub struct Hidden {
    zram: Box<[Source]>,
    arcstats: Source,
}

/// More of these devices than anybody makes.
const ZRAM_DEVICES: usize = 16;

impl Hidden {
    pub fn open(proc: &Path, sys: &Path) -> Hidden {
        let block = sys.join("block");
        Hidden {
            zram: (0..ZRAM_DEVICES)
                .map(|number| block.join(format!("zram{number}/mm_stat")))
                .filter(|path| path.exists())
                .map(Source::open)
                .collect(),
            arcstats: Source::open(proc.join("spl/kstat/zfs/arcstats")),
        }
    }

    pub fn add_to(&self, memory: &mut Memory, buffer: &mut [u8]) {
        for device in &self.zram {
            let used = device.reading(buffer, parse::zram_used);
            memory.compressed = parse::sum(memory.compressed, used);
        }
        let reclaimable = self.arcstats.reading(buffer, parse::arc_reclaimable);
        if let (Reading::Value(available), Reading::Value(arc), Reading::Value(total)) =
            (memory.available, reclaimable, memory.total)
        {
            memory.available = Reading::Value(available.saturating_add(arc).min(total));
        }
    }
}
