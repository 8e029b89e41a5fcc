//! The hands: thin, one for each thing that can be done to the trainer's own tree.

pub mod brake;
pub mod cgroup;
pub mod limit;
pub mod pageout;
pub mod reclaim;
pub mod save;
pub mod stop;
