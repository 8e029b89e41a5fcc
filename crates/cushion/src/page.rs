//! The page: one piece of shared memory (a memfd) through which the guard, the front and
//! the cushion inside every process of the trainer talk without a file, pipe or lock.
//!
//! The guard writes the heartbeat, the head-room and the end; the cushion writes its slot
//! and kicks; the front writes its own flags; the probe what it read of graphics cards.
//! Everything is an atomic, every field is valid when zero, and nobody trusts what another
//! wrote further than its own safety allows: the trainer can scribble over the page and harm
//! only itself.
//!
//! The cushion maps only [`HEAD_BYTES`]; the output rings behind it belong to front and guard.

use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

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
/// How many paused processes are remembered for the keeper.
pub const PAUSED: usize = 512;
/// Events on their way from the guard to the front.
pub const EVENTS: usize = 64;
/// What is read of graphics cards, each a [`CardReading`].
pub const CARD_READINGS: usize = 10;
/// The longest encoded event.
pub const EVENT_BYTES: usize = 248;
/// What is kept of the trainer's output, of each stream.
pub const OUTPUT_BYTES: usize = 256 * 1024;
/// Every soft limit that antifreeze sets is a multiple of this: 8 pages of the largest size. Chromium's renderer dies at
/// a limit below 4 GB that is not a multiple of 8 pages.
pub const LIMIT_UNIT: u64 = 512 * 1024;
/// Requests below this are small: they may draw on the small reserve.
pub const SMALL_REQUEST: u64 = 1 << 20;
/// A dynamic loader that began its last library longer ago than this is taken to be done.
pub const LOADING_NS: u64 = 10_000_000_000;
/// A heartbeat older than this means that nobody stands guard any more.
pub const STALE_NS: u64 = 5_000_000_000;
/// How much the strip opens when the page does not say.
pub const STRIP: u64 = 32 << 20;
/// The small reserve when the page does not say.
pub const SMALL_RESERVE: u64 = 64 << 20;
/// The part the cushion maps, a multiple of any page size in use.
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

/// What the cushion of one process has to say. A slot belongs to the process whose number
/// stands in it. Whoever frees a slot (the guard, when the process is gone) zeroes the rest
/// of it first and the number last, so that a slot with a number is never half another's.
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
    /// The soft limit this process gave itself last, by opening its strip or drawing on
    /// the small reserve; 0 when it never did.
    pub own_limit: AtomicU64,
    /// Bytes drawn from the small reserve since the guard last moved the limit.
    pub drawn: AtomicU64,
    /// Size of a request that waits for the guard's answer; 0 while none does.
    pub wanted: AtomicU64,
    /// Bytes of files it has ever mapped to write to privately, large pieces only. They count against
    /// the limit, and take memory only where they are written to.
    pub files: AtomicU64,
    /// Bytes of data that the dynamic loader has mapped for this program's libraries. They count
    /// against the limit, and take memory only where they are written to.
    pub libraries: AtomicU64,
    /// When the dynamic loader began to map a library (CLOCK_MONOTONIC, nanoseconds); 0 while it
    /// maps none. The guard leaves the limit alone until then: a refusal would be final, since the
    /// loader cannot ask.
    pub loading: AtomicU64,
    /// The limit this process had before it was raised to start another program in its place; 0 when that is
    /// not so.
    pub before_exec: AtomicU64,
    /// The guard's: 1 from before it reads `loading` until it has moved the limit. A process that
    /// sets `loading` waits for 0, so that no limit chosen before can arrive after it.
    pub moving: AtomicU32,
    /// 1 while the landing strip is open.
    pub landed: AtomicU32,
    /// 1 when the process lifted its limit because the heartbeat was stale.
    pub lifted: AtomicU32,
    /// What the process can do about a request to page itself out, and what it has done: `PAGER_*`.
    pub pager: AtomicU32,
    /// 1 while the guard asks the process to page itself out. A futex word; the guard writes it.
    pub pageout: AtomicU32,
}

/// The signal by which a trainer is told in the middle of a step.
pub const HEARS: u32 = 1;
/// The one at which it writes where its threads are.
pub const SHOWS_STACKS: u32 = 2;

/// What a process says that trains, through the shim in its interpreter: the fields that
/// python/antifreeze/_shim/page.py knows by their places. A slot is taken by writing the number of
/// the process to it, and freed by the guard.
#[repr(C)]
pub struct Trainer {
    pub pid: AtomicU32,
    /// What it is at: the number of a `Phase` of crates/sense.
    pub phase: AtomicU32,
    /// Items a batch; 0 when unknown.
    pub batch: AtomicU32,
    /// The guard raises them to ask for a save, or for the end; the trainer copies them when it has
    /// answered.
    pub save_asked: AtomicU32,
    pub stop_asked: AtomicU32,
    pub save_answered: AtomicU32,
    pub stop_answered: AtomicU32,
    /// How long the last save took.
    pub save_ms: AtomicU32,
    pub steps: AtomicU64,
    /// The step that was saved last.
    pub saved_step: AtomicU64,
    /// The guard's: the rung it is on.
    pub rung: AtomicU32,
    /// Raised by the guard to have it look who holds the memory, where no end of a step is seen.
    pub look_asked: AtomicU32,
    /// What it has a handler for: [`HEARS`], [`SHOWS_STACKS`].
    pub listens: AtomicU32,
    /// The save that was asked for with this number was answered, and failed.
    pub save_failed: AtomicU32,
}

/// One number of the graphics cards. The value is written first, so that it is there when it is said to be.
#[repr(C)]
pub struct CardReading {
    /// 0: not read yet; 1: it is in `value`; else 2 and the number of a `Reason` of crates/sense.
    pub state: AtomicU64,
    pub value: AtomicU64,
}

/// What the probe has read of the graphics cards. Two looks may be mixed for a moment: each number
/// is whole by itself, and says little that a look two seconds later would not.
#[repr(C)]
pub struct Probed {
    /// CLOCK_MONOTONIC of the last look, or of the start of the probe; `u64::MAX` for a word that
    /// stays true; 0 where there is no probe.
    pub at: AtomicU64,
    /// In the order of crates/guard/src/cards.rs.
    pub readings: [CardReading; CARD_READINGS],
}

/// What `root_status` holds of an attached process, beyond any wait status.
pub mod attached {
    /// The process lives on unguarded, because the front has left.
    pub const LEFT_ALIVE: u32 = 1 << 16;
    /// It has ended, and its status is not known.
    pub const ENDED_UNSEEN: u32 = 1 << 17;
    /// It has ended, and the wait status in the lower bits was seen.
    pub const ENDED_SEEN: u32 = 1 << 18;
}

/// `root_stops`: how often the root was stopped, and by which signal the last time.
pub mod stop_signal {
    use super::AtomicU32;
    use core::sync::atomic::Ordering::{AcqRel, Acquire};

    /// Counts one more stop. The root's parent reports it, and there is one.
    pub fn report(word: &AtomicU32, signal: u32) {
        let _ = word.fetch_update(AcqRel, Acquire, |stops| {
            Some((stops | 0xff).wrapping_add(1) | signal & 0xff)
        });
    }

    pub fn signal(stops: u32) -> u32 {
        stops & 0xff
    }
}

#[repr(C)]
pub struct EventSlot {
    /// Number of the event plus one, written last; 0 when empty.
    pub number: AtomicU64,
    pub bytes: [AtomicU64; EVENT_BYTES / 8],
}

#[repr(C)]
pub struct Head {
    pub magic: AtomicU32,
    pub version: AtomicU32,
    /// Where the trainers' slots begin, how large one is, and how many there are: for a reader that
    /// does not know this structure.
    pub trainers_at: AtomicU32,
    pub trainer_bytes: AtomicU32,
    pub trainers_number: AtomicU32,

    // The guard's, for the cushion.
    /// CLOCK_MONOTONIC of the last tick.
    pub heartbeat: AtomicU64,
    /// Rises at the end of each tick, when all limits stand. A futex word.
    pub tick: AtomicU32,
    /// Anyone raises it and wakes it to ask for a tick now. A futex word.
    pub kick: AtomicU32,
    /// 1 while the guard keeps limits.
    pub wall: AtomicU32,
    /// Processes started since the last tick.
    pub births: AtomicU32,
    /// Bytes the whole tree may still take.
    pub headroom: AtomicU64,
    /// How much the strip opens; 0 for [`STRIP`].
    pub strip: AtomicU64,
    /// How much small requests and thread starts may draw beyond the wall; 0 for
    /// [`SMALL_RESERVE`].
    pub small_reserve: AtomicU64,

    // Who is who.
    pub front_pid: AtomicU32,
    pub guard_pid: AtomicU32,
    pub root_pid: AtomicU32,
    pub root_started: AtomicU64,
    pub keeper_pid: AtomicU32,
    pub probe_pid: AtomicU32,

    // The guard's, for the front.
    /// 1 once a guard has said that the run has begun. The first may die before it comes to that.
    pub begun: AtomicU32,
    /// errno of a command that could not be started; 0 otherwise.
    pub exec_errno: AtomicI32,
    /// The root's wait status plus one, once it has ended; 0 before. Of an attached process: one of the values of
    /// [`attached`] plus one, or, where the process itself wants to be guarded no more, the status that it names.
    pub root_status: AtomicU32,
    /// 1 once the guard has nothing more to say: the record is closed. A futex word.
    pub closed: AtomicU32,
    /// Allocations made after start. Stays 0.
    pub allocations: AtomicU32,
    /// Events written so far.
    pub events: AtomicU64,
    /// What the tree holds, and the rung it is on.
    pub footprint: AtomicU64,
    pub rung: AtomicU32,

    /// The last stop of the root, as [`stop_signal`] writes it.
    pub root_stops: AtomicU32,

    /// 1 when the cushion should install its handler for [`PAGEOUT_SIGNAL`]. Written before the command starts.
    pub pages_out: AtomicU32,
    /// The limit that the user had set before us, which the cushion does not exceed; 0 for none.
    pub ceiling: AtomicU64,

    // The guard's, for the keeper.
    /// The processes that are paused; 0 where there is none.
    pub paused: [AtomicU32; PAUSED],

    // The front's, for the guard.
    /// 1 when nobody reads the trainer's output any more: everybody closes his end, so that
    /// the trainer learns of it as it would without us.
    pub broken: [AtomicU32; 2],
    /// 1 when the front leaves on purpose.
    pub front_done: AtomicU32,
    /// Rises with each `antifreeze resume`.
    pub resume_requests: AtomicU32,
    /// The process that counts signals to the process group; 0 where there is none.
    pub listener_pid: AtomicU32,
    /// The device numbers of the ptys that the command prints to, standard output and standard error, and of the
    /// terminals that they stand for; 0 where there is none.
    pub output_ptys: [AtomicU32; 2],
    pub output_terminals: [AtomicU32; 2],
    /// How often a process has asked for all that was printed to be passed on. A futex word.
    pub drains_asked: AtomicU32,
    /// The last of those that was done. A futex word.
    pub drains_done: AtomicU32,
    /// 1 while the front is stopped, or about to be, because the root was stopped.
    pub front_stops: AtomicU32,

    // The probe's, for the guard.
    pub cards: Probed,

    pub event_slots: [EventSlot; EVENTS],
    pub slots: [Slot; SLOTS],
    pub trainers: [Trainer; TRAINERS],
}

// python/antifreeze/_shim/page.py knows them by their places.
const _: () = {
    assert!(core::mem::offset_of!(Head, front_pid) == 72);
    assert!(core::mem::offset_of!(Head, guard_pid) == 76);
    assert!(core::mem::offset_of!(Head, root_status) == 112);
};

/// The trainer's output on its way to where it was going, and the tail that is kept of it.
/// One side at a time relays: the front, or the guard once the front is gone.
#[repr(C)]
pub struct Output {
    /// Bytes read from the trainer since the start.
    pub filled: AtomicU64,
    /// Bytes of those that have been passed on.
    pub passed: AtomicU64,
    pub ring: [AtomicU8Cell; OUTPUT_BYTES],
}

/// A byte of shared memory.
pub type AtomicU8Cell = core::sync::atomic::AtomicU8;

#[repr(C)]
pub struct Page {
    pub head: Head,
    _pad: [u8; HEAD_BYTES - core::mem::size_of::<Head>()],
    /// Standard output (or both, when they go to the same place) and standard error.
    pub output: [Output; 2],
}

/// Size of the whole page.
pub const BYTES: usize = core::mem::size_of::<Page>();
