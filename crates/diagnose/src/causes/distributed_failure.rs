//! # distributed-failure
//!
//! One of several processes that train together failed or was missing, and the others ended with it.
//!
//! ## Symptoms
//!
//! `ChildFailedError`, `Watchdog caught collective operation timeout`, `NCCL error`, `Connection closed by peer`. The
//! errors of the other ranks are consequences: the first error of the first rank that failed matters.
//!
//! ## How it is detected
//!
//! By those words in the output; words that other programs use as well count only beside the name of a library that
//! connects ranks. A process that was restarted, after which training continued, does not count. If a rank's own
//! traceback is in the output, that error comes first.
//!
//! ## What to do
//!
//! Read the first error of the first rank. A timeout often means that ranks disagree about the next collective:
//!
//! ```sh
//! TORCH_DISTRIBUTED_DEBUG=DETAIL NCCL_DEBUG=INFO antifreeze run -- torchrun …
//! ```

use super::{CauseKind, Finding, Found, Role, shm_exhausted};
use crate::output::traceback::CONNECTS_RANKS;
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;
use antifreeze_text::signal;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::DistributedFailure,
    word: "distributed-failure",
    title: "distributed run failed",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("distributed_failure.rs"),
    detect,
};

/// Whether an error is about the connection of ranks.
fn is_connection_error(error: &str) -> bool {
    CONNECTS_RANKS.iter().any(|name| error.contains(name)) || error.contains("Dist")
}

/// The line about ranks that waited for another one, if the job was aborted for that.
fn stalled(evidence: &RunEvidence<'_>) -> Option<(String, f64)> {
    let aborted =
        evidence.find_line_with_confidence(&["detected that one or more processes exited"])?;
    let waited = evidence.find_line(&["waiting for remainder of ranks"]);
    let waited = waited.or_else(|| evidence.find_line(&["Missing ranks:"]))?;
    Some((waited, aborted.1))
}

/// The line about a rendezvous address that is in use, often by an earlier run.
fn rendezvous_in_use(evidence: &RunEvidence<'_>) -> Option<(String, f64)> {
    let is_taken = evidence.error().contains("Address already in use");
    let said = evidence
        .find_line_with_confidence(&["Address already in use"])
        .filter(|_| is_taken);
    let place = [
        "torch/distributed/rendezvous",
        "TCPStore(",
        "init_process_group",
    ];
    said.filter(|_| evidence.find_line_anywhere(&place).is_some())
}

/// The launcher reports that a process was killed.
fn from_killed_process(evidence: &RunEvidence<'_>) -> Found {
    let summary =
        "one of its processes was killed (SIGKILL), usually by the kernel because memory ran out";
    let mut found = Found::new(evidence, 0.85, summary.into(), "");
    let told = evidence.find_line(&[
        "exitcode: -9",
        "(SIGKILL)",
        "signal SIGKILL",
        "return code = -9",
    ]);
    if let Some(line) = told {
        found = found.with_evidence(evidence, cut(&line, 160), "");
    }
    found.with_remedy(
        "the kernel's log shows whether it did:",
        Some("journalctl -k -g 'Killed process'".into()),
    )
}

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if !evidence.went_wrong() {
        return Finding::Nothing;
    }
    // Downloads use these words as well.
    let with_ranks = |words: &[&str]| {
        evidence
            .find_line_with_confidence(words)
            .filter(|_| evidence.find_line(&CONNECTS_RANKS).is_some())
    };
    let time_out = evidence
        .find_line_with_confidence(&[
            "Watchdog caught collective operation timeout",
            "RendezvousTimeoutError",
            "clients joined",
        ])
        .or_else(|| evidence.find_line_with_confidence(&["The client socket has timed out"]))
        .or_else(|| with_ranks(&["Timed out waiting", "Socket Timeout"]))
        .or_else(|| stalled(evidence));
    let broken = evidence
        .find_line_with_confidence(&[
            "NCCL error",
            "NCCL Error",
            "ncclSystemError",
            "ncclRemoteError",
            "ncclUnhandledCudaError",
            "DistBackendError",
            "DistNetworkError",
            "DistStoreError",
            "The server socket has failed to listen",
            "The client socket has failed to connect",
        ])
        .or_else(|| with_ranks(&["Connection closed by peer", "Connection reset by peer"]))
        .or_else(|| rendezvous_in_use(evidence));
    let child = evidence.find_line_with_confidence(&[
        "ChildFailedError",
        "ProcessExitedException",
        "ProcessRaisedException",
        "detected that one or more processes exited with non-zero status",
    ]);
    // The error of a single rank is the reason why the others waited or lost the connection.
    let has_own = evidence
        .printed
        .traceback
        .as_ref()
        .is_some_and(|traceback| {
            !traceback.blames_another()
                && !is_connection_error(&traceback.error)
                && rendezvous_in_use(evidence).is_none()
        });
    let lost = evidence
        .printed
        .exit_notice
        .filter(|told| told.is_one_of_several && !has_own && !evidence.blames_loader_worker());
    let was_killed = lost.is_some_and(|told| told.signal == signal::KILL);
    // Ranks that lost the others abort; another crash is the reason.
    let has_crashed =
        lost.is_some_and(|told| signal::is_crash(told.signal) && told.signal != signal::ABORT);
    // Ranks on one machine also communicate through shared memory.
    let is_full = shm_exhausted::full_line(evidence).is_some();
    let (confidence, (line, most)) = match (time_out, broken, child) {
        _ if was_killed => return Finding::Found(from_killed_process(evidence)),
        (Some(line), ..) | (None, Some(line), _) if has_own || has_crashed || is_full => {
            (0.5, line)
        }
        (Some(line), ..) => (0.85, line),
        (None, Some(line), _) => (0.8, line),
        // The error itself is printed above it.
        (None, None, Some(line)) => (0.5, line),
        (None, None, None) => return Finding::Nothing,
    };
    Finding::Found(
        Found::new(evidence, f64::min(confidence, most), cut(&line, 160), "").with_remedy(
            "read the first error of the first rank that failed; log what the ranks do:",
            Some(format!(
                "TORCH_DISTRIBUTED_DEBUG=DETAIL antifreeze run -- {}",
                evidence.facts.command_line()
            )),
        ),
    )
}
