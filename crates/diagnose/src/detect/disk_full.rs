//! # disk-full
//!
//! There was no room left on the disk that the run writes to.
//!
//! ## How it looks
//!
//! `OSError: [Errno 28] No space left on device`, a checkpoint that is cut short, a log that ends.
//!
//! ## How it is told
//!
//! Less than 2 % was free where the run was started at the last sample; the error in the output makes it sure. Without
//! an error about writing, less than 1 GB has to be left: 2 % of a large disk is room enough for most runs. An
//! error without a full disk there may be of another disk, or of its number of files, and is called likely; so is
//! `unexpected pos`, with which PyTorch tells that a file could not be written to its end. Kubernetes says so when it
//! evicts what fills a disk (`ephemeral-storage`).
//!
//! ## What to do
//!
//! Free some space, keep fewer checkpoints, or write them elsewhere:
//!
//! ```sh
//! du -xh --max-depth=2 . | sort -h | tail
//! ```

use antifreeze_text::layout::cut;
use antifreeze_text::{sanitize, units};
use super::shm_exhausted::FULL;
use super::{Finding, Found, shm_exhausted};
use crate::case::Case;
use antifreeze_sense::FsSpace;
use std::os::unix::ffi::OsStrExt;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    let free = case.last().and_then(|last| share_free(last.disk.space));
    let in_shm = shm_exhausted::said(case).is_some()
        || case
            .last()
            .and_then(|last| share_free(last.shm))
            .is_some_and(|(share, _)| share < FULL);
    let (confidence, summary) = match free {
        Some((share, free)) if share < FULL && (free < SCARCE || says_full(case) || tells_of_writing(case)) => (
            match (says_full(case), tells_of_writing(case)) {
                (true, _) => 0.9,
                (false, true) => 0.85,
                (false, false) => 0.5,
            },
            format!("{} were free where the run writes", units::bytes(free)),
        ),
        // The disk is looked at every few seconds only.
        free if is_cut_short(case) && free.is_none_or(|(_, free)| free < SCARCE) => {
            (0.75, "a file could not be written to its end".into())
        }
        _ if says_full(case) && !in_shm => {
            let said = case.said(&[SAYS_FULL, SAYS_QUOTA]);
            let (line, most) = said.unwrap_or_else(|| (SAYS_FULL.into(), 1.0));
            (f64::min(0.8, most), line)
        }
        None if evicted(case).is_some() => (0.85, evicted(case).unwrap_or_default()),
        Some((_, free)) => return Finding::RuledOut(format!("{} free", units::bytes(free))),
        None => return Finding::Nothing,
    };
    Finding::Found(
        Found::new(case, confidence, summary, "disk.free")
            .at(case.location().filter(|_| says_full(case)))
            .remedy("free some space; the largest folders:", Some(largest_folders(case))),
    )
}

const SAYS_FULL: &str = "No space left on device";
const SAYS_QUOTA: &str = "Disk quota exceeded";

/// With less than this left, the run may have filled the disk after the last sample.
const SCARCE: u64 = 1_000_000_000;

/// What PyTorch says when its file ends before its writing does.
fn is_cut_short(case: &Case<'_>) -> bool {
    let error = case.error();
    error.contains("inline_container") && error.contains("unexpected pos")
        || error.contains("PytorchStreamWriter failed writing")
        || error.contains("basic_ios::clear: iostream error")
}

/// Kubernetes ends what fills its node's disk, or uses more of it than it may.
fn evicted(case: &Case<'_>) -> Option<String> {
    const STORAGE: [&str; 3] = ["ephemeral-storage", "ephemeral local storage", "EmptyDir volume"];
    let line = case.line_with(&STORAGE)?;
    let is_why = ["low on resource", "exceeds"].iter().any(|words| line.contains(words));
    is_why.then(|| cut(&line, 160))
}

/// Libraries that write for themselves say less.
fn tells_of_writing(case: &Case<'_>) -> bool {
    let error = case.error().to_lowercase();
    ["write", "writing", "unable to create file", "inline_container", "iostream error"]
        .iter()
        .any(|word| error.contains(word))
}

pub(super) fn says_full(case: &Case<'_>) -> bool {
    case.line_with(&[SAYS_FULL, SAYS_QUOTA]).is_some()
}

/// The share of a file system that is free, and how much that is.
pub(super) fn share_free(space: FsSpace) -> Option<(f64, u64)> {
    let (total, free) = (space.total.value()?, space.free.value()?);
    (total > 0).then(|| (free as f64 / total as f64, free))
}

fn largest_folders(case: &Case<'_>) -> String {
    let folder = &case.facts.folder;
    let folder = match folder.as_os_str().as_bytes() {
        b"" => ".".into(),
        _ => sanitize::shell_command(&[folder.clone().into_os_string()]),
    };
    format!("du -xh --max-depth=2 {folder} | sort -h | tail")
}
