//! The page: one piece of shared memory (a memfd) through which the guard and the cushion and the shim inside every
//! process of the trainer exchange numbers without a file, pipe or lock.
//!
//! The guard writes the heartbeat, the head-room and what it asks for; the cushion and the shim write their slots and
//! kick. Everything is an atomic, and every field is valid when zero.
//!
//! # Who may write, and what that can do
//!
//! Every process of the tree maps the page for writing, and keeps the mapping when it gives up privileges: a server that
//! root starts and that becomes another user can still write to the page of root's guard. So the page holds claims, and
//! front, guard and keeper treat it as input from an untrusted process:
//!
//! - **No process is found through it.** Whom the guard limits, pauses, signals or ends, and whom the front passes signals
//!   to, comes from the kernel (children, start times, pidfds) and from `state.rs` beside this file, which is another memfd
//!   that is not mapped in the tree. A number in the page selects among the processes that are known already, or nothing.
//! - **It cannot be cut short.** The memfd is sealed against a change of its size, so that no access faults.
//! - **What is read is bounded** where it is read: counts by the length of the array, sizes and times by saturating
//!   arithmetic, waiting by deadlines of the guard's own.
//! - **What is left to a process that scribbles** concerns the run that it belongs to: processes of the tree can be
//!   refused memory that there is, or grow without a wall, held by the ladder alone; a save or an end can be waited for in
//!   vain, until its deadline; an attached process can be let go; the guard can be kept busy with samples, 500 a second at
//!   most. The ladder decides from what the kernel counts, so the machine's reserve is kept.
//!
//! A process that still has the guard's user and privileges needs no page to harm it, and is not defended against.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// "AFPG".
pub const MAGIC: u32 = 0x4746_5041;
/// Raised whenever the layout changes; the cushion ignores a page of another version.
pub const VERSION: u32 = 7;
/// Where the processes of the tree find the page: paths to try, separated by `:`.
pub const ENV: &str = "ANTIFREEZE_PAGE";
/// The same, as C spells it.
pub const ENV_C: &CStr = c"ANTIFREEZE_PAGE";

/// How many processes can report at one time.
pub const SLOTS: usize = 640;
/// How many processes can say that they train.
pub const TRAINERS: usize = 64;
/// Every soft limit that antifreeze sets is a multiple of this: 8 pages of the largest size. Chromium's renderer dies at
/// a limit below 4 GB that is not a multiple of 8 pages.
pub const LIMIT_UNIT: u64 = 512 * 1024;
/// Requests below this are small: they may draw on the small reserve.
pub const SMALL_REQUEST: u64 = 1 << 20;
/// A dynamic loader that began its last library longer ago than this counts as done.
pub const LOADING_NS: u64 = 10_000_000_000;
/// A heartbeat older than this means that no guard is running.
pub const STALE_NS: u64 = 5_000_000_000;
/// How much the strip opens when the page does not say.
pub const STRIP: u64 = 32 << 20;
/// The small reserve when the page does not say.
pub const SMALL_RESERVE: u64 = 64 << 20;
/// Size of the page, a multiple of any page size in use.
pub const HEAD_BYTES: usize = 128 * 1024;

/// The signal by which a paused process is asked to page itself out: a real-time signal that no C library keeps for
/// itself (the first free one is 34), next to the one for stacks.
pub const PAGEOUT_SIGNAL: i32 = 34 + 10;

/// Values of [`Slot::pager`]. The cushion has no handler for [`PAGEOUT_SIGNAL`]: the page does not want one, or the
/// program uses the signal itself.
pub const PAGER_NONE: u32 = 0;
/// The handler is installed.
pub const PAGER_READY: u32 = 1;
/// One thread is paging the process out.
pub const PAGER_BUSY: u32 = 2;
/// Everything that could be paged out was; the handler waits for the end of the request.
pub const PAGER_FINISHED: u32 = 3;

/// What the cushion of one process reports. A slot belongs to the process whose PID is in it. When the guard frees a
/// slot, it zeroes the PID last, so a slot with a PID never holds fields of another process.
#[repr(C)]
pub struct Slot {
    pub pid: AtomicU32,
    /// Requests refused at the wall. Written last. An allocator that asks the kernel more
    /// than once for one request may be counted more than once.
    pub refused: AtomicU32,
    /// Size of the last request refused.
    pub refused_bytes: AtomicU64,
    /// When that was (CLOCK_MONOTONIC, nanoseconds).
    pub refused_at: AtomicU64,
    /// The soft limit that this process set itself last, by opening its strip or drawing on the small reserve; 0 if it
    /// never did.
    pub own_limit: AtomicU64,
    /// Bytes drawn from the small reserve since the guard last moved the limit.
    pub drawn: AtomicU64,
    /// Size of the request that waits for an answer of the guard; 0 if none does.
    pub wanted: AtomicU64,
    /// Bytes of files that it has ever mapped for private writing, large pieces only. They count against the limit, but
    /// take memory only where they are written to.
    pub files: AtomicU64,
    /// Bytes of library data that the dynamic loader has mapped. They count against the limit, but take memory only
    /// where they are written to.
    pub libraries: AtomicU64,
    /// When the dynamic loader began to map a library (CLOCK_MONOTONIC, nanoseconds); 0 if it maps none. Meanwhile the
    /// guard does not set the limit: a refusal would be final, since the loader cannot ask.
    pub loading: AtomicU64,
    /// The limit of this process before it was raised to execute another program; 0 if it was not.
    pub before_exec: AtomicU64,
    /// Written by the guard: 1 from before it reads `loading` until it has set the limit. A process that sets `loading`
    /// waits for 0, so that no limit computed before can arrive after it.
    pub moving: AtomicU32,
    /// 1 while the landing strip is open.
    pub landed: AtomicU32,
    /// 1 when the process lifted its limit because the heartbeat was stale.
    pub lifted: AtomicU32,
    /// Whether the process can page itself out, and how far it has come: `PAGER_*`.
    pub pager: AtomicU32,
    /// 1 while the guard asks the process to page itself out. A futex word; the guard writes it.
    pub pageout: AtomicU32,
    /// Bytes that it has ever reserved and will not all use: mappings without swap reservation, stacks, room for code.
    /// Large pieces only; they count against the limit, but take memory only where they are written to.
    pub reserved: AtomicU64,
    /// 1 if it runs, or is about to start, a program that has no wall (`sanitizer.rs` of the cushion). Its children
    /// have none either.
    pub aside: AtomicU32,
    /// Bytes that `calloc` has ever returned, large pieces only. They take memory only where they are written to.
    pub zeroed: AtomicU64,
}

/// The trainer has a handler for the signal that interrupts a step.
pub const HEARS: u32 = 1;
/// It has a handler for the signal that makes it write its stacks.
pub const SHOWS_STACKS: u32 = 2;

/// What a training process reports through the shim; python/antifreeze/_shim/page.py knows the offsets of these fields.
/// A trainer takes a slot by writing its PID to it; the guard frees it.
#[repr(C)]
pub struct Trainer {
    pub pid: AtomicU32,
    /// The number of a `Phase` of crates/sense.
    pub phase: AtomicU32,
    /// Items a batch; 0 when unknown.
    pub batch: AtomicU32,
    /// The guard increments these to ask for a save or for the end; the trainer copies them when it has answered.
    pub save_asked: AtomicU32,
    pub stop_asked: AtomicU32,
    pub save_answered: AtomicU32,
    pub stop_answered: AtomicU32,
    /// Duration of the last save.
    pub save_ms: AtomicU32,
    pub steps: AtomicU64,
    /// The step that was saved last.
    pub saved_step: AtomicU64,
    /// The present rung, written by the guard.
    pub rung: AtomicU32,
    /// Incremented by the guard to ask what holds the memory, for trainers without known steps.
    pub look_asked: AtomicU32,
    /// Which handlers it has: [`HEARS`], [`SHOWS_STACKS`].
    pub listens: AtomicU32,
    /// The number of the requested save that failed.
    pub save_failed: AtomicU32,
}

#[repr(C)]
pub struct Head {
    pub magic: AtomicU32,
    pub version: AtomicU32,
    /// The offset of the trainers' slots, the size of one, and their number, for a reader that does not know this
    /// structure.
    pub trainers_at: AtomicU32,
    pub trainer_bytes: AtomicU32,
    pub trainers_number: AtomicU32,

    // Written by the guard for the cushion.
    /// CLOCK_MONOTONIC of the last tick.
    pub heartbeat: AtomicU64,
    /// Incremented at the end of each tick, when all limits are set. A futex word.
    pub tick: AtomicU32,
    /// Any process increments and wakes this to ask for a tick now. A futex word.
    pub kick: AtomicU32,
    /// 1 while the guard sets limits.
    pub wall: AtomicU32,
    /// Processes started since the last tick.
    pub births: AtomicU32,
    /// Bytes the whole tree may still take.
    pub headroom: AtomicU64,
    /// How much the strip opens; 0 for [`STRIP`].
    pub strip: AtomicU64,
    /// How many bytes small requests and thread starts may draw beyond the wall; 0 for [`SMALL_RESERVE`].
    pub small_reserve: AtomicU64,

    // For the shim, which looks for the program that it started. The Rust side does not read them.
    pub front_pid: AtomicU32,
    pub guard_pid: AtomicU32,
    /// An attached process whose front is gone writes here that it is to be left alone: 1 if its work succeeded, 257 if
    /// it failed; 0 before.
    pub leave: AtomicU32,
    /// Allocations that the guard has made after its start, for the benchmark. Stays 0.
    pub allocations: AtomicU32,

    /// 1 when the cushion should install its handler for [`PAGEOUT_SIGNAL`]. Written before the command starts.
    pub pages_out: AtomicU32,
    /// The limit that the user had set before us, which the cushion does not exceed; 0 for none.
    pub ceiling: AtomicU64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC at the last tick, modulo 2^64: by it a process in another time namespace
    /// knows the guard's clock. 0: not known.
    pub realtime_offset: AtomicU64,

    // For processes of the tree that ask for the terminal.
    /// The device numbers of the ptys that the command prints to, standard output and standard error, and of the
    /// terminals that they stand for; 0 where there is none.
    pub output_ptys: [AtomicU32; 2],
    pub output_terminals: [AtomicU32; 2],
    /// How often a process has asked for all printed output to be passed on. A futex word.
    pub drains_asked: AtomicU32,
    /// The last such request that was answered. A futex word.
    pub drains_done: AtomicU32,

    pub slots: [Slot; SLOTS],
    pub trainers: [Trainer; TRAINERS],
}

// Offsets that Python knows: python/antifreeze/_shim/page.py (a test in crates/cli/src/embed.rs compares them) and
// bench/measures/page.py, which reads the lines of `Head` below. Raise `VERSION` when one changes.
const _: () = {
    use core::mem::{offset_of, size_of};

    assert!(offset_of!(Head, magic) == 0);
    assert!(offset_of!(Head, version) == 4);
    assert!(offset_of!(Head, trainers_at) == 8);
    assert!(offset_of!(Head, trainer_bytes) == 12);
    assert!(offset_of!(Head, trainers_number) == 16);
    assert!(offset_of!(Head, tick) == 32);
    assert!(offset_of!(Head, front_pid) == 72);
    assert!(offset_of!(Head, guard_pid) == 76);
    assert!(offset_of!(Head, leave) == 80);
    assert!(offset_of!(Head, allocations) == 84);
    assert!(size_of::<Head>() <= HEAD_BYTES);

    assert!(offset_of!(Trainer, pid) == 0);
    assert!(offset_of!(Trainer, phase) == 4);
    assert!(offset_of!(Trainer, batch) == 8);
    assert!(offset_of!(Trainer, save_asked) == 12);
    assert!(offset_of!(Trainer, stop_asked) == 16);
    assert!(offset_of!(Trainer, save_answered) == 20);
    assert!(offset_of!(Trainer, stop_answered) == 24);
    assert!(offset_of!(Trainer, save_ms) == 28);
    assert!(offset_of!(Trainer, steps) == 32);
    assert!(offset_of!(Trainer, saved_step) == 40);
    assert!(offset_of!(Trainer, rung) == 48);
    assert!(offset_of!(Trainer, look_asked) == 52);
    assert!(offset_of!(Trainer, listens) == 56);
    assert!(offset_of!(Trainer, save_failed) == 60);
    assert!(size_of::<Trainer>() == 64);
};
