//! Parses the text files of the kernel: pure functions from bytes to values, without heap.
//!
//! No bytes make them panic: processes choose the names in these files, kernels differ, and a buffer may be too short.
//!
//! - A line that is missing makes the value [`Absent`](crate::Reason::Absent), never 0.
//! - A line that cannot be parsed makes it [`Malformed`](crate::Reason::Malformed).
//! - A last line without a newline was cut off and is ignored, because half a number is a wrong number.

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
