//! Sensors that may block: on a mount that hangs, on a disk, on firmware, or on a lock of the process that is read.
//!
//! A thread of their own calls them, never the deciding thread. Like the other sensors they allocate nothing after they
//! were opened.

mod amd_gpus;
mod file_system;
mod process;
mod thermal;

pub use process::{
    MappedFiles, count_open_files, read_mapped_files, read_pss, read_written_bytes,
    visit_files_being_written,
};

use crate::{FsSpace, Gpus, Reading, Thermal};
use amd_gpus::AmdGpus;
use file_system::FileSystemFolder;
use std::path::Path;
use thermal::ThermalSensors;

/// The readings of the sensors that may block. The guard copies the last ones into each sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowReadings {
    /// The room on the file system that the run works in.
    pub disk_space: FsSpace,
    /// How many more files that file system can hold.
    pub inodes_free: Reading<u64>,
    /// 1 when the folder is on a network mount.
    pub network: Reading<u64>,
    /// The room on /dev/shm.
    pub shm: FsSpace,
    /// Temperatures.
    pub thermal: Thermal,
    /// The GPUs whose driver shows readings in files (amdgpu).
    pub gpus: Gpus,
}

/// The open files of the sensors that may block.
pub struct SlowSensors {
    folder: FileSystemFolder,
    network: Reading<u64>,
    shm: FileSystemFolder,
    thermal_sensors: ThermalSensors,
    amd_gpus: AmdGpus,
}

impl SlowSensors {
    /// Opens the sensors. `folder` is where the run works.
    pub fn new(folder: &Path) -> SlowSensors {
        SlowSensors::open_at(
            Path::new("/proc"),
            Path::new("/sys"),
            Path::new("/dev/shm"),
            folder,
        )
    }

    /// Opens the sensors as [`SlowSensors::new`] does, with the kernel's folders elsewhere.
    pub fn open_at(proc: &Path, sys: &Path, shm: &Path, folder: &Path) -> SlowSensors {
        SlowSensors {
            folder: FileSystemFolder::open(folder),
            network: file_system::network_flag(folder, proc),
            shm: FileSystemFolder::open(shm),
            thermal_sensors: ThermalSensors::open(sys),
            amd_gpus: AmdGpus::open(sys),
        }
    }

    /// Reads all of them.
    pub fn read(&mut self, out: &mut SlowReadings) {
        let folder = self.folder.read();
        out.disk_space = folder.space;
        out.inodes_free = folder.inodes_free;
        out.network = self.network;
        out.shm = self.shm.read().space;
        out.thermal = self.thermal_sensors.read();
        out.gpus = self.amd_gpus.read();
    }
}

#[cfg(test)]
mod tests;
