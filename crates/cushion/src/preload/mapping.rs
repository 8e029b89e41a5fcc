//! mmap, as far as the wall counts it.

use core::ffi::{c_int, c_void};

use crate::files;
use crate::loader;
use crate::next::Next;
use crate::sys::{self, MAP_FAILED};
use crate::wall::{Request, rescue};

type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;

// SAFETY: the signature of mmap(2), whose offset has 64 bits wherever this library runs.
static NEXT_MMAP: Next<Mmap> = unsafe { Next::new(c"mmap") };
// SAFETY: as above.
static NEXT_MMAP64: Next<Mmap> = unsafe { Next::new(c"mmap64") };

/// # Safety
/// As mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: passed on as it came.
    unsafe { map(&NEXT_MMAP, at, bytes, prot, flags, fd, offset) }
}

/// # Safety
/// As mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: passed on as it came.
    unsafe { map(&NEXT_MMAP64, at, bytes, prot, flags, fd, offset) }
}

/// Looks them up while there is one thread.
pub fn resolve() {
    let _ = (NEXT_MMAP.get(), NEXT_MMAP64.get());
}

#[inline(always)]
unsafe fn map(
    next: &Next<Mmap>,
    at: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let Some(next) = next.get() else {
        sys::set_errno(sys::ENOMEM);
        return MAP_FAILED;
    };
    let is_private_file = is_counted(prot, flags) && is_of_file(flags);
    // A file is never refused for its size.
    let judged = if is_private_file { 0 } else { bytes };
    if is_counted(prot, flags) && !loader::before_request(judged) {
        sys::set_errno(sys::ENOMEM);
        return MAP_FAILED;
    }
    let before = sys::errno();
    let file = files::Announced::of(bytes, is_private_file);
    // SAFETY: passed on as it came.
    let mut found = unsafe { next(at, bytes, prot, flags, fd, offset) };
    if found != MAP_FAILED {
        file.stands();
        return found;
    }
    if sys::errno() != sys::ENOMEM || !is_counted(prot, flags) {
        return found;
    }
    let request = match file.is_one() {
        true => Request::File(bytes),
        false => Request::Mapping(bytes),
    };
    let met = rescue(request, &mut || {
        // SAFETY: passed on as it came; the attempt before has mapped nothing.
        found = unsafe { next(at, bytes, prot, flags, fd, offset) };
        found != MAP_FAILED
    });
    if met {
        file.stands();
        sys::set_errno(before);
    }
    found
}

fn is_of_file(flags: c_int) -> bool {
    flags & sys::MAP_ANONYMOUS == 0
}

/// What the kernel holds against RLIMIT_DATA: private and writable, of a file or not. Other
/// mappings that fail have not met the wall.
fn is_counted(prot: c_int, flags: c_int) -> bool {
    prot & sys::PROT_WRITE != 0 && flags & sys::MAP_PRIVATE != 0
}
