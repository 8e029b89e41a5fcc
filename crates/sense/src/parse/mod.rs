//! What the kernel's text files say. Pure: bytes in, values out, no heap.
//!
//! Any bytes may come in, and none of them panic: names in these files are written by
//! strangers, kernels differ, and a buffer may be too short. Three rules hold throughout:
//! a line that was not offered is [`Absent`](crate::Reason::Absent), never 0; a line that is
//! not understood is [`Malformed`](crate::Reason::Malformed); and a last line without its
//! newline was cut off, so it says nothing, because half a number is a wrong number.

mod cgroup;
mod cpu;
mod disk;
mod memory;
mod mount;
mod process;
mod text;

pub use cgroup::{CgroupMemoryStat, cgroup_limit, cgroup_memory_stat, single_number};
pub use cpu::{CpuLine, CpuTicks, LoadAverage, cpu_lines, load_average};
pub use disk::{BlockDevice, diskstats};
pub use memory::{
    StallTimes, arc_reclaimable, has_swap, key_value, key_values, meminfo, stall_times,
    sum_readings, swap_is_memory, vmstat, zram_used,
};
pub use mount::{
    CgroupMembership, Mount, cgroup_memberships, mount_holding, mounts, unescape_mount_path,
};
pub use process::{
    MemoryMapping, ProcessIo, ProcessSizes, ProcessStat, ProcessStatus, Pss, memory_mapping,
    open_for_writing, process_io, process_sizes, process_stat, process_status, smaps_rollup,
};

pub(crate) use text::lines;

#[cfg(test)]
mod tests;
