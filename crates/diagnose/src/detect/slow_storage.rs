//! # slow-storage
//!
//! The disk or the network that the data comes from is what everything waits for.
//!
//! ## How it looks
//!
//! The first epoch is slow and the second fast, or all are slow; cores and card are idle; many small files, a
//! network drive, an external disk.
//!
//! ## How it is told
//!
//! For a fifth of the run or more every task waited for the disk (pressure "full"), or the disk was busy for
//! 70 % of the time while the tree read from it. A network mount is named. Where memory was short it may be
//! swap that kept the disk busy: then it is not said.
//!
//! ## What to do
//!
//! Copy the data to a local disk, or pack small files into few large ones:
//!
//! ```sh
//! rsync -a /mnt/nas/dataset/ ~/dataset/
//! ```

use antifreeze_text::units;
use super::{Finding, Found};
use crate::case::Case;

const STALLED: f64 = 0.2;
const BUSY: f64 = 0.7;
/// Bytes a second and less are not what keeps a disk busy.
const READS: f64 = 1e5;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let whole = case.story.course.whole();
    let seconds = whole.time.as_secs_f64();
    if seconds < 20.0 || case.story.course.worst_stall > STALLED {
        return Finding::Nothing;
    }
    let stall = whole.io_stall.unwrap_or(0.0);
    let busy = whole.disk_busy.unwrap_or(0.0);
    let reads = whole.read.map_or(0.0, |read| read as f64 / seconds);
    if stall < STALLED && (busy < BUSY || reads < READS) {
        return Finding::Nothing;
    }
    let is_remote = case.last().and_then(|last| last.disk.network.value()) == Some(1);
    let summary = if stall >= STALLED {
        format!("everything waited for the disk for {} of the time", units::percent(stall))
    } else {
        format!("the disk was busy for {} of the time", units::percent(busy))
    };
    let mut found = Found::new(case, if is_remote { 0.8 } else { 0.65 }, summary, "disk");
    found = found.and(case, format!("the run read {}", units::growth_rate(reads)), "tree.read_bytes");
    if is_remote {
        let mount = case.facts.mount.as_deref().map_or_else(String::new, |mount| format!(": {mount}"));
        found = found.and(case, format!("the run's folder is on a network mount{mount}"), "disk.network");
    }
    Finding::Found(found.remedy(
        "copy the data to a local disk, or pack small files into few large ones",
        None,
    ))
}
