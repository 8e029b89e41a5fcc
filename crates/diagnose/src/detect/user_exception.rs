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
//! error comes from, that is told instead. Without a traceback, what it said last is told with doubt.
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

/// What only says that another process failed does not tell why.
fn sureness(case: &Case<'_>) -> f64 {
    let blames_another = case.printed.traceback.as_ref().is_some_and(Traceback::blames_another);
    if blames_another { 0.4 } else { 0.9 }
}
