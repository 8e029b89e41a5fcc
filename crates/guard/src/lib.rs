//! The sentinel: samples, decides, acts.
//!
//! [`policy`] is pure; the hands that carry its decisions out are thin.

pub mod act;
pub mod anchor;
pub mod boot;
pub mod cards;
pub mod counting;
pub mod descriptors;
pub mod hands;
pub mod identity;
pub mod interruptible;
pub mod keeper;
pub mod landed;
pub mod limits;
pub mod mark;
pub mod moment;
pub mod orders;
pub mod others;
pub mod policy;
pub mod relay;
pub mod room;
pub mod scout;
pub mod sentinel;
pub mod shared;
pub mod spawn;
pub mod standstill;
pub mod state;
pub mod stride;
pub mod takeover;
pub mod title;
pub mod trainers;
pub mod undo;
pub mod voice;
pub mod wall;
pub mod writer;
