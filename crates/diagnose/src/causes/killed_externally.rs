//! # killed-externally
//!
//! Something else ended the run: a person, another guard, or the cluster.
//!
//! ## Symptoms
//!
//! `Killed` or `Terminated`, without an error of the script.
//!
//! ## How it is detected
//!
//! A signal ended it that antifreeze did not send and that programs do not send themselves. If the kernel counts its
//! OOM kills and counted none, confidence is higher. Another guard is named if its log is about a process of this run.
//! A cluster reports an expired time limit in the output, a service reports its shutdown, and Python reports an
//! interrupt. From a log alone, the shell's `Killed` is only likely: the kernel also kills when memory runs out.
//!
//! ## What to do
//!
//! Find out who sent it: `journalctl -g 'earlyoom|oomd|Killed process'`, the log of the cluster, other users of the
//! machine.

use super::deadlock::time_without_steps;
use super::{CauseKind, Finding, Found, Role, container_limit};
use crate::kernel::attribution::{Attribution, LIKELY_CONFIDENCE};
use crate::kernel::{Guard, Incident, Kind};
use crate::run::evidence::{RunEvidence, incidents_near_end};
use crate::verdict::ending::{is_interrupted, kills_of_others};
use crate::verdict::place::user_place;
use crate::verdict::{Code, EndKind};
use antifreeze_text::layout::cut;
use antifreeze_text::signal;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::KilledExternally,
    word: "killed-externally",
    title: "killed from outside",
    role: Role::Symptom,
    lint_rules: &[],
    source: include_str!("killed_externally.rs"),
    detect,
};

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if !evidence.went_wrong() {
        return Finding::Nothing;
    }
    if let Some(found) = from_cluster(evidence).or_else(|| from_interrupt(evidence)) {
        return Finding::Found(found);
    }
    let guard = incidents_near_end(evidence.facts, evidence.summary)
        .rev()
        .find_map(|incident| match incident.kind {
            Kind::OutsideGuard { who, .. } => {
                Some((who, incident, guard_confidence(evidence, incident)?))
            }
            _ => None,
        });
    // With output alone it is not known how it ended.
    let confidence = match evidence.end {
        EndKind::Killed => 0.95,
        EndKind::Unknown => 0.75,
        _ => 0.0,
    };
    if let Some((who, incident, sure)) = guard.filter(|_| confidence > 0.0) {
        let mut found = Found::from_log_line(evidence, sure.min(confidence), incident);
        found.summary = format!("{} ended it", name_of(who));
        return Finding::Found(found.with_remedy(
            "leave more memory free for it, or stop that guard while antifreeze runs",
            None,
        ));
    }
    if evidence.end == EndKind::MachineDied
        && let Some(incident) = evidence.last_incident(|kind| matches!(kind, Kind::Shutdown))
    {
        let mut found = Found::from_log_line(evidence, 0.9, incident);
        found.summary = "the machine was shut down or rebooted cleanly".into();
        return Finding::Found(found);
    }
    let is_killed = evidence.end == EndKind::Killed || evidence.shell_reports_signal();
    let Some(number) = evidence
        .signal()
        .filter(|number| is_killed && !signal::is_crash(*number))
    else {
        return Finding::Nothing;
    };
    if evidence.end != EndKind::Killed || evidence.exit().is_none() {
        return Finding::Found(from_shell_report(evidence, number));
    }
    if let Some(found) = from_signal_meaning(evidence, number, 0.9) {
        return Finding::Found(found);
    }
    let others = kills_of_others(evidence.facts, evidence.summary) > 0;
    let (confidence, kernel) = match (number, counts_kernel_kills(evidence)) {
        (signal::KILL, _) if others => (
            0.6,
            ", and the kernel killed only other processes because memory ran out",
        ),
        (signal::KILL, false) => (0.6, ""),
        (signal::KILL, true) => (0.85, ", and the kernel counted no OOM kill"),
        _ => (0.9, ""),
    };
    let summary = format!("antifreeze did not send {}{kernel}", signal::name(number));
    Finding::Found(Found::new(evidence, confidence, summary, ""))
}

/// The confidence that the log of another guard is about this run; None where it is about another process.
fn guard_confidence(evidence: &RunEvidence<'_>, incident: &Incident) -> Option<f64> {
    let group = match &incident.kind {
        Kind::OutsideGuard { name, .. } => name.as_deref().unwrap_or_default(),
        _ => return None,
    };
    // The name of the cgroup that antifreeze makes for the run.
    let own = format!("antifreeze-{}", evidence.facts.run);
    match evidence.attribute(incident) {
        Attribution::OurRun => Some(0.95),
        Attribution::LikelyOurRun => Some(LIKELY_CONFIDENCE),
        Attribution::Unknown if !evidence.facts.run.is_empty() && group.contains(&own) => {
            Some(0.95)
        }
        // A cgroup or job step that the run may have been in.
        Attribution::Unknown => Some(0.7),
        Attribution::OtherProcess => None,
    }
}

/// A cluster or service reports in the output that it ended the run.
fn from_cluster(evidence: &RunEvidence<'_>) -> Option<Found> {
    let slurm = evidence
        .find_line(&["CANCELLED AT", "DUE TO TIME LIMIT", "DUE TO PREEMPTION"])
        .filter(|line| line.contains("slurmstepd: ") || line.contains("DUE TO "))
        // Otherwise it was cancelled because of its memory.
        .filter(|_| container_limit::limit_line(evidence).is_none());
    let slurm = slurm.or_else(|| evidence.find_line(&["TERM_RUNLIMIT", "job killed: walltime "]));
    let ray = || {
        let line = evidence.find_line(&[
            "killed due to memory pressure",
            "killed due to the node running low on memory",
        ]);
        line.filter(|line| {
            line.to_lowercase().contains("ray") || line.contains("Task") || line.contains("Workers")
        })
    };
    if let Some(line) = slurm.is_none().then(|| hosted_line(evidence)).flatten() {
        let remedy = "save checkpoints and continue in the next run; the service's own log shows what ended it";
        return Some(Found::new(evidence, 0.9, cut(&line, 160), "").with_remedy(remedy, None));
    }
    if let Some(line) = slurm {
        let remedy = match line.contains("TIME LIMIT") {
            true => "request more time (#SBATCH --time), or save and continue in the next job",
            false if line.contains("RUNLIMIT") || line.contains("walltime") => {
                "request more time, or save and continue in the next job"
            }
            false => "save checkpoints and continue in the next job; sacct shows who cancelled it",
        };
        return Some(Found::new(evidence, 0.95, cut(&line, 160), "").with_remedy(remedy, None));
    }
    let found = Found::new(evidence, 0.85, cut(&ray()?, 160), "");
    let remedy = "Ray kills tasks when its node runs low on memory: request more memory for each, or run fewer";
    Some(found.with_remedy(remedy, None))
}

/// The line in which a CI service or a node reports that it ended the job.
fn hosted_line(evidence: &RunEvidence<'_>) -> Option<String> {
    let actions = evidence
        .find_line(&[
            "The runner has received a shutdown signal",
            "has exceeded the maximum execution time of ",
        ])
        .or_else(|| evidence.find_line(&["The operation was canceled."]));
    // Other programs cancel operations as well.
    let is_actions = |line: &String| {
        line.contains("##[error]") || line.contains("runner") || line.starts_with("Error: ")
    };
    let evicted = || evidence.find_line(&["The node was low on resource: memory"]);
    actions.filter(is_actions).or_else(evicted)
}

/// It was interrupted; the place shows whether it hung.
fn from_interrupt(evidence: &RunEvidence<'_>) -> Option<Found> {
    if !is_interrupted(evidence.printed) {
        return None;
    }
    // The interrupt of a run that hung or had failed is not the reason for that.
    let confidence = match time_without_steps(evidence) {
        Some(_) => 0.5,
        None if evidence.printed.interrupted.is_some() => 0.6,
        None => 0.9,
    };
    let mut found = Found::new(
        evidence,
        confidence,
        "it was interrupted (Ctrl-C or SIGINT)".into(),
        "",
    );
    let frame = evidence
        .printed
        .traceback
        .as_ref()
        .and_then(|traceback| traceback.frame.as_ref());
    if let Some(frame) = frame {
        let place = user_place(&frame.file, frame.line, evidence.facts);
        found = found.with_evidence(evidence, format!("it was at {place} then"), "");
    }
    Some(found)
}

/// Only the report of a shell or launcher is known.
fn from_shell_report(evidence: &RunEvidence<'_>, number: u32) -> Found {
    let name = signal::name(number);
    match number {
        signal::KILL => {
            let summary =
                format!("{name} ended it: usually the kernel sends it because memory ran out");
            Found::new(evidence, 0.6, summary, "").with_remedy(
                "the kernel's log shows whether it did; then use a smaller batch, fewer workers, or antifreeze run:",
                Some("journalctl -k -g 'Killed process'".into()),
            )
        }
        _ => from_signal_meaning(evidence, number, 0.85).unwrap_or_else(|| {
            let summary = format!("{name} ended it, which a program does not send to itself");
            Found::new(evidence, 0.85, summary, "")
        }),
    }
}

/// Signals that are sent for one reason.
fn from_signal_meaning(evidence: &RunEvidence<'_>, number: u32, confidence: f64) -> Option<Found> {
    let (why, remedy, paste) = match number {
        signal::HANG_UP => (
            "its terminal was closed",
            "start it where it outlives the terminal: in tmux, or with nohup",
            format!("nohup {} &", evidence.facts.command_line()),
        ),
        signal::CPU_LIMIT => (
            "it reached its CPU time limit",
            "raise the limit as far as this machine allows; beyond that only an administrator can",
            "ulimit -S -t $(ulimit -H -t)".into(),
        ),
        signal::FILE_LIMIT => (
            "a file would have exceeded the size limit",
            "raise the limit as far as this machine allows; beyond that only an administrator can",
            "ulimit -S -f $(ulimit -H -f)".into(),
        ),
        _ => return None,
    };
    let summary = format!("{} ended it: {why}", signal::name(number));
    Some(Found::new(evidence, confidence, summary, "").with_remedy(remedy, Some(paste)))
}

fn counts_kernel_kills(evidence: &RunEvidence<'_>) -> bool {
    evidence
        .last_sample()
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
