//! # loader-memory
//!
//! The processes that load data hold the memory, not the one that trains.
//!
//! ## How it looks
//!
//! The training process stays small while the machine fills up; `DataLoader worker (pid …) is killed by signal:
//! Killed`. Each worker holds its own copy of what the dataset keeps in Python objects, or many large batches
//! wait ready-made.
//!
//! ## How it is told
//!
//! At the moment of the peak the processes that PyTorch names as its loaders held more than half of the tree's
//! memory, or the output says that a worker was killed.
//!
//! ## What to do
//!
//! Fewer workers, fewer batches ahead, and arrays instead of lists of Python objects in the dataset:
//!
//! ```python
//! DataLoader(dataset, num_workers=2, prefetch_factor=1, persistent_workers=True)
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::units;

/// Of the memory of the tree.
const MOST: f64 = 0.5;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.was_short_of_memory() && case.line_with(&["DataLoader worker"]).is_none() {
        return Finding::Nothing;
    }
    let Some(peak) = case.story.peak.as_ref().filter(|peak| peak.held > 0) else {
        return Finding::Nothing;
    };
    let share = peak.held_by_loaders as f64 / peak.held as f64;
    let killed = case
        .line_with(&["is killed by signal: Killed"])
        .filter(|line| line.contains("DataLoader worker"));
    let confidence = match (share > MOST, &killed) {
        (true, Some(_)) => 0.85,
        (true, None) => 0.8,
        (false, Some(_)) => 0.55,
        (false, None) if peak.held_by_loaders > 0 => {
            let why = format!(
                "the loaders held {} of {}",
                units::bytes(peak.held_by_loaders),
                units::bytes(peak.held)
            );
            return Finding::RuledOut(why);
        }
        (false, None) => return Finding::Nothing,
    };
    let summary = format!(
        "the loaders held {} of {}",
        units::bytes(peak.held_by_loaders),
        units::bytes(peak.held)
    );
    let mut found = Found::new(case, confidence, summary, "processes");
    if let Some(line) = killed {
        found = found.and(case, line, "");
    }
    Finding::Found(found.remedy(
        "fewer workers and fewer batches ahead; keep arrays instead of lists of objects in the dataset",
        Some("num_workers=2, prefetch_factor=1".into()),
    ))
}
