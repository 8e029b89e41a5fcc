//! Thread starts, which few programs survive losing.

use core::ffi::{c_int, c_void};

use crate::loader;
use crate::next::Next;
use crate::sys;
use crate::wall::{Request, rescue};

type Start = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
/// The handle and the attributes pass through unseen.
type PthreadCreate =
    unsafe extern "C" fn(*mut c_void, *const c_void, Option<Start>, *mut c_void) -> c_int;

// SAFETY: the signature of pthread_create(3).
static NEXT_PTHREAD_CREATE: Next<PthreadCreate> = unsafe { Next::new(c"pthread_create") };

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
    // SAFETY: passed on as it came.
    let mut code = unsafe { next(thread, attributes, start, argument) };
    if code == sys::EAGAIN {
        rescue(Request::Thread, &mut || {
            // SAFETY: passed on as it came; the attempt before has started nothing.
            code = unsafe { next(thread, attributes, start, argument) };
            code != sys::EAGAIN
        });
    }
    code
}
