//! Counts allocations made after start, so that "none" can be proved on the real thing.
//!
//! Each thread says when its own start is over: the slow worker may need long for its first look,
//! and the guard does not wait for it.

use antifreeze_ipc::page::Head;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub struct Counting;

static COUNTED_IN: AtomicPtr<Head> = AtomicPtr::new(null_mut());

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Where allocations are counted.
pub fn count_in(head: &'static Head) {
    COUNTED_IN.store(std::ptr::from_ref(head).cast_mut(), Release);
}

/// The start of this thread is over: from here on it is counted.
pub fn start_is_over() {
    WATCHED.set(true);
}

/// Something begins only now, such as the file for a first line of output: what it takes
/// belongs to a start.
pub fn starting<T>(begin: impl FnOnce() -> T) -> T {
    let watched = WATCHED.replace(false);
    let begun = begin();
    WATCHED.set(watched);
    begun
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if WATCHED.try_with(Cell::get).unwrap_or(false) {
            // SAFETY: null, or a page that is never unmapped.
            if let Some(head) = unsafe { COUNTED_IN.load(Acquire).as_ref() } {
                head.allocations.fetch_add(1, Relaxed);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
