//! # user-exception
//!
//! The script raised an error that it did not catch.
//!
//! ## Symptoms
//!
//! A traceback, and exit code 1.
//!
//! ## How it is detected
//!
//! By the traceback at the end of the output, and an exit code that is not 0. If a cause for such an error is known,
//! that cause is reported instead, or first; an out-of-memory error, or one about another process, is only a symptom.
//! If the script printed more after it, or exited with a code that Python does not use for errors, it may have caught
//! the error, so confidence is lower. The same holds for a last line without a traceback, except from an argument
//! parser, which prints its usage. Julia's stack traces are read as well. In a chain of errors the first counts if the
//! last arose by accident while the first was handled.
//!
//! ## What to do
//!
//! The named line is the last one in your own code; the error says what went wrong.

use super::{CauseKind, Finding, Found, Role};
use crate::output::Doubt;
use crate::output::traceback::Traceback;
use crate::run::evidence::RunEvidence;
use crate::verdict::{Code, EndKind, Location};
use antifreeze_text::layout::cut;
use antifreeze_text::signal::Exit;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::UserException,
    word: "user-exception",
    title: "error in the script",
    role: Role::Symptom,
    lint_rules: &[],
    source: include_str!("user_exception.rs"),
    detect,
};

/// An error message is cut to this many columns.
const MAX_COLUMNS: usize = 160;
/// Exit codes after an uncaught error: of Python, make, a failed flush, ssh.
const ERROR_EXIT_CODES: [u32; 4] = [1, 2, 120, 255];

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let found = match evidence.end {
        EndKind::Exception => from_traceback(evidence),
        EndKind::Killed => from_interrupted_error(evidence),
        EndKind::Unknown => from_continued_error(evidence)
            .or_else(|| from_argument_parser(evidence))
            .or_else(|| from_julia(evidence)),
        EndKind::Failed => from_argument_parser(evidence).or_else(|| from_julia(evidence)),
        _ => None,
    };
    found.or_else(|| from_last_line(evidence)).into()
}

/// An error that was likely not caught.
fn from_traceback(evidence: &RunEvidence<'_>) -> Option<Found> {
    let traceback = evidence.printed.traceback.as_ref()?;
    if traceback.error.is_empty() {
        let summary = "its output ends in the middle of a traceback".to_owned();
        return Some(Found::new(evidence, 0.3, summary, "").at_location(evidence.error_location()));
    }
    let mut found = Found::new(
        evidence,
        error_confidence(evidence),
        describe_error(traceback),
        "",
    )
    .at_location(evidence.error_location());
    if let Some(chained) = &evidence.printed.chained {
        let when = if chained.is_later {
            "while that was handled"
        } else {
            "before it"
        };
        found = found.with_evidence(
            evidence,
            format!("{when}: {}", cut(&chained.traceback.error, MAX_COLUMNS)),
            "",
        );
    }
    if let Some(code) = evidence.exit().and_then(own_exit_code) {
        let text = format!("it ended with exit code {code}, and an uncaught error ends with 1");
        found = found.with_evidence(evidence, text, "");
    }
    let doubt = &evidence.printed.doubt;
    if doubt.is_again {
        found = found.with_evidence(
            evidence,
            "the same error was printed before, and the run continued".into(),
            "",
        );
    }
    if let Some(closing) = &doubt.closing {
        found = found.with_evidence(
            evidence,
            format!("after it: {}", cut(closing, MAX_COLUMNS)),
            "",
        );
    }
    Some(found)
}

/// An error before the run was interrupted.
fn from_interrupted_error(evidence: &RunEvidence<'_>) -> Option<Found> {
    let traceback = evidence.printed.interrupted.as_ref()?;
    let found = Found::new(evidence, 0.7, describe_error(traceback), "");
    Some(found.at_location(evidence.location_of_traceback(traceback)))
}

/// An error after which output continued: it may have been caught, or another rank continued.
fn from_continued_error(evidence: &RunEvidence<'_>) -> Option<Found> {
    let traceback = evidence.printed.caught.as_ref()?;
    let found = Found::new(evidence, 0.35, describe_error(traceback), "");
    let found = found.at_location(evidence.location_of_traceback(traceback));
    Some(found.with_evidence(evidence, "the run continued after that".into(), ""))
}

/// An exit code without an error: the reason is often in the last line.
fn from_last_line(evidence: &RunEvidence<'_>) -> Option<Found> {
    let Some(Exit::Code(code)) = evidence.exit().filter(|_| evidence.end == EndKind::Failed) else {
        return None;
    };
    let last = evidence
        .printed
        .ending()
        .map(str::trim)
        .rfind(|line| !line.is_empty())?;
    let summary = format!(
        "it exited with code {code}; its last line was: {}",
        cut(last, MAX_COLUMNS)
    );
    let found = Found::new(evidence, 0.45, summary, "");
    Some(match &evidence.printed.caught {
        Some(caught) => found.with_evidence(
            evidence,
            format!("it had continued after {}", cut(&caught.error, MAX_COLUMNS)),
            "",
        ),
        None => found,
    })
}

/// Wrong arguments: `usage: …`, and `train.py: error: …` in the last line.
fn from_argument_parser(evidence: &RunEvidence<'_>) -> Option<Found> {
    const MAX_USAGE_LINES: usize = 60;
    let mut lines = evidence.printed.last().rev().map(str::trim);
    let last = lines.next()?;
    let (who, what) = last.split_once("rror: ")?;
    let is_parser = !what.is_empty()
        && (who == "E"
            || who
                .strip_suffix(": e")
                .is_some_and(|name| !name.contains(": ")));
    let is_usage = |line: &str| line.starts_with("usage: ") || line.starts_with("Usage: ");
    let has_usage = lines.take(MAX_USAGE_LINES).any(is_usage);
    (is_parser && has_usage).then(|| Found::new(evidence, 0.85, cut(last, MAX_COLUMNS), ""))
}

/// An error of Julia: `ERROR: LoadError: …`, `Stacktrace:`, `in expression starting at train.jl:41`.
fn from_julia(evidence: &RunEvidence<'_>) -> Option<Found> {
    const MAX_MESSAGE_LINES: usize = 12;
    let lines: Vec<&str> = evidence.printed.last().map(str::trim).collect();
    let at = lines.iter().rposition(|line| line.starts_with("ERROR: "))?;
    let after = lines.get(at + 1..).unwrap_or_default();
    let error = lines.get(at)?.strip_prefix("ERROR: ")?;
    let has_stack = after
        .iter()
        .take(MAX_MESSAGE_LINES)
        .any(|line| *line == "Stacktrace:");
    let place = after.iter().find_map(|line| {
        line.strip_prefix("in expression starting at ")?
            .rsplit_once(':')
    });
    let is_of_file = error.starts_with("LoadError: ") && place.is_some();
    if !has_stack && !is_of_file {
        return None;
    }
    let location = place.and_then(|(file, line)| {
        Some(Location {
            file: file.to_owned(),
            line: line.parse().ok()?,
            name: None,
        })
    });
    let confidence = if error.to_lowercase().contains("memory") {
        0.4
    } else {
        0.75
    };
    Some(Found::new(evidence, confidence, cut(error, MAX_COLUMNS), "").at_location(location))
}

/// The first line of an error, or the whole message if that line only introduces it.
fn describe_error(traceback: &Traceback) -> String {
    match traceback.error.trim_end().ends_with(':') {
        true => cut(&traceback.message(), MAX_COLUMNS),
        false => cut(&traceback.error, MAX_COLUMNS),
    }
}

/// The exit code, if the script chose it itself.
pub(crate) fn own_exit_code(exit: Exit) -> Option<u32> {
    match exit {
        Exit::Code(code) if code != 0 && !ERROR_EXIT_CODES.contains(&code) => Some(code),
        _ => None,
    }
}

/// The confidence in an error. It is lower for an error that only says that another process failed or memory ran out, for
/// an opaque status of a GPU library, and for one that may have been caught.
fn error_confidence(evidence: &RunEvidence<'_>) -> f64 {
    const OF_ANOTHER: [&str; 2] = ["TerminatedWorkerError", "DeadKernelError"];
    const OPAQUE: [&str; 4] = [
        "CUBLAS_STATUS_",
        "CUDNN_STATUS_",
        "CUSOLVER_STATUS_",
        "CUDA error: unknown error",
    ];
    let error = evidence.error();
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    let blames_another = evidence
        .printed
        .traceback
        .as_ref()
        .is_some_and(Traceback::blames_another);
    let doubt = &evidence.printed.doubt;
    let by_words = match () {
        _ if blames_another || has(&OF_ANOTHER) => 0.4,
        _ if evidence.reports_out_of_memory() => 0.3,
        _ if has(&OPAQUE) => 0.6,
        _ => 0.9,
    };
    let by_end = match (
        evidence.exit().and_then(own_exit_code),
        doubt.is_again || doubt.went_on,
        &doubt.closing,
    ) {
        (Some(_), true, _) => 0.35,
        (Some(_), ..) | (.., Some(_)) => 0.5,
        (None, true, None) => 0.65,
        (None, false, None) => 0.9,
    };
    f64::min(by_words, by_end)
}

/// Whether the error was caught, by the output after it and an exit code that the script chose.
pub(crate) fn was_caught(exit: Exit, doubt: &Doubt) -> bool {
    doubt.went_on && own_exit_code(exit).is_some()
}
