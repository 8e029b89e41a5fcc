//! Counts allocations after the start of each thread, so that a test can prove that there are none.
//!
//! Each thread reports when its own start is over: the slow worker may need long for its first round, and the guard
//! does not wait for it.

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

/// Ends the start of this thread: its allocations count from here on.
pub fn start_is_over() {
    WATCHED.set(true);
}

/// Runs `begin` as part of a start, such as for the file of the first line of output: its allocations do not count.
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
