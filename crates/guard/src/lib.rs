//! The sentinel: samples, decides, acts.
//!
//! [`policy`] is pure; the hands that carry its decisions out are thin.

pub mod act;
pub mod anchor;
pub mod counting;
pub mod descriptors;
pub mod hands;
pub mod identity;
pub mod interruptible;
pub mod keeper;
pub mod landed;
pub mod mark;
pub mod moment;
pub mod others;
pub mod policy;
pub mod room;
pub mod scout;
pub mod sentinel;
pub mod spawn;
pub mod standstill;
pub mod stride;
pub mod takeover;
pub mod trainers;
pub mod undo;
pub mod voice;
pub mod wall;
pub mod writer;
