//! The cushion in front of the soft wall.
//!
//! This crate has two roots. `preload.rs` is the library that `LD_PRELOAD` loads into the trainer: the build script of
//! the `antifreeze` binary compiles it with rustc and embeds it. This root is an ordinary library with what the guard
//! uses too.
#![no_std]

pub mod sanitizer;
