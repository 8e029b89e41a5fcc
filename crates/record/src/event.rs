//! What happened in a run: the guard's events, for the record and for the front.
//!
//! An [`Event`] has a fixed size and is encoded like a sample, so the guard writes it without allocating, and an older
//! reader skips kinds that it does not know. The numbers of [`Rung`], [`Trigger`] and [`Degradation`] are stored in
//! records: numbers may be added, and none ever changes its meaning.

use antifreeze_sense::{Pid, ProcessName, Stamp};

/// The rungs of the ladder, mildest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rung {
    /// There is room; the guard samples seldom.
    #[default]
    Calm = 0,
    /// The room may run out; the guard samples more often.
    Watch = 1,
    /// The user is told that the room runs out.
    Warn = 2,
    /// The run is slowed by memory.high, where it has a cgroup of its own.
    Brake = 3,
    /// The trainer is asked to save a checkpoint.
    Checkpoint = 4,
    /// All processes of the run are stopped until there is room again.
    Pause = 5,
    /// The run is asked to end.
    Stop = 6,
    /// The run is killed.
    Kill = 7,
}

impl Rung {
    /// Every rung, at the index of its number.
    pub const ALL: [Rung; 8] = [
        Rung::Calm,
        Rung::Watch,
        Rung::Warn,
        Rung::Brake,
        Rung::Checkpoint,
        Rung::Pause,
        Rung::Stop,
        Rung::Kill,
    ];

    /// The rung with this number; `None` for a rung that only a newer writer knows.
    pub fn from_code(code: u64) -> Option<Rung> {
        value_with_code(&Rung::ALL, code)
    }
}

/// What made the guard decide as it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Trigger {
    /// There was no need to act, or a newer writer's trigger is not known to this reader.
    #[default]
    Unspecified = 0,
    /// The tree grows towards its wall.
    TreeGrowth = 1,
    /// Less memory is available than the reserve.
    ReserveBroken = 2,
    /// The tree uses more than its budget.
    BudgetExceeded = 3,
    /// The tree is near the limit of a container or cgroup.
    CgroupLimit = 4,
    /// Pages come back from swap as fast as they go out.
    SwapStorm = 5,
    /// All processes wait for memory (PSI).
    Stalling = 6,
    /// Programs outside of the tree grew.
    OthersGrew = 7,
    /// The disk that the run writes to is nearly full.
    DiskFull = 8,
    /// /dev/shm is nearly full.
    ShmFull = 9,
    /// The run was asked to end and did not end in time.
    Deadline = 10,
    /// There is room again.
    RoomAvailable = 11,
    /// The user asked for it.
    UserRequest = 12,
}

impl Trigger {
    /// Every trigger, at the index of its number.
    pub const ALL: [Trigger; 13] = [
        Trigger::Unspecified,
        Trigger::TreeGrowth,
        Trigger::ReserveBroken,
        Trigger::BudgetExceeded,
        Trigger::CgroupLimit,
        Trigger::SwapStorm,
        Trigger::Stalling,
        Trigger::OthersGrew,
        Trigger::DiskFull,
        Trigger::ShmFull,
        Trigger::Deadline,
        Trigger::RoomAvailable,
        Trigger::UserRequest,
    ];

    /// The trigger with this number; [`Trigger::Unspecified`] for one that only a newer writer knows, because the
    /// event is worth keeping even where its trigger is not understood.
    pub fn from_code(code: u64) -> Trigger {
        value_with_code(&Trigger::ALL, code).unwrap_or_default()
    }
}

/// A part of the protection that is missing on this machine. Each is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Degradation {
    /// prlimit was refused: another user's process, setuid, sudo.
    WallRefused = 0,
    /// The kernel was started with ignore_rlimit_data.
    WallIgnored = 1,
    /// The guard could not lock its memory.
    NotLocked = 2,
    /// oom_score_adj could not be raised.
    OomScore = 3,
    /// The run has no cgroup of its own.
    NoCgroup = 4,
    /// The run has a cgroup of its own that cannot slow it: one without the memory controller, or of version 1.
    NoMemoryController = 5,
    /// The kernel offers no pressure information (PSI).
    NoPressure = 6,
    /// The record could not be written (full or read-only disk); guarding continues.
    RecordFailed = 7,
    /// The tree has more processes than the guard follows one by one.
    TooManyProcesses = 8,
    /// The preload library does not reach the trainer (static, setuid, other C library).
    NoCushion = 9,
}

impl Degradation {
    /// Every degradation, at the index of its number.
    pub const ALL: [Degradation; 10] = [
        Degradation::WallRefused,
        Degradation::WallIgnored,
        Degradation::NotLocked,
        Degradation::OomScore,
        Degradation::NoCgroup,
        Degradation::NoMemoryController,
        Degradation::NoPressure,
        Degradation::RecordFailed,
        Degradation::TooManyProcesses,
        Degradation::NoCushion,
    ];

    /// The degradation with this number; `None` for one that only a newer writer knows.
    pub fn from_code(code: u64) -> Option<Degradation> {
        value_with_code(&Degradation::ALL, code)
    }
}

fn value_with_code<T: Copy>(all: &[T], code: u64) -> Option<T> {
    all.get(usize::try_from(code).ok()?).copied()
}

/// One thing that happened, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub at: Stamp,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. Sizes are in bytes, and [`Pid`] 0 stands for no process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The guard has started to guard the run.
    Started {
        /// The guard's own process.
        guard: Pid,
        /// The command's first process.
        root: Pid,
        /// The machine's memory.
        total: u64,
        /// The memory that is kept available for the user.
        reserve: u64,
        /// The user's own limit for the run.
        budget: Option<u64>,
    },
    /// The process ran before and was attached to; it outlives the guard.
    Attached {
        /// The attached process.
        pid: Pid,
    },
    /// The rung changed.
    Rung {
        /// The rung until now.
        from: Rung,
        /// The rung from now on.
        to: Rung,
        /// What made it change.
        trigger: Trigger,
        /// The memory that the tree could still take; negative beyond the bound.
        room: i64,
        /// Growth of the tree's footprint, in bytes a second.
        growth: i64,
        /// Milliseconds until the tree meets its wall, where the growth tells.
        forecast_ms: Option<u64>,
        /// How sure the forecast is, in percent.
        confidence: u8,
    },
    /// A request for memory was refused at the wall.
    RequestRefused {
        /// The process that asked.
        pid: Pid,
        /// The name of that process.
        name: ProcessName,
        /// The size of the request; 0 where it is not known.
        bytes: u64,
        /// What the tree held at that time.
        footprint: u64,
    },
    /// The brake was applied: memory.high of the run's cgroup was set to this, or 0 where the run has no cgroup that
    /// can slow it.
    Braked {
        /// The new memory.high.
        high: u64,
    },
    /// The brake was loosened, or released with 0.
    Released {
        /// The new memory.high; 0 for no limit.
        high: u64,
    },
    /// The trainer was asked to save a checkpoint.
    CheckpointAsked {
        /// The process that was asked.
        pid: Pid,
        /// The signal that asked; 0 where the shim was asked.
        signal: u32,
    },
    /// A checkpoint was saved.
    CheckpointSaved {
        /// How long the save took, in milliseconds.
        millis: u64,
        /// The size of the file.
        bytes: u64,
        /// The path of the file; empty where it was not seen.
        file: ShortText,
    },
    /// No checkpoint was saved, or not in time.
    CheckpointMissed {
        /// How long the guard waited for it, in milliseconds.
        millis: u64,
    },
    /// The run was paused. Where it is known which other program grew, the event names it.
    Paused {
        /// The name of the program that grew; empty where it is not known.
        who: ProcessName,
        /// The process of that program.
        pid: Pid,
        /// How much it grew, in bytes.
        grew: u64,
    },
    /// The run continues after a pause.
    Resumed {
        /// What ended the pause.
        trigger: Trigger,
        /// How long the run was paused, in milliseconds.
        millis: u64,
    },
    /// The run was asked to end.
    StopSent {
        /// The process that got SIGTERM; 0 where the shim was asked to end the run after its step.
        pid: Pid,
        /// Why it should end.
        trigger: Trigger,
    },
    /// The run was killed with SIGKILL.
    KillSent {
        /// The command's first process.
        pid: Pid,
        /// Why it was killed.
        trigger: Trigger,
    },
    /// A part of the protection is missing.
    Degraded {
        /// Which part.
        degradation: Degradation,
        /// An errno or a count, depending on the part.
        detail: u32,
    },
    /// A part of the protection that was missing works again.
    Recovered {
        /// Which part.
        degradation: Degradation,
    },
    /// A new guard took the place of one that died.
    GuardRestored,
    /// The front died or left; the guard continues without it.
    FrontLost,
    /// The user stopped the job.
    UserStopped,
    /// The user continued the job.
    UserContinued,
    /// The run has made no step, or used no CPU time, for a long time. The front then reads the stacks.
    NoProgress {
        /// How many steps were made before; 0 where steps are not known or not expected.
        steps: u64,
    },
    /// The command's first process ended.
    Ended {
        /// Its wait status, as `waitpid` gives it.
        status: u32,
        /// The largest footprint of the tree, in bytes.
        peak: u64,
        /// The worst delay of the guard's own samples, in milliseconds.
        worst_delay_ms: u64,
        /// The guard asked it to end, or killed it.
        ended_by_guard: bool,
    },
    /// An attached process is no longer guarded, and its exit status is not known: it lives on, or it has ended and
    /// only its parent was given the status. The other fields are those of [`EventKind::Ended`].
    Detached {
        /// The process has ended.
        process_ended: bool,
        /// The largest footprint of the tree, in bytes.
        peak: u64,
        /// The worst delay of the guard's own samples, in milliseconds.
        worst_delay_ms: u64,
        /// The guard asked it to end, or killed it.
        ended_by_guard: bool,
    },
    /// The last process of the tree ended.
    TreeEnded,
    /// An event of a newer writer that this reader does not know. It is never written.
    Unknown {
        /// The number of its kind.
        kind: u64,
    },
}

/// A short text of any bytes, such as a path. Of a longer one the end is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShortText {
    bytes: [u8; ShortText::MAX_BYTES],
    len: u8,
}

impl ShortText {
    /// The longest text that is kept whole.
    pub const MAX_BYTES: usize = 160;

    /// Copies the last [`ShortText::MAX_BYTES`] bytes.
    pub fn new(bytes: &[u8]) -> ShortText {
        let tail = &bytes[bytes.len().saturating_sub(ShortText::MAX_BYTES)..];
        let mut text = ShortText {
            bytes: [0; ShortText::MAX_BYTES],
            len: tail.len() as u8,
        };
        text.bytes[..tail.len()].copy_from_slice(tail);
        text
    }

    /// The bytes that were kept.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for ShortText {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.as_bytes().escape_ascii().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_number_leads_back_to_its_name() {
        for rung in Rung::ALL {
            assert_eq!(Rung::from_code(rung as u64), Some(rung));
        }
        for trigger in Trigger::ALL {
            assert_eq!(Trigger::from_code(trigger as u64), trigger);
        }
        for degradation in Degradation::ALL {
            assert_eq!(
                Degradation::from_code(degradation as u64),
                Some(degradation)
            );
        }
    }

    #[test]
    fn numbers_of_a_newer_writer_are_not_mistaken_for_ours() {
        assert_eq!(Rung::from_code(8), None);
        assert_eq!(Degradation::from_code(u64::MAX), None);
        assert_eq!(Trigger::from_code(13), Trigger::Unspecified);
    }

    #[test]
    fn a_long_text_keeps_its_end() {
        let long: Vec<u8> = (0..=255).collect();
        assert_eq!(
            ShortText::new(&long).as_bytes(),
            &long[256 - ShortText::MAX_BYTES..]
        );
    }
}
