//! Sensors that may block: on a mount that hangs, on a disk, on firmware, or on a lock of
//! the process that is read. A scout thread calls them; the deciding thread never does.

mod cards;
mod heat;
mod process;
mod space;

pub use process::{Mapped, mapped, open_files, pss, writing, written};

use crate::{Cards, Heat, Reading, Space};
use cards::Slots;
use heat::Thermometers;
use space::Place;
use std::path::Path;

/// What the scout brings back, to be put into a sample when it comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slow {
    pub disk_space: Space,
    pub inodes_free: Reading<u64>,
    /// 1 when the folder is on a network mount.
    pub network: Reading<u64>,
    pub shm: Space,
    pub heat: Heat,
    pub cards: Cards,
}

pub struct Scout {
    folder: Place,
    network: Reading<u64>,
    shm: Place,
    thermometers: Thermometers,
    slots: Slots,
}

impl Scout {
    /// `folder` is where the run works.
    pub fn new(folder: &Path) -> Scout {
        Scout::open_at(
            Path::new("/proc"),
            Path::new("/sys"),
            Path::new("/dev/shm"),
            folder,
        )
    }

    /// As [`Scout::new`], with the kernel's folders elsewhere.
    pub fn open_at(proc: &Path, sys: &Path, shm: &Path, folder: &Path) -> Scout {
        Scout {
            folder: Place::open(folder),
            network: space::network(folder, proc),
            shm: Place::open(shm),
            thermometers: Thermometers::open(sys),
            slots: Slots::open(sys),
        }
    }

    pub fn read(&mut self, out: &mut Slow) {
        let folder = self.folder.read();
        out.disk_space = folder.space;
        out.inodes_free = folder.inodes_free;
        out.network = self.network;
        out.shm = self.shm.read().space;
        out.heat = self.thermometers.read();
        out.cards = self.slots.read();
    }
}

#[cfg(test)]
mod tests;
