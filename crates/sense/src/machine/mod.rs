//! The whole machine: memory, paging, pressure, cores and the disk below the run.
//!
//! Quick files only, each opened once. A file that this kernel does not have is found
//! missing at [`Machine::open`] and explained in every sample.

mod cores;
mod device;
mod hidden;

use crate::file::Source;
use crate::parse::{self, Device};
use crate::{Disk, Memory, Paging, Pressure, Reading, Reason, Sample, Stamp};
use cores::Cores;
use hidden::Hidden;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::path::Path;

/// Room for the largest of these files: /proc/stat begins with up to [`CORES`](crate::CORES)
/// lines of about a hundred bytes, and of the interrupts behind them we want nothing.
const BUFFER: usize = 32 * 1024;

pub struct Machine {
    meminfo: Source,
    vmstat: Source,
    /// Something was missing in its first piece.
    vmstat_is_long: bool,
    cpu_pressure: Source,
    memory_pressure: Source,
    io_pressure: Source,
    stat: Source,
    loadavg: Source,
    diskstats: Source,
    device: Option<Device>,
    cores: Cores,
    hidden: Hidden,
    buffer: Box<[u8]>,
}

impl Machine {
    /// `folder` is where the run works: the device below it is the disk that is watched.
    pub fn open(folder: &Path) -> Machine {
        Machine::open_at(Path::new("/proc"), Path::new("/sys"), folder)
    }

    /// As [`Machine::open`], with /proc and /sys elsewhere.
    pub fn open_at(proc: &Path, sys: &Path, folder: &Path) -> Machine {
        let open = |name: &str| Source::open(proc.join(name));
        Machine {
            meminfo: open("meminfo"),
            vmstat: open("vmstat"),
            vmstat_is_long: false,
            cpu_pressure: open("pressure/cpu"),
            memory_pressure: open("pressure/memory"),
            io_pressure: open("pressure/io"),
            stat: open("stat"),
            loadavg: open("loadavg"),
            diskstats: open("diskstats"),
            device: device::below(folder, proc),
            cores: Cores::default(),
            hidden: Hidden::open(proc, sys),
            buffer: vec![0; BUFFER].into_boxed_slice(),
        }
    }

    /// Fills what no decision can do without, the time, the memory and the newest process,
    /// and leaves the rest as it was.
    pub fn glance(&mut self, out: &mut Sample) {
        out.at = now();
        out.memory = self.memory();
        let load = match self.loadavg.read(&mut self.buffer) {
            Ok(bytes) => parse::loadavg(bytes),
            Err(errno) => parse::Load::unavailable(errno.into()),
        };
        out.cpu.load = load.average;
        out.cpu.runnable = load.runnable;
        out.cpu.newest = load.newest;
    }

    /// Fills the parts of the sample that tell of the whole machine, and touches no other.
    pub fn read(&mut self, out: &mut Sample) {
        self.glance(out);
        out.paging = self.paging();
        out.pressure = self.pressure();
        let stat = self.stat.read(&mut self.buffer);
        self.cores.read(stat, &mut out.cpu);
        out.disk = Disk {
            space: out.disk.space,
            inodes_free: out.disk.inodes_free,
            network: out.disk.network,
            ..self.disk()
        };
    }

    fn memory(&mut self) -> Memory {
        let mut memory = match self.meminfo.read(&mut self.buffer) {
            Ok(bytes) => parse::meminfo(bytes),
            Err(errno) => return Memory::unavailable(errno.into()),
        };
        self.hidden.add_to(&mut memory, &mut self.buffer);
        memory
    }

    /// The first piece of the file nearly always has all of it, and each piece costs the kernel as much as the first.
    fn paging(&mut self) -> Paging {
        if !self.vmstat_is_long {
            match self.vmstat.read_piece(&mut self.buffer).map(parse::vmstat) {
                Ok(paging) if paging.is_complete() => return paging,
                _ => self.vmstat_is_long = true,
            }
        }
        match self.vmstat.read(&mut self.buffer) {
            Ok(bytes) => parse::vmstat(bytes),
            Err(errno) => Paging::unavailable(errno.into()),
        }
    }

    fn pressure(&mut self) -> Pressure {
        let mut stall = |source: &Source| match source.read(&mut self.buffer) {
            Ok(bytes) => parse::pressure(bytes),
            Err(errno) => {
                let none = Reading::from(errno);
                parse::Stall {
                    some: none,
                    full: none,
                }
            }
        };
        let cpu = stall(&self.cpu_pressure);
        let memory = stall(&self.memory_pressure);
        let io = stall(&self.io_pressure);
        Pressure {
            cpu_some: cpu.some,
            memory_some: memory.some,
            memory_full: memory.full,
            io_some: io.some,
            io_full: io.full,
        }
    }

    fn disk(&mut self) -> Disk {
        let Some(device) = self.device else {
            return Disk::without_counters(Reason::Absent);
        };
        match self.diskstats.read(&mut self.buffer) {
            Ok(bytes) => parse::diskstats(bytes, device),
            Err(errno) => Disk::without_counters(errno.into()),
        }
    }
}

/// The time on both clocks.
pub fn now() -> Stamp {
    let nanoseconds = |time: Timespec| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(rest)
    };
    Stamp {
        monotonic: nanoseconds(clock_gettime(ClockId::Monotonic)),
        realtime: nanoseconds(clock_gettime(ClockId::Realtime)),
    }
}

#[cfg(test)]
mod tests;
