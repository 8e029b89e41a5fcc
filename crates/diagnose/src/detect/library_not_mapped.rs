//! # library-not-mapped
//!
//! A library was not loaded, because the process was not allowed to map its data.
//!
//! ## How it looks
//!
//! `ImportError: …/torch/_C.so: failed to map segment from shared object`, `cannot map zero-fill pages`,
//! `error while loading shared libraries: …: cannot create shared object descriptor: Cannot allocate memory`. The
//! library is installed, and the same import works with more room.
//!
//! ## How it is told
//!
//! By the words of the dynamic loader. It maps all data of a library before it runs, hundreds of megabytes for CUDA's, and
//! a limit on the process counts all of it, used or not. In a run under antifreeze the limit steps aside while libraries are
//! loaded. That does not hold for a process that was there before (`attach`), for a program that drops the variable
//! `LD_PRELOAD`, and below a limit of the user's own (`ulimit -d`, `ulimit -v`). "Operation not permitted" is another
//! matter: a file system that is mounted with `noexec`.
//!
//! ## What to do
//!
//! Give the run more room, or start it under antifreeze instead of attaching to it:
//!
//! ```sh
//! antifreeze run --budget 4GB -- python train.py
//! ```

use antifreeze_text::layout::cut;
use antifreeze_text::units;
use super::{Finding, Found};
use crate::case::Case;

/// What the dynamic loader of the C library says when it may not map.
const REFUSED: [&str; 3] = [
    "failed to map segment from shared object",
    "cannot map zero-fill pages",
    "cannot create shared object descriptor",
];
/// More data than the libraries of a framework have.
const LIBRARIES: u64 = 1_000_000_000;
/// What is kept free at least.
const LEAST_RESERVE: u64 = 500_000_000;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some(line) = said(case) else {
        return Finding::Nothing;
    };
    if line.contains("Operation not permitted") {
        let found = Found::new(case, 0.7, cut(&line, 160), "").at(case.location());
        return Finding::Found(found.remedy(
            "the file system that the library is on is mounted with `noexec`: install into another folder",
            Some("findmnt --options noexec".into()),
        ));
    }
    let is_ours = is_near_wall(case);
    let confidence = if is_ours { 0.9 } else { 0.75 };
    let found = Found::new(case, confidence, cut(&line, 160), "").at(case.location());
    Finding::Found(match (is_ours, case.facts.binding_budget()) {
        (true, Some(budget)) => {
            let found = found.and(case, format!("it may use {} in all", units::bytes(budget)), "tree.footprint");
            found.remedy("a budget that has room for its libraries", Some(with_flag(case, "--budget", wanted(case))))
        }
        (true, None) => {
            let reserve = case.facts.reserve;
            let kept = format!("{} are kept free for the machine", units::bytes(reserve));
            let found = found.and(case, kept, "tree.footprint");
            match reserve / 2 {
                half if half >= LEAST_RESERVE => found.remedy(
                    "close other programs, or keep less free",
                    Some(with_flag(case, "--reserve", half)),
                ),
                _ => found.remedy("close other programs: their memory is what its libraries lack", None),
            }
        }
        (false, _) => found.remedy(
            "a limit of the shell or the job is too low for its libraries: see whether one is set, and raise it",
            Some("ulimit -d; ulimit -v".into()),
        ),
    })
}

/// What the loader said, as an error of Python or, of the program itself, as its last words.
pub(super) fn said(case: &Case<'_>) -> Option<String> {
    let is_it = |text: &str| {
        let is_of_loader = ["ImportError", "OSError", "error while loading shared libraries"];
        REFUSED.iter().any(|words| text.contains(words))
            // Storage for threads is another matter: its size is fixed when the program starts.
            || text.contains("Cannot allocate memory")
                && text.contains(".so")
                && !text.contains("static TLS")
                && is_of_loader.iter().any(|words| text.contains(words))
    };
    let error = case.error();
    if !error.is_empty() {
        return is_it(error).then(|| error.to_owned());
    }
    let line = case.line_with(&["error while loading shared libraries"]).filter(|_| case.went_wrong())?;
    is_it(&line).then_some(line)
}

/// Whether what the run may use is little enough that libraries can have met the wall.
fn is_near_wall(case: &Case<'_>) -> bool {
    case.last().is_some() && case.facts.may_use() < mapped(case).saturating_add(LIBRARIES)
}

/// The most it had mapped, used or not.
fn mapped(case: &Case<'_>) -> u64 {
    case.story.peak.as_ref().map_or(0, |peak| peak.footprint.saturating_add(peak.untouched))
}

/// Room for what it had and for the libraries of a framework, in whole gigabytes.
fn wanted(case: &Case<'_>) -> u64 {
    let room = mapped(case).max(case.facts.may_use()).saturating_add(LIBRARIES);
    room.div_ceil(1_000_000_000) * 1_000_000_000
}

fn with_flag(case: &Case<'_>, flag: &str, bytes: u64) -> String {
    let size = match bytes % 1_000_000_000 {
        0 => format!("{}GB", bytes / 1_000_000_000),
        _ => format!("{}MB", bytes / 1_000_000),
    };
    format!("antifreeze run {flag} {size} -- {}", case.facts.command_line())
}
