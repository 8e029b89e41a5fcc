//! # kernel-panic
//!
//! The kernel met an error that it could not go on from.
//!
//! ## How it looks
//!
//! A screen full of text, blinking keyboard lights, or a reboot.
//!
//! ## How it is told
//!
//! `Kernel panic - not syncing`, or an oops, in the log of the boot in which the machine died: the journal, pstore, or
//! a file given with `--kernel-log`.
//!
//! ## What to do
//!
//! Update kernel and graphics driver; if it names memory or a machine check, test the memory (`memtest86+`).

use super::Finding;
use crate::case::Case;

pub(super) fn look(_: &Case<'_>) -> Finding {
    Finding::Nothing
}
