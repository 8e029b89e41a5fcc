//! # distributed-failure
//!
//! One of several processes that train together failed or was not there, and took the others with it.
//!
//! ## How it looks
//!
//! `ChildFailedError`, `Watchdog caught collective operation timeout`, `NCCL error`, `Connection closed by peer`. What
//! the others print is a consequence: the first error of the first rank that failed is what matters.
//!
//! ## How it is told
//!
//! By those words in the output; those that other programs use too only beside the name of a library that connects
//! ranks. A process that was started again, after which the training went on, is not told. Where one rank's own traceback is there as well, that error is told first.
//!
//! ## What to do
//!
//! Read the first error of the first rank; a time-out often means that ranks disagree about the next collective:
//!
//! ```sh
//! TORCH_DISTRIBUTED_DEBUG=DETAIL NCCL_DEBUG=INFO antifreeze run -- torchrun …
//! ```

use antifreeze_text::layout::cut;
use antifreeze_text::signal;
use super::{Finding, Found, shm_exhausted};
use crate::case::Case;
use crate::traceback::CONNECTS_RANKS;

/// An error of the connection itself.
fn of_ranks(error: &str) -> bool {
    CONNECTS_RANKS.iter().any(|name| error.contains(name)) || error.contains("Dist")
}

/// Ranks waited for another, and the job was ended with it.
fn stalled(case: &Case<'_>) -> Option<(String, f64)> {
    let aborted = case.said(&["detected that one or more processes exited"])?;
    let waited = case.line_with(&["waiting for remainder of ranks"]);
    let waited = waited.or_else(|| case.line_with(&["Missing ranks:"]))?;
    Some((waited, aborted.1))
}

/// The place where ranks meet was taken, often by a run before this one.
fn meeting(case: &Case<'_>) -> Option<(String, f64)> {
    let is_taken = case.error().contains("Address already in use");
    let said = case.said(&["Address already in use"]).filter(|_| is_taken);
    let place = ["torch/distributed/rendezvous", "TCPStore(", "init_process_group"];
    said.filter(|_| case.any_line_with(&place).is_some())
}

/// What started them says that one was killed.
fn killed(case: &Case<'_>) -> Found {
    let summary = "one of its processes was killed (SIGKILL): most often the kernel does that, for want of memory";
    let mut found = Found::new(case, 0.85, summary.into(), "");
    let told = case.line_with(&["exitcode: -9", "(SIGKILL)", "signal SIGKILL", "return code = -9"]);
    if let Some(line) = told {
        found = found.and(case, cut(&line, 160), "");
    }
    found.remedy(
        "the kernel's log tells whether it did:",
        Some("journalctl -k -g 'Killed process'".into()),
    )
}

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    // A download uses these words too.
    let with_ranks = |words: &[&str]| case.said(words).filter(|_| case.line_with(&CONNECTS_RANKS).is_some());
    let time_out = case
        .said(&["Watchdog caught collective operation timeout", "RendezvousTimeoutError", "clients joined"])
        .or_else(|| case.said(&["The client socket has timed out"]))
        .or_else(|| with_ranks(&["Timed out waiting", "Socket Timeout"]))
        .or_else(|| stalled(case));
    let broken = case
        .said(&[
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
        .or_else(|| meeting(case));
    let child = case.said(&[
        "ChildFailedError",
        "ProcessExitedException",
        "ProcessRaisedException",
        "detected that one or more processes exited with non-zero status",
    ]);
    // A rank that had an error of its own is why the others waited or were cut off.
    let has_own = case.printed.traceback.as_ref().is_some_and(|traceback| {
        !traceback.blames_another() && !of_ranks(&traceback.error) && meeting(case).is_none()
    });
    let lost = case.printed.told.filter(|told| told.is_part && !has_own && !case.is_of_loader());
    let was_killed = lost.is_some_and(|told| told.signal == signal::KILL);
    // Those that find the others gone abort; another crash is why they were gone.
    let has_crashed = lost.is_some_and(|told| signal::is_crash(told.signal) && told.signal != signal::ABORT);
    // Ranks of one machine speak through shared memory, too.
    let is_full = shm_exhausted::said(case).is_some();
    let (confidence, (line, most)) = match (time_out, broken, child) {
        _ if was_killed => return Finding::Found(killed(case)),
        (Some(line), ..) | (None, Some(line), _) if has_own || has_crashed || is_full => (0.5, line),
        (Some(line), ..) => (0.85, line),
        (None, Some(line), _) => (0.8, line),
        // Which error that was stands above it.
        (None, None, Some(line)) => (0.5, line),
        (None, None, None) => return Finding::Nothing,
    };
    Finding::Found(
        Found::new(case, f64::min(confidence, most), cut(&line, 160), "").remedy(
            "read the first error of the first rank that failed; have the ranks say what they are at:",
            Some(format!(
                "TORCH_DISTRIBUTED_DEBUG=DETAIL antifreeze run -- {}",
                case.facts.command_line()
            )),
        ),
    )
}
