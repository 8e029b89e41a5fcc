//! # slow-storage
//!
//! Everything waits for the disk or the network that the data comes from.
//!
//! ## Symptoms
//!
//! The first epoch is slow and the second fast, or all are slow. Cores and GPU are idle. The data is many small files,
//! or is on a network drive or an external disk.
//!
//! ## How it is detected
//!
//! For a fifth of the run or more all tasks waited for I/O (pressure "full"), or the disk was busy for 70 % of the time
//! while the run read from it. A network mount is named. If memory was short, swap may have kept the disk busy, so
//! nothing is said.
//!
//! ## What to do
//!
//! Copy the data to a local disk, or pack small files into few large ones:
//!
//! ```sh
//! rsync -a /mnt/nas/dataset/ ~/dataset/
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::SlowStorage,
    word: "slow-storage",
    title: "slow storage",
    role: Role::SlowsRun,
    lint_rules: &[],
    source: include_str!("slow_storage.rs"),
    detect,
};

/// All tasks waited for I/O from this share of the time on.
const MIN_STALL_SHARE: f64 = 0.2;
/// The disk was busy from this share of the time on.
const MIN_BUSY_SHARE: f64 = 0.7;
/// Reading fewer bytes a second does not keep a disk busy.
const MIN_READ_RATE: f64 = 1e5;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let whole = evidence.summary.rates.whole_run();
    let seconds = whole.time.as_secs_f64();
    if seconds < 20.0 || evidence.summary.rates.worst_memory_stall > MIN_STALL_SHARE {
        return Finding::Nothing;
    }
    let stall = whole.io_stall.unwrap_or(0.0);
    let busy = whole.disk_busy.unwrap_or(0.0);
    let reads = whole.read.map_or(0.0, |read| read as f64 / seconds);
    if stall < MIN_STALL_SHARE && (busy < MIN_BUSY_SHARE || reads < MIN_READ_RATE) {
        return Finding::Nothing;
    }
    let is_remote = evidence
        .last_sample()
        .and_then(|last| last.disk.network.value())
        == Some(1);
    let summary = if stall >= MIN_STALL_SHARE {
        format!(
            "all tasks waited for the disk for {} of the time",
            units::percent(stall)
        )
    } else {
        format!("the disk was busy for {} of the time", units::percent(busy))
    };
    let mut found = Found::new(
        evidence,
        if is_remote { 0.8 } else { 0.65 },
        summary,
        "disk",
    );
    found = found.with_evidence(
        evidence,
        format!("the run read {}", units::growth_rate(reads)),
        "tree.read_bytes",
    );
    if is_remote {
        let mount = evidence
            .facts
            .mount
            .as_deref()
            .map_or_else(String::new, |mount| format!(": {mount}"));
        found = found.with_evidence(
            evidence,
            format!("the run's folder is on a network mount{mount}"),
            "disk.network",
        );
    }
    Finding::Found(found.with_remedy(
        "copy the data to a local disk, or pack small files into few large ones",
        None,
    ))
}
