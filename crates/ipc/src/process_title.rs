//! Sets what `ps` shows of a forked child: a name of its own instead of the command line of the guard, so that ending
//! the guard by name does not end the keeper as well.

use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Acquire, Release};

static ARGUMENTS: AtomicPtr<*mut c_char> = AtomicPtr::new(null_mut());

/// The C library hands the arguments to every initialiser; nobody else has their place.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER: extern "C" fn(c_int, *mut *mut c_char) = {
    extern "C" fn remember(_count: c_int, arguments: *mut *mut c_char) {
        ARGUMENTS.store(arguments, Release);
    }
    remember
};

/// Writes a title over the first argument and blanks the rest. Needs a process with one thread.
pub fn set(title: &[u8]) {
    let arguments = ARGUMENTS.load(Acquire);
    if arguments.is_null() {
        return;
    }
    // SAFETY: the list the kernel made for this process: null-terminated, its strings
    // writable and null-terminated, and no reference to them is held.
    unsafe {
        let mut index = 0;
        while let Some(argument) = (*arguments.add(index)).as_mut() {
            let length = libc::strlen(argument);
            let bytes =
                std::slice::from_raw_parts_mut(std::ptr::from_mut(argument).cast::<u8>(), length);
            bytes.fill(0);
            if index == 0 {
                let shown = title.len().min(length);
                bytes[..shown].copy_from_slice(&title[..shown]);
            }
            index += 1;
        }
    }
}
