//! Reports mappings that take memory only where they are written to, and will not be written to as a whole: files that
//! are mapped privately, such as a checkpoint by `torch.load(mmap=True)`, reserved address space, stacks, and room for
//! code.
//!
//! The kernel counts all of such a mapping against the limit. It is neither refused for its size nor counted as growth;
//! the guard sees how much of it becomes memory.

use core::ffi::c_int;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::limit::rounded;
use crate::page::{SMALL_REQUEST, Slot};
use crate::{heap, shared, sys};

/// Smaller ones are many, and do not matter.
pub const LARGE: usize = 16 * SMALL_REQUEST as usize;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Of a file.
    File,
    /// Reserved.
    Reserved,
    /// Neither, or too small to matter.
    Memory,
}

impl Kind {
    /// Of a private writable mapping that `caller` asks for.
    pub fn of_mapping(bytes: usize, prot: c_int, flags: c_int, caller: usize) -> Self {
        const RESERVED: c_int = sys::MAP_NORESERVE | sys::MAP_STACK;
        if flags & sys::MAP_ANONYMOUS == 0 {
            return Self::File;
        }
        // Allocators reserve what they are about to hand out.
        let is_reserved =
            flags & RESERVED != 0 && !heap::is_allocator(caller) || prot & sys::PROT_EXEC != 0;
        match bytes >= LARGE && is_reserved {
            true => Self::Reserved,
            false => Self::Memory,
        }
    }

    /// Of a part of a private mapping that is made writable.
    pub fn of_protection(bytes: usize, prot: c_int) -> Self {
        match bytes >= LARGE && prot & sys::PROT_EXEC != 0 {
            true => Self::Reserved,
            false => Self::Memory,
        }
    }

    fn counter(self, slot: &Slot) -> Option<&AtomicU64> {
        match self {
            Self::File => Some(&slot.files),
            Self::Reserved => Some(&slot.reserved),
            Self::Memory => None,
        }
    }
}

/// A mapping that is about to be made and was announced to the guard. Withdrawn on drop unless it was made.
pub struct Announced(Option<(&'static AtomicU64, u64)>);

impl Announced {
    pub fn announce(kind: Kind, bytes: usize) -> Self {
        if kind == Kind::Memory || kind == Kind::File && bytes < LARGE {
            return Self(None);
        }
        let counter = shared::slot().and_then(|slot| kind.counter(slot));
        Self(counter.map(|counter| {
            // As far as the limit is moved for it.
            let bytes = rounded(bytes as u64);
            counter.fetch_add(bytes, AcqRel);
            (counter, bytes)
        }))
    }

    pub fn is_one(&self) -> bool {
        self.0.is_some()
    }

    /// Keeps the announcement: the mapping was made, and the guard will find it.
    pub fn stands(mut self) {
        self.0 = None;
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Some((counter, bytes)) = self.0 {
            let less = |announced: u64| Some(announced.saturating_sub(bytes));
            let _ = counter.fetch_update(AcqRel, Acquire, less);
        }
    }
}

/// Reports a zeroed block to the guard: it takes memory only where it is written to.
#[cold]
#[inline(never)]
pub fn report_zeroed(bytes: usize) {
    if let Some(slot) = shared::slot() {
        slot.zeroed.fetch_add(bytes as u64, AcqRel);
    }
}
