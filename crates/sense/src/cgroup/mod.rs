//! Memory cgroups: where this process is in them, which limits apply from above, and what the trainer's own cgroup
//! holds. Version 1, version 2 and machines that mix them are read.

mod ancestor_limits;
mod location;
mod own_cgroup;

pub use ancestor_limits::AncestorLimits;
pub use location::{CgroupFolder, CgroupLocation, CgroupVersion};
pub use own_cgroup::OwnCgroup;

/// Room for memory.stat, the longest of these files, and for what newer kernels add to it.
const BUFFER_BYTES: usize = 8 * 1024;

#[cfg(test)]
mod tests;
