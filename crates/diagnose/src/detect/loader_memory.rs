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
//! At the moment of the peak the processes that PyTorch names as its loaders had taken 40 % of the tree's memory or
//! more since they were started (what they share with the training process does not count), or the output says that
//! a worker was killed: without a record that is all there is, and it is called likely. An error of a worker that it
//! had no memory is called possible.
//!
//! ## What to do
//!
//! Fewer workers, fewer batches ahead, and arrays instead of lists of Python objects in the dataset:
//!
//! ```python
//! DataLoader(dataset, num_workers=2, prefetch_factor=1, persistent_workers=True)
//! ```

use antifreeze_text::layout::cut;
use antifreeze_text::units;
use super::batch_too_large::is_in_import;
use super::{Finding, Found, remedy};
use crate::case::Case;

/// Of the memory of the tree.
const MOST: f64 = 0.4;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let killed = case
        .line_with(&["is killed by signal: Killed"])
        .filter(|line| line.contains("DataLoader worker"));
    if !case.was_short_of_memory() && killed.is_none() {
        return Finding::Nothing;
    }
    let Some(peak) = case.story.peak.as_ref().filter(|peak| peak.footprint > 0) else {
        // Without a record the victim's name is all that is known; or that it was one of them that had no memory.
        let raised = Some(case.error().to_owned());
        let raised = raised.filter(|error| case.tells_of_memory() && error.contains("DataLoader worker"));
        if let Some(error) = raised.filter(|_| killed.is_none()) {
            return Finding::Found(remedied(case, Found::new(case, 0.55, cut(&error, 160), "").at(case.location())));
        }
        // Where processes cannot be copied, each worker loads all libraries anew.
        let is_spawned = case.any_line_with(&["in spawn_main"]).is_some() && case.tells_of_memory();
        if is_spawned && killed.is_none() && is_in_import(case) {
            let summary = "there was no memory for the libraries that each worker loads anew".to_owned();
            let found = Found::new(case, 0.6, summary, "").at(case.location());
            return Finding::Found(remedied(case, found.and(case, cut(case.error(), 160), "")));
        }
        let found = killed.map(|line| remedied(case, Found::new(case, 0.75, cut(&line, 160), "")));
        return found.into();
    };
    let taken = peak.taken_by_loaders;
    let summary = format!(
        "the loaders had taken {} of {}",
        units::bytes(taken),
        units::bytes(peak.footprint)
    );
    let is_most = taken as f64 >= peak.footprint as f64 * MOST;
    let confidence = match (is_most, &killed) {
        (true, Some(_)) => 0.85,
        (true, None) => 0.8,
        (false, Some(_)) => 0.55,
        (false, None) if taken > 0 => return Finding::RuledOut(summary),
        (false, None) => return Finding::Nothing,
    };
    let mut found = Found::new(case, confidence, summary, "processes");
    if let Some(line) = killed {
        found = found.and(case, line, "");
    }
    Finding::Found(remedied(case, found))
}

fn remedied(case: &Case<'_>, found: Found) -> Found {
    if let Some(remedy) = remedy::for_dataset(case) {
        let place = remedy::first_place(&remedy);
        return found.at(place).remedy_by(remedy);
    }
    let holder = case.suspect().and_then(|suspect| remedy::for_holder(case, suspect.holder));
    if let Some(remedy) = holder {
        return found.remedy_by(remedy);
    }
    found.remedy(
        "fewer workers and fewer batches ahead (`num_workers`, `prefetch_factor`); keep arrays instead of lists of \
         objects in the dataset, and no cache of samples in it: each worker has its own",
        None,
    )
}
