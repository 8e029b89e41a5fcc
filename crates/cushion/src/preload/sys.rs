//! The kernel and the C library, as far as the cushion needs them.
//!
//! System calls go to the kernel directly: functions of the C library may be wrapped by another preloaded library
//! (libfaketime shows another time), `syscall` is wrapped by the cushion itself, and some are cancellation points.

use core::arch::asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::AtomicU32;

use crate::seccomp;

const ENOENT: c_int = 2;
const EACCES: c_int = 13;
const ENOTDIR: c_int = 20;
pub const EAGAIN: c_int = 11;
pub const ENOMEM: c_int = 12;
pub const EINVAL: c_int = 22;
pub const ENOSYS: c_int = 38;

pub const PROT_WRITE: c_int = 2;
pub const PROT_EXEC: c_int = 4;
pub const MAP_PRIVATE: c_int = 2;
pub const MAP_ANONYMOUS: c_int = 0x20;
pub const MAP_NORESERVE: c_int = 0x4000;
pub const MAP_STACK: c_int = 0x20000;
pub const MAP_FAILED: *mut c_void = usize::MAX as *mut c_void;

#[cfg(target_arch = "x86_64")]
mod number {
    pub const READ: i64 = 0;
    pub const PREAD64: i64 = 17;
    pub const CLOSE: i64 = 3;
    pub const LSEEK: i64 = 8;
    pub const MMAP: i64 = 9;
    pub const FCNTL: i64 = 72;
    pub const DUP3: i64 = 292;
    pub const SCHED_YIELD: i64 = 24;
    pub const MADVISE: i64 = 28;
    pub const GETPID: i64 = 39;
    pub const GETTID: i64 = 186;
    pub const FUTEX: i64 = 202;
    pub const CLOCK_GETTIME: i64 = 228;
    pub const OPENAT: i64 = 257;
    pub const FACCESSAT: i64 = 269;
    pub const PRLIMIT64: i64 = 302;
    pub const SECCOMP: i64 = 317;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub const DUP3: i64 = 24;
    pub const FCNTL: i64 = 25;
    pub const FACCESSAT: i64 = 48;
    pub const CLOSE: i64 = 57;
    pub const LSEEK: i64 = 62;
    pub const READ: i64 = 63;
    pub const PREAD64: i64 = 67;
    pub const FUTEX: i64 = 98;
    pub const CLOCK_GETTIME: i64 = 113;
    pub const SCHED_YIELD: i64 = 124;
    pub const GETPID: i64 = 172;
    pub const GETTID: i64 = 178;
    pub const MMAP: i64 = 222;
    pub const MADVISE: i64 = 233;
    pub const OPENAT: i64 = 56;
    pub const PRLIMIT64: i64 = 261;
    pub const SECCOMP: i64 = 277;
}

/// The number of seccomp(2).
pub const SECCOMP: i64 = number::SECCOMP;

const AT_FDCWD: c_int = -100;
const R_OK: c_int = 4;
const W_OK: c_int = 2;
const O_RDWR: c_int = 2;
const O_NOCTTY: c_int = 0o400;
const O_NONBLOCK: c_int = 0o4000;
const O_CLOEXEC: c_int = 0o2_000_000;
const O_ACCMODE: c_int = 3;
const F_GETFL: c_int = 3;
const F_SETFL: c_int = 4;
const F_DUPFD_CLOEXEC: c_int = 1030;
/// Copies of descriptors are numbered from here on, where no program expects one.
const FIRST_COPY: c_int = 10;
const SEEK_END: c_int = 2;
const AT_PHDR: usize = 3;
const PROT_READ: c_int = 1;
const MAP_SHARED: c_int = 1;
const RLIMIT_DATA: c_int = 2;
const RLIMIT_AS: c_int = 9;
const MADV_PAGEOUT: c_int = 21;
const CLOCK_REALTIME: c_int = 0;
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

/// `Dl_info` of `<dlfcn.h>`.
#[repr(C)]
struct ObjectInfo {
    file: *const c_char,
    base: *const u8,
    symbol: *const c_char,
    symbol_address: *const c_void,
}

mod c {
    use super::*;
    unsafe extern "C" {
        pub fn __errno_location() -> *mut c_int;
        pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        pub fn dladdr(address: *const c_void, info: *mut ObjectInfo) -> c_int;
        pub fn getauxval(kind: usize) -> usize;
        pub fn getenv(name: *const c_char) -> *const c_char;
        pub fn getpagesize() -> c_int;
        pub fn abort() -> !;
        pub static environ: *const *const c_char;
    }
}

/// A system call. Returns what the kernel returns: a negated error number on failure. Leaves errno alone.
///
/// # Safety
/// As the system call.
unsafe fn call(number: i64, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's promise; the registers are those of the kernel's calling convention.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
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

/// Restores errno when dropped.
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

/// The path by which this library was loaded.
pub fn own_path() -> Option<&'static CStr> {
    let file = object(own_path as fn() -> Option<&'static CStr> as *const c_void).file;
    // SAFETY: the loader's own copy of the name, which stays as long as the library.
    (!file.is_null()).then(|| unsafe { CStr::from_ptr(file) })
}

/// Where the object that holds this address is mapped, or null. Takes the loader's lock.
pub fn object_base(address: *const c_void) -> *const u8 {
    object(address).base
}

fn object(address: *const c_void) -> ObjectInfo {
    let mut info = ObjectInfo {
        file: core::ptr::null(),
        base: core::ptr::null(),
        symbol: core::ptr::null(),
        symbol_address: core::ptr::null(),
    };
    // SAFETY: only looks the address up, and fills a live value.
    unsafe { c::dladdr(address, &raw mut info) };
    info
}

/// The address of the segment table of the executable.
pub fn executable_segments() -> usize {
    // SAFETY: takes a number.
    unsafe { c::getauxval(AT_PHDR) }
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

/// All variables of the environment as they are now.
pub fn all_environment() -> *const *const c_char {
    // SAFETY: the C library's, read as a whole word.
    unsafe { (&raw const c::environ).read() }
}

/// CLOCK_MONOTONIC of this process's time namespace in nanoseconds.
pub fn now() -> u64 {
    clock(CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds, the same in every time namespace.
pub fn realtime() -> u64 {
    clock(CLOCK_REALTIME)
}

fn clock(id: c_int) -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the pointer is to a live value of the layout the call fills.
    unsafe {
        let time = &raw mut time;
        call(
            number::CLOCK_GETTIME,
            [id as usize, time as usize, 0, 0, 0, 0],
        );
    }
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
    unsafe { call(number::GETPID, [0; 6]) as u32 }
}

pub fn tid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { call(number::GETTID, [0; 6]) as u32 }
}

pub fn yield_now() {
    // SAFETY: takes nothing.
    unsafe { call(number::SCHED_YIELD, [0; 6]) };
}

/// The `RLIMIT_DATA` of this process. None also where a seccomp filter may end the process for asking.
pub fn data_limit() -> Option<Rlimit> {
    limit(RLIMIT_DATA)
}

/// The soft `RLIMIT_AS`; None where there is none.
pub fn address_space_limit() -> Option<u64> {
    let soft = limit(RLIMIT_AS)?.soft;
    (soft != u64::MAX).then_some(soft)
}

fn limit(resource: c_int) -> Option<Rlimit> {
    if seccomp::is_filtered() {
        return None;
    }
    let mut limit = Rlimit { soft: 0, hard: 0 };
    // SAFETY: process 0 is the caller; the old limit is written to a live value.
    let code = unsafe {
        let limit = &raw mut limit as usize;
        call(number::PRLIMIT64, [0, resource as usize, 0, limit, 0, 0])
    };
    (code == 0).then_some(limit)
}

pub fn set_data_limit(limit: Rlimit) -> bool {
    let limit = &raw const limit as usize;
    // SAFETY: process 0 is the caller; the new limit is read from a live value.
    unsafe { call(number::PRLIMIT64, [0, RLIMIT_DATA as usize, limit, 0, 0, 0]) == 0 }
}

/// An open file of ours, closed when dropped.
pub struct File(c_int);

impl File {
    /// A file that is about to be executed. A named pipe does not block.
    pub fn executable(path: &CStr) -> Option<Self> {
        Self::open(path, O_CLOEXEC | O_NONBLOCK)
    }

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

    /// A copy that the next program does not get.
    pub fn duplicate_of(fd: c_int) -> Option<Self> {
        let copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_COPY);
        (copy >= 0).then_some(Self(copy))
    }

    /// From now on its calls wait, as those of a terminal that a program was started with.
    pub fn wait_in_calls(&self) -> bool {
        let flags = fcntl(self.0, F_GETFL, 0);
        flags >= 0 && fcntl(self.0, F_SETFL, flags & !O_NONBLOCK) >= 0
    }

    pub fn number(&self) -> c_int {
        self.0
    }

    fn open(path: &CStr, flags: c_int) -> Option<Self> {
        // SAFETY: the path ends in NUL.
        let fd = unsafe {
            let path = path.as_ptr() as usize;
            call(
                number::OPENAT,
                [AT_FDCWD as usize, path, flags as usize, 0, 0, 0],
            )
        };
        (fd >= 0).then_some(Self(fd as c_int))
    }

    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        // SAFETY: the buffer is live and as long as said.
        let read = unsafe {
            let start = buffer.as_mut_ptr() as usize;
            call(
                number::READ,
                [self.0 as usize, start, buffer.len(), 0, 0, 0],
            )
        };
        usize::try_from(read)
            .ok()
            .and_then(|n| buffer.get(..n))
            .unwrap_or(&[])
    }

    /// Reads from an offset, and returns how many bytes there were.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> usize {
        let (start, bytes) = (buffer.as_mut_ptr() as usize, buffer.len());
        // SAFETY: the buffer is live and as long as said.
        let read = unsafe {
            call(
                number::PREAD64,
                [self.0 as usize, start, bytes, offset as usize, 0, 0],
            )
        };
        usize::try_from(read).unwrap_or(0)
    }

    pub fn bytes(&self) -> u64 {
        // SAFETY: the descriptor is ours; nobody reads from its position.
        let end = unsafe {
            call(
                number::LSEEK,
                [self.0 as usize, 0, SEEK_END as usize, 0, 0, 0],
            )
        };
        u64::try_from(end).unwrap_or(0)
    }

    /// Maps the first `bytes`, shared and writable. Such a mapping is not counted at the wall.
    pub fn map_shared(&self, bytes: usize) -> Option<*mut c_void> {
        let prot = (PROT_READ | PROT_WRITE) as usize;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let at = unsafe {
            call(
                number::MMAP,
                [0, bytes, prot, MAP_SHARED as usize, self.0 as usize, 0],
            )
        };
        // The last page of the address space holds the negated error numbers.
        (!(-4095..0).contains(&at)).then_some(at as *mut c_void)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and is used no more.
        unsafe { call(number::CLOSE, [self.0 as usize, 0, 0, 0, 0, 0]) };
    }
}

fn fcntl(fd: c_int, command: c_int, argument: c_int) -> c_int {
    // SAFETY: the commands of this file take numbers.
    unsafe {
        let words = [fd as usize, command as usize, argument as usize, 0, 0, 0];
        call(number::FCNTL, words) as c_int
    }
}

/// Whether a descriptor is for reading and writing.
pub fn is_writable(fd: c_int) -> bool {
    let flags = fcntl(fd, F_GETFL, 0);
    flags >= 0 && flags & O_ACCMODE == O_RDWR
}

/// Makes `to`, which the next program gets, another name of what is open as `from`.
pub fn duplicate_to(from: c_int, to: c_int) -> bool {
    // SAFETY: plain numbers; the caller replaces a descriptor on purpose.
    unsafe { call(number::DUP3, [from as usize, to as usize, 0, 0, 0, 0]) >= 0 }
}

/// Whether a file is not there for the next program of this process. Capabilities do not count: a program that gives up
/// its user, such as setpriv(1), may still have them, and the next program does not. Another error, such as too little
/// memory, says nothing.
pub fn is_out_of_reach(path: &CStr, is_written: bool) -> bool {
    let mode = if is_written { R_OK | W_OK } else { R_OK };
    // SAFETY: the path ends in NUL.
    let code = unsafe {
        let path = path.as_ptr() as usize;
        call(
            number::FACCESSAT,
            [AT_FDCWD as usize, path, mode as usize, 0, 0, 0],
        )
    };
    [ENOENT, EACCES, ENOTDIR]
        .iter()
        .any(|errno| code == -(*errno as isize))
}

/// Sleeps while `word` holds `value`, at most `nanoseconds`. May wake early.
pub fn futex_wait(word: &AtomicU32, value: u32, nanoseconds: u64) {
    let time = Timespec {
        seconds: (nanoseconds / 1_000_000_000) as i64,
        nanoseconds: (nanoseconds % 1_000_000_000) as i64,
    };
    // SAFETY: word and time are live for the duration of the call.
    unsafe {
        let (word, time) = (word.as_ptr() as usize, &raw const time as usize);
        call(
            number::FUTEX,
            [word, FUTEX_WAIT as usize, value as usize, time, 0, 0],
        )
    };
}

pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is live; waking touches no memory.
    unsafe {
        let word = word.as_ptr() as usize;
        call(
            number::FUTEX,
            [word, FUTEX_WAKE as usize, c_int::MAX as usize, 0, 0, 0],
        )
    };
}

/// Has the kernel write the pages of this range to swap, those that only this process has mapped. What they hold does
/// not change. False where the range is locked in memory, gone, or the kernel is older than 5.4.
pub fn page_out(start: u64, bytes: u64) -> bool {
    let advice = MADV_PAGEOUT as usize;
    // SAFETY: the advice changes where pages are kept and nothing else.
    unsafe {
        call(
            number::MADVISE,
            [start as usize, bytes as usize, advice, 0, 0, 0],
        ) == 0
    }
}
