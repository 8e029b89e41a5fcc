//! The kernel and the C library, as far as the cushion needs them.
//!
//! System calls go through `syscall(2)` and not through their named wrappers: those may be
//! wrapped by another preloaded library, and some are cancellation points.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::AtomicU32;

pub const EAGAIN: c_int = 11;
pub const ENOMEM: c_int = 12;
pub const EINVAL: c_int = 22;
pub const ENOSYS: c_int = 38;

pub const PROT_WRITE: c_int = 2;
pub const MAP_PRIVATE: c_int = 2;
pub const MAP_ANONYMOUS: c_int = 0x20;
pub const MAP_FAILED: *mut c_void = usize::MAX as *mut c_void;

#[cfg(target_arch = "x86_64")]
mod number {
    pub const READ: i64 = 0;
    pub const CLOSE: i64 = 3;
    pub const LSEEK: i64 = 8;
    pub const MMAP: i64 = 9;
    pub const SCHED_YIELD: i64 = 24;
    pub const MADVISE: i64 = 28;
    pub const GETPID: i64 = 39;
    pub const GETTID: i64 = 186;
    pub const FUTEX: i64 = 202;
    pub const OPENAT: i64 = 257;
    pub const PRLIMIT64: i64 = 302;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub const CLOSE: i64 = 57;
    pub const LSEEK: i64 = 62;
    pub const READ: i64 = 63;
    pub const FUTEX: i64 = 98;
    pub const SCHED_YIELD: i64 = 124;
    pub const GETPID: i64 = 172;
    pub const GETTID: i64 = 178;
    pub const MMAP: i64 = 222;
    pub const MADVISE: i64 = 233;
    pub const OPENAT: i64 = 56;
    pub const PRLIMIT64: i64 = 261;
}

const AT_FDCWD: c_int = -100;
const O_RDWR: c_int = 2;
const O_NOCTTY: c_int = 0o400;
const O_NONBLOCK: c_int = 0o4000;
const O_CLOEXEC: c_int = 0o2_000_000;
const SEEK_END: c_int = 2;
const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const RLIMIT_DATA: c_int = 2;
const MADV_PAGEOUT: c_int = 21;
const CLOCK_MONOTONIC: c_int = 1;
const FUTEX_WAIT: c_int = 0;
const FUTEX_WAKE: c_int = 1;
const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;
const RTLD_DEFAULT: *mut c_void = core::ptr::null_mut();

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

/// `struct rlimit64`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rlimit {
    pub soft: u64,
    pub hard: u64,
}

mod c {
    use super::*;
    unsafe extern "C" {
        pub fn syscall(number: c_long, ...) -> c_long;
        pub fn __errno_location() -> *mut c_int;
        pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        pub fn getenv(name: *const c_char) -> *const c_char;
        pub fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
        pub fn getpagesize() -> c_int;
        pub fn abort() -> !;
    }
}

pub fn abort() -> ! {
    // SAFETY: takes nothing and does not return.
    unsafe { c::abort() }
}

pub fn errno() -> c_int {
    // SAFETY: the C library returns the calling thread's own errno, valid for its lifetime.
    unsafe { *c::__errno_location() }
}

pub fn set_errno(value: c_int) {
    // SAFETY: as in `errno`.
    unsafe { *c::__errno_location() = value }
}

/// Puts errno back when dropped, so that what happens in between stays unseen.
pub struct KeptErrno(c_int);

impl KeptErrno {
    pub fn new() -> Self {
        Self(errno())
    }
}

impl Drop for KeptErrno {
    fn drop(&mut self) {
        set_errno(self.0);
    }
}

/// The definition of `name` that stands behind this library in the search order, or null.
pub fn next_definition(name: &CStr) -> *mut c_void {
    // SAFETY: RTLD_NEXT needs no handle of ours and the name ends in NUL.
    unsafe { c::dlsym(RTLD_NEXT, name.as_ptr()) }
}

/// The definition of `name` that the program uses, or null.
pub fn definition(name: &CStr) -> *mut c_void {
    // SAFETY: RTLD_DEFAULT needs no handle of ours and the name ends in NUL.
    unsafe { c::dlsym(RTLD_DEFAULT, name.as_ptr()) }
}

/// A variable of the environment. The answer is good until somebody changes the
/// environment, so it is for the time before `main` only.
pub fn environment(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends in NUL.
    let value = unsafe { c::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returns a NUL-terminated string; see above for its lifetime.
    Some(unsafe { CStr::from_ptr(value) })
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn now() -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the pointer is to a live value of the layout the call fills.
    unsafe { c::clock_gettime(CLOCK_MONOTONIC, &mut time) };
    (time.seconds as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.nanoseconds as u64)
}

pub fn page_bytes() -> u64 {
    // SAFETY: takes nothing; the value was fixed when the process started.
    unsafe { c::getpagesize() as u64 }
}

pub fn pid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { c::syscall(number::GETPID) as u32 }
}

pub fn tid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { c::syscall(number::GETTID) as u32 }
}

pub fn yield_now() {
    // SAFETY: takes nothing.
    unsafe { c::syscall(number::SCHED_YIELD) };
}

/// The `RLIMIT_DATA` of this process.
pub fn data_limit() -> Option<Rlimit> {
    let mut limit = Rlimit { soft: 0, hard: 0 };
    let none = core::ptr::null::<Rlimit>();
    // SAFETY: process 0 is the caller; the old limit is written to a live value.
    let code = unsafe { c::syscall(number::PRLIMIT64, 0, RLIMIT_DATA, none, &raw mut limit) };
    (code == 0).then_some(limit)
}

pub fn set_data_limit(limit: Rlimit) -> bool {
    let none = core::ptr::null_mut::<Rlimit>();
    // SAFETY: process 0 is the caller; the new limit is read from a live value.
    unsafe { c::syscall(number::PRLIMIT64, 0, RLIMIT_DATA, &raw const limit, none) == 0 }
}

/// An open file of ours, closed when dropped.
pub struct File(c_int);

impl File {
    pub fn read_only(path: &CStr) -> Option<Self> {
        Self::open(path, O_CLOEXEC)
    }

    pub fn read_write(path: &CStr) -> Option<Self> {
        Self::open(path, O_RDWR | O_CLOEXEC)
    }

    /// A terminal, which does not become the controlling one.
    pub fn terminal(path: &CStr) -> Option<Self> {
        Self::open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
    }

    pub fn number(&self) -> c_int {
        self.0
    }

    fn open(path: &CStr, flags: c_int) -> Option<Self> {
        // SAFETY: the path ends in NUL.
        let fd = unsafe { c::syscall(number::OPENAT, AT_FDCWD, path.as_ptr(), flags) };
        (fd >= 0).then_some(Self(fd as c_int))
    }

    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        // SAFETY: the buffer is live and as long as said.
        let read = unsafe { c::syscall(number::READ, self.0, buffer.as_mut_ptr(), buffer.len()) };
        usize::try_from(read)
            .ok()
            .and_then(|n| buffer.get(..n))
            .unwrap_or(&[])
    }

    pub fn bytes(&self) -> u64 {
        // SAFETY: the descriptor is ours; nobody reads from its position.
        let end = unsafe { c::syscall(number::LSEEK, self.0, 0_i64, SEEK_END) };
        u64::try_from(end).unwrap_or(0)
    }

    /// Maps the first `bytes`, shared and writable. Such a mapping is not counted at the wall.
    pub fn map_shared(&self, bytes: usize) -> Option<*mut c_void> {
        let anywhere = core::ptr::null_mut::<c_void>();
        let prot = PROT_READ | PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let at = unsafe {
            c::syscall(
                number::MMAP,
                anywhere,
                bytes,
                prot,
                MAP_SHARED,
                self.0,
                0_i64,
            )
        };
        let at = at as usize as *mut c_void;
        (at != MAP_FAILED).then_some(at)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and is used no more.
        unsafe { c::syscall(number::CLOSE, self.0) };
    }
}

/// Sleeps while `word` holds `value`, at most `nanoseconds`. May wake early.
pub fn futex_wait(word: &AtomicU32, value: u32, nanoseconds: u64) {
    let time = Timespec {
        seconds: (nanoseconds / 1_000_000_000) as i64,
        nanoseconds: (nanoseconds % 1_000_000_000) as i64,
    };
    // SAFETY: word and time are live for the duration of the call.
    unsafe {
        c::syscall(
            number::FUTEX,
            word.as_ptr(),
            FUTEX_WAIT,
            value,
            &raw const time,
        )
    };
}

pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is live; waking touches no memory.
    unsafe { c::syscall(number::FUTEX, word.as_ptr(), FUTEX_WAKE, c_int::MAX) };
}

/// Has the kernel write the pages of this range to swap, those that only this process has mapped. What they hold does
/// not change. False where the range is locked in memory, gone, or the kernel is older than 5.4.
pub fn page_out(start: u64, bytes: u64) -> bool {
    // SAFETY: the advice changes where pages are kept and nothing else.
    unsafe { c::syscall(number::MADVISE, start, bytes, MADV_PAGEOUT) == 0 }
}
