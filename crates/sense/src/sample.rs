//! One sample of the machine and the training tree.
//!
//! A sample has a fixed size and no heap, so the guard takes samples without allocating. Counters are raw, as the kernel
//! counts them; whoever compares two samples derives the rates. A field without a unit in its name is a count, or bytes
//! where its comment says so.

use crate::{Reading, Stamp};

/// How many processes one sample lists at most: the largest and the fastest growing of the tree.
pub const MAX_LISTED_PROCESSES: usize = 24;
/// How many cores one sample lists at most.
pub const MAX_CORES: usize = 256;

/// One sample of the machine and of the training tree, with everything that was read for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// When the sample was taken.
    pub at: Stamp,
    /// Memory of the whole machine.
    pub memory: Memory,
    /// Paging of the whole machine.
    pub paging: Paging,
    /// How long processes waited for memory, disks and cores.
    pub pressure: Pressure,
    /// What the cores did.
    pub cpu: Cpu,
    /// The file system that the run works in.
    pub disk: Disk,
    /// /dev/shm.
    pub shm: FsSpace,
    /// Temperatures.
    pub thermal: Thermal,
    /// All GPUs together.
    pub gpus: Gpus,
    /// The trainer's own memory cgroup, and the limits above it.
    pub cgroup: Cgroup,
    /// The training tree as a whole.
    pub tree: TreeTotals,
    /// Single processes of the tree.
    pub processes: Processes,
}

/// /proc/meminfo, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// MemTotal.
    pub total: Reading<u64>,
    /// MemAvailable, with what the cache of ZFS would give back.
    pub available: Reading<u64>,
    /// MemFree.
    pub free: Reading<u64>,
    /// AnonPages: memory of processes that no file backs.
    pub anon: Reading<u64>,
    /// Shmem: shared memory and tmpfs.
    pub shmem: Reading<u64>,
    /// Cached: the page cache.
    pub cached: Reading<u64>,
    /// KReclaimable: what the kernel itself would give back.
    pub reclaimable: Reading<u64>,
    /// Dirty: waiting to be written to disks.
    pub dirty: Reading<u64>,
    /// Writeback: being written to disks.
    pub writeback: Reading<u64>,
    /// Committed_AS: what was promised to processes.
    pub committed: Reading<u64>,
    /// SwapTotal.
    pub swap_total: Reading<u64>,
    /// SwapFree.
    pub swap_free: Reading<u64>,
    /// Memory that zswap or zram holds compressed.
    pub compressed: Reading<u64>,
    /// SwapCached: memory whose content is in swap as well, so the kernel frees it without a write.
    pub swap_cached: Reading<u64>,
}

/// /proc/vmstat: counters since boot, in pages or events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paging {
    /// Pages read from swap.
    pub swapped_in: Reading<u64>,
    /// Pages written to swap.
    pub swapped_out: Reading<u64>,
    /// Page faults that waited for a disk.
    pub major_faults: Reading<u64>,
    /// Pages scanned by processes that needed memory themselves (direct reclaim).
    pub scanned_direct: Reading<u64>,
    /// Pages scanned by the kernel in the background (kswapd).
    pub scanned_kswapd: Reading<u64>,
    /// Pages that were dropped and needed again.
    pub refaults: Reading<u64>,
    /// Processes killed by the kernel's OOM killer.
    pub oom_kills: Reading<u64>,
}

/// /proc/pressure/*: microseconds since boot in which processes waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one process waited for a core.
    pub cpu_some_us: Reading<u64>,
    /// At least one process waited for memory.
    pub memory_some_us: Reading<u64>,
    /// All processes waited for memory.
    pub memory_full_us: Reading<u64>,
    /// At least one process waited for a disk.
    pub io_some_us: Reading<u64>,
    /// All processes waited for a disk.
    pub io_full_us: Reading<u64>,
}

/// /proc/stat and /proc/loadavg. Times are clock ticks (1/100 s) since boot, summed over cores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cpu {
    /// Time in programs of normal priority.
    pub user: Reading<u64>,
    /// Time in programs of lower priority.
    pub nice: Reading<u64>,
    /// Time in the kernel.
    pub system: Reading<u64>,
    /// Time in which the core had nothing to do.
    pub idle: Reading<u64>,
    /// Idle time in which a process waited for a disk.
    pub iowait: Reading<u64>,
    /// Time in hard and soft interrupts.
    pub irq: Reading<u64>,
    /// Time that the host of a virtual machine gave to others.
    pub steal: Reading<u64>,
    /// Load averages over 1, 5 and 15 minutes, in hundredths.
    pub load_hundredths: [Reading<u64>; 3],
    /// How many processes and threads can run now.
    pub runnable: Reading<u64>,
    /// The newest process or thread number: while it does not change, nothing was started.
    pub newest_pid: Reading<u64>,
    /// How many cores are listed.
    pub core_count: u16,
    /// How busy each core was since the sample before, in percent.
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

/// The file system that the run works in, and the device below it. Counters are since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The room on the file system.
    pub space: FsSpace,
    /// How many more files it can hold.
    pub inodes_free: Reading<u64>,
    /// 1 when the folder is on a network mount.
    pub network: Reading<u64>,
    /// Completed reads.
    pub reads: Reading<u64>,
    /// Bytes read.
    pub read_bytes: Reading<u64>,
    /// Milliseconds that reads took, added up.
    pub read_ms: Reading<u64>,
    /// Completed writes.
    pub writes: Reading<u64>,
    /// Bytes written.
    pub written_bytes: Reading<u64>,
    /// Milliseconds that writes took, added up.
    pub write_ms: Reading<u64>,
    /// Milliseconds in which the device was busy.
    pub busy_ms: Reading<u64>,
    /// Requests that are not completed yet.
    pub in_flight: Reading<u64>,
}

/// The room on a file system, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsSpace {
    /// Its size.
    pub total: Reading<u64>,
    /// What an ordinary user may still fill.
    pub free: Reading<u64>,
}

/// Temperatures, where the kernel shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thermal {
    /// The hottest sensor, in thousandths of a degree Celsius.
    pub hottest_millidegrees: Reading<u64>,
    /// How often the kernel slowed a core because of heat, summed over cores.
    pub throttle_count: Reading<u64>,
}

/// All GPUs together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gpus {
    /// Bytes of their own memory in use.
    pub memory_used: Reading<u64>,
    /// Bytes of their own memory.
    pub memory_total: Reading<u64>,
    /// How busy the busiest was, in percent.
    pub busy_percent: Reading<u64>,
    /// The hottest, in thousandths of a degree Celsius.
    pub hottest_millidegrees: Reading<u64>,
    /// The power that they draw, in millionths of a watt.
    pub power_microwatts: Reading<u64>,
    /// The power that they may draw, in millionths of a watt.
    pub power_limit_microwatts: Reading<u64>,
    /// Why they were slowed: the bits of [`crate::gpu::throttle`] that any of them shows.
    pub throttle_bits: Reading<u64>,
    /// Memory in use on the fullest, in thousandths of its own memory.
    pub fullest_permille: Reading<u64>,
    /// How many answer.
    pub count: Reading<u64>,
    /// How many answered before and no longer do.
    pub lost: Reading<u64>,
}

/// The memory cgroups: the trainer's own, and the tightest limit above it. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// What the trainer's own cgroup holds, with its page cache.
    pub own_current: Reading<u64>,
    /// Its anonymous memory.
    pub own_anon: Reading<u64>,
    /// Its shared memory.
    pub own_shmem: Reading<u64>,
    /// What of it is in swap.
    pub own_swap: Reading<u64>,
    /// How often the trainer was slowed at memory.high.
    pub own_high_events: Reading<u64>,
    /// The tightest limit of a container or cgroup above us.
    pub limit: Reading<u64>,
    /// What can still be allocated below that limit: limit − usage + what is cheap to reclaim.
    pub limit_available: Reading<u64>,
}

/// The training tree as a whole. Counters are those of the processes that are alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeTotals {
    /// How many processes it has.
    pub count: Reading<u64>,
    /// How many threads it has.
    pub threads: Reading<u64>,
    /// How many files it has open. Read at a slow pace.
    pub files: Reading<u64>,
    /// Bytes that would come back if the tree ended: anonymous memory counted once however many processes share it, its shared memory, and what of it is in swap.
    pub footprint: Reading<u64>,
    /// Bytes of its shared memory.
    pub shmem: Reading<u64>,
    /// Bytes of it that are in swap.
    pub swap: Reading<u64>,
    /// User and system time, in clock ticks.
    pub cpu: Reading<u64>,
    /// Page faults that waited for a disk.
    pub major_faults: Reading<u64>,
    /// Bytes that were read from disks.
    pub read_bytes: Reading<u64>,
    /// Bytes that were sent to disks.
    pub written_bytes: Reading<u64>,
    /// Steps of the trainer that is furthest, as the shims count them.
    pub steps: Reading<u64>,
    /// What that trainer does: the number of a [`Phase`].
    pub phase: Reading<u64>,
    /// Items in a batch of it.
    pub batch: Reading<u64>,
    /// Bytes that were read from files, whether they came from a disk or were in memory already.
    pub read_asked: Reading<u64>,
}

/// What a trainer does at the moment, by its number in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not known.
    Unknown,
    /// It waits for data.
    Data,
    /// It runs the forward pass.
    Forward,
    /// It runs the backward pass.
    Backward,
    /// It updates the weights.
    Optimizer,
    /// It evaluates the model.
    Evaluation,
    /// It saves a checkpoint.
    Saving,
}

/// A process number. 0 stands for no process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(pub u32);

/// One process, from /proc/PID/status, stat and io. Sizes are in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Pid,
    /// Its parent's number.
    pub parent: Pid,
    /// When it started, in clock ticks since boot. Together with the number this identifies it.
    pub started: u64,
    /// The kernel's short name of it.
    pub name: ProcessName,
    /// The kernel's letter for its state: R, S, D, T, Z, …
    pub state: u8,
    /// VmData: private memory that it has mapped, touched or not.
    pub vm_data: Reading<u64>,
    /// RssAnon: anonymous memory that it has touched.
    pub rss_anon: Reading<u64>,
    /// RssShmem: shared memory that it has touched.
    pub rss_shmem: Reading<u64>,
    /// RssFile: pages of mapped files.
    pub rss_file: Reading<u64>,
    /// VmSwap: anonymous memory that is in swap.
    pub swap: Reading<u64>,
    /// How many threads it has.
    pub threads: Reading<u64>,
    /// User and system time, in clock ticks.
    pub cpu: Reading<u64>,
    /// Page faults that waited for a disk.
    pub major_faults: Reading<u64>,
    /// Bytes that it read from disks.
    pub read_bytes: Reading<u64>,
    /// Bytes that it sent to disks.
    pub written_bytes: Reading<u64>,
    /// The soft limit that the wall set on it.
    pub wall: Reading<u64>,
}

/// The kernel's short name of a process: at most 15 bytes, any bytes, chosen by the process itself.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessName {
    bytes: [u8; 15],
    len: u8,
}

impl ProcessName {
    /// Copies the first 15 bytes.
    pub fn new(bytes: &[u8]) -> ProcessName {
        let len = bytes.len().min(15);
        let mut name = ProcessName::default();
        name.bytes[..len].copy_from_slice(&bytes[..len]);
        name.len = len as u8;
        name
    }

    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for ProcessName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.as_bytes().escape_ascii().to_string())
    }
}

/// The processes that one sample lists, largest first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Processes {
    list: [Process; MAX_LISTED_PROCESSES],
    len: u8,
}

impl Processes {
    /// The listed processes.
    pub fn as_slice(&self) -> &[Process] {
        &self.list[..usize::from(self.len)]
    }

    /// Removes all processes from the list.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a process; returns false when the list is full.
    pub fn push(&mut self, process: Process) -> bool {
        let Some(slot) = self.list.get_mut(usize::from(self.len)) else {
            return false;
        };
        *slot = process;
        self.len += 1;
        true
    }
}
