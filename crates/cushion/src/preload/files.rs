//! Files that are mapped to be written to privately, such as a checkpoint by `torch.load(mmap=True)`.
//!
//! The kernel holds all of such a mapping against the limit. It takes memory only where it is written to, so it
//! is neither refused, however large it is, nor taken for growth.

use core::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::limit::rounded;
use crate::page::SMALL_REQUEST;
use crate::shared;

/// Smaller ones are many, and do not matter.
const LARGE: usize = 16 * SMALL_REQUEST as usize;

/// A mapping that is about to be made, which the guard hears of first. Taken back unless it stands in the end.
pub struct Announced(u64);

impl Announced {
    pub fn of(bytes: usize, is_of_file: bool) -> Self {
        if !is_of_file || bytes < LARGE {
            return Self(0);
        }
        match shared::slot() {
            Some(slot) => {
                // As far as the limit is moved for it.
                let bytes = rounded(bytes as u64);
                slot.files.fetch_add(bytes, AcqRel);
                Self(bytes)
            }
            None => Self(0),
        }
    }

    pub fn is_one(&self) -> bool {
        self.0 > 0
    }

    /// It was made, and the guard will find it.
    pub fn stands(mut self) {
        self.0 = 0;
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if self.0 > 0
            && let Some(slot) = shared::slot()
        {
            let less = |files: u64| Some(files.saturating_sub(self.0));
            let _ = slot.files.fetch_update(AcqRel, Acquire, less);
        }
    }
}
