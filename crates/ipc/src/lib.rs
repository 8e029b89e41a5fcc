//! How the processes of a run exchange data.
//!
//! Two memfds are shared. Every process of the tree maps the [`page`], so its content is untrusted input. Only the front,
//! the guard, its keepers, the listener and the probe map the [`state`], so its content is trusted. [`shared`] maps both. The front
//! starts the guard with [`guard_args`].
//!
//! No function here decides anything about a run. The deciding thread of the guard calls them, so none touches a disk or
//! waits, except where its comment says so.

pub mod boot_id;
pub mod gpu_readings;
pub mod group_signals;
pub mod guard_args;
pub mod page;
pub mod process_title;
pub mod relay;
pub mod shared;
pub mod state;
pub mod user_limits;
