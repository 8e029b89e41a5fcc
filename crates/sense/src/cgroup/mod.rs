//! Memory cgroups: where we are in them, what bounds us from above, what the trainer's own
//! holds. Version 1, version 2, and machines that mix them.

mod ancestor_limits;
mod location;
mod own_cgroup;

pub use ancestor_limits::AncestorLimits;
pub use location::{CgroupFolder, CgroupLocation, CgroupVersion};
pub use own_cgroup::OwnCgroup;

/// Room for memory.stat, the longest of these files, with some to spare for newer kernels.
const BUFFER_BYTES: usize = 8 * 1024;

#[cfg(test)]
mod tests;
