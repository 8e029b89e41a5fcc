//! The guard of a run: reads samples, decides with the pure functions of [`policy`], and acts through the small modules
//! of [`hands`].

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
