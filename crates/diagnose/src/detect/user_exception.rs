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
//! how it showed. Where more was printed after it, as by a script that goes on, or the exit code is one that Python does
//! not end with then, it may have been caught, and is told with doubt. So is what was said last without a traceback, but
//! for a parser of arguments, which says so below its usage. An error of Julia is told by its stack. Of errors in a chain
//! the first is told, if the last arose by chance in its handler.
//!
//! ## What to do
//!
//! The line that is named is the last of your own; the error says what it met.

use antifreeze_text::layout::cut;
use antifreeze_text::signal::Exit;
use super::{Finding, Found};
use crate::case::Case;
use crate::printed::Doubt;
use crate::traceback::Traceback;
use crate::verdict::{EndKind, Location};

/// An error's message may be pages long; its beginning tells what it is.
const WIDEST: usize = 160;
/// What an uncaught error ends with, and what starts scripts then: Python, make, a flush that failed, ssh.
const USUAL: [u32; 4] = [1, 2, 120, 255];

pub(super) fn look(case: &Case<'_>) -> Finding {
    let found = match case.end {
        EndKind::Exception => raised(case),
        EndKind::Killed => interrupted(case),
        EndKind::Unknown => went_on(case).or_else(|| refused(case)).or_else(|| julia(case)),
        EndKind::Failed => refused(case).or_else(|| julia(case)),
        _ => None,
    };
    found.or_else(|| ended_itself(case)).into()
}

/// An error that nobody caught, as it seems.
fn raised(case: &Case<'_>) -> Option<Found> {
    let traceback = case.printed.traceback.as_ref()?;
    if traceback.error.is_empty() {
        let summary = "its output ends in the middle of a traceback".to_owned();
        return Some(Found::new(case, 0.3, summary, "").at(case.location()));
    }
    let mut found = Found::new(case, sureness(case), told(traceback), "").at(case.location());
    if let Some(chained) = &case.printed.chained {
        let when = if chained.is_later { "while that was handled" } else { "before it" };
        found = found.and(case, format!("{when}: {}", cut(&chained.traceback.error, WIDEST)), "");
    }
    if let Some(code) = case.exit().and_then(own_code) {
        let text = format!("it ended with exit code {code}, and an error that nobody catches ends with 1");
        found = found.and(case, text, "");
    }
    let doubt = &case.printed.doubt;
    if doubt.is_again {
        found = found.and(case, "the same had been printed before, and it had gone on".into(), "");
    }
    if let Some(closing) = &doubt.closing {
        found = found.and(case, format!("after it: {}", cut(closing, WIDEST)), "");
    }
    Some(found)
}

/// Somebody lost patience with what had failed already.
fn interrupted(case: &Case<'_>) -> Option<Found> {
    let traceback = case.printed.interrupted.as_ref()?;
    let found = Found::new(case, 0.7, told(traceback), "");
    Some(found.at(case.location_of(traceback)))
}

/// It may have been caught, and may have been another rank that went on.
fn went_on(case: &Case<'_>) -> Option<Found> {
    let traceback = case.printed.caught.as_ref()?;
    let found = Found::new(case, 0.35, told(traceback), "");
    let found = found.at(case.location_of(traceback));
    Some(found.and(case, "it went on after that".into(), ""))
}

/// It has a reason, and most often says it last.
fn ended_itself(case: &Case<'_>) -> Option<Found> {
    let Some(Exit::Code(code)) = case.exit().filter(|_| case.end == EndKind::Failed) else {
        return None;
    };
    let last = case.printed.ending().map(str::trim).rfind(|line| !line.is_empty())?;
    let summary = format!("it ended itself with exit code {code}, and said last: {}", cut(last, WIDEST));
    let found = Found::new(case, 0.45, summary, "");
    Some(match &case.printed.caught {
        Some(caught) => found.and(case, format!("it had gone on after {}", cut(&caught.error, WIDEST)), ""),
        None => found,
    })
}

/// Its arguments were wrong: `usage: …`, and `train.py: error: …` last.
fn refused(case: &Case<'_>) -> Option<Found> {
    const LONGEST_USAGE: usize = 60;
    let mut lines = case.printed.last().rev().map(str::trim);
    let last = lines.next()?;
    let (who, what) = last.split_once("rror: ")?;
    let is_parser = !what.is_empty() && (who == "E" || who.strip_suffix(": e").is_some_and(|name| !name.contains(": ")));
    let is_usage = |line: &str| line.starts_with("usage: ") || line.starts_with("Usage: ");
    let has_usage = lines.take(LONGEST_USAGE).any(is_usage);
    (is_parser && has_usage).then(|| Found::new(case, 0.85, cut(last, WIDEST), ""))
}

/// `ERROR: LoadError: …`, `Stacktrace:`, `in expression starting at train.jl:41`.
fn julia(case: &Case<'_>) -> Option<Found> {
    const LONGEST_MESSAGE: usize = 12;
    let lines: Vec<&str> = case.printed.last().map(str::trim).collect();
    let at = lines.iter().rposition(|line| line.starts_with("ERROR: "))?;
    let after = lines.get(at + 1..).unwrap_or_default();
    let error = lines.get(at)?.strip_prefix("ERROR: ")?;
    let has_stack = after.iter().take(LONGEST_MESSAGE).any(|line| *line == "Stacktrace:");
    let place = after.iter().find_map(|line| line.strip_prefix("in expression starting at ")?.rsplit_once(':'));
    let is_of_file = error.starts_with("LoadError: ") && place.is_some();
    if !has_stack && !is_of_file {
        return None;
    }
    let location = place.and_then(|(file, line)| {
        Some(Location { file: file.to_owned(), line: line.parse().ok()?, name: None })
    });
    let confidence = if error.to_lowercase().contains("memory") { 0.4 } else { 0.75 };
    Some(Found::new(case, confidence, cut(error, WIDEST), "").at(location))
}

/// Its first line, which may only lead to the next.
fn told(traceback: &Traceback) -> String {
    match traceback.error.trim_end().ends_with(':') {
        true => cut(&traceback.message(), WIDEST),
        false => cut(&traceback.error, WIDEST),
    }
}

/// One that is the script's own.
pub(crate) fn own_code(exit: Exit) -> Option<u32> {
    match exit {
        Exit::Code(code) if code != 0 && !USUAL.contains(&code) => Some(code),
        _ => None,
    }
}

/// What only says that another process failed, or that there was no memory, does not tell why; nor does the status of a
/// card's library, which may come of anything. And what was caught ended nothing.
fn sureness(case: &Case<'_>) -> f64 {
    const OF_ANOTHER: [&str; 2] = ["TerminatedWorkerError", "DeadKernelError"];
    const OPAQUE: [&str; 4] = ["CUBLAS_STATUS_", "CUDNN_STATUS_", "CUSOLVER_STATUS_", "CUDA error: unknown error"];
    let error = case.error();
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    let blames_another = case.printed.traceback.as_ref().is_some_and(Traceback::blames_another);
    let doubt = &case.printed.doubt;
    let by_words = match () {
        _ if blames_another || has(&OF_ANOTHER) => 0.4,
        _ if case.tells_of_memory() => 0.3,
        _ if has(&OPAQUE) => 0.6,
        _ => 0.9,
    };
    let by_end = match (case.exit().and_then(own_code), doubt.is_again || doubt.went_on, &doubt.closing) {
        (Some(_), true, _) => 0.35,
        (Some(_), ..) | (.., Some(_)) => 0.5,
        (None, true, None) => 0.65,
        (None, false, None) => 0.9,
    };
    f64::min(by_words, by_end)
}

/// Whether it went on after the error: by what it printed then, and by a code that it chose itself.
pub(crate) fn was_caught(exit: Exit, doubt: &Doubt) -> bool {
    doubt.went_on && own_code(exit).is_some()
}
