//! What is known about a run besides its samples and events.

use crate::kernel::Log;
use crate::run::checkpoints::Checkpoint;
use crate::run::stacks::Stacks;
use crate::run::wait_states::WaitStates;
use crate::shim::ShimReport;
use antifreeze_record::event::ShortText;
use antifreeze_sense::Stamp;
use antifreeze_sense::regular_file;
use antifreeze_text::sanitize;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// The file in a run's folder that holds its [`Terms`].
pub const TERMS_FILE: &str = "terms.json";

/// The state of a run whose record has no end, at the time of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// Its guard is alive.
    StillGuarded,
    /// The machine was not rebooted, and there is no guard.
    #[default]
    GuardGone,
    /// The machine was rebooted since.
    Rebooted,
    /// The record is from another machine, or was moved.
    Elsewhere,
    /// There is no record, only the run's output.
    OnlyPrinted,
}

/// The conditions at the start of a run that its record does not hold. They are kept so that a report says the same
/// while the run lasts and afterwards. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The run was started before it was guarded.
    pub attached: bool,
    /// Swap that counts as usable memory.
    pub swap: u64,
    /// The memory limit of a container or cgroup.
    pub container: Option<u64>,
    /// Memory that was available when the run began.
    pub available: Option<u64>,
}

impl Terms {
    /// Writes them into a run's folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::write(folder.join(TERMS_FILE), serde_json::to_vec(self)?)
    }

    /// Reads them from a run's folder; None where they are missing or damaged.
    pub fn read(folder: &Path) -> Option<Terms> {
        let text = regular_file::read(&folder.join(TERMS_FILE)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// What is known of a run besides samples and events. Sizes in bytes.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The run's name, as `antifreeze runs` lists it.
    pub run: String,
    /// The folder of its record.
    pub record: PathBuf,
    /// The working folder in which it was started.
    pub folder: PathBuf,
    /// The mount that this folder is on, such as "nfs4 server:/home on /home".
    pub mount: Option<String>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The process was running before antifreeze attached to it, and continues after antifreeze detaches.
    pub attached: bool,
    /// The command was longer than the part that was recorded.
    pub truncated: bool,
    /// When the run began.
    pub started: Stamp,
    /// The machine's memory.
    pub total: u64,
    /// Memory that is kept free for other programs.
    pub reserve: u64,
    /// The budget that the run was given.
    pub budget: Option<u64>,
    /// Swap that counts as usable memory.
    pub swap: u64,
    /// The memory limit of a container or cgroup above the run, where it is below the machine's memory.
    pub container: Option<u64>,
    /// Memory that was available when the run began, reserve included; None where it is not known.
    pub available: Option<u64>,
    /// What became of the run and its machine, as seen by the reader.
    pub state: RunState,
    /// The end of what the run printed.
    pub last_output: Vec<u8>,
    /// What the shim reported from inside the run's processes.
    pub shim: ShimReport,
    /// The complete checkpoints in its saves folder.
    pub checkpoints: Vec<Checkpoint>,
    /// The guard cannot slow the run down: it has no cgroup of its own with a memory limit.
    pub has_no_brake: bool,
    /// Checkpoint files that were written during the run and no longer exist.
    pub deleted_saves: Vec<ShortText>,
    /// The stacks of its threads while it made no progress.
    pub stacks: Stacks,
    /// What its threads waited for at that time.
    pub wait_states: WaitStates,
    /// The kernel's log of the boot in which the run ended.
    pub log: Log,
}

impl Facts {
    /// The conditions to be kept in the run's folder.
    pub fn terms(&self) -> Terms {
        Terms {
            attached: self.attached,
            swap: self.swap,
            container: self.container,
            available: self.available,
        }
    }

    /// The command, quoted for a shell, with "…" at the end where it was truncated; a placeholder where it is not known.
    pub fn command_line(&self) -> String {
        if self.command.is_empty() {
            return "python train.py".into();
        }
        let mark = if self.truncated { " …" } else { "" };
        format!("{}{mark}", sanitize::shell_command(&self.command))
    }

    /// Whether the command is the kernel of a notebook, which only Jupyter can start.
    pub fn is_kernel(&self) -> bool {
        let is_launcher = |word: &OsString| {
            let word = word.to_string_lossy();
            word.starts_with("ipykernel") || word.ends_with("/ipykernel_launcher.py")
        };
        self.command.iter().any(is_launcher)
    }

    /// How much memory the run can use before it reaches the wall.
    pub fn usable_memory(&self) -> u64 {
        let bound = self.container.unwrap_or(u64::MAX).min(self.total);
        let there = self.available.unwrap_or(bound).min(bound);
        let room = there.saturating_sub(self.reserve).saturating_add(self.swap);
        self.budget.unwrap_or(u64::MAX).min(room)
    }

    /// The budget, where it limits the run more than the machine does.
    pub fn binding_budget(&self) -> Option<u64> {
        self.budget.filter(|budget| *budget <= self.usable_memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_can_use_what_the_tightest_limit_leaves() {
        let machine = Facts {
            total: 15_400,
            reserve: 1_500,
            ..Facts::default()
        };
        assert_eq!(machine.usable_memory(), 13_900);
        let busy = Facts {
            available: Some(9_000),
            ..machine.clone()
        };
        assert_eq!(busy.usable_memory(), 7_500);
        let container = Facts {
            container: Some(8_000),
            ..machine.clone()
        };
        assert_eq!(container.usable_memory(), 6_500);
        let budget = Facts {
            budget: Some(400),
            ..machine.clone()
        };
        assert_eq!(
            (budget.usable_memory(), budget.binding_budget()),
            (400, Some(400))
        );
        let lavish = Facts {
            budget: Some(99_000),
            ..machine.clone()
        };
        assert_eq!(
            (lavish.usable_memory(), lavish.binding_budget()),
            (13_900, None)
        );
        let swapping = Facts {
            swap: 1_000,
            ..machine
        };
        assert_eq!(swapping.usable_memory(), 14_900);
    }
}
