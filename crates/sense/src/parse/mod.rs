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

pub use cgroup::{MemoryStat, limit, memory_stat, single};
pub use cpu::{Load, Ticks, Whose, cpus, loadavg};
pub use disk::{Device, diskstats};
pub use memory::{
    Stall, arc_reclaimable, has_swap, meminfo, pair, pairs, pressure, sum, swap_is_memory, vmstat,
    zram_used,
};
pub use mount::{Membership, Mount, memberships, mount_of, mounts, unescaped};
pub use process::{
    Io, Mapping, Pss, Sizes, Stat, Status, io, mapping, open_for_writing, smaps_rollup, stat,
    statm, status,
};

pub(crate) use text::lines;

#[cfg(test)]
mod tests;
