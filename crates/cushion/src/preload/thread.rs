//! Wraps thread starts, which few programs survive losing.

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use crate::files::{Announced, Kind};
use crate::loader;
use crate::next::Next;
use crate::sys;
use crate::wall::{Request, THREAD_EXTRA, rescue};

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// The handle and the attributes pass through unseen.
type PthreadCreate =
    unsafe extern "C" fn(*mut c_void, *const c_void, Option<Start>, *mut c_void) -> c_int;
type StackBytes = unsafe extern "C" fn(*const c_void, *mut usize) -> c_int;
type Attributes = unsafe extern "C" fn(*mut c_void) -> c_int;

// SAFETY: the signature of pthread_create(3).
static NEXT_PTHREAD_CREATE: Next<PthreadCreate> = unsafe { Next::new(c"pthread_create") };
// SAFETY: as above, of each.
static STACK_BYTES: Next<StackBytes> = unsafe { Next::new(c"pthread_attr_getstacksize") };
// SAFETY: as above.
static DEFAULTS: Next<Attributes> = unsafe { Next::new(c"pthread_getattr_default_np") };
// SAFETY: as above.
static DESTROY: Next<Attributes> = unsafe { Next::new(c"pthread_attr_destroy") };

/// The guard takes every thread's stack to be this large.
const USUAL_STACK: usize = 8 << 20;
/// Larger than `pthread_attr_t` of any C library.
const ATTRIBUTE_WORDS: usize = 32;

/// The stack of a thread that is started without attributes.
static DEFAULT_STACK: AtomicUsize = AtomicUsize::new(USUAL_STACK);

/// Looks up the next definitions while there is one thread.
pub fn resolve() {
    let _ = NEXT_PTHREAD_CREATE.get();
    let mut attributes = [0_usize; ATTRIBUTE_WORDS];
    let attributes = attributes.as_mut_ptr().cast::<c_void>();
    if let (Some(defaults), Some(destroy), Some(_)) =
        (DEFAULTS.get(), DESTROY.get(), STACK_BYTES.get())
        // SAFETY: there is room for the attributes, which are destroyed when they have been read.
        && unsafe { defaults(attributes) } == 0
    {
        DEFAULT_STACK.store(stack_bytes(attributes), Relaxed);
        // SAFETY: as above.
        unsafe { destroy(attributes) };
    }
}

fn stack_bytes(attributes: *const c_void) -> usize {
    let default = DEFAULT_STACK.load(Relaxed);
    let mut bytes = 0;
    match STACK_BYTES.get() {
        // SAFETY: the attributes are the caller's, and the size goes into a live value.
        Some(get) if !attributes.is_null() && unsafe { get(attributes, &raw mut bytes) } == 0 => {
            bytes
        }
        _ => default,
    }
}

/// # Safety
/// As pthread_create(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    start: Option<Start>,
    argument: *mut c_void,
) -> c_int {
    let Some(next) = NEXT_PTHREAD_CREATE.get() else {
        return sys::EAGAIN;
    };
    loader::before_request(0);
    let stack = stack_bytes(attributes);
    let with_extra = stack.saturating_add(THREAD_EXTRA as usize);
    let mut announced = match stack > USUAL_STACK {
        true => Some(Announced::announce(Kind::Reserved, with_extra)),
        false => None,
    };
    // SAFETY: passed on as it came.
    let mut code = unsafe { next(thread, attributes, start, argument) };
    if code == sys::EAGAIN {
        announced.get_or_insert_with(|| Announced::announce(Kind::Reserved, with_extra));
        rescue(Request::Thread(stack), &mut || {
            // SAFETY: passed on as it came; the attempt before has started nothing.
            code = unsafe { next(thread, attributes, start, argument) };
            code != sys::EAGAIN
        });
    }
    if let Some(announced) = announced
        && code == 0
    {
        announced.stands();
    }
    code
}
