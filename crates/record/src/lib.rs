//! The flight record.
pub mod event;
