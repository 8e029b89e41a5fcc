//! # disk-full
//!
//! There was no space left on the disk that the run writes to.
//!
//! ## Symptoms
//!
//! `OSError: [Errno 28] No space left on device`, a truncated checkpoint, a log that breaks off.
//!
//! ## How it is detected
//!
//! In the last sample less than 2 % of the disk with the run's folder was free; an error in the output makes it
//! certain. Without an error about writing, less than 1 GB must be free, since 2 % of a large disk is enough for most
//! runs. An error without a full disk there may be about another disk, or about the number of files, and is likely; so
//! is `unexpected pos`, PyTorch's error for a file that could not be written to its end. Kubernetes reports it when it
//! evicts a pod (`ephemeral-storage`).
//!
//! ## What to do
//!
//! Free some space, keep fewer checkpoints, or write them elsewhere:
//!
//! ```sh
//! du -xh --max-depth=2 . | sort -h | tail
//! ```

use super::shm_exhausted::FULL_SHARE;
use super::{CauseKind, Finding, Found, Role, shm_exhausted};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_sense::FsSpace;
use antifreeze_text::layout::cut;
use antifreeze_text::{sanitize, units};
use std::os::unix::ffi::OsStrExt;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::DiskFull,
    word: "disk-full",
    title: "disk full",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("disk_full.rs"),
    detect,
};

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if !evidence.went_wrong() {
        return Finding::Nothing;
    }
    let free = evidence
        .last_sample()
        .and_then(|last| share_free(last.disk.space));
    let in_shm = shm_exhausted::full_line(evidence).is_some()
        || evidence
            .last_sample()
            .and_then(|last| share_free(last.shm))
            .is_some_and(|(share, _)| share < FULL_SHARE);
    let (confidence, summary) = match free {
        Some((share, free))
            if share < FULL_SHARE
                && (free < SCARCE_BYTES || says_full(evidence) || is_write_error(evidence)) =>
        {
            (
                match (says_full(evidence), is_write_error(evidence)) {
                    (true, _) => 0.9,
                    (false, true) => 0.85,
                    (false, false) => 0.5,
                },
                format!(
                    "{} were free on the disk that the run writes to",
                    units::bytes(free)
                ),
            )
        }
        // The disk is sampled only every few seconds.
        free if is_cut_short(evidence) && free.is_none_or(|(_, free)| free < SCARCE_BYTES) => {
            (0.75, "a file could not be written completely".into())
        }
        _ if says_full(evidence) && !in_shm => {
            let said = evidence.find_line_with_confidence(&[SAYS_FULL, SAYS_QUOTA]);
            let (line, most) = said.unwrap_or_else(|| (SAYS_FULL.into(), 1.0));
            (f64::min(0.8, most), line)
        }
        None if eviction_line(evidence).is_some() => {
            (0.85, eviction_line(evidence).unwrap_or_default())
        }
        Some((_, free)) => return Finding::RuledOut(format!("{} free", units::bytes(free))),
        None => return Finding::Nothing,
    };
    Finding::Found(
        Found::new(evidence, confidence, summary, "disk.free")
            .at_location(evidence.error_location().filter(|_| says_full(evidence)))
            .with_remedy(
                "free some space; the largest folders:",
                Some(largest_folders(evidence)),
            ),
    )
}

const SAYS_FULL: &str = "No space left on device";
const SAYS_QUOTA: &str = "Disk quota exceeded";

/// With less than this free, the run may have filled the disk after the last sample.
const SCARCE_BYTES: u64 = 1_000_000_000;

/// Whether PyTorch reports that a file was cut short.
fn is_cut_short(evidence: &RunEvidence<'_>) -> bool {
    let error = evidence.error();
    error.contains("inline_container") && error.contains("unexpected pos")
        || error.contains("PytorchStreamWriter failed writing")
        || error.contains("basic_ios::clear: iostream error")
}

/// The line in which Kubernetes reports an eviction because of disk space.
fn eviction_line(evidence: &RunEvidence<'_>) -> Option<String> {
    const STORAGE: [&str; 3] = [
        "ephemeral-storage",
        "ephemeral local storage",
        "EmptyDir volume",
    ];
    let line = evidence.find_line(&STORAGE)?;
    let is_why = ["low on resource", "exceeds"]
        .iter()
        .any(|words| line.contains(words));
    is_why.then(|| cut(&line, 160))
}

/// Whether the error is about writing a file. Libraries with their own file formats report no more than that.
fn is_write_error(evidence: &RunEvidence<'_>) -> bool {
    let error = evidence.error().to_lowercase();
    [
        "write",
        "writing",
        "unable to create file",
        "inline_container",
        "iostream error",
    ]
    .iter()
    .any(|word| error.contains(word))
}

pub(super) fn says_full(evidence: &RunEvidence<'_>) -> bool {
    evidence.find_line(&[SAYS_FULL, SAYS_QUOTA]).is_some()
}

/// The free share of a file system, and the free bytes.
pub(super) fn share_free(space: FsSpace) -> Option<(f64, u64)> {
    let (total, free) = (space.total.value()?, space.free.value()?);
    (total > 0).then(|| (free as f64 / total as f64, free))
}

fn largest_folders(evidence: &RunEvidence<'_>) -> String {
    let folder = &evidence.facts.folder;
    let folder = match folder.as_os_str().as_bytes() {
        b"" => ".".into(),
        _ => sanitize::shell_command(&[folder.clone().into_os_string()]),
    };
    format!("du -xh --max-depth=2 {folder} | sort -h | tail")
}
