//! Sensors of the whole machine: memory, paging, pressure, cores and the disk below the run.
//!
//! They read only files that never block, each opened once. Where this kernel does not have a file,
//! [`MachineSensors::open`] notes it, and every sample has the reason.

mod block_device;
mod cores;
mod memory_corrections;

use crate::file::OptionalFile;
use crate::parse::{self, BlockDevice};
use crate::{Disk, Memory, Paging, Pressure, Reading, Reason, Sample, Stamp};
use cores::CoreUsage;
use memory_corrections::MemoryCorrections;
use std::path::Path;

/// Room for what is used of the largest of these files: /proc/stat begins with up to
/// [`MAX_CORES`](crate::MAX_CORES) lines of about 100 bytes; the interrupts behind them are not used.
const BUFFER_BYTES: usize = 32 * 1024;

/// The open files of the machine.
pub struct MachineSensors {
    meminfo: OptionalFile,
    vmstat: OptionalFile,
    /// The first piece that the kernel returns has not all of the counters.
    vmstat_is_long: bool,
    cpu_pressure: OptionalFile,
    memory_pressure: OptionalFile,
    io_pressure: OptionalFile,
    stat: OptionalFile,
    loadavg: OptionalFile,
    diskstats: OptionalFile,
    device: Option<BlockDevice>,
    cores: CoreUsage,
    memory_corrections: MemoryCorrections,
    buffer: Box<[u8]>,
}

impl MachineSensors {
    /// Opens the files. `folder` is where the run works: the device below it is the disk that is sampled.
    pub fn open(folder: &Path) -> MachineSensors {
        MachineSensors::open_at(Path::new("/proc"), Path::new("/sys"), folder)
    }

    /// Opens the files as [`MachineSensors::open`] does, with /proc and /sys elsewhere.
    pub fn open_at(proc: &Path, sys: &Path, folder: &Path) -> MachineSensors {
        let open = |name: &str| OptionalFile::open(proc.join(name));
        MachineSensors {
            meminfo: open("meminfo"),
            vmstat: open("vmstat"),
            vmstat_is_long: false,
            cpu_pressure: open("pressure/cpu"),
            memory_pressure: open("pressure/memory"),
            io_pressure: open("pressure/io"),
            stat: open("stat"),
            loadavg: open("loadavg"),
            diskstats: open("diskstats"),
            device: block_device::find_block_device(folder, proc),
            cores: CoreUsage::default(),
            memory_corrections: MemoryCorrections::open(proc, sys),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        }
    }

    /// Reads what every decision needs, which is the time, the memory and the newest process, and leaves the
    /// rest of the sample as it is.
    pub fn read_essentials(&mut self, out: &mut Sample) {
        out.at = Stamp::now();
        out.memory = self.read_memory();
        let load = match self.loadavg.read(&mut self.buffer) {
            Ok(bytes) => parse::load_average(bytes),
            Err(errno) => parse::LoadAverage::unavailable(errno.into()),
        };
        out.cpu.load_hundredths = load.average;
        out.cpu.runnable = load.runnable;
        out.cpu.newest_pid = load.newest;
    }

    /// Reads all parts of the sample that describe the whole machine, and leaves the others as they are.
    pub fn read(&mut self, out: &mut Sample) {
        self.read_essentials(out);
        out.paging = self.read_paging();
        out.pressure = self.read_pressure();
        let stat = self.stat.read(&mut self.buffer);
        self.cores.update(stat, &mut out.cpu);
        out.disk = Disk {
            space: out.disk.space,
            inodes_free: out.disk.inodes_free,
            network: out.disk.network,
            ..self.read_disk()
        };
    }

    fn read_memory(&mut self) -> Memory {
        let mut memory = match self.meminfo.read(&mut self.buffer) {
            Ok(bytes) => parse::meminfo(bytes),
            Err(errno) => return Memory::unavailable(errno.into()),
        };
        self.memory_corrections
            .apply_to(&mut memory, &mut self.buffer);
        memory
    }

    /// Reads one piece of the file where it is complete, as it nearly always is: each piece costs the kernel as much
    /// as the first.
    fn read_paging(&mut self) -> Paging {
        if !self.vmstat_is_long {
            match self
                .vmstat
                .read_first_piece(&mut self.buffer)
                .map(parse::vmstat)
            {
                Ok(paging) if paging.is_complete() => return paging,
                _ => self.vmstat_is_long = true,
            }
        }
        match self.vmstat.read(&mut self.buffer) {
            Ok(bytes) => parse::vmstat(bytes),
            Err(errno) => Paging::unavailable(errno.into()),
        }
    }

    fn read_pressure(&mut self) -> Pressure {
        let mut stall = |source: &OptionalFile| match source.read(&mut self.buffer) {
            Ok(bytes) => parse::stall_times(bytes),
            Err(errno) => {
                let none = Reading::from(errno);
                parse::StallTimes {
                    some: none,
                    full: none,
                }
            }
        };
        let cpu = stall(&self.cpu_pressure);
        let memory = stall(&self.memory_pressure);
        let io = stall(&self.io_pressure);
        Pressure {
            cpu_some_us: cpu.some,
            memory_some_us: memory.some,
            memory_full_us: memory.full,
            io_some_us: io.some,
            io_full_us: io.full,
        }
    }

    fn read_disk(&mut self) -> Disk {
        let Some(device) = self.device else {
            return Disk::without_counters(Reason::Absent);
        };
        match self.diskstats.read(&mut self.buffer) {
            Ok(bytes) => parse::diskstats(bytes, device),
            Err(errno) => Disk::without_counters(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests;
