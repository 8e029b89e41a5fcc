//! # input-bound
//!
//! The training spends more time waiting for data than training.
//!
//! ## Symptoms
//!
//! The GPU or the cores are idle for much of the time. More computing power would not help.
//!
//! ## How it is detected
//!
//! The shim saw the training wait for the next batch for 40 % of the time or more, over at least 50 steps. Under 10 %
//! it is ruled out. Nothing is said where phases are not known or the training makes no steps. For a training on a GPU
//! its utilisation is shown; above 80 % it had enough data, whatever the script waited for.
//!
//! ## What to do
//!
//! Use more workers, or do less work per sample; decode and resize once, before the training:
//!
//! ```python
//! DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True, pin_memory=True)
//! ```

use super::deadlock::time_without_steps;
use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_sense::Phase;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::InputBound,
    word: "input-bound",
    title: "waiting for data",
    role: Role::SlowsRun,
    lint_rules: &[],
    source: include_str!("input_bound.rs"),
    detect,
};

/// The training waits too much from this share of the time on,
const MIN_WAIT_SHARE: f64 = 0.4;
/// and below this share it does not.
const RULED_OUT_SHARE: f64 = 0.1;
/// Fewer steps are not enough to decide.
const MIN_STEPS: u64 = 50;
/// A GPU with this utilisation has enough data, since it works while the script waits for the next batch.
const BUSY_GPU_SHARE: f64 = 0.8;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let steps = evidence.summary.steps.unwrap_or(0);
    let Some(share) = evidence
        .summary
        .phases
        .share(Phase::Data)
        .filter(|_| steps >= MIN_STEPS && time_without_steps(evidence).is_none())
    else {
        return Finding::Nothing;
    };
    let waits = units::percent(share);
    if share < RULED_OUT_SHARE {
        return Finding::RuledOut(format!("it waited for data for {waits} of the time"));
    }
    if share < MIN_WAIT_SHARE {
        return Finding::Nothing;
    }
    let busy = evidence
        .summary
        .gpus
        .busy()
        .filter(|_| trains_on_gpu(evidence));
    if let Some(busy) = busy.filter(|busy| *busy >= BUSY_GPU_SHARE) {
        return Finding::RuledOut(format!(
            "the GPU was busy for {} of the time",
            units::percent(busy)
        ));
    }
    let confidence = if share >= 0.6 { 0.85 } else { 0.7 };
    let summary = format!("it waited for data for {waits} of the time");
    let workers = evidence.cores().map_or(2, |cores| cores.clamp(2, 16));
    let mut found = Found::new(evidence, confidence, summary, "tree.phase");
    if let Some(busy) = busy {
        let text = format!("the GPU was busy for {} of the time", units::percent(busy));
        found = found.with_evidence(evidence, text, "cards.busy");
    }
    Finding::Found(found.with_remedy(
        "use more loader workers, or prepare samples once, before the training",
        Some(format!("num_workers={workers}, persistent_workers=True")),
    ))
}

/// Whether the training uses the GPU.
fn trains_on_gpu(evidence: &RunEvidence<'_>) -> bool {
    let hello = evidence.facts.shim.hello.as_ref();
    let device = hello.and_then(|hello| hello.device.as_deref());
    device.is_some_and(|device| device.starts_with("cuda") || device.starts_with("gpu"))
}
