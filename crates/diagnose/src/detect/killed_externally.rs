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
//! kills for want of memory and counted none, it is surer. A cluster that ran out of time says so in the output.
//!
//! ## What to do
//!
//! Ask who sent it: `journalctl -g 'earlyoom|oomd|Killed process'`, the cluster's log, whoever else uses the machine.

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::{Guard, Kind};
use crate::signal::{self, Exit};
use crate::verdict::EndKind;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if case.end == EndKind::Killed
        && let Some(line) = case.line_with(&["slurmstepd: error:", "DUE TO TIME LIMIT"])
    {
        return Finding::Found(
            Found::new(case, 0.95, line, "")
                .remedy("ask the cluster for more time or memory, or save and go on in a next job", None),
        );
    }
    let guard = case.incidents().rev().find_map(|incident| match incident.kind {
        Kind::OutsideGuard { who, .. } => Some((who, incident)),
        _ => None,
    });
    // How it ended is not known where there is only its output.
    let confidence = match case.end {
        EndKind::Killed => 0.95,
        EndKind::Unknown => 0.75,
        _ => 0.0,
    };
    if let Some((who, incident)) = guard.filter(|_| confidence > 0.0) {
        let mut found = Found::said(case, confidence, incident);
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
    let signal = case.exit().and_then(Exit::deadly_signal);
    let Some(number) = signal.filter(|_| case.end == EndKind::Killed) else {
        return Finding::Nothing;
    };
    let (confidence, kernel) = match (number, counts_kernel_kills(case)) {
        (signal::KILL, false) => (0.6, ""),
        (signal::KILL, true) => (0.85, ", and the kernel counted no kill for lack of memory"),
        _ => (0.9, ""),
    };
    let summary = format!("antifreeze did not send {}{kernel}", signal::name(number));
    Finding::Found(Found::new(case, confidence, summary, ""))
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
