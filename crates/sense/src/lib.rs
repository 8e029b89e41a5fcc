//! Reads the machine and the training tree, and decides nothing.
//!
//! - **Every value is a [`Reading`]**: a value, or the reason why there is none. A missing value is never 0.
//! - **Nothing allocates after its `open`**, so the guard reads on when there is no memory left.
//! - **Nothing that the deciding thread calls can block** on a disk, a mount or a lock of the process that it reads.
//!   Sensors that can block are in [`slow`].
//! - **One module reads the clocks** of a run: [`clock`].
#![warn(missing_docs)]

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

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
