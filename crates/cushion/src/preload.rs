//! The cushion: the library that `LD_PRELOAD` loads into every process of the trainer.
//!
//! It promises four things at the soft wall (`RLIMIT_DATA`, set by the guard):
//! - a request that fits the machine *now* does not fail because the last sample of the guard is a second old: the
//!   guard is asked before anything is refused ([`guard`]);
//! - the dynamic loader, which cannot ask, is never refused the data of a library ([`loader`]);
//! - small requests and thread starts, which few programs survive losing, are refused last ([`reserve`]), and a program
//!   whose request is refused has room to handle the error ([`wall`]);
//! - a new process takes a share of the head-room, not a copy of it ([`birth`]).
//!
//! And two more: a paused process pages itself out when the guard asks for it ([`pageout`]), and a program finds the
//! real terminal behind its output ([`terminal`]).
//!
//! While nothing fails it costs one indirect call for each allocation. It holds no lock, allocates nothing and binds to
//! no version of the C library.
#![no_std]

#[allow(dead_code, reason = "the page has other readers")]
#[path = "../../ipc/src/page.rs"]
mod page;

mod sanitizer;

#[path = "preload/aside.rs"]
mod aside;
#[path = "preload/birth.rs"]
mod birth;
#[path = "preload/elf.rs"]
mod elf;
#[path = "preload/exec.rs"]
mod exec;
#[path = "preload/files.rs"]
mod files;
#[path = "preload/guard.rs"]
mod guard;
#[path = "preload/heap.rs"]
mod heap;
#[path = "preload/limit.rs"]
mod limit;
#[path = "preload/loader.rs"]
mod loader;
#[path = "preload/mapping.rs"]
mod mapping;
#[path = "preload/next.rs"]
mod next;
#[path = "preload/pageout.rs"]
mod pageout;
#[path = "preload/pageout_pace.rs"]
mod pageout_pace;
#[path = "preload/pageout_signal.rs"]
mod pageout_signal;
#[path = "preload/regions.rs"]
mod regions;
#[path = "preload/reserve.rs"]
mod reserve;
#[path = "preload/seccomp.rs"]
mod seccomp;
#[path = "preload/share.rs"]
mod share;
#[path = "preload/shared.rs"]
mod shared;
#[path = "preload/statm.rs"]
mod statm;
#[path = "preload/sys.rs"]
mod sys;
#[path = "preload/terminal.rs"]
mod terminal;
#[path = "preload/thread.rs"]
mod thread;
#[path = "preload/wall.rs"]
mod wall;

extern "C" fn enter() {
    let _errno = sys::KeptErrno::new();
    heap::resolve();
    mapping::resolve();
    birth::resolve();
    exec::resolve();
    pageout_signal::resolve();
    seccomp::resolve();
    thread::resolve();
    terminal::resolve();
    shared::open();
    aside::find();
    guard::find_clock();
    loader::find();
    heap::find_allocator();
    birth::after_exec();
    pageout_signal::install();
}

#[used]
#[unsafe(link_section = ".init_array")]
static ENTER: extern "C" fn() = enter;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    sys::abort()
}
