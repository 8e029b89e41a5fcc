//! Keeps what the guard knows about each process of the tree.

use crate::hands::limit::Limits;
use crate::hands::pageout::PageoutState;
use crate::policy::WallState;
use crate::slow_worker::FileData;

#[derive(Clone, Copy, Default)]
pub struct ProcessState {
    pub wall: WallState,
    /// It was in an earlier sample.
    pub met: bool,
    /// It was started by a process with a limit set by the guard.
    pub is_child: bool,
    pub files: Files,
    pub loading: Loading,
    /// Its limits as they were found at this tick.
    pub limits: Option<Limits>,
    /// Its soft limit before the guard set the first one; for a process that was started later, that of its parent.
    pub limit_before: Option<u64>,
    /// The guard stopped it; not set if the user stopped it.
    pub paused: bool,
    /// How far paging it out has come during this pause.
    pub pageout: PageoutState,
    /// It is, or was started by, a program that antifreeze steps aside for.
    pub aside: bool,
    /// Its limit could not be set: it belongs to another user, or is setuid.
    pub refused: bool,
}

/// How long a process has been loading a library. Time in which it was stopped or waited for a disk does not count: it
/// will still map what it has begun to map.
#[derive(Clone, Copy, Default)]
pub struct Loading {
    /// The time that the process announced, and when it was last seen unable to run since.
    since: u64,
    delayed_at: u64,
}

impl Loading {
    /// Records the content of the slot, and the state of the process as in `/proc/PID/status`.
    pub fn observe(&mut self, since: u64, state: u8, now: u64) {
        if since != self.since {
            *self = Loading {
                since,
                delayed_at: 0,
            };
        }
        if since != 0 && matches!(state, b'T' | b't' | b'D') {
            self.delayed_at = now;
        }
    }

    /// The time from which the loading announced at `since` counts.
    pub fn last_delayed(&self, since: u64) -> u64 {
        match since == self.since {
            true => since.max(self.delayed_at),
            false => since,
        }
    }
}

/// How much of a process's data comes from files: what the slow worker has counted, plus what the cushion has reported
/// since.
#[derive(Clone, Copy, Default)]
pub struct Files {
    counted: FileData,
    /// What the cushion had reported when they were counted.
    told_then: u64,
    /// What it had reported at the last tick.
    told_before: u64,
    /// What the dynamic loader has mapped, from files or not.
    libraries: u64,
}

impl Files {
    /// Records what the slow worker counted, and what the cushion reported: files mapped by the program, and libraries.
    pub fn observe(&mut self, counted: FileData, files: u64, libraries: u64) {
        if counted.at != self.counted.at {
            self.counted = counted;
            self.told_then = self.told_before;
        }
        self.told_before = files.saturating_add(libraries);
        self.libraries = libraries;
    }

    /// Without what it may have inherited at birth.
    pub fn of_its_own(&self) -> u64 {
        self.bytes().min(self.told_before)
    }

    /// The zero-filled data of a library comes from no file, so the slow worker does not count it.
    pub fn bytes(&self) -> u64 {
        let since = self.told_before.saturating_sub(self.told_then);
        self.counted.bytes.saturating_add(since).max(self.libraries)
    }
}
