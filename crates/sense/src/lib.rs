//! Reads the machine and the training tree; decides nothing.
//!
//! Every value is a [`Reading`]: a value, or the reason why there is none. Nothing here
//! allocates after its `open`, and nothing the deciding thread calls can block on a disk,
//! a mount or a lock of the process that it reads: what can is in [`slow`].

pub mod cgroup;
pub mod clock;
pub mod file;
pub mod footprint;
pub mod gpu;
pub mod machine;
pub mod parse;
mod reading;
pub mod regular_file;
mod sample;
pub mod slow;
pub mod tree;
mod unavailable;

pub use clock::Stamp;
pub use machine::MachineSensors;
pub use reading::{Reading, Reason};
pub use sample::*;

/// The README's example, kept true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
