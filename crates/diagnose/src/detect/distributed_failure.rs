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
//! By those words in the output. Where one rank's own traceback is there as well, that error is told first.
//!
//! ## What to do
//!
//! Read the first error of the first rank; a time-out often means that ranks disagree about the next collective:
//!
//! ```sh
//! TORCH_DISTRIBUTED_DEBUG=DETAIL NCCL_DEBUG=INFO antifreeze run -- torchrun …
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    let time_out = case.line_with(&[
        "Watchdog caught collective operation timeout",
        "Timed out waiting",
        "RendezvousTimeoutError",
        "clients joined",
        "Socket Timeout",
    ]);
    let broken = case.line_with(&[
        "NCCL error",
        "ncclSystemError",
        "ncclRemoteError",
        "ncclUnhandledCudaError",
        "Connection closed by peer",
        "Connection reset by peer",
        "DistBackendError",
    ]);
    let child = case.line_with(&["ChildFailedError", "ProcessExitedException", "ProcessRaisedException"]);
    let (confidence, line) = match (time_out, broken, child) {
        (Some(line), _, _) => (0.85, line),
        (None, Some(line), _) => (0.8, line),
        // Which error that was stands above it.
        (None, None, Some(line)) => (0.5, line),
        (None, None, None) => return Finding::Nothing,
    };
    Finding::Found(
        Found::new(case, confidence, cut(&line, 160), "").remedy(
            "read the first error of the first rank that failed; have the ranks say what they are at:",
            Some(format!(
                "TORCH_DISTRIBUTED_DEBUG=DETAIL antifreeze run -- {}",
                case.facts.command_line()
            )),
        ),
    )
}
