//! # killed-externally
//!
//! Somebody else ended the run: a person, another guard, the cluster.
//!
//! ## How it looks
//!
//! `Killed` or `Terminated`, without an error of the script.
//!
//! ## How it is told
//!
//! A signal ended it that antifreeze did not send and that no program sends itself. Where the kernel counts its own
//! kills for want of memory and counted none, it is surer. Another guard is named where its word is about a process
//! of this run; what it did to others is passed over. A cluster that ran out of time says so in the output, as does a
//! service that was told to stop, and
//! Python says when somebody interrupted it. Of a log alone, the shell's `Killed` is only likely: the kernel kills so
//! too, when memory is short.
//!
//! ## What to do
//!
//! Ask who sent it: `journalctl -g 'earlyoom|oomd|Killed process'`, the cluster's log, whoever else uses the machine.

use antifreeze_text::layout::cut;
use antifreeze_text::signal;
use super::deadlock::stands_still;
use super::{Finding, Found, container_limit};
use crate::case::{Case, last_incidents};
use crate::ending::{is_interrupted, kills_of_others, user_place};
use crate::kernel::{Guard, Incident, Kind};
use crate::verdict::EndKind;
use crate::whose::{LIKELY, Whose};

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    if let Some(found) = cluster(case).or_else(|| person(case)) {
        return Finding::Found(found);
    }
    let guard = last_incidents(case.facts, case.story).rev().find_map(|incident| match incident.kind {
        Kind::OutsideGuard { who, .. } => Some((who, incident, sureness(case, incident)?)),
        _ => None,
    });
    // How it ended is not known where there is only its output.
    let confidence = match case.end {
        EndKind::Killed => 0.95,
        EndKind::Unknown => 0.75,
        _ => 0.0,
    };
    if let Some((who, incident, sure)) = guard.filter(|_| confidence > 0.0) {
        let mut found = Found::said(case, sure.min(confidence), incident);
        found.summary = format!("{} ended it", name_of(who));
        return Finding::Found(found.remedy(
            "leave more memory free for it, or end that guard while antifreeze keeps watch",
            None,
        ));
    }
    if case.end == EndKind::MachineDied
        && let Some(incident) = case.incident(|kind| matches!(kind, Kind::Shutdown))
    {
        let mut found = Found::said(case, 0.9, incident);
        found.summary = "the machine was shut down or restarted in good order".into();
        return Finding::Found(found);
    }
    let is_killed = case.end == EndKind::Killed || case.is_told_by_shell();
    let Some(number) = case.signal().filter(|number| is_killed && !signal::is_crash(*number)) else {
        return Finding::Nothing;
    };
    if case.end != EndKind::Killed || case.exit().is_none() {
        return Finding::Found(by_shell(case, number));
    }
    if let Some(found) = by_meaning(case, number, 0.9) {
        return Finding::Found(found);
    }
    let others = kills_of_others(case.facts, case.story) > 0;
    let (confidence, kernel) = match (number, counts_kernel_kills(case)) {
        (signal::KILL, _) if others => (0.6, ", and those that the kernel killed for lack of memory were others"),
        (signal::KILL, false) => (0.6, ""),
        (signal::KILL, true) => (0.85, ", and the kernel counted no kill for lack of memory"),
        _ => (0.9, ""),
    };
    let summary = format!("antifreeze did not send {}{kernel}", signal::name(number));
    Finding::Found(Found::new(case, confidence, summary, ""))
}

/// That another guard's word is about this run; None where it is about another's process.
fn sureness(case: &Case<'_>, incident: &Incident) -> Option<f64> {
    let group = match &incident.kind {
        Kind::OutsideGuard { name, .. } => name.as_deref().unwrap_or_default(),
        _ => return None,
    };
    // As the guard names the group that it makes for a run.
    let own = format!("antifreeze-{}", case.facts.run);
    match case.whose(incident) {
        Whose::Ours => Some(0.95),
        Whose::Likely => Some(LIKELY),
        Whose::Unsaid if !case.facts.run.is_empty() && group.contains(&own) => Some(0.95),
        // A group or a step, and nobody knows whether the run was in it.
        Whose::Unsaid => Some(0.7),
        Whose::Others => None,
    }
}

/// In the words that a cluster puts into the output.
fn cluster(case: &Case<'_>) -> Option<Found> {
    let slurm = case
        .line_with(&["CANCELLED AT", "DUE TO TIME LIMIT", "DUE TO PREEMPTION"])
        .filter(|line| line.contains("slurmstepd: ") || line.contains("DUE TO "))
        // Then it was cancelled for its memory.
        .filter(|_| container_limit::said(case).is_none());
    let slurm = slurm.or_else(|| case.line_with(&["TERM_RUNLIMIT", "job killed: walltime "]));
    let ray = || {
        let line = case.line_with(&["killed due to memory pressure", "killed due to the node running low on memory"]);
        line.filter(|line| line.to_lowercase().contains("ray") || line.contains("Task") || line.contains("Workers"))
    };
    if let Some(line) = slurm.is_none().then(|| hosted(case)).flatten() {
        let remedy = "save now and then, and go on in a next run; who or what ended it, the service's own log tells";
        return Some(Found::new(case, 0.9, cut(&line, 160), "").remedy(remedy, None));
    }
    if let Some(line) = slurm {
        let remedy = match line.contains("TIME LIMIT") {
            true => "ask for more time (#SBATCH --time), or save and go on in a next job",
            false if line.contains("RUNLIMIT") || line.contains("walltime") => {
                "ask for more time, or save and go on in a next job"
            }
            false => "save now and then, and go on in a next job; whoever cancelled it knows why: sacct",
        };
        return Some(Found::new(case, 0.95, cut(&line, 160), "").remedy(remedy, None));
    }
    let found = Found::new(case, 0.85, cut(&ray()?, 160), "");
    let remedy = "Ray ends tasks when its node runs low on memory: ask for more of it for each, or run fewer";
    Some(found.remedy(remedy, None))
}

/// Services that run what others wrote, and nodes that have no room left for it.
fn hosted(case: &Case<'_>) -> Option<String> {
    let actions = case
        .line_with(&["The runner has received a shutdown signal", "has exceeded the maximum execution time of "])
        .or_else(|| case.line_with(&["The operation was canceled."]));
    // Other programs cancel operations too.
    let is_actions = |line: &String| line.contains("##[error]") || line.contains("runner") || line.starts_with("Error: ");
    let evicted = || case.line_with(&["The node was low on resource: memory"]);
    actions.filter(is_actions).or_else(evicted)
}

/// Somebody pressed Ctrl-C; where it was then tells whether it hung.
fn person(case: &Case<'_>) -> Option<Found> {
    if !is_interrupted(case.printed) {
        return None;
    }
    // Whoever loses patience with a run that stands still, or had failed, is not why it did.
    let confidence = match stands_still(case) {
        Some(_) => 0.5,
        None if case.printed.interrupted.is_some() => 0.6,
        None => 0.9,
    };
    let mut found = Found::new(case, confidence, "somebody interrupted it (Ctrl-C, or SIGINT)".into(), "");
    let frame = case.printed.traceback.as_ref().and_then(|traceback| traceback.frame.as_ref());
    if let Some(frame) = frame {
        let place = user_place(&frame.file, frame.line, case.facts);
        found = found.and(case, format!("it was at {place} then"), "");
    }
    Some(found)
}

/// Only the word of a shell or a launcher is left.
fn by_shell(case: &Case<'_>, number: u32) -> Found {
    let name = signal::name(number);
    match number {
        signal::KILL => {
            let summary = format!("{name} ended it: most often the kernel sends that, for want of memory");
            Found::new(case, 0.6, summary, "").remedy(
                "the kernel's log tells whether it did; then a smaller batch, fewer workers, or antifreeze run:",
                Some("journalctl -k -g 'Killed process'".into()),
            )
        }
        _ => by_meaning(case, number, 0.85).unwrap_or_else(|| {
            let summary = format!("{name} ended it, and a program does not send that to itself");
            Found::new(case, 0.85, summary, "")
        }),
    }
}

/// Signals that are sent for one reason.
fn by_meaning(case: &Case<'_>, number: u32, confidence: f64) -> Option<Found> {
    let (why, remedy, paste) = match number {
        signal::HANG_UP => (
            "its terminal was closed",
            "start it where it outlives the terminal: tmux, or nohup",
            format!("nohup {} &", case.facts.command_line()),
        ),
        signal::CPU_LIMIT => (
            "the processor time that a program may use here was used up",
            "raise the limit as far as this machine allows; beyond that, whoever set it has to",
            "ulimit -S -t $(ulimit -H -t)".into(),
        ),
        signal::FILE_LIMIT => (
            "a file would have grown beyond the size that is allowed here",
            "raise the limit as far as this machine allows; beyond that, whoever set it has to",
            "ulimit -S -f $(ulimit -H -f)".into(),
        ),
        _ => return None,
    };
    let summary = format!("{} ended it: {why}", signal::name(number));
    Some(Found::new(case, confidence, summary, "").remedy(remedy, Some(paste)))
}

fn counts_kernel_kills(case: &Case<'_>) -> bool {
    case.last()
        .is_some_and(|last| last.paging.oom_kills.value().is_some())
}

fn name_of(who: Guard) -> &'static str {
    match who {
        Guard::Earlyoom => "earlyoom",
        Guard::SystemdOomd => "systemd-oomd",
        Guard::Slurm => "Slurm",
        Guard::Nohang => "nohang",
        Guard::Kubernetes => "Kubernetes",
    }
}
