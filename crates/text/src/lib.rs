//! How antifreeze writes to people: numbers with units, untrusted bytes escaped for the terminal, names of signals,
//! and the width, colour and characters of the reader's terminal.
//!
//! This crate depends on no other crate of antifreeze, so the linter and the verdict share it without linking each other.
#![forbid(unsafe_code)]

pub mod layout;
pub mod sanitize;
pub mod signal;
mod style;
pub mod units;

pub use style::{Glyphs, TermStyle};

/// The README's example, kept true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
