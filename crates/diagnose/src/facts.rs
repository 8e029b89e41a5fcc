//! What is known about a run besides its samples and events.

use crate::checkpoints::Checkpoint;
use crate::kernel::Log;
use crate::shim::Told;
use crate::stacks::Stacks;
use crate::waits::Waits;
use antifreeze_record::event::ShortText;
use antifreeze_sense::Stamp;
use antifreeze_sense::regular_file;
use antifreeze_text::sanitize;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The file of a run's folder that holds its [`Terms`].
pub const TERMS_FILE: &str = "terms.json";

/// How things stand with a run whose record has no end, at the time of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// Its guard still lives.
    StillGuarded,
    /// The machine has not been started again, and no guard is there.
    #[default]
    GuardGone,
    /// The machine has been started again since.
    Rebooted,
    /// It is another machine's, or what is left of it was moved.
    Elsewhere,
    /// There is no record, only what it printed.
    OnlyPrinted,
}

/// What a run was started with and its record does not hold, so that what is said of it later is what was said while
/// it ran. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The run was started before it was guarded.
    pub attached: bool,
    pub swap: u64,
    pub container: Option<u64>,
    pub available: Option<u64>,
}

impl Terms {
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join(TERMS_FILE), serde_json::to_vec(self)?)
    }

    /// None of a run that left none, or none that can be read.
    pub fn read(folder: &Path) -> Option<Terms> {
        let text = regular_file::read(&folder.join(TERMS_FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// A run, told once at its start, and what is left of it. Sizes in bytes.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The run's name, as `antifreeze runs` lists it.
    pub run: String,
    /// Where its record lies.
    pub record: PathBuf,
    /// Where it was started.
    pub folder: PathBuf,
    /// What that folder is a part of, such as "nfs4 server:/home on /home".
    pub mount: Option<String>,
    pub command: Vec<OsString>,
    /// The process was running before antifreeze attached to it, and continues after antifreeze detaches.
    pub attached: bool,
    /// The command was longer than what was recorded of it.
    pub truncated: bool,
    pub started: Stamp,
    /// The machine's memory.
    pub total: u64,
    /// What is kept for the person.
    pub reserve: u64,
    pub budget: Option<u64>,
    /// Swap that counts as room.
    pub swap: u64,
    /// A limit of a container or cgroup above us, where it is below the machine's memory.
    pub container: Option<u64>,
    /// What could still be had when the run began, reserve included; None where it was
    /// not seen.
    pub available: Option<u64>,
    pub since: Since,
    /// The tail of what the run printed.
    pub last_output: Vec<u8>,
    /// What its trainers said of themselves.
    pub told: Told,
    /// The complete checkpoints in its saves folder.
    pub checkpoints: Vec<Checkpoint>,
    /// Nothing can slow the run down: it has no cgroup of its own that holds memory back.
    pub has_no_brake: bool,
    /// Files of saves that were seen to land and are deleted since.
    pub deleted_saves: Vec<ShortText>,
    /// Where its threads were when it stood still.
    pub stacks: Stacks,
    /// And what they waited for.
    pub waits: Waits,
    /// What the system's log tells, of the boot in which it ended.
    pub log: Log,
}

impl Facts {
    pub fn terms(&self) -> Terms {
        Terms {
            attached: self.attached,
            swap: self.swap,
            container: self.container,
            available: self.available,
        }
    }

    /// The command, ready to paste; a mark at the end where some of it is missing. One to fill in where none is known.
    pub fn command_line(&self) -> String {
        if self.command.is_empty() {
            return "python train.py".into();
        }
        let mark = if self.truncated { " …" } else { "" };
        format!("{}{mark}", sanitize::shell_command(&self.command))
    }

    /// The command is the kernel of a notebook, which only Jupyter can start.
    pub fn is_kernel(&self) -> bool {
        let is_launcher = |word: &OsString| {
            let word = word.to_string_lossy();
            word.starts_with("ipykernel") || word.ends_with("/ipykernel_launcher.py")
        };
        self.command.iter().any(is_launcher)
    }

    /// What the run may use before it meets its wall.
    pub fn may_use(&self) -> u64 {
        let bound = self.container.unwrap_or(u64::MAX).min(self.total);
        let there = self.available.unwrap_or(bound).min(bound);
        let room = there.saturating_sub(self.reserve).saturating_add(self.swap);
        self.budget.unwrap_or(u64::MAX).min(room)
    }

    /// The budget, where it is what holds the run and not the machine.
    pub fn binding_budget(&self) -> Option<u64> {
        self.budget.filter(|budget| *budget <= self.may_use())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_may_use_what_the_tightest_bound_leaves() {
        let machine = Facts {
            total: 15_400,
            reserve: 1_500,
            ..Facts::default()
        };
        assert_eq!(machine.may_use(), 13_900);
        let busy = Facts {
            available: Some(9_000),
            ..machine.clone()
        };
        assert_eq!(busy.may_use(), 7_500);
        let container = Facts {
            container: Some(8_000),
            ..machine.clone()
        };
        assert_eq!(container.may_use(), 6_500);
        let budget = Facts {
            budget: Some(400),
            ..machine.clone()
        };
        assert_eq!(
            (budget.may_use(), budget.binding_budget()),
            (400, Some(400))
        );
        let lavish = Facts {
            budget: Some(99_000),
            ..machine.clone()
        };
        assert_eq!((lavish.may_use(), lavish.binding_budget()), (13_900, None));
        let swapping = Facts {
            swap: 1_000,
            ..machine
        };
        assert_eq!(swapping.may_use(), 14_900);
    }
}
