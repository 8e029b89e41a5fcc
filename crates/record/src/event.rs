//! What happened: the guard's words for the record and for the front.
//!
//! An event is a small flat thing, encoded like a sample, so that the guard can write it
//! without allocating and an old reader can pass over kinds it does not know.

use antifreeze_sense::{Name, Pid, Stamp};

/// The rungs of the ladder, mildest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rung {
    #[default]
    Calm = 0,
    Watch = 1,
    Warn = 2,
    Brake = 3,
    Checkpoint = 4,
    Pause = 5,
    Stop = 6,
    Kill = 7,
}

/// What drove a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Why {
    #[default]
    Nothing = 0,
    /// The tree grows towards its wall.
    TreeGrowth = 1,
    /// Less memory is available than the reserve.
    ReserveBroken = 2,
    /// The tree uses more than its budget.
    BudgetExceeded = 3,
    /// A container or cgroup limit is near.
    CgroupLimit = 4,
    /// Pages come back from swap as fast as they go.
    SwapStorm = 5,
    /// Everything waits for memory (PSI).
    Stalling = 6,
    /// Somebody else grew.
    OthersGrew = 7,
    /// The disk the run writes to is nearly full.
    DiskFull = 8,
    /// /dev/shm is nearly full.
    ShmFull = 9,
    /// The stop was asked for and did not come in time.
    Deadline = 10,
    /// There is room again.
    RoomAgain = 11,
    /// The person asked for it.
    Asked = 12,
}

/// Things that are said once and remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Lack {
    /// prlimit was refused: another user, setuid, sudo.
    WallRefused = 0,
    /// The kernel was started with ignore_rlimit_data.
    WallIgnored = 1,
    /// The guard could not lock its memory.
    NotLocked = 2,
    /// oom_score_adj could not be raised.
    OomScore = 3,
    /// No cgroup of our own.
    NoCgroup = 4,
    /// A cgroup of our own, without the memory controller.
    NoMemoryController = 5,
    /// No pressure information in this kernel.
    NoPressure = 6,
    /// The record could not be written (full or read-only disk); guarding goes on.
    RecordFailed = 7,
    /// The tree has more processes than are followed one by one.
    TooManyProcesses = 8,
    /// The preload library does not reach the trainer (static, setuid, other libc).
    NoCushion = 9,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Stamp,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The guard stands. Values the policy works with, in bytes.
    Started { guard: Pid, root: Pid, total: u64, reserve: u64, budget: Option<u64> },
    /// The rung changed. Forecast in milliseconds to the wall; confidence in percent.
    Rung { from: Rung, to: Rung, why: Why, room: i64, growth: i64, forecast_ms: Option<u64>, confidence: u8 },
    /// A request was refused at the wall.
    Walled { pid: Pid, name: Name, bytes: u64, footprint: u64 },
    /// The brake was put on: memory.high (0 when there is none) and lower CPU priority.
    Braked { high: u64 },
    /// The brake was loosened or let go.
    Released { high: u64 },
    CheckpointAsked { pid: Pid, signal: u32 },
    /// The file that landed, if it was seen; its size; how long the save took.
    CheckpointSaved { millis: u64, bytes: u64, file: Text },
    CheckpointMissed { millis: u64 },
    /// Paused; who grew, if it is known, and by how much.
    Paused { who: Name, pid: Pid, grew: u64 },
    Resumed { why: Why, millis: u64 },
    StopSent { pid: Pid, why: Why },
    KillSent { pid: Pid, why: Why },
    /// Something optional is missing. `detail` is an errno or a number.
    Lacks { lack: Lack, detail: u32 },
    /// What was missing is there again.
    Regained { lack: Lack },
    /// A dead guard was replaced.
    GuardRestored,
    /// The front died or left; the guard goes on alone.
    FrontGone,
    /// The user stopped or continued the job.
    UserStopped,
    UserContinued,
    /// The root ended: raw wait status; peak footprint in bytes; worst delay of the
    /// guard's own tick in milliseconds.
    Ended { status: u32, peak: u64, worst_delay_ms: u64, ended_by_guard: bool },
    /// All that was left of the tree ended too.
    TreeEnded,
}

/// A short text of any bytes, such as a path; longer ones keep their end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; Text::MAX],
    len: u8,
}

impl Text {
    pub const MAX: usize = 160;

    pub fn new(bytes: &[u8]) -> Text {
        let tail = &bytes[bytes.len().saturating_sub(Text::MAX)..];
        let mut text = Text { bytes: [0; Text::MAX], len: tail.len() as u8 };
        text.bytes[..tail.len()].copy_from_slice(tail);
        text
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for Text {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?}", self.as_bytes().escape_ascii().to_string())
    }
}
