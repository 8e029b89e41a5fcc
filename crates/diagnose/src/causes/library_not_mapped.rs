//! # library-not-mapped
//!
//! A library could not be loaded, because the process was not allowed to map its data.
//!
//! ## Symptoms
//!
//! `ImportError: …/torch/_C.so: failed to map segment from shared object`, `cannot map zero-fill pages`, `error while
//! loading shared libraries: …: cannot create shared object descriptor: Cannot allocate memory`. The library is
//! installed, and the same import works with more memory.
//!
//! ## How it is detected
//!
//! By the message of the dynamic loader. It maps all data of a library first, hundreds of megabytes for CUDA's, and a
//! limit on the process counts all of it, used or not. Under `antifreeze run` the limit is lifted while libraries load.
//! That does not work for an attached process, for a program that drops `LD_PRELOAD`, or under a limit of the user
//! (`ulimit -d`, `ulimit -v`). "Operation not permitted" means something else: a file system mounted with `noexec`.
//!
//! ## What to do
//!
//! Give the run more memory, or start it under antifreeze instead of attaching to it:
//!
//! ```sh
//! antifreeze run --budget 4GB -- python train.py
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::LibraryNotMapped,
    word: "library-not-mapped",
    title: "not enough memory to load a library",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("library_not_mapped.rs"),
    detect,
};

/// Messages of the dynamic loader when a mapping is refused.
const REFUSED: [&str; 3] = [
    "failed to map segment from shared object",
    "cannot map zero-fill pages",
    "cannot create shared object descriptor",
];
/// More than the data of a framework's libraries.
const LIBRARY_BYTES: u64 = 1_000_000_000;
/// The smallest reserve to recommend.
const MIN_RESERVE_BYTES: u64 = 500_000_000;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let Some(line) = loader_message(evidence) else {
        return Finding::Nothing;
    };
    if line.contains("Operation not permitted") {
        let found =
            Found::new(evidence, 0.7, cut(&line, 160), "").at_location(evidence.error_location());
        return Finding::Found(found.with_remedy(
            "the file system that the library is on is mounted with `noexec`: install into another folder",
            Some("findmnt --options noexec".into()),
        ));
    }
    let is_ours = is_near_wall(evidence);
    let confidence = if is_ours { 0.9 } else { 0.75 };
    let found = Found::new(evidence, confidence, cut(&line, 160), "")
        .at_location(evidence.error_location());
    Finding::Found(match (is_ours, evidence.facts.binding_budget()) {
        (true, Some(budget)) => {
            let found = found.with_evidence(evidence, format!("it can use {} in all", units::bytes(budget)), "tree.footprint");
            found.with_remedy("use a budget that has room for its libraries", Some(with_flag(evidence, "--budget", recommended_budget(evidence))))
        }
        (true, None) => {
            let reserve = evidence.facts.reserve;
            let kept = format!("{} are reserved for other programs", units::bytes(reserve));
            let found = found.with_evidence(evidence, kept, "tree.footprint");
            match reserve / 2 {
                half if half >= MIN_RESERVE_BYTES => found.with_remedy(
                    "close other programs, or lower the reserve",
                    Some(with_flag(evidence, "--reserve", half)),
                ),
                _ => found.with_remedy("close other programs: its libraries need their memory", None),
            }
        }
        (false, _) => found.with_remedy(
            "a limit of the shell or the job is too low for its libraries: check whether one is set, and raise it",
            Some("ulimit -d; ulimit -v".into()),
        ),
    })
}

/// The message of the loader, in a Python error or as the last output of the program.
pub(super) fn loader_message(evidence: &RunEvidence<'_>) -> Option<String> {
    let is_it = |text: &str| {
        let is_of_loader = [
            "ImportError",
            "OSError",
            "error while loading shared libraries",
        ];
        REFUSED.iter().any(|words| text.contains(words))
            // Thread-local storage is another matter: its size is fixed when the program starts.
            || text.contains("Cannot allocate memory")
                && text.contains(".so")
                && !text.contains("static TLS")
                && is_of_loader.iter().any(|words| text.contains(words))
    };
    let error = evidence.error();
    if !error.is_empty() {
        return is_it(error).then(|| error.to_owned());
    }
    let line = evidence
        .find_line(&["error while loading shared libraries"])
        .filter(|_| evidence.went_wrong())?;
    is_it(&line).then_some(line)
}

/// Whether the run can use so little memory that libraries can have reached the wall.
fn is_near_wall(evidence: &RunEvidence<'_>) -> bool {
    evidence.last_sample().is_some()
        && evidence.facts.usable_memory() < mapped_bytes(evidence).saturating_add(LIBRARY_BYTES)
}

/// Peak mapped memory, used or not.
fn mapped_bytes(evidence: &RunEvidence<'_>) -> u64 {
    evidence
        .summary
        .peak
        .as_ref()
        .map_or(0, |peak| peak.footprint.saturating_add(peak.untouched))
}

/// A budget for what it had and for the libraries of a framework, in whole gigabytes.
fn recommended_budget(evidence: &RunEvidence<'_>) -> u64 {
    let room = mapped_bytes(evidence)
        .max(evidence.facts.usable_memory())
        .saturating_add(LIBRARY_BYTES);
    room.div_ceil(1_000_000_000) * 1_000_000_000
}

fn with_flag(evidence: &RunEvidence<'_>, flag: &str, bytes: u64) -> String {
    let size = match bytes % 1_000_000_000 {
        0 => format!("{}GB", bytes / 1_000_000_000),
        _ => format!("{}MB", bytes / 1_000_000),
    };
    format!(
        "antifreeze run {flag} {size} -- {}",
        evidence.facts.command_line()
    )
}
