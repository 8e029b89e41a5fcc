//! Memory cgroups: where we are in them, what bounds us from above, what the trainer's own
//! holds. Version 1, version 2, and machines that mix them.

mod above;
mod location;
mod own;

pub use above::Above;
pub use location::{Folder, Location, Version};
pub use own::Own;

/// Room for memory.stat, the longest of these files, with some to spare for newer kernels.
const BUFFER: usize = 8 * 1024;

#[cfg(test)]
mod tests;
