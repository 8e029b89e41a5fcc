//! # loader-memory
//!
//! The data loader processes use the memory, not the training process.
//!
//! ## Symptoms
//!
//! The training process stays small while the machine fills up; `DataLoader worker (pid …) is killed by signal:
//! Killed`. Each worker holds its own copy of the Python objects in the dataset, or many large batches are prefetched.
//!
//! ## How it is detected
//!
//! At peak memory, the PyTorch loader processes had taken 40 % of the run's memory or more since they were started,
//! without what they share with the training process. Or the output says that a worker was killed, which is likely
//! where there is no record. An out-of-memory error in a worker makes it possible.
//!
//! ## What to do
//!
//! Use fewer workers, prefetch fewer batches, and keep arrays instead of lists of Python objects in the dataset:
//!
//! ```python
//! DataLoader(dataset, num_workers=2, prefetch_factor=1, persistent_workers=True)
//! ```

use super::batch_too_large::failed_in_import;
use super::{CauseKind, Finding, Found, Role, remedy};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::LoaderMemory,
    word: "loader-memory",
    title: "data loader uses too much memory",
    role: Role::ExhaustsMemory,
    lint_rules: &[],
    source: include_str!("loader_memory.rs"),
    detect,
};

/// Loaders use too much memory from this share of the run's memory on.
const MIN_LOADER_SHARE: f64 = 0.4;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let killed = evidence
        .find_line(&["is killed by signal: Killed"])
        .filter(|line| line.contains("DataLoader worker"));
    if !evidence.was_short_of_memory() && killed.is_none() {
        return Finding::Nothing;
    }
    let Some(peak) = evidence
        .summary
        .peak
        .as_ref()
        .filter(|peak| peak.footprint > 0)
    else {
        // Without a record only the name of the killed process is known, or that a worker had no memory.
        let raised = Some(evidence.error().to_owned());
        let raised = raised.filter(|error| {
            evidence.reports_out_of_memory() && error.contains("DataLoader worker")
        });
        if let Some(error) = raised.filter(|_| killed.is_none()) {
            return Finding::Found(add_remedies(
                evidence,
                Found::new(evidence, 0.55, cut(&error, 160), "")
                    .at_location(evidence.error_location()),
            ));
        }
        // Where processes are spawned and not forked, each worker loads all libraries again.
        let is_spawned = evidence.find_line_anywhere(&["in spawn_main"]).is_some()
            && evidence.reports_out_of_memory();
        if is_spawned && killed.is_none() && failed_in_import(evidence) {
            let summary =
                "memory ran out for the libraries that each worker loads again".to_owned();
            let found =
                Found::new(evidence, 0.6, summary, "").at_location(evidence.error_location());
            return Finding::Found(add_remedies(
                evidence,
                found.with_evidence(evidence, cut(evidence.error(), 160), ""),
            ));
        }
        let found = killed
            .map(|line| add_remedies(evidence, Found::new(evidence, 0.75, cut(&line, 160), "")));
        return found.into();
    };
    let taken = peak.taken_by_loaders;
    let summary = format!(
        "the loader processes had taken {} of {}",
        units::bytes(taken),
        units::bytes(peak.footprint)
    );
    let is_most = taken as f64 >= peak.footprint as f64 * MIN_LOADER_SHARE;
    let confidence = match (is_most, &killed) {
        (true, Some(_)) => 0.85,
        (true, None) => 0.8,
        (false, Some(_)) => 0.55,
        (false, None) if taken > 0 => return Finding::RuledOut(summary),
        (false, None) => return Finding::Nothing,
    };
    let mut found = Found::new(evidence, confidence, summary, "processes");
    if let Some(line) = killed {
        found = found.with_evidence(evidence, line, "");
    }
    Finding::Found(add_remedies(evidence, found))
}

fn add_remedies(evidence: &RunEvidence<'_>, found: Found) -> Found {
    if let Some(remedy) = remedy::for_dataset(evidence) {
        let place = remedy::first_place(&remedy);
        return found.at_location(place).with_edits(remedy);
    }
    let holder = evidence
        .suspect()
        .and_then(|suspect| remedy::for_holder(evidence, suspect.holder));
    if let Some(remedy) = holder {
        return found.with_edits(remedy);
    }
    found.with_remedy(
        "use fewer workers and prefetch fewer batches (`num_workers`, `prefetch_factor`); keep arrays instead of lists of \
         objects in the dataset, and no cache of samples in it: each worker has its own",
        None,
    )
}
