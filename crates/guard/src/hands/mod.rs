//! One small module for each thing that the guard can do to the tree.

pub mod brake;
pub mod cgroup;
pub mod limit;
pub mod pageout;
pub mod reclaim;
pub mod save;
pub mod stop;
