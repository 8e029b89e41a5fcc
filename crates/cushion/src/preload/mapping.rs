//! Wraps mmap and mprotect where they count against the wall.

use core::ffi::{c_int, c_void};

use crate::files::{Announced, Kind};
use crate::loader;
use crate::next::Next;
use crate::sys::{self, MAP_FAILED};
use crate::wall::{Request, rescue};

type Mmap = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, i64) -> *mut c_void;
type Mprotect = unsafe extern "C" fn(*mut c_void, usize, c_int) -> c_int;

// SAFETY: the signature of mmap(2), whose offset has 64 bits wherever this library runs.
static NEXT_MMAP: Next<Mmap> = unsafe { Next::new(c"mmap") };
// SAFETY: as above.
static NEXT_MMAP64: Next<Mmap> = unsafe { Next::new(c"mmap64") };

// SAFETY: the signature of mprotect(2).
static NEXT_MPROTECT: Next<Mprotect> = unsafe { Next::new(c"mprotect") };

/// Defines `mmap` or `mmap64`, which passes its arguments on to another function, and its own return address behind
/// them.
macro_rules! with_caller {
    ($name:ident, $inner:ident) => {
        /// # Safety
        /// As mmap(2).
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            _at: *mut c_void,
            _bytes: usize,
            _prot: c_int,
            _flags: c_int,
            _fd: c_int,
            _offset: i64,
        ) -> *mut c_void {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!(
                "endbr64",
                "push qword ptr [rsp]",
                "call {inner}",
                "add rsp, 8",
                "ret",
                inner = sym $inner,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("hint #34", "mov x6, x30", "b {inner}", inner = sym $inner);
        }
    };
}

with_caller!(mmap, mmap_for);
with_caller!(mmap64, mmap64_for);

unsafe extern "C" fn mmap_for(
    at: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
    caller: usize,
) -> *mut c_void {
    // SAFETY: passed on as it came.
    unsafe { map(&NEXT_MMAP, at, bytes, prot, flags, fd, offset, caller) }
}

unsafe extern "C" fn mmap64_for(
    at: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
    caller: usize,
) -> *mut c_void {
    // SAFETY: passed on as it came.
    unsafe { map(&NEXT_MMAP64, at, bytes, prot, flags, fd, offset, caller) }
}

/// Looks them up while there is one thread.
pub fn resolve() {
    let _ = (NEXT_MMAP.get(), NEXT_MMAP64.get(), NEXT_MPROTECT.get());
}

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn map(
    next: &Next<Mmap>,
    at: *mut c_void,
    bytes: usize,
    prot: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
    caller: usize,
) -> *mut c_void {
    let Some(next) = next.get() else {
        sys::set_errno(sys::ENOMEM);
        return MAP_FAILED;
    };
    if !is_counted(prot, flags) {
        // SAFETY: passed on as it came.
        return unsafe { next(at, bytes, prot, flags, fd, offset) };
    }
    let kind = Kind::of_mapping(bytes, prot, flags, caller);
    let mut found = MAP_FAILED;
    request(kind, bytes, &mut || {
        // SAFETY: passed on as it came; an attempt before has mapped nothing.
        found = unsafe { next(at, bytes, prot, flags, fd, offset) };
        found != MAP_FAILED
    });
    found
}

/// Making a mapping writable counts like mapping it.
///
/// # Safety
/// As mprotect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(at: *mut c_void, bytes: usize, prot: c_int) -> c_int {
    let Some(next) = NEXT_MPROTECT.get() else {
        sys::set_errno(sys::ENOMEM);
        return -1;
    };
    if prot & sys::PROT_WRITE == 0 {
        // SAFETY: passed on as it came.
        return unsafe { next(at, bytes, prot) };
    }
    let mut code = -1;
    request(Kind::of_protection(bytes, prot), bytes, &mut || {
        // SAFETY: passed on as it came; again after it has failed.
        code = unsafe { next(at, bytes, prot) };
        code == 0
    });
    code
}

/// Makes a request that counts against the limit, repeats it if the wall moves, and leaves errno as the attempts do.
#[inline(always)]
fn request(kind: Kind, bytes: usize, attempt: &mut dyn FnMut() -> bool) {
    // A mapping that is not meant to be filled is never refused for its size.
    let judged = if kind == Kind::Memory { bytes } else { 0 };
    if !loader::before_request(judged) {
        sys::set_errno(sys::ENOMEM);
        return;
    }
    let before = sys::errno();
    let announced = Announced::announce(kind, bytes);
    if attempt() {
        announced.stands();
        return;
    }
    if sys::errno() != sys::ENOMEM {
        return;
    }
    let request = match announced.is_one() {
        true => Request::Reserved(bytes),
        false => Request::Mapping(bytes),
    };
    if rescue(request, attempt) {
        announced.stands();
        sys::set_errno(before);
    }
}

/// What the kernel counts against RLIMIT_DATA: private writable mappings, of files or not. Another mapping that fails
/// has not met the wall.
fn is_counted(prot: c_int, flags: c_int) -> bool {
    prot & sys::PROT_WRITE != 0 && flags & sys::MAP_PRIVATE != 0
}
