//! The sentinel: samples, decides, acts.
//!
//! [`policy`] is pure; the hands that carry its decisions out are thin.

pub mod act;
pub mod anchor;
pub mod counting;
pub mod descriptors;
pub mod event_sink;
pub mod hands;
pub mod identity;
pub mod interruptible;
pub mod keeper;
pub mod others;
pub mod policy;
pub mod policy_input;
pub mod process_state;
pub mod room;
pub mod save_watch;
pub mod sentinel;
pub mod slow_worker;
pub mod spawn;
pub mod standstill;
pub mod stride;
pub mod takeover;
pub mod trainers;
pub mod undo;
pub mod wall;
pub mod writer;
