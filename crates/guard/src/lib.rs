//! The sentinel: samples, decides, acts.
//!
//! [`policy`] is pure; the hands that carry its decisions out are thin.

pub mod policy;
