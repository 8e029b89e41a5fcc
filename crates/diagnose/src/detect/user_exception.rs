//! # user-exception
//!
//! The script raised an error that it did not catch.
//!
//! ## How it looks
//!
//! A traceback, and an exit code of 1.
//!
//! ## How it is told
//!
//! By the traceback at the end of the output, and an exit code that is not 0. Where a cause is known that such an
//! error comes from, that is told instead, or first; an error for want of memory, or of another process, is no more than
//! how it showed. Without a traceback, what it said last is told with doubt.
//!
//! ## What to do
//!
//! The line that is named is the last of your own; the error says what it met.

use super::{Finding, Found};
use crate::case::Case;
use crate::signal::Exit;
use crate::traceback::Traceback;
use crate::verdict::EndKind;
use crate::words::cut;

/// An error's message may be pages long; its beginning tells what it is.
const WIDEST: usize = 160;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let found = (case.end == EndKind::Exception)
        .then(|| Found::new(case, sureness(case), cut(case.error(), WIDEST), "").at(case.location()));
    found.or_else(|| ended_itself(case)).into()
}

/// It has a reason, and most often says it last.
fn ended_itself(case: &Case<'_>) -> Option<Found> {
    let Some(Exit::Code(code)) = case.exit().filter(|_| case.end == EndKind::Failed) else {
        return None;
    };
    let last = case.printed.ending().map(str::trim).rfind(|line| !line.is_empty())?;
    let summary = format!("it ended itself with exit code {code}, and said last: {}", cut(last, WIDEST));
    Some(Found::new(case, 0.45, summary, ""))
}

/// What only says that another process failed, or that there was no memory, does not tell why; nor does the status of a
/// card's library, which may come of anything.
fn sureness(case: &Case<'_>) -> f64 {
    const OF_ANOTHER: [&str; 2] = ["TerminatedWorkerError", "DeadKernelError"];
    const OPAQUE: [&str; 4] = ["CUBLAS_STATUS_", "CUDNN_STATUS_", "CUSOLVER_STATUS_", "CUDA error: unknown error"];
    let error = case.error();
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    let blames_another = case.printed.traceback.as_ref().is_some_and(Traceback::blames_another);
    match () {
        _ if blames_another || has(&OF_ANOTHER) => 0.4,
        _ if case.tells_of_memory() => 0.3,
        _ if has(&OPAQUE) => 0.6,
        _ => 0.9,
    }
}
