//! Decides whether the process that a line of the kernel's log names belongs to the run.
//!
//! The record has the PIDs of the run's processes: of the first one, of those in its samples, and of those that were
//! refused memory. A line that names
//!
//! - one of these PIDs is about the run, unless the process was not seen for a while and has another name in the line:
//!   PIDs are reused;
//! - another PID is about another process, unless PIDs cannot be compared, and name and time fit. They cannot be
//!   compared in a container, whose processes have other PIDs outside; where the command only asks a daemon to start
//!   the training (`docker run`); where the run had more processes than a sample lists; and where the kernel names a
//!   thread, as it does for a crash. The name fits if a process of the run had it, or if it is the command's or
//!   Python's; the time fits within seconds of the end. That makes it likely, not certain;
//! - a process, where there is no record, is likely about the run if the name fits;
//! - no process at all: then the line does not say.

use crate::kernel::{Incident, Kind};
use crate::run::evidence::nanos_since;
use crate::run::facts::Facts;
use crate::run::summary::RunSummary;
use antifreeze_sense::{MAX_LISTED_PROCESSES, Pid, ProcessName, Sample, Stamp};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The highest confidence that a line allows which is only likely about the run.
pub(crate) const LIKELY_CONFIDENCE: f64 = 0.65;

/// A process that was not seen for so long has ended.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
/// A line is near the end of the run within so long before or after it, since guard and log may be late.
const NEAR_END: Duration = Duration::from_secs(10);
/// On a machine lower PIDs are those of kernel threads; a container gives them to any process.
const MIN_MACHINE_PID: Pid = Pid(300);
/// How many processes are remembered.
const MAX_PROCESSES: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// Whom a line of the log is about.
pub(crate) enum Attribution {
    /// A process of the run.
    OurRun,
    /// Likely a process of the run.
    LikelyOurRun,
    /// Another process.
    OtherProcess,
    /// The line does not say.
    Unknown,
}

impl Attribution {
    /// Whether it is, or likely is, about the run.
    pub fn is_ours(self) -> bool {
        matches!(self, Attribution::OurRun | Attribution::LikelyOurRun)
    }
}

/// The processes of the run that were seen, each with its last name and when it was last seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenProcesses {
    processes: HashMap<Pid, (ProcessName, Stamp)>,
    /// There were more than a sample lists.
    is_partial: bool,
}

impl SeenProcesses {
    pub fn add_sample(&mut self, sample: &Sample) {
        let listed = sample.processes.as_slice();
        for process in listed {
            self.add(process.pid, process.name, sample.at);
        }
        let count = sample.tree.count.value().unwrap_or(0);
        self.is_partial |= count > MAX_LISTED_PROCESSES as u64;
    }

    pub fn add(&mut self, pid: Pid, name: ProcessName, at: Stamp) {
        if pid == Pid(0) {
            return;
        }
        if self.processes.len() >= MAX_PROCESSES && !self.processes.contains_key(&pid) {
            let long_ago = at
                .monotonic_ns
                .saturating_sub(SEEN_WITHIN.as_nanos() as u64);
            self.processes
                .retain(|_, (_, last)| last.monotonic_ns >= long_ago);
            if self.processes.len() >= MAX_PROCESSES {
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

/// The process that a line names.
struct NamedProcess<'a> {
    pid: Pid,
    name: Option<&'a str>,
    /// The number is the ID of a thread.
    is_thread: bool,
}

/// Decides whether the process that an incident names belongs to the run.
pub(crate) fn attribute(facts: &Facts, summary: &RunSummary, incident: &Incident) -> Attribution {
    let Some(named) = named_process(&incident.kind) else {
        return Attribution::Unknown;
    };
    let processes = &summary.seen.processes;
    if let Some((known, last)) = processes.get(&named.pid) {
        let is_lately = nanos_since(&incident.line, *last)
            .is_none_or(|after| after <= SEEN_WITHIN.as_nanos() as i128);
        // The name of the first process may not be known; it lives until the end.
        let known = known.as_bytes();
        let is_same = |name: &str| known.is_empty() || name.as_bytes() == known;
        if is_lately || named.name.is_none_or(is_same) {
            return Attribution::OurRun;
        }
    }
    let can_differ = processes.is_empty()
        || named.is_thread
        || summary.seen.is_partial
        || facts.container.is_some()
        || facts
            .command
            .first()
            .is_some_and(|word| starts_elsewhere(word))
        || processes
            .keys()
            .min()
            .is_some_and(|lowest| *lowest < MIN_MACHINE_PID);
    let is_near = summary.until().is_none_or(|until| {
        let apart = nanos_since(&incident.line, until);
        apart.is_none_or(|apart| apart.unsigned_abs() <= NEAR_END.as_nanos())
    });
    match named.name {
        _ if !can_differ || !is_near => Attribution::OtherProcess,
        None => Attribution::Unknown,
        Some(name) if may_have_name(name, named.is_thread, facts, summary) => {
            Attribution::LikelyOurRun
        }
        Some(_) => Attribution::OtherProcess,
    }
}

fn named_process(kind: &Kind) -> Option<NamedProcess<'_>> {
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
    Some(NamedProcess {
        pid,
        name,
        is_thread,
    })
}

/// Whether a program has a daemon start processes, which are then not its children.
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

/// Whether a process or thread of the run may have this name.
fn may_have_name(name: &str, is_thread: bool, facts: &Facts, summary: &RunSummary) -> bool {
    const TRAINERS: [&str; 6] = [
        "python",
        "ipython",
        "pt_",
        "ray::",
        "torchrun",
        "accelerate",
    ];
    let mut seen = summary.seen.processes.values();
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
    fn of_very_many_processes_those_seen_recently_are_remembered() {
        let at = |seconds: u64| Stamp {
            monotonic_ns: seconds * 1_000_000_000,
            realtime_ns: 0,
        };
        let mut seen = SeenProcesses::default();
        for number in 1..=25_000 {
            seen.add(Pid(number), ProcessName::new(b"python"), at(number.into()));
            assert!(seen.processes.len() <= MAX_PROCESSES);
        }
        assert!(seen.processes.contains_key(&Pid(25_000)) && !seen.is_partial);
        // All in one moment.
        let mut crowd = SeenProcesses::default();
        for number in 1..=25_000 {
            crowd.add(Pid(number), ProcessName::new(b"python"), at(1));
        }
        assert!(crowd.processes.len() == MAX_PROCESSES && crowd.is_partial);
    }
}
