//! What to do: pure functions from what was seen to what should be done.
//!
//! Nothing here reads the machine, acts on it, allocates or knows the time: the same
//! history gives the same decision, today or replayed from a record.

mod history;

pub use history::*;
