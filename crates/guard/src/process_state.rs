//! What the guard keeps about each process of the tree.

use crate::hands::limit::Limits;
use crate::hands::pageout::PageoutState;
use crate::policy::WallState;
use crate::slow_worker::FileData;

#[derive(Clone, Copy, Default)]
pub struct ProcessState {
    pub wall: WallState,
    /// Seen before.
    pub met: bool,
    /// Started by a process that had a limit of the guard's.
    pub is_child: bool,
    pub files: Files,
    pub loading: Loading,
    /// Its limits as they were found at this look.
    pub limits: Option<Limits>,
    /// Its soft limit before the first one that was set; a process that was started later has that of its parent.
    pub limit_before: Option<u64>,
    /// We stopped it; what the user stopped is not marked.
    pub paused: bool,
    /// What became of paging it out during this pause.
    pub pageout: PageoutState,
    /// It is, or was started by, a program that antifreeze steps aside for.
    pub aside: bool,
    /// Setting its limit was refused: another user's, or setuid.
    pub refused: bool,
}

/// How long a process has been loading a library. Time in which it was stopped, or waited for a disk, does not count: it
/// will still map what it has begun to map.
#[derive(Clone, Copy, Default)]
pub struct Loading {
    /// What the process announced, and when it was last seen unable to run since.
    since: u64,
    delayed_at: u64,
}

impl Loading {
    /// Takes in what stands in the slot, and the process's state as in `/proc/PID/status`.
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

    /// From when on the time counts of what was announced at `since`.
    pub fn last_delayed(&self, since: u64) -> u64 {
        match since == self.since {
            true => since.max(self.delayed_at),
            false => since,
        }
    }
}

/// How much of a process's data comes from files: what the slow worker has counted, and what the cushion has told of
/// since.
#[derive(Clone, Copy, Default)]
pub struct Files {
    counted: FileData,
    /// What the cushion had told of when they were counted.
    told_then: u64,
    /// At the look before.
    told_before: u64,
    /// What the dynamic loader has mapped, of files or not.
    libraries: u64,
}

impl Files {
    /// Takes in what the slow worker counted, and what the cushion told of: files mapped by the program, and libraries.
    pub fn observe(&mut self, counted: FileData, files: u64, libraries: u64) {
        if counted.at != self.counted.at {
            self.counted = counted;
            self.told_then = self.told_before;
        }
        self.told_before = files.saturating_add(libraries);
        self.libraries = libraries;
    }

    /// Without what it may have been born with.
    pub fn of_its_own(&self) -> u64 {
        self.bytes().min(self.told_before)
    }

    /// The zero-filled data of a library is of no file, so the slow worker does not count it.
    pub fn bytes(&self) -> u64 {
        let since = self.told_before.saturating_sub(self.told_then);
        self.counted.bytes.saturating_add(since).max(self.libraries)
    }
}
