//! What happened: the guard's words for the record and for the front.
//!
//! An event is a small flat thing, encoded like a sample, so that the guard can write it
//! without allocating and an old reader can pass over kinds it does not know.
//! The numbers of [`Rung`], [`Why`] and [`Lack`] are stored: they may be added to, and never
//! change their meaning.

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

impl Rung {
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

    /// The rung with this number; none when a newer writer has rungs we do not know.
    pub fn from_code(code: u64) -> Option<Rung> {
        by_code(&Rung::ALL, code)
    }
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

impl Why {
    pub const ALL: [Why; 13] = [
        Why::Nothing,
        Why::TreeGrowth,
        Why::ReserveBroken,
        Why::BudgetExceeded,
        Why::CgroupLimit,
        Why::SwapStorm,
        Why::Stalling,
        Why::OthersGrew,
        Why::DiskFull,
        Why::ShmFull,
        Why::Deadline,
        Why::RoomAgain,
        Why::Asked,
    ];

    /// The reason with this number; `Nothing` for one that only a newer writer knows, since
    /// what happened is worth keeping even where its reason is not understood.
    pub fn from_code(code: u64) -> Why {
        by_code(&Why::ALL, code).unwrap_or_default()
    }
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
    /// A cgroup of our own that cannot hold memory back: without the memory controller, or of
    /// version 1.
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

impl Lack {
    pub const ALL: [Lack; 10] = [
        Lack::WallRefused,
        Lack::WallIgnored,
        Lack::NotLocked,
        Lack::OomScore,
        Lack::NoCgroup,
        Lack::NoMemoryController,
        Lack::NoPressure,
        Lack::RecordFailed,
        Lack::TooManyProcesses,
        Lack::NoCushion,
    ];

    /// The lack with this number; none when only a newer writer knows it.
    pub fn from_code(code: u64) -> Option<Lack> {
        by_code(&Lack::ALL, code)
    }
}

fn by_code<T: Copy>(all: &[T], code: u64) -> Option<T> {
    all.get(usize::try_from(code).ok()?).copied()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Stamp,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The guard stands. Values the policy works with, in bytes.
    Started {
        guard: Pid,
        root: Pid,
        total: u64,
        reserve: u64,
        budget: Option<u64>,
    },
    /// The process ran already and was attached to; it lives on when the guard leaves.
    Attached {
        pid: Pid,
    },
    /// The rung changed. Forecast in milliseconds to the wall; confidence in percent.
    Rung {
        from: Rung,
        to: Rung,
        why: Why,
        room: i64,
        growth: i64,
        forecast_ms: Option<u64>,
        confidence: u8,
    },
    /// A request was refused at the wall.
    Walled {
        pid: Pid,
        name: Name,
        bytes: u64,
        footprint: u64,
    },
    /// The brake was put on: memory.high (0 when there is none) and lower CPU priority.
    Braked {
        high: u64,
    },
    /// The brake was loosened or let go.
    Released {
        high: u64,
    },
    CheckpointAsked {
        pid: Pid,
        signal: u32,
    },
    /// The file that landed, if it was seen; its size; how long the save took.
    CheckpointSaved {
        millis: u64,
        bytes: u64,
        file: Text,
    },
    CheckpointMissed {
        millis: u64,
    },
    /// Paused; who grew, if it is known, and by how much.
    Paused {
        who: Name,
        pid: Pid,
        grew: u64,
    },
    Resumed {
        why: Why,
        millis: u64,
    },
    StopSent {
        pid: Pid,
        why: Why,
    },
    KillSent {
        pid: Pid,
        why: Why,
    },
    /// Something optional is missing. `detail` is an errno or a number.
    Lacks {
        lack: Lack,
        detail: u32,
    },
    /// What was missing is there again.
    Regained {
        lack: Lack,
    },
    /// A dead guard was replaced.
    GuardRestored,
    /// The front died or left; the guard goes on alone.
    FrontGone,
    /// The user stopped or continued the job.
    UserStopped,
    UserContinued,
    /// No step for long, or no work: whoever can see where it stands looks now.
    Still {
        /// That were made before; 0 where none are known, or none are due.
        steps: u64,
    },
    /// The root ended: raw wait status; peak footprint in bytes; worst delay of the
    /// guard's own tick in milliseconds.
    Ended {
        status: u32,
        peak: u64,
        worst_delay_ms: u64,
        ended_by_guard: bool,
    },
    /// An attached process is guarded no more, and no exit status of it is known: it lives on, or it has ended
    /// and only its parent was given the status. The numbers are those of `Ended`.
    Detached {
        process_ended: bool,
        peak: u64,
        worst_delay_ms: u64,
        ended_by_guard: bool,
    },
    /// All that was left of the tree ended too.
    TreeEnded,
    /// Something this reader does not know; a newer guard wrote it. Never written.
    Unknown {
        kind: u64,
    },
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
        let mut text = Text {
            bytes: [0; Text::MAX],
            len: tail.len() as u8,
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_number_leads_back_to_its_name() {
        for rung in Rung::ALL {
            assert_eq!(Rung::from_code(rung as u64), Some(rung));
        }
        for why in Why::ALL {
            assert_eq!(Why::from_code(why as u64), why);
        }
        for lack in Lack::ALL {
            assert_eq!(Lack::from_code(lack as u64), Some(lack));
        }
    }

    #[test]
    fn numbers_of_a_newer_writer_are_not_mistaken_for_ours() {
        assert_eq!(Rung::from_code(8), None);
        assert_eq!(Lack::from_code(u64::MAX), None);
        assert_eq!(Why::from_code(13), Why::Nothing);
    }

    #[test]
    fn a_long_text_keeps_its_end() {
        let long: Vec<u8> = (0..=255).collect();
        assert_eq!(Text::new(&long).as_bytes(), &long[256 - Text::MAX..]);
    }
}
