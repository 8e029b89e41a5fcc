//! Whose process a line of the system's log names.
//!
//! The record knows the numbers of the processes in the run's tree: the first one's, those that its looks list, those
//! that were refused memory. A line that names
//!
//! - one of these is the run's: unless the process had not been seen for a while and bears another name in the line,
//!   for numbers are given anew;
//! - another number is another's, and tells nothing of this run: unless the numbers cannot be compared, and the name
//!   and the time fit. They cannot where the run was in a container, whose processes have other numbers outside;
//!   where it only asked somebody else to start the training (`docker run`); where the tree had more processes than a
//!   look lists; and where the kernel names a thread (it does for a crash).
//!   The name fits if a process of the tree bore it, or if it is that of the command or of Python; the time, within
//!   seconds of the end. That makes it likely, and no more;
//! - a process of a run without a record is likely its own if the name fits;
//! - no process at all: then the line itself does not tell.

use crate::case::after;
use crate::facts::Facts;
use crate::kernel::{Incident, Kind};
use crate::story::Story;
use antifreeze_sense::{MAX_LISTED_PROCESSES, Pid, ProcessName, Sample, Stamp};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// How sure one may be of a line that is only likely the run's.
pub(crate) const LIKELY: f64 = 0.65;

/// A process that was not seen for so long has ended.
const LATELY: Duration = Duration::from_secs(60);
/// Between the line and the end of the run, either way: the guard may be late, and so may the log.
const NEAR: Duration = Duration::from_secs(10);
/// Lower numbers are those of the kernel's own threads; in a container they are anybody's.
const FIRST_OF_MACHINE: Pid = Pid(300);
/// How many processes are remembered in all.
const MOST: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Likely,
    Others,
    /// The line does not say.
    Unsaid,
}

impl Whose {
    /// It is, or most likely is, about the run.
    pub fn is_ours(self) -> bool {
        matches!(self, Whose::Ours | Whose::Likely)
    }
}

/// The processes of the run's tree that were seen, each with its last name and when that was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    processes: HashMap<Pid, (ProcessName, Stamp)>,
    /// There were more than a look lists.
    is_partial: bool,
}

impl Seen {
    pub fn look(&mut self, sample: &Sample) {
        let listed = sample.processes.as_slice();
        for process in listed {
            self.meet(process.pid, process.name, sample.at);
        }
        let count = sample.tree.count.value().unwrap_or(0);
        self.is_partial |= count > MAX_LISTED_PROCESSES as u64;
    }

    pub fn meet(&mut self, pid: Pid, name: ProcessName, at: Stamp) {
        if pid == Pid(0) {
            return;
        }
        if self.processes.len() >= MOST && !self.processes.contains_key(&pid) {
            let long_ago = at.monotonic_ns.saturating_sub(LATELY.as_nanos() as u64);
            self.processes
                .retain(|_, (_, last)| last.monotonic_ns >= long_ago);
            if self.processes.len() >= MOST {
                self.is_partial = true;
                return;
            }
        }
        let (known, last) = self.processes.entry(pid).or_insert((name, at));
        if at.monotonic_ns >= last.monotonic_ns {
            (*known, *last) = (name, at);
        }
    }
}

/// Whom a line names.
struct Named<'a> {
    pid: Pid,
    name: Option<&'a str>,
    /// The number is that of a thread.
    is_thread: bool,
}

pub(crate) fn whose(facts: &Facts, story: &Story, incident: &Incident) -> Whose {
    let Some(named) = named(&incident.kind) else {
        return Whose::Unsaid;
    };
    let processes = &story.seen.processes;
    if let Some((known, last)) = processes.get(&named.pid) {
        let is_lately =
            after(&incident.line, *last).is_none_or(|after| after <= LATELY.as_nanos() as i128);
        // The name of the first one need not be known, and it lives to the end.
        let known = known.as_bytes();
        let is_same = |name: &str| known.is_empty() || name.as_bytes() == known;
        if is_lately || named.name.is_none_or(is_same) {
            return Whose::Ours;
        }
    }
    let can_differ = processes.is_empty()
        || named.is_thread
        || story.seen.is_partial
        || facts.container.is_some()
        || facts
            .command
            .first()
            .is_some_and(|word| starts_elsewhere(word))
        || processes
            .keys()
            .min()
            .is_some_and(|lowest| *lowest < FIRST_OF_MACHINE);
    let is_near = story.until().is_none_or(|until| {
        let after = after(&incident.line, until);
        after.is_none_or(|after| after.unsigned_abs() <= NEAR.as_nanos())
    });
    match named.name {
        _ if !can_differ || !is_near => Whose::Others,
        None => Whose::Unsaid,
        Some(name) if fits(name, named.is_thread, facts, story) => Whose::Likely,
        Some(_) => Whose::Others,
    }
}

fn named(kind: &Kind) -> Option<Named<'_>> {
    let (pid, name, is_thread) = match kind {
        Kind::OomKill { pid, name, .. } => (*pid, Some(name.as_str()), false),
        Kind::Segfault { pid, name, .. } | Kind::Trap { pid, name, .. } => {
            (*pid, Some(name.as_str()), true)
        }
        Kind::Xid { pid, detail, .. } => {
            let name = detail
                .split(", ")
                .find_map(|part| part.strip_prefix("name="));
            ((*pid)?, name, false)
        }
        Kind::AmdRingTimeout { process, .. } => {
            let (name, pid) = process.as_ref()?;
            (*pid, Some(name.as_str()), false)
        }
        Kind::OutsideGuard { pid, name, .. } => ((*pid)?, name.as_deref(), false),
        _ => return None,
    };
    Some(Named {
        pid,
        name,
        is_thread,
    })
}

/// What it starts is none of its own children.
fn starts_elsewhere(program: &OsStr) -> bool {
    const STARTERS: [&str; 6] = [
        "docker",
        "podman",
        "nerdctl",
        "kubectl",
        "srun",
        "systemd-run",
    ];
    let file = Path::new(program).file_name();
    file.is_some_and(|file| STARTERS.iter().any(|starter| file == *starter))
}

/// Whether a process, or a thread, of the run may bear this name.
fn fits(name: &str, is_thread: bool, facts: &Facts, story: &Story) -> bool {
    const TRAINERS: [&str; 6] = [
        "python",
        "ipython",
        "pt_",
        "ray::",
        "torchrun",
        "accelerate",
    ];
    let mut seen = story.seen.processes.values();
    let is_commands = |word: &OsString| {
        let file = Path::new(word).file_name().unwrap_or_default();
        ProcessName::new(file.as_bytes()) == ProcessName::new(name.as_bytes())
    };
    TRAINERS.iter().any(|trainer| name.starts_with(trainer))
        || is_thread && name.starts_with("cuda")
        || seen.any(|(known, _)| known.as_bytes() == name.as_bytes())
        || facts.command.first().is_some_and(is_commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_processes_those_that_were_seen_lately_are_remembered() {
        let at = |seconds: u64| Stamp {
            monotonic_ns: seconds * 1_000_000_000,
            realtime_ns: 0,
        };
        let mut seen = Seen::default();
        for number in 1..=25_000 {
            seen.meet(Pid(number), ProcessName::new(b"python"), at(number.into()));
            assert!(seen.processes.len() <= MOST);
        }
        assert!(seen.processes.contains_key(&Pid(25_000)) && !seen.is_partial);
        // All in one moment.
        let mut crowd = Seen::default();
        for number in 1..=25_000 {
            crowd.meet(Pid(number), ProcessName::new(b"python"), at(1));
        }
        assert!(crowd.processes.len() == MOST && crowd.is_partial);
    }
}
