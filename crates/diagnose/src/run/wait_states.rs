//! What the processes of a run waited for while it made no progress: one JSON line for each snapshot, in the file `waits`
//! in the run's folder. The file is not trusted.

use crate::run::stacks::read_tail;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the file.
pub const FILE: &str = "waits";

/// A snapshot of all processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitSnapshot {
    /// Nanoseconds since boot.
    pub at: u64,
    /// Context switches of all their threads so far.
    pub switches: u64,
    /// What each main thread waited for.
    pub mains: Vec<MainThread>,
}

/// The main thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MainThread {
    /// The process.
    pub pid: u32,
    /// What it waited for.
    pub waits: WaitingOn,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingOn {
    /// It does not wait, or could not be inspected.
    Nothing,
    /// A lock, a condition variable, or the end of a thread.
    Lock,
    /// One of several file descriptors.
    Poll,
    /// A pipe.
    Pipe,
    /// The network.
    Network,
    /// The end of a process.
    Child,
    /// Input from a terminal.
    Input,
    /// A timer.
    Time,
    /// Something else.
    #[serde(other)]
    Other,
}

/// All snapshots, oldest first.
#[derive(Clone, Debug, Default)]
pub struct WaitStates(Vec<WaitSnapshot>);

impl WaitStates {
    /// Reads the snapshots in a run's folder; none where they cannot be read.
    pub fn read(folder: &Path) -> WaitStates {
        read_tail(&folder.join(FILE))
            .map_or_else(|_| WaitStates::default(), |text| WaitStates::parse(&text))
    }

    /// Parses snapshots. Damaged lines are skipped.
    pub fn parse(text: &[u8]) -> WaitStates {
        let lines = text.split(|byte| *byte == b'\n');
        WaitStates(
            lines
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect(),
        )
    }

    /// What the main thread of a process waited for in the last snapshot.
    pub fn main_thread(&self, pid: u32) -> Option<WaitingOn> {
        let mains = &self.0.last()?.mains;
        mains
            .iter()
            .find(|main| main.pid == pid)
            .map(|main| main.waits)
    }

    /// Whether any main thread waited for this in the last snapshot.
    pub fn any_waits_on(&self, waits: WaitingOn) -> bool {
        self.0
            .last()
            .is_some_and(|snapshot| snapshot.mains.iter().any(|main| main.waits == waits))
    }

    /// How often their threads woke in a second, between the last two snapshots.
    pub fn wakeups_per_second(&self) -> Option<f64> {
        let [.., before, last] = self.0.as_slice() else {
            return None;
        };
        let seconds = last.at.checked_sub(before.at)? as f64 / 1e9;
        let wakes = last.switches.checked_sub(before.switches)? as f64 / seconds;
        (seconds > 0.0).then_some(wakes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_snapshot_counts_and_two_show_how_often_threads_woke() {
        let waits = WaitStates::parse(
            br#"{"at":1000000000,"switches":10,"mains":[{"pid":7,"waits":"nothing"}]}
cut {"at":
{"at":4000000000,"switches":40,"mains":[{"pid":7,"waits":"lock"},{"pid":8,"waits":"something new"}]}
"#,
        );
        assert_eq!(waits.main_thread(7), Some(WaitingOn::Lock));
        assert_eq!(waits.main_thread(8), Some(WaitingOn::Other));
        assert_eq!(waits.main_thread(9), None);
        assert_eq!(waits.wakeups_per_second(), Some(10.0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let waits = WaitStates::parse(&bytes);
            waits.main_thread(7);
            waits.wakeups_per_second();
        }

        #[test]
        fn what_is_written_is_read(at: u64, switches: u64, pid: u32) {
            let snapshot = WaitSnapshot { at, switches, mains: vec![MainThread { pid, waits: WaitingOn::Pipe }] };
            let waits = WaitStates::parse(&serde_json::to_vec(&snapshot).unwrap());
            prop_assert_eq!(waits.0, [snapshot]);
        }
    }
}
