//! The system log after a death: what the kernel, and guards other than ours, say killed a run
//! or a machine. A log is anybody's bytes: it is read once, line by line, in bounded memory.

mod clock;
pub mod line;
mod scan;

pub use line::{Line, Source};
