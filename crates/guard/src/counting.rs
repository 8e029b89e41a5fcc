//! Counts allocations made after start, so that "none" can be proved on the real thing.

use antifreeze_cushion::page::Head;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

pub struct Counting;

static COUNTED_IN: AtomicPtr<Head> = AtomicPtr::new(null_mut());

/// From here on, every allocation is counted in the page.
pub fn watch(head: &'static Head) {
    COUNTED_IN.store(std::ptr::from_ref(head).cast_mut(), Release);
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: null, or a page that is never unmapped.
        if let Some(head) = unsafe { COUNTED_IN.load(Acquire).as_ref() } {
            head.allocations.fetch_add(1, Relaxed);
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
