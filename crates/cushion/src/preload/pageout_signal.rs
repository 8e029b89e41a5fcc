//! Handles the signal by which the guard asks a process to page itself out, and hides it from the program.
//!
//! The handler is installed only if the guard may need it, and only while the program does not use the signal. A
//! program that queries the action sees the default one. A program that sets an action of its own (a handler, or to
//! ignore the signal) owns the signal from then on, and the guard never sends it.

use core::ffi::c_int;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::next::Next;
use crate::page::{PAGEOUT_SIGNAL, PAGER_NONE, PAGER_READY, Slot};
use crate::{pageout, shared, sys};

/// `struct sigaction` of glibc and musl, on the processors this library is built for.
#[repr(C)]
pub struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

const DEFAULT: Action = Action {
    handler: SIG_DFL,
    mask: [0; 16],
    flags: 0,
    restorer: 0,
};
/// No handler of the program runs on top of ours: one that jumps out of it would leave the request half served.
/// The signals 32 and 33 are the C library's own.
const MASK: [u64; 16] = {
    let mut mask = [u64::MAX; 16];
    mask[0] = !(0b11 << 31);
    mask
};
const SIG_DFL: usize = 0;
const SIG_ERR: usize = usize::MAX;
const SA_ONSTACK: c_int = 0x0800_0000;
const SA_RESTART: c_int = 0x1000_0000;

type Sigaction = unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int;
type SignalOf = unsafe extern "C" fn(c_int, usize) -> usize;

// SAFETY: the signature of sigaction(2).
static NEXT_SIGACTION: Next<Sigaction> = unsafe { Next::new(c"sigaction") };

/// Our handler is installed, as far as this library knows. A fork inherits both.
static INSTALLED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: c_int) {
    let _errno = sys::KeptErrno::new();
    pageout::serve();
}

/// Looks up what every C library has while there is one thread.
pub fn resolve() {
    let _ = (NEXT_SIGACTION.get(), NEXT_SIGNAL.get());
}

/// Installs the handler where the guard wants it and the signal is free.
pub fn install() {
    let wanted = shared::head().is_some_and(|head| head.pages_out.load(Acquire) == 1);
    let Some(next) = NEXT_SIGACTION.get().filter(|_| wanted) else {
        return;
    };
    let mut found = DEFAULT;
    // SAFETY: only asks, into a live value.
    let asked = unsafe { next(PAGEOUT_SIGNAL, core::ptr::null(), &raw mut found) };
    if asked != 0 || found.handler != SIG_DFL {
        return;
    }
    let ours = Action {
        handler: handler_address(),
        mask: MASK,
        flags: SA_RESTART | SA_ONSTACK,
        restorer: 0,
    };
    // SAFETY: a live value; the handler makes system calls only.
    if unsafe { next(PAGEOUT_SIGNAL, &raw const ours, core::ptr::null_mut()) } == 0 {
        INSTALLED.store(true, Release);
        after_fork();
    }
}

/// A child has the handler too, and a slot of its own.
pub fn after_fork() {
    if INSTALLED.load(Acquire)
        && let Some(slot) = shared::slot()
    {
        show_readiness(slot);
    }
}

/// Reports to the guard whether this process can be asked to page itself out.
pub fn show_readiness(slot: &Slot) {
    let pager = match INSTALLED.load(Acquire) {
        true => PAGER_READY,
        false => PAGER_NONE,
    };
    slot.pager.store(pager, Release);
}

/// The next program in this process has no handler until a cushion in it installs one. Returns the slot where the
/// handler was ready. Only the page is written to: after vfork(2) the memory is the parent's, but the slot is not.
pub fn before_exec() -> Option<&'static Slot> {
    if !INSTALLED.load(Acquire) {
        return None;
    }
    let slot = shared::slot()?;
    let was_ready = slot
        .pager
        .compare_exchange(PAGER_READY, PAGER_NONE, AcqRel, Acquire);
    was_ready.is_ok().then_some(slot)
}

pub fn after_failed_exec(ready: Option<&Slot>) {
    if let Some(slot) = ready {
        show_readiness(slot);
    }
}

/// The program uses the signal itself.
fn give_up() {
    if INSTALLED.swap(false, Relaxed)
        && let Some(slot) = shared::slot()
    {
        slot.pager.store(PAGER_NONE, Release);
    }
}

fn handler_address() -> usize {
    on_signal as extern "C" fn(c_int) as usize
}

/// # Safety
/// As sigaction(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    signal: c_int,
    action: *const Action,
    before: *mut Action,
) -> c_int {
    let Some(next) = NEXT_SIGACTION.get() else {
        sys::set_errno(sys::EINVAL);
        return -1;
    };
    if signal == PAGEOUT_SIGNAL && !action.is_null() {
        give_up();
    }
    // SAFETY: passed on as it came.
    let code = unsafe { next(signal, action, before) };
    // SAFETY: null, or the caller's, which was just filled.
    if code == 0
        && signal == PAGEOUT_SIGNAL
        && let Some(before) = unsafe { before.as_mut() }
        && before.handler == handler_address()
    {
        *before = DEFAULT;
    }
    code
}

/// Each with the signature of signal(2), and each found in one C library or another.
macro_rules! like_signal {
    ($($name:ident: $next:ident = $text:literal;)*) => { $(
        // SAFETY: the signature of signal(2).
        static $next: Next<SignalOf> = unsafe { Next::new($text) };

        /// # Safety
        /// As signal(2).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(signal: c_int, handler: usize) -> usize {
            let Some(next) = $next.get() else {
                sys::set_errno(sys::EINVAL);
                return SIG_ERR;
            };
            if signal == PAGEOUT_SIGNAL {
                give_up();
            }
            // SAFETY: passed on as it came.
            let before = unsafe { next(signal, handler) };
            match signal == PAGEOUT_SIGNAL && before == handler_address() {
                true => SIG_DFL,
                false => before,
            }
        }
    )* };
}

like_signal! {
    signal: NEXT_SIGNAL = c"signal";
    bsd_signal: NEXT_BSD_SIGNAL = c"bsd_signal";
    ssignal: NEXT_SSIGNAL = c"ssignal";
    sysv_signal: NEXT_SYSV_SIGNAL = c"sysv_signal";
    __sysv_signal: NEXT_OLD_SYSV_SIGNAL = c"__sysv_signal";
    sigset: NEXT_SIGSET = c"sigset";
}
