//! Makes terminal calls on the output act on the real terminal.
//!
//! What a program prints on a terminal goes through a pty of antifreeze (crates/cli/src/run/streams.rs), so its
//! standard output and error are not the terminal that the keyboard belongs to. A program that reads or sets their
//! modes, size, name or foreground process group means the real terminal, so the call is made on that. So `less` finds
//! its keyboard by `ttyname(2)`, a program that draws switches the keyboard to single keys by `tcsetattr(1, …)`, a
//! shell has job control by `tcsetpgrp(2, …)`, and the size after SIGWINCH is the new one.
//!
//! Programs also write to the real terminal itself, by `/dev/tty` or by the name from `ttyname`: zsh its prompt,
//! `getpass` its question. What was printed before has to appear first, so calls that change the owner of the terminal,
//! or that wait for output by definition, wait until the front has passed it on ([`drain_before`]).
//!
//! A program that will not have the cushion or cannot reach the page gets the real terminal ([`hand_over`]).
//!
//! Nothing is opened or called except for a descriptor that is a terminal, in a run whose output goes to one.

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{AcqRel, Acquire};

use crate::next::Next;
use crate::page::Head;
use crate::{seccomp, shared, sys};

/// Requests of ioctl(2) that are made on the real terminal, the same on every architecture that we run on.
mod request {
    pub const TCGETS: u64 = 0x5401;
    pub const TCSETS: u64 = 0x5402;
    pub const TCSETSW: u64 = 0x5403;
    pub const TCSETSF: u64 = 0x5404;
    pub const TCSBRK: u64 = 0x5409;
    pub const TCFLSH: u64 = 0x540b;
    pub const TIOCGPGRP: u64 = 0x540f;
    pub const TIOCSPGRP: u64 = 0x5410;
    pub const TIOCGWINSZ: u64 = 0x5413;
    pub const TIOCSWINSZ: u64 = 0x5414;
    pub const FIONREAD: u64 = 0x541b;
    pub const TIOCGSID: u64 = 0x5429;
    pub const TCGETS2: u64 = 0x802c_542a;
    pub const TCSETS2: u64 = 0x402c_542b;
    pub const TCSETSW2: u64 = 0x402c_542c;
    pub const TCSETSF2: u64 = 0x402c_542d;
    /// The device number of a terminal.
    pub const TIOCGDEV: u64 = 0x8004_5432;
}

/// The output flags of `struct termios`, which is larger in the C library than in the kernel: both begin with the
/// input flags, the output flags and the control flags.
const OUTPUT_FLAGS: usize = 1;
/// More than any `struct termios` takes.
const TERMIOS_WORDS: usize = 32;
/// OPOST, OLCUC, ONLCR, OCRNL, ONOCR, ONLRET: what the real terminal makes of what is printed.
const PROCESSING: c_uint = 0o77;
/// The front answers within a millisecond.
const DRAIN_TIMEOUT_NS: u64 = 200_000_000;
const STDIN: c_int = 0;
/// TCSANOW of tcsetattr(3); the others wait for the output.
const AT_ONCE: c_int = 0;
/// Major numbers of the terminals below /dev/pts: 8 with 256 each.
const PTS_MAJORS: core::ops::Range<u32> = 136..144;

type Ioctl = unsafe extern "C" fn(c_int, c_ulong, ...) -> c_int;
type Tcgetattr = unsafe extern "C" fn(c_int, *mut c_void) -> c_int;
type Tcsetattr = unsafe extern "C" fn(c_int, c_int, *const c_void) -> c_int;
type Tcgetpgrp = unsafe extern "C" fn(c_int) -> c_int;
type Tcsetpgrp = unsafe extern "C" fn(c_int, c_int) -> c_int;
type Ttyname = unsafe extern "C" fn(c_int) -> *mut c_char;
type TtynameR = unsafe extern "C" fn(c_int, *mut c_char, usize) -> c_int;

// SAFETY: each with the signature that its manual page gives it.
static NEXT_IOCTL: Next<Ioctl> = unsafe { Next::new(c"ioctl") };
// SAFETY: as above.
static NEXT_TCGETATTR: Next<Tcgetattr> = unsafe { Next::new(c"tcgetattr") };
// SAFETY: as above.
static NEXT_TCSETATTR: Next<Tcsetattr> = unsafe { Next::new(c"tcsetattr") };
// SAFETY: as above.
static NEXT_TCGETPGRP: Next<Tcgetpgrp> = unsafe { Next::new(c"tcgetpgrp") };
// SAFETY: as above.
static NEXT_TCSETPGRP: Next<Tcsetpgrp> = unsafe { Next::new(c"tcsetpgrp") };
// SAFETY: as above.
static NEXT_TCGETSID: Next<Tcgetpgrp> = unsafe { Next::new(c"tcgetsid") };
// SAFETY: as above.
static NEXT_TCFLUSH: Next<Tcsetpgrp> = unsafe { Next::new(c"tcflush") };
// SAFETY: as above.
static NEXT_TCDRAIN: Next<Tcgetpgrp> = unsafe { Next::new(c"tcdrain") };
// SAFETY: as above.
static NEXT_TTYNAME: Next<Ttyname> = unsafe { Next::new(c"ttyname") };
// SAFETY: as above.
static NEXT_TTYNAME_R: Next<TtynameR> = unsafe { Next::new(c"ttyname_r") };

/// # Safety
/// As ioctl(2), which takes at most one argument behind the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    let Some(next) = NEXT_IOCTL.get() else {
        return unsupported();
    };
    use request::*;
    // Some programs pass the request as an int, and the C library of old took one: what is above is not looked at.
    let number = u64::from(request as u32);
    match number {
        TCGETS | TCFLSH | TIOCGPGRP | TIOCGWINSZ | TIOCSWINSZ | FIONREAD | TIOCGSID | TCGETS2 => {
            let real = RealTerminal::behind(fd);
            // SAFETY: passed on as it came, but for the terminal.
            unsafe { next(real.or(fd), request, argument) }
        }
        TCSETS | TCSETS2 => {
            let real = RealTerminal::behind(fd);
            // SAFETY: the kernel reads modes at the same place.
            if unsafe { changes_processing(real.or(fd), argument) } {
                drain_before(real.or(fd));
            }
            // SAFETY: passed on as it came, but for the terminal.
            unsafe { next(real.or(fd), request, argument) }
        }
        TCSETSW | TCSETSF | TCSETSW2 | TCSETSF2 | TIOCSPGRP | TCSBRK => {
            let real = RealTerminal::behind(fd);
            drain_before(real.or(fd));
            // SAFETY: passed on as it came, but for the terminal.
            unsafe { next(real.or(fd), request, argument) }
        }
        // SAFETY: passed on as it came.
        _ => unsafe { next(fd, request, argument) },
    }
}

/// # Safety
/// As tcgetattr(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcgetattr(fd: c_int, modes: *mut c_void) -> c_int {
    let Some(next) = NEXT_TCGETATTR.get() else {
        return unsupported();
    };
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(RealTerminal::behind(fd).or(fd), modes) }
}

/// # Safety
/// As tcsetattr(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcsetattr(fd: c_int, when: c_int, modes: *const c_void) -> c_int {
    let Some(next) = NEXT_TCSETATTR.get() else {
        return unsupported();
    };
    let real = RealTerminal::behind(fd);
    // SAFETY: the caller passes modes.
    if when != AT_ONCE || unsafe { changes_processing(real.or(fd), modes) } {
        drain_before(real.or(fd));
    }
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(real.or(fd), when, modes) }
}

/// # Safety
/// As tcgetpgrp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcgetpgrp(fd: c_int) -> c_int {
    let Some(next) = NEXT_TCGETPGRP.get() else {
        return unsupported();
    };
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(RealTerminal::behind(fd).or(fd)) }
}

/// # Safety
/// As tcsetpgrp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcsetpgrp(fd: c_int, group: c_int) -> c_int {
    let Some(next) = NEXT_TCSETPGRP.get() else {
        return unsupported();
    };
    let real = RealTerminal::behind(fd);
    drain_before(real.or(fd));
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(real.or(fd), group) }
}

/// # Safety
/// As tcgetsid(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcgetsid(fd: c_int) -> c_int {
    let Some(next) = NEXT_TCGETSID.get() else {
        return unsupported();
    };
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(RealTerminal::behind(fd).or(fd)) }
}

/// # Safety
/// As tcflush(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcflush(fd: c_int, queue: c_int) -> c_int {
    let Some(next) = NEXT_TCFLUSH.get() else {
        return unsupported();
    };
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(RealTerminal::behind(fd).or(fd), queue) }
}

/// # Safety
/// As tcdrain(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tcdrain(fd: c_int) -> c_int {
    let Some(next) = NEXT_TCDRAIN.get() else {
        return unsupported();
    };
    let real = RealTerminal::behind(fd);
    drain_before(real.or(fd));
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(real.or(fd)) }
}

/// # Safety
/// As ttyname(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttyname(fd: c_int) -> *mut c_char {
    let Some(next) = NEXT_TTYNAME.get() else {
        unsupported();
        return core::ptr::null_mut();
    };
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(RealTerminal::behind(fd).or(fd)) }
}

/// # Safety
/// As ttyname_r(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttyname_r(fd: c_int, name: *mut c_char, bytes: usize) -> c_int {
    let Some(next) = NEXT_TTYNAME_R.get() else {
        unsupported();
        return sys::ENOSYS;
    };
    // SAFETY: passed on as it came, but for the terminal.
    unsafe { next(RealTerminal::behind(fd).or(fd), name, bytes) }
}

/// Looks up the next definitions while there is one thread.
pub fn resolve() {
    let _ = (NEXT_IOCTL.get(), NEXT_TCGETATTR.get(), NEXT_TCSETATTR.get());
    let _ = (NEXT_TCGETPGRP.get(), NEXT_TCSETPGRP.get());
    let _ = (NEXT_TCGETSID.get(), NEXT_TCFLUSH.get(), NEXT_TCDRAIN.get());
    let _ = (NEXT_TTYNAME.get(), NEXT_TTYNAME_R.get());
}

#[cold]
fn unsupported() -> c_int {
    sys::set_errno(sys::ENOSYS);
    -1
}

/// The real terminal, where a descriptor is the pty that stands for it.
struct RealTerminal(Option<Descriptor>);

enum Descriptor {
    Stdin,
    /// Closed when dropped.
    Opened(sys::File),
}

impl Descriptor {
    fn number(&self) -> c_int {
        match self {
            Descriptor::Stdin => STDIN,
            Descriptor::Opened(file) => file.number(),
        }
    }
}

impl Descriptor {
    /// Makes it so, where it is ours.
    fn is_blocking_and_writable(&self) -> bool {
        match self {
            Descriptor::Stdin => sys::is_writable(STDIN),
            Descriptor::Opened(file) => file.wait_in_calls(),
        }
    }
}

impl RealTerminal {
    fn behind(fd: c_int) -> Self {
        let _errno = sys::KeptErrno::new();
        Self(find(fd))
    }

    /// The real terminal, or the descriptor as it is.
    fn or(&self, fd: c_int) -> c_int {
        self.0.as_ref().map_or(fd, Descriptor::number)
    }
}

/// Whether new modes change what the real terminal makes of what is printed.
///
/// # Safety
/// `modes` must be a `struct termios`, of the kernel or of the C library, or null.
unsafe fn changes_processing(fd: c_int, modes: *const c_void) -> bool {
    let _errno = sys::KeptErrno::new();
    let has_terminal = shared::head().is_some_and(is_on_terminal);
    let Some(next) = NEXT_IOCTL.get().filter(|_| has_terminal) else {
        return false;
    };
    if modes.is_null() {
        return false;
    }
    let mut now = MaybeUninit::<[c_uint; TERMIOS_WORDS]>::zeroed();
    let at = now.as_mut_ptr();
    // SAFETY: the kernel's structure is shorter than the words.
    if unsafe { next(fd, request::TCGETS, at) } != 0 {
        return false;
    }
    // SAFETY: the words were zeroed and then written to; the caller's promise for the modes.
    let (now, new) = unsafe {
        let new = modes.cast::<c_uint>();
        ((*at)[OUTPUT_FLAGS], *new.add(OUTPUT_FLAGS))
    };
    (now ^ new) & PROCESSING != 0
}

/// Waits until what was printed has reached the real terminal, if the descriptor is one of it.
fn drain_before(fd: c_int) {
    let _errno = sys::KeptErrno::new();
    if let Some(head) = shared::head()
        && !seccomp::is_filtered()
        && is_real_terminal(head, fd)
    {
        drain(head);
    }
}

fn is_real_terminal(head: &Head, fd: c_int) -> bool {
    let mut terminals = head.output_terminals.iter().map(|it| it.load(Acquire));
    is_on_terminal(head) && device_of(fd).is_some_and(|device| terminals.any(|it| it == device))
}

fn is_on_terminal(head: &Head) -> bool {
    head.output_terminals.iter().any(|it| it.load(Acquire) != 0)
}

/// Standard streams that were the pty and are the real terminal now, for a program that is about to be started.
#[derive(Default)]
pub struct HandedOver([Option<sys::File>; 3]);

/// Gives the next program of this process the real terminal in place of the pty, where the keyboard is its standard input.
/// Without the cushion it could not set modes or have job control. What it prints is not kept for the verdict.
pub fn hand_over() -> HandedOver {
    let _errno = sys::KeptErrno::new();
    let mut handed_over = HandedOver::default();
    if !shared::head().is_some_and(|head| is_real_terminal(head, STDIN)) {
        return handed_over;
    }
    for (fd, before) in (STDIN..).zip(&mut handed_over.0) {
        let Some(real) = find(fd) else {
            continue;
        };
        drain_before(real.number());
        let kept = sys::File::duplicate_of(fd);
        if kept.is_some() && real.is_blocking_and_writable() && sys::duplicate_to(real.number(), fd)
        {
            *before = kept;
        }
    }
    handed_over
}

impl HandedOver {
    /// The program could not be started.
    pub fn take_back(self) {
        for (fd, before) in (STDIN..).zip(&self.0) {
            if let Some(before) = before {
                sys::duplicate_to(before.number(), fd);
            }
        }
    }
}

fn drain(head: &Head) {
    let asked = head.drains_asked.fetch_add(1, AcqRel).wrapping_add(1);
    sys::futex_wake(&head.drains_asked);
    let deadline = sys::now().saturating_add(DRAIN_TIMEOUT_NS);
    loop {
        let done = head.drains_done.load(Acquire);
        let left = deadline.saturating_sub(sys::now());
        // Others ask too, and the last answer holds for all who asked before.
        if (done.wrapping_sub(asked) as i32) >= 0 || left == 0 {
            return;
        }
        sys::futex_wait(&head.drains_done, done, left);
    }
}

fn find(fd: c_int) -> Option<Descriptor> {
    let head = shared::head()?;
    let ptys = &head.output_ptys;
    if ptys.iter().all(|pty| pty.load(Acquire) == 0) {
        return None;
    }
    let device = device_of(fd)?;
    let (_, real) = ptys
        .iter()
        .zip(&head.output_terminals)
        .find(|(pty, _)| pty.load(Acquire) == device)?;
    let real = real.load(Acquire);
    let is_real = |fd: c_int| device_of(fd) == Some(real);
    if is_real(STDIN) {
        return Some(Descriptor::Stdin);
    }
    if seccomp::is_filtered() {
        return None;
    }
    let mut path = [0; 32];
    let controlling = sys::File::terminal(c"/dev/tty").filter(|file| is_real(file.number()));
    let file = controlling.or_else(|| {
        sys::File::terminal(path_below_pts(real, &mut path)?).filter(|file| is_real(file.number()))
    })?;
    Some(Descriptor::Opened(file))
}

/// None for what is no terminal.
fn device_of(fd: c_int) -> Option<u32> {
    let mut device: c_uint = 0;
    let next = NEXT_IOCTL.get()?;
    // SAFETY: the kernel writes a number to a live one, or nothing.
    let code = unsafe { next(fd, request::TIOCGDEV, &raw mut device) };
    (code == 0).then_some(device)
}

/// "/dev/pts/N", from a device number as the kernel gives it.
fn path_below_pts(device: u32, path: &mut [u8; 32]) -> Option<&CStr> {
    let major = device >> 8 & 0xfff;
    let minor = device & 0xff | device >> 12 & 0xfff00;
    if !PTS_MAJORS.contains(&major) {
        return None;
    }
    let mut number = (major - PTS_MAJORS.start) * 256 + minor;
    let mut digits = [0; 10];
    let mut count = 0;
    loop {
        *digits.get_mut(count)? = b'0' + (number % 10) as u8;
        count += 1;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    let folder = b"/dev/pts/";
    let digits = digits.get(..count)?.iter().rev();
    for (to, from) in path.iter_mut().zip(folder.iter().chain(digits)) {
        *to = *from;
    }
    // SAFETY: shorter than the path, which was zeroed, and without a NUL.
    Some(unsafe { CStr::from_ptr(path.as_ptr().cast()) })
}
