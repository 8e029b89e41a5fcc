//! Looks up the definitions behind ours, once.
//!
//! Never `__libc_malloc` and its kin: an allocator preloaded by the user stands between us and the C library, and its
//! `free` will get what we return.

use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use crate::{seccomp, sys};

/// The next definition of one function; `F` is its type, an `unsafe extern "C" fn`.
pub struct Next<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    signature: PhantomData<F>,
}

/// The thread that is looking something up.
static LOOKING: AtomicU32 = AtomicU32::new(0);

impl<F: Copy> Next<F> {
    /// # Safety
    /// `F` must be the C type of the function called `name`.
    pub const unsafe fn new(name: &'static CStr) -> Self {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        Self {
            name,
            found: AtomicPtr::new(core::ptr::null_mut()),
            signature: PhantomData,
        }
    }

    /// None when there is no such function, or when looking it up led back here.
    #[inline(always)]
    pub fn get(&self) -> Option<F> {
        let mut found = self.found.load(Relaxed);
        if found.is_null() {
            found = self.look_up();
        }
        if found.is_null() {
            return None;
        }
        // SAFETY: `new` promised the type, and a function pointer is as wide as any other.
        Some(unsafe { core::mem::transmute_copy::<*mut c_void, F>(&found) })
    }

    /// `dlsym` of glibc before 2.34 callocs a buffer for its error and is content with NULL,
    /// so a lookup within a lookup of the same thread finds nothing instead of recursing.
    /// What was not found is looked for again: libpthread may be loaded later.
    #[cold]
    fn look_up(&self) -> *mut c_void {
        let _errno = sys::KeptErrno::new();
        // A filter of system calls may end the process for asking which thread this is.
        let me = match seccomp::is_filtered() {
            true => u32::MAX,
            false => sys::tid(),
        };
        if LOOKING.load(Relaxed) == me {
            return core::ptr::null_mut();
        }
        LOOKING.store(me, Relaxed);
        let found = sys::next_definition(self.name);
        LOOKING.store(0, Relaxed);
        self.found.store(found, Relaxed);
        found
    }
}
