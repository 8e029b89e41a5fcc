//! What the processes of a run waited for when it stood still: one line of JSON for each time somebody looked, in
//! `waits` in the run's folder. Read without trust.

use crate::stacks::end_of;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub const FILE: &str = "waits";

/// One look at all processes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Nanoseconds since the machine was started.
    pub at: u64,
    /// How often their threads had gone to sleep or been put aside until then.
    pub switches: u64,
    pub mains: Vec<Main>,
}

/// The main thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Main {
    pub pid: u32,
    pub waits: For,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum For {
    /// It does not wait, or nobody could see it.
    Nothing,
    /// A lock, a condition, the end of a thread.
    Lock,
    /// One of several descriptors.
    Poll,
    Pipe,
    Network,
    /// The end of a process.
    Child,
    /// What a person types.
    Input,
    Time,
    #[serde(other)]
    Other,
}

/// All looks, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Waits(Vec<Look>);

impl Waits {
    /// From a run's folder. What cannot be read was not written.
    pub fn read(folder: &Path) -> Waits {
        end_of(&folder.join(FILE)).map_or_else(|_| Waits::default(), |text| Waits::parse(&text))
    }

    pub fn parse(text: &[u8]) -> Waits {
        let lines = text.split(|byte| *byte == b'\n');
        Waits(
            lines
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect(),
        )
    }

    /// What the main thread of a process waited for last.
    pub fn of(&self, pid: u32) -> Option<For> {
        let mains = &self.0.last()?.mains;
        mains
            .iter()
            .find(|main| main.pid == pid)
            .map(|main| main.waits)
    }

    /// Whether any of them waits for this.
    pub fn any(&self, waits: For) -> bool {
        self.0
            .last()
            .is_some_and(|look| look.mains.iter().any(|main| main.waits == waits))
    }

    /// How often a second their threads woke, between the last two looks.
    pub fn wakes(&self) -> Option<f64> {
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
    fn the_last_look_tells_and_two_tell_how_often_they_woke() {
        let waits = Waits::parse(
            br#"{"at":1000000000,"switches":10,"mains":[{"pid":7,"waits":"nothing"}]}
cut {"at":
{"at":4000000000,"switches":40,"mains":[{"pid":7,"waits":"lock"},{"pid":8,"waits":"something new"}]}
"#,
        );
        assert_eq!(waits.of(7), Some(For::Lock));
        assert_eq!(waits.of(8), Some(For::Other));
        assert_eq!(waits.of(9), None);
        assert_eq!(waits.wakes(), Some(10.0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let waits = Waits::parse(&bytes);
            waits.of(7);
            waits.wakes();
        }

        #[test]
        fn what_is_written_is_read(at: u64, switches: u64, pid: u32) {
            let look = Look { at, switches, mains: vec![Main { pid, waits: For::Pipe }] };
            let waits = Waits::parse(&serde_json::to_vec(&look).unwrap());
            prop_assert_eq!(waits.0, [look]);
        }
    }
}
