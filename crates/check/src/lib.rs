//! The linter at work: files in, findings out, fixes written back.
//!
//! [`files`] finds what to check, [`crew`] shares it among the cores, [`examine`] takes one
//! file from its bytes to its report, and [`render`] says it to a person or a machine. What
//! is wrong in the code is for `antifreeze-lint` to know. A file that cannot be read or
//! parsed costs a line of its own and nothing else.

pub mod crew;
mod encoding;
pub mod examine;
pub mod files;
mod fix;
mod ignored;
mod lens;
mod measured;
pub mod names;
mod notebook;
pub mod pages;
pub mod place;
mod python2;
mod remarks;
pub mod render;
pub mod rules;
pub mod settings;
pub mod source;
mod statements;
#[cfg(test)]
mod testing;
mod write;
