//! The state of a run: memory shared by the front, the guard, the keepers, the listener and the probe, in a memfd of
//! its own.
//!
//! Processes of the tree never map it and inherit no descriptor of it, so its content is trusted: PIDs, progress of the
//! run, what is to be undone. What processes of the tree write is in `crate::page`.
//!
//! Everything is an atomic, and every field is valid when zero.

use crate::group_signals::GroupCounts;
use antifreeze_sense::Pid;
use antifreeze_sense::tree::TREE_CAPACITY;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64};

/// "AFST".
pub const MAGIC: u32 = 0x5453_4641;
/// Incremented whenever the layout changes.
pub const VERSION: u32 = 2;
/// Value of [`Head::broken`]: the reader or all writers of the stream have closed it.
pub const STREAM_OVER: u32 = 1;
/// Value of [`Head::broken`]: the front has passed on all output of the command itself. Other processes may still
/// write.
pub const STREAM_PASSED: u32 = 2;
/// `limit_before` of a process without a limit.
const NO_LIMIT: u64 = u64::MAX;
/// How many events can be on their way from the guard to the front.
pub const EVENTS: usize = 64;
/// Size of the longest encoded event.
pub const EVENT_BYTES: usize = 248;
/// How many GPU readings there are, each a [`GpuReading`].
pub const GPU_READINGS: usize = 10;
/// How much output of each stream is kept.
pub const OUTPUT_BYTES: usize = 256 * 1024;

/// One GPU reading. The value is written before the status.
#[repr(C)]
pub struct GpuReading {
    /// 0: not read yet; 1: the value is in `value`; otherwise 2 plus the number of a `Reason` of crates/sense.
    pub state: AtomicU64,
    pub value: AtomicU64,
}

/// What the probe has read of the GPUs. Two reads may be mixed for a short time; each number is complete by itself.
#[repr(C)]
pub struct Probed {
    /// CLOCK_MONOTONIC of the last read, or of the start of the probe; `u64::MAX` for readings that never change; 0
    /// without a probe.
    pub at: AtomicU64,
    /// In the order of gpu_readings.rs.
    pub readings: [GpuReading; GPU_READINGS],
}

/// Values of `root_status` for an attached process, beyond any wait status.
pub mod attached {
    /// The process continues unguarded, because the front has left.
    pub const LEFT_ALIVE: u32 = 1 << 16;
    /// It has ended, and its status is not known.
    pub const ENDED_UNSEEN: u32 = 1 << 17;
    /// It has ended, and the wait status in the lower bits was seen.
    pub const ENDED_SEEN: u32 = 1 << 18;
}

/// `root_stops`: how often the root was stopped, and by which signal last.
pub mod stop_signal {
    use super::AtomicU32;
    use std::sync::atomic::Ordering::{AcqRel, Acquire};

    /// Counts one more stop. Only the parent of the root reports stops.
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

/// The memory of one [`GuardedProcess`].
#[repr(C)]
pub struct GuardedSlot {
    /// 0: none. Written last.
    pub pid: AtomicU32,
    /// 1 while the guard has stopped it.
    pub paused: AtomicU32,
    /// Its start time in clock ticks since boot: the PID of an ended process may belong to another.
    pub started: AtomicU64,
    /// The soft limit on its data without the guard; `u64::MAX` for none.
    pub limit_before: AtomicU64,
}

/// A process of the tree, and what is to be undone when it is no longer guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardedProcess {
    pub pid: Pid,
    /// Its start time in clock ticks since boot.
    pub started: u64,
    /// Whether the guard has stopped it.
    pub paused: bool,
    /// Its soft limit without the guard.
    pub limit_before: Option<u64>,
}

impl GuardedSlot {
    pub(crate) fn store(&self, noted: &GuardedProcess) {
        let paused = u32::from(noted.paused);
        let limit_before = noted.limit_before.unwrap_or(NO_LIMIT);
        let pid = noted.pid.0;
        let is_known = self.pid.load(Relaxed) == pid && self.started.load(Relaxed) == noted.started;
        if !is_known {
            self.pid.store(0, Release);
            self.started.store(noted.started, Relaxed);
        }
        self.limit_before.store(limit_before, Relaxed);
        self.paused.store(paused, Release);
        self.pid.store(pid, Release);
    }

    pub(crate) fn load(&self) -> Option<GuardedProcess> {
        let pid = Pid(self.pid.load(Acquire));
        let limit_before = self.limit_before.load(Relaxed);
        (pid != Pid(0)).then(|| GuardedProcess {
            pid,
            started: self.started.load(Relaxed),
            paused: self.paused.load(Acquire) == 1,
            limit_before: (limit_before != NO_LIMIT).then_some(limit_before),
        })
    }
}

#[repr(C)]
pub struct Head {
    pub magic: AtomicU32,
    pub version: AtomicU32,

    // PIDs.
    pub front_pid: AtomicU32,
    pub guard_pid: AtomicU32,
    pub root_pid: AtomicU32,
    /// 0 while it is not known yet.
    pub root_started: AtomicU64,
    /// The keeper that acts when the guard dies.
    pub keeper_pid: AtomicU32,
    pub probe_pid: AtomicU32,

    // Written by the guard.
    /// CLOCK_MONOTONIC of the last tick.
    pub heartbeat: AtomicU64,
    /// Incremented at the end of each tick.
    pub tick: AtomicU32,
    /// 1 once a guard has reported the start of the run. An earlier guard may die before it gets there.
    pub begun: AtomicU32,
    /// errno of a command that could not be started; 0 otherwise.
    pub exec_errno: AtomicI32,
    /// The wait status of the root plus one, stored before it is reaped: a guard may die before it has reported it.
    pub root_seen: AtomicU32,
    /// The wait status of the root plus one, once it has ended; 0 before. For an attached process one of the values of
    /// [`attached`] plus one or, if the process itself asks to be left alone, the status that it gives.
    pub root_status: AtomicU32,
    /// 1 once the guard is done and the record is closed. A futex word.
    pub closed: AtomicU32,
    /// Events written so far.
    pub events: AtomicU64,
    /// The footprint of the tree, and the present rung.
    pub footprint: AtomicU64,
    pub rung: AtomicU32,
    /// The last stop of the root, as [`stop_signal`] writes it.
    pub root_stops: AtomicU32,

    // What is to be undone.
    /// 1 while the guard sets limits.
    pub limits: AtomicU32,
    /// 1 if the OOM score of an attached process was raised; its old and new value.
    pub oom_is_raised: AtomicU32,
    pub oom_before: AtomicI32,
    pub oom_raised: AtomicI32,
    pub guarded: [GuardedSlot; TREE_CAPACITY],

    // Written by the front for the guard.
    /// For each stream of the trainer, [`STREAM_OVER`], [`STREAM_PASSED`] or 0. At [`STREAM_OVER`] front, guard and
    /// keepers close their descriptors of it, so that the other side sees the same end as without antifreeze.
    pub broken: [AtomicU32; 2],
    /// 1 when the front leaves on purpose.
    pub front_done: AtomicU32,
    /// Incremented by each `antifreeze resume`.
    pub resume_requests: AtomicU32,
    /// The process that counts signals to the process group; 0 if there is none.
    pub listener_pid: AtomicU32,
    /// The listener's.
    pub group_signals: GroupCounts,
    /// 1 while the front is stopped, or about to be, because the root was stopped.
    pub front_stops: AtomicU32,

    // Written by the probe for the guard.
    pub cards: Probed,

    pub event_slots: [EventSlot; EVENTS],
}

/// The output of the trainer that is being passed on, and its kept tail. One process at a time relays: the front, or
/// the guard once the front is gone. All counts are bytes since the start; [`crate::relay`] describes what a killed
/// relay leaves in them.
#[repr(C)]
pub struct Output {
    /// Bytes read from the trainer.
    pub filled: AtomicU64,
    /// Bytes of those that have been passed on.
    pub passed: AtomicU64,
    /// Bytes that `filled` will count once the piece in the intake has been read.
    pub taken: AtomicU64,
    /// The end of the piece that is being passed on,
    pub sending: AtomicU64,
    /// and the same once the piece is in the outlet.
    pub staged: AtomicU64,
    /// The size of the file that is appended to, before the piece.
    pub size_before: AtomicU64,
    pub ring: [AtomicU8; OUTPUT_BYTES],
}

#[repr(C)]
pub struct State {
    pub head: Head,
    /// Standard output (or both, when they go to the same place) and standard error.
    pub output: [Output; 2],
}
