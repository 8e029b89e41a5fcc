//! One look at the machine. Fixed in size and free of heap, so that the guard can take
//! samples without allocating. Counters are raw, as the kernel counts them; rates are
//! derived by whoever reads two samples.

use crate::{Reading, Stamp};

/// How many processes of the tree one sample lists: the largest and the fastest growing.
pub const MAX_LISTED_PROCESSES: usize = 24;
/// How many cores one sample lists.
pub const MAX_CORES: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    pub at: Stamp,
    pub memory: Memory,
    pub paging: Paging,
    pub pressure: Pressure,
    pub cpu: Cpu,
    pub disk: Disk,
    pub shm: FsSpace,
    pub thermal: Thermal,
    pub gpus: Gpus,
    pub cgroup: Cgroup,
    pub tree: TreeTotals,
    pub processes: Processes,
}

/// /proc/meminfo, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub total: Reading<u64>,
    pub available: Reading<u64>,
    pub free: Reading<u64>,
    pub anon: Reading<u64>,
    pub shmem: Reading<u64>,
    pub cached: Reading<u64>,
    pub reclaimable: Reading<u64>,
    pub dirty: Reading<u64>,
    pub writeback: Reading<u64>,
    pub committed: Reading<u64>,
    pub swap_total: Reading<u64>,
    pub swap_free: Reading<u64>,
    /// Memory that zswap or zram holds compressed.
    pub compressed: Reading<u64>,
    /// Memory whose content is in swap as well: it can be had without a write.
    pub swap_cached: Reading<u64>,
}

/// /proc/vmstat: counters since boot, in pages or events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    pub swapped_in: Reading<u64>,
    pub swapped_out: Reading<u64>,
    pub major_faults: Reading<u64>,
    pub scanned_direct: Reading<u64>,
    pub scanned_kswapd: Reading<u64>,
    pub refaults: Reading<u64>,
    pub oom_kills: Reading<u64>,
}

/// /proc/pressure/*: total microseconds stalled since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    pub cpu_some_us: Reading<u64>,
    pub memory_some_us: Reading<u64>,
    pub memory_full_us: Reading<u64>,
    pub io_some_us: Reading<u64>,
    pub io_full_us: Reading<u64>,
}

/// /proc/stat and /proc/loadavg. Times in clock ticks (1/100 s) summed over cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cpu {
    pub user: Reading<u64>,
    pub nice: Reading<u64>,
    pub system: Reading<u64>,
    pub idle: Reading<u64>,
    pub iowait: Reading<u64>,
    pub irq: Reading<u64>,
    pub steal: Reading<u64>,
    /// Load averages over 1, 5 and 15 minutes, in hundredths.
    pub load_hundredths: [Reading<u64>; 3],
    pub runnable: Reading<u64>,
    /// The newest process or thread number: when it stands still, nothing was started.
    pub newest_pid: Reading<u64>,
    pub core_count: u16,
    /// Percent busy since the sample before, core by core.
    pub core_percents: [u8; MAX_CORES],
}

impl Default for Cpu {
    fn default() -> Self {
        let none = Reading::default();
        Cpu {
            user: none,
            nice: none,
            system: none,
            idle: none,
            iowait: none,
            irq: none,
            steal: none,
            load_hundredths: [none; 3],
            runnable: none,
            newest_pid: none,
            core_count: 0,
            core_percents: [0; MAX_CORES],
        }
    }
}

/// The file system the run works in, and the device below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    pub space: FsSpace,
    pub inodes_free: Reading<u64>,
    /// 1 when the folder is on a network mount.
    pub network: Reading<u64>,
    pub reads: Reading<u64>,
    pub read_bytes: Reading<u64>,
    pub read_ms: Reading<u64>,
    pub writes: Reading<u64>,
    pub written_bytes: Reading<u64>,
    pub write_ms: Reading<u64>,
    pub busy_ms: Reading<u64>,
    pub in_flight: Reading<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsSpace {
    pub total: Reading<u64>,
    /// What an ordinary user may still fill.
    pub free: Reading<u64>,
}

/// Where the kernel shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thermal {
    /// The hottest sensor, in thousandths of a degree Celsius.
    pub hottest_millidegrees: Reading<u64>,
    /// How often the kernel slowed a core because of heat, summed over cores.
    pub throttle_count: Reading<u64>,
}

/// The graphics cards, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gpus {
    /// Bytes of memory of their own.
    pub memory_used: Reading<u64>,
    pub memory_total: Reading<u64>,
    /// Of the busiest, in percent.
    pub busy_percent: Reading<u64>,
    /// In thousandths of a degree.
    pub hottest_millidegrees: Reading<u64>,
    /// In millionths of a watt, and what they may draw.
    pub power_microwatts: Reading<u64>,
    pub power_limit_microwatts: Reading<u64>,
    /// Why they were slowed: the bits of [`crate::cards::throttle`] that any of them shows.
    pub throttle_bits: Reading<u64>,
    /// Of the fullest, in thousandths of its own memory.
    pub fullest_permille: Reading<u64>,
    /// How many answer, and how many did and are lost.
    pub count: Reading<u64>,
    pub lost: Reading<u64>,
}

/// The memory cgroups: the trainer's own, and the tightest limit above us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    pub own_current: Reading<u64>,
    pub own_anon: Reading<u64>,
    pub own_shmem: Reading<u64>,
    pub own_swap: Reading<u64>,
    /// How often the trainer was slowed at memory.high.
    pub own_high_events: Reading<u64>,
    /// The tightest limit of a container or cgroup above us.
    pub limit: Reading<u64>,
    /// What can still be had below that limit: limit − usage + what is cheap to reclaim.
    pub limit_available: Reading<u64>,
}

/// The training tree as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeTotals {
    pub count: Reading<u64>,
    pub threads: Reading<u64>,
    /// Open files of the tree, at a slow pace.
    pub files: Reading<u64>,
    /// Memory that would come back if the tree ended: anonymous memory counted once
    /// however many processes share it, its shared memory, and what of it is in swap.
    pub footprint: Reading<u64>,
    /// Its shared memory alone.
    pub shmem: Reading<u64>,
    pub swap: Reading<u64>,
    /// Clock ticks of user and system time, of the living.
    pub cpu: Reading<u64>,
    pub major_faults: Reading<u64>,
    pub read_bytes: Reading<u64>,
    pub written_bytes: Reading<u64>,
    /// What the processes that train say of themselves: steps of the one that is furthest, what it
    /// is at, and items a batch.
    pub steps: Reading<u64>,
    pub phase: Reading<u64>,
    pub batch: Reading<u64>,
    /// Bytes that were asked of files, whether they came from a disk or were in memory already.
    pub read_asked: Reading<u64>,
}

/// What a trainer is at, by its number in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Unknown,
    /// Waiting for data.
    Data,
    Forward,
    Backward,
    Optimizer,
    Evaluation,
    Saving,
}

/// A process number. 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(pub u32);

/// One process, from /proc/PID/status, stat and io.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    pub parent: Pid,
    /// Start time in clock ticks since boot: with the number, the process's identity.
    pub started: u64,
    pub name: ProcessName,
    /// The kernel's letter: R, S, D, T, Z, …
    pub state: u8,
    pub vm_data: Reading<u64>,
    pub rss_anon: Reading<u64>,
    pub rss_shmem: Reading<u64>,
    pub rss_file: Reading<u64>,
    pub swap: Reading<u64>,
    pub threads: Reading<u64>,
    pub cpu: Reading<u64>,
    pub major_faults: Reading<u64>,
    pub read_bytes: Reading<u64>,
    pub written_bytes: Reading<u64>,
    /// The soft limit the wall set on it.
    pub wall: Reading<u64>,
}

/// The kernel's short name of a process: any bytes, at most fifteen, written by a stranger.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessName {
    bytes: [u8; 15],
    len: u8,
}

impl ProcessName {
    pub fn new(bytes: &[u8]) -> ProcessName {
        let len = bytes.len().min(15);
        let mut name = ProcessName::default();
        name.bytes[..len].copy_from_slice(&bytes[..len]);
        name.len = len as u8;
        name
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for ProcessName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.as_bytes().escape_ascii().to_string())
    }
}

/// The processes one sample lists, largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Processes {
    list: [Process; MAX_LISTED_PROCESSES],
    len: u8,
}

impl Processes {
    pub fn as_slice(&self) -> &[Process] {
        &self.list[..usize::from(self.len)]
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds one; false when the list is full.
    pub fn push(&mut self, process: Process) -> bool {
        let Some(slot) = self.list.get_mut(usize::from(self.len)) else {
            return false;
        };
        *slot = process;
        self.len += 1;
        true
    }
}
