//! # infinite-loop
//!
//! The script computes without end and makes no step.
//!
//! ## Symptoms
//!
//! A core is fully busy, nothing is printed, the training makes no progress.
//!
//! ## How it is detected
//!
//! After earlier steps there was none for a minute or more and ten times the longest step, while the run kept a core
//! busy. A long evaluation, a compilation or a large file looks the same for a while, so confidence is never high. If
//! the stacks of the trainer were in the same function of the script each time, it is named.
//!
//! ## What to do
//!
//! Check the exit condition of the named loop; if none is named, see where it is:
//!
//! ```sh
//! py-spy dump --pid …
//! ```

use super::deadlock::time_without_steps;
use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::place::user_file;
use crate::verdict::{Code, Location};
use antifreeze_sense::Phase;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::InfiniteLoop,
    word: "infinite-loop",
    title: "infinite loop",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("infinite_loop.rs"),
    detect,
};

/// A run that uses more cores is busy.
const MIN_BUSY_CORES: f64 = 0.5;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let Some(stands) = time_without_steps(evidence) else {
        return Finding::Nothing;
    };
    let phase = evidence
        .last_sample()
        .and_then(|last| last.tree.phase.value());
    let is_at_work = [Phase::Evaluation, Phase::Saving].map(|phase| Some(phase as u64));
    let cores = evidence.summary.rates.last_minute().cores.unwrap_or(0.0);
    if cores < MIN_BUSY_CORES || is_at_work.contains(&phase) {
        return Finding::Nothing;
    }
    let summary = format!(
        "no step for {} while it kept {cores:.1} cores busy",
        units::duration(stands)
    );
    let Some(call) = evidence.facts.stacks.repeated_function() else {
        let found = Found::new(evidence, 0.55, summary, "tree.cpu");
        return Finding::Found(
            found.with_remedy("see where it is:", Some("py-spy dump --pid PID".into())),
        );
    };
    let location = Location {
        file: user_file(&call.frame.file, evidence.facts),
        line: call.frame.line,
        name: Some(call.function.clone()),
    };
    let seen = "it was in the same function of the script in every stack";
    let found = Found::new(evidence, 0.7, summary, "tree.cpu")
        .with_evidence(evidence, seen.into(), "stacks")
        .at_location(Some(location));
    let place = found.place().unwrap_or_default();
    Finding::Found(found.with_remedy(
        format!("check the exit condition of the loop at {place}"),
        None,
    ))
}
