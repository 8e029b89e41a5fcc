//! The cushion in front of the soft wall.
//!
//! This crate has two faces. As an ordinary library it is the layout of the [`page`] of
//! memory that guard, front and trainer share. Its other root, `preload.rs`, is the
//! library that `LD_PRELOAD` puts into the trainer: the build script of the `antifreeze`
//! binary compiles it with rustc and embeds it.
#![no_std]

pub mod page;
pub mod sanitizer;
