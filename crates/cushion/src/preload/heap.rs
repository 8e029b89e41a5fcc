//! Wraps the malloc family.
//!
//! `reallocarray` needs no wrapper: that of the C library calls `realloc` by name. A wrapper would have to call the
//! realloc *behind* us, whose blocks are not those of an allocator preloaded *before* us, and the `free` of that
//! allocator would get them.
//!
//! A request that succeeds only after the wall has moved leaves ENOMEM in errno, as second attempts of the C library
//! do; restoring errno would cost every malloc more than all the rest of this library.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use crate::elf;
use crate::files;
use crate::loader;
use crate::next::Next;
use crate::sys;
use crate::wall::{Request, rescue};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Aligned = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type PosixMemalign = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;

// SAFETY: each with the signature that malloc(3), posix_memalign(3) give it.
static NEXT_MALLOC: Next<Malloc> = unsafe { Next::new(c"malloc") };
// SAFETY: as above.
static NEXT_CALLOC: Next<Calloc> = unsafe { Next::new(c"calloc") };
// SAFETY: as above.
static NEXT_REALLOC: Next<Realloc> = unsafe { Next::new(c"realloc") };
// SAFETY: as above.
static NEXT_MEMALIGN: Next<Aligned> = unsafe { Next::new(c"memalign") };
// SAFETY: as above.
static NEXT_ALIGNED_ALLOC: Next<Aligned> = unsafe { Next::new(c"aligned_alloc") };
// SAFETY: as above.
static NEXT_POSIX_MEMALIGN: Next<PosixMemalign> = unsafe { Next::new(c"posix_memalign") };
// SAFETY: as above.
static NEXT_VALLOC: Next<Malloc> = unsafe { Next::new(c"valloc") };
// SAFETY: as above.
static NEXT_PVALLOC: Next<Malloc> = unsafe { Next::new(c"pvalloc") };

/// Looks up all of them while there is one thread: looking up takes the loader's lock, which a thread that loads a library
/// may hold while it waits for another.
pub fn resolve() {
    let _ = (NEXT_MALLOC.get(), NEXT_CALLOC.get(), NEXT_REALLOC.get());
    let _ = (NEXT_MEMALIGN.get(), NEXT_ALIGNED_ALLOC.get());
    let _ = (
        NEXT_POSIX_MEMALIGN.get(),
        NEXT_VALLOC.get(),
        NEXT_PVALLOC.get(),
    );
}

/// Whether the program and its libraries call these: an allocator in the executable, or preloaded before the cushion,
/// comes first.
pub fn is_used() -> bool {
    unsafe extern "C" {
        // The linker's name for the first byte of this library.
        static __ehdr_start: u8;
    }
    // SAFETY: the library is mapped from its first byte on, and stays.
    let text = unsafe { elf::text(&raw const __ehdr_start) };
    let calloc = sys::definition(c"calloc") as usize;
    text.is_some_and(|(begin, bytes)| calloc.wrapping_sub(begin) < bytes)
}

/// The text of the library that the program's allocator is in; empty where that is the executable.
static ALLOCATOR_BEGIN: AtomicUsize = AtomicUsize::new(0);
static ALLOCATOR_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Finds the allocator. Called before `main`.
pub fn find_allocator() {
    let first = match is_used() {
        true => NEXT_MALLOC
            .get()
            .map_or(core::ptr::null(), |next| next as *const c_void),
        false => sys::definition(c"malloc").cast_const(),
    };
    let base = sys::object_base(first);
    // SAFETY: an object is mapped from its first byte on, and this one stays.
    let (segments, text) = unsafe { (elf::segments(base), elf::text(base)) };
    if let Some((begin, bytes)) = text
        && segments != sys::executable_segments()
    {
        ALLOCATOR_BEGIN.store(begin, Relaxed);
        ALLOCATOR_BYTES.store(bytes, Relaxed);
    }
}

/// Whether this return address is in a library that is the program's allocator.
pub fn is_allocator(caller: usize) -> bool {
    caller.wrapping_sub(ALLOCATOR_BEGIN.load(Relaxed)) < ALLOCATOR_BYTES.load(Relaxed)
}

#[cold]
fn out_of_memory() -> *mut c_void {
    sys::set_errno(sys::ENOMEM);
    null_mut()
}

/// Repeats a failed request for `bytes` as long as the wall moves.
#[cold]
#[inline(never)]
fn insist(bytes: usize, attempt: &mut dyn FnMut() -> *mut c_void) -> *mut c_void {
    let mut found = null_mut();
    rescue(Request::Heap(bytes), &mut || {
        found = attempt();
        !found.is_null()
    });
    found
}

/// Defines a function of the C library that passes its arguments on to another, with its own return address in
/// the register for the argument behind them.
macro_rules! with_caller {
    ($name:ident($($argument:ident),*), $x86_64:literal, $aarch64:literal, $inner:ident) => {
        /// # Safety
        /// As malloc(3).
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: usize),*) -> *mut c_void {
            #[cfg(target_arch = "x86_64")]
            core::arch::naked_asm!("endbr64", $x86_64, "jmp {inner}", inner = sym $inner);
            #[cfg(target_arch = "aarch64")]
            core::arch::naked_asm!("hint #34", $aarch64, "b {inner}", inner = sym $inner);
        }
    };
}

with_caller!(malloc(_bytes), "mov rsi, [rsp]", "mov x1, x30", malloc_for);
with_caller!(
    calloc(_count, _size),
    "mov rdx, [rsp]",
    "mov x2, x30",
    calloc_for
);
with_caller!(
    realloc(_old, _bytes),
    "mov rdx, [rsp]",
    "mov x2, x30",
    realloc_for
);

unsafe extern "C" fn malloc_for(bytes: usize, caller: usize) -> *mut c_void {
    let Some(next) = NEXT_MALLOC.get() else {
        return out_of_memory();
    };
    if !loader::before_malloc(bytes, caller) {
        return out_of_memory();
    }
    // SAFETY: passed on as it came; so in all the functions below.
    let found = unsafe { next(bytes) };
    if !found.is_null() {
        return found;
    }
    // SAFETY: as above.
    insist(bytes, &mut move || unsafe { next(bytes) })
}

unsafe extern "C" fn calloc_for(count: usize, size: usize, caller: usize) -> *mut c_void {
    let Some(next) = NEXT_CALLOC.get() else {
        return out_of_memory();
    };
    if !loader::before_calloc(count, size, caller) {
        return out_of_memory();
    }
    // SAFETY: as above.
    let mut found = unsafe { next(count, size) };
    let bytes = count.saturating_mul(size);
    if found.is_null() {
        // SAFETY: as above.
        found = insist(bytes, &mut move || unsafe { next(count, size) });
    }
    if bytes >= files::LARGE && !found.is_null() {
        files::report_zeroed(bytes);
    }
    found
}

unsafe extern "C" fn realloc_for(old: *mut c_void, bytes: usize, caller: usize) -> *mut c_void {
    let Some(next) = NEXT_REALLOC.get() else {
        return out_of_memory();
    };
    if !loader::before_malloc(bytes, caller) {
        return out_of_memory();
    }
    // SAFETY: as above.
    let found = unsafe { next(old, bytes) };
    // Resizing to nothing frees: null is no failure then, and another attempt would free twice.
    if !found.is_null() || bytes == 0 {
        return found;
    }
    // SAFETY: a realloc that failed has left the old block as it was.
    insist(bytes, &mut move || unsafe { next(old, bytes) })
}

/// # Safety
/// As memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(alignment: usize, bytes: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { aligned(&NEXT_MEMALIGN, alignment, bytes) }
}

/// # Safety
/// As aligned_alloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { aligned(&NEXT_ALIGNED_ALLOC, alignment, bytes) }
}

#[inline(always)]
unsafe fn aligned(next: &Next<Aligned>, alignment: usize, bytes: usize) -> *mut c_void {
    let Some(next) = next.get() else {
        return out_of_memory();
    };
    if !loader::before_request(bytes) {
        return out_of_memory();
    }
    // SAFETY: as above.
    let found = unsafe { next(alignment, bytes) };
    if !found.is_null() || sys::errno() == sys::EINVAL {
        return found;
    }
    // SAFETY: as above.
    insist(bytes, &mut move || unsafe { next(alignment, bytes) })
}

/// # Safety
/// As posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    out: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
) -> c_int {
    let Some(next) = NEXT_POSIX_MEMALIGN.get() else {
        return sys::ENOMEM;
    };
    if !loader::before_request(bytes) {
        return sys::ENOMEM;
    }
    // SAFETY: as above.
    let code = unsafe { next(out, alignment, bytes) };
    if code != sys::ENOMEM {
        return code;
    }
    // SAFETY: as above.
    let met = rescue(Request::Heap(bytes), &mut move || unsafe {
        next(out, alignment, bytes) == 0
    });
    if met { 0 } else { code }
}

/// # Safety
/// As valloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(bytes: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { paged(&NEXT_VALLOC, bytes) }
}

/// # Safety
/// As pvalloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { paged(&NEXT_PVALLOC, bytes) }
}

unsafe fn paged(next: &Next<Malloc>, bytes: usize) -> *mut c_void {
    let Some(next) = next.get() else {
        return out_of_memory();
    };
    if !loader::before_request(bytes) {
        return out_of_memory();
    }
    // SAFETY: as above.
    let found = unsafe { next(bytes) };
    if !found.is_null() {
        return found;
    }
    // SAFETY: as above.
    insist(bytes, &mut move || unsafe { next(bytes) })
}
