//! Reads the machine and the training tree; decides nothing.
//!
//! Every value is a [`Reading`]: a value, or the reason why there is none. Nothing here
//! allocates after its `open`, and nothing the deciding thread calls can block on a disk,
//! a mount or a lock of the process that it reads: what can is in [`slow`].

mod reading;
mod sample;

pub use reading::{Reading, Reason};
pub use sample::*;
