//! # vram-spill
//!
//! GPU memory is full and the driver or framework works around it: the training runs, but much slower.
//!
//! ## Symptoms
//!
//! Steps take several times as long as with a slightly smaller batch. TensorFlow says that the allocator ran out of
//! memory and that this "is not a failure".
//!
//! ## How it is detected
//!
//! By that line in the output. Some drivers spill silently: then a GPU was full (97 % or more) for at least a minute,
//! and the step rate was less than half of the rate before. Other things slow a training down as well, so that is only
//! possible.
//!
//! ## What to do
//!
//! Try a slightly smaller batch: it is often faster.

use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;
use antifreeze_text::units;
use std::time::Duration;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::VramSpill,
    word: "vram-spill",
    title: "GPU memory full, steps slow",
    role: Role::SlowsRun,
    lint_rules: &[],
    source: include_str!("vram_spill.rs"),
    detect,
};

/// A GPU that is full for less may be saving a checkpoint.
const MIN_FULL_TIME: Duration = Duration::from_secs(60);
/// The step rate before must be known for so long,
const MIN_TIME_BEFORE: Duration = Duration::from_secs(20);
/// and for so many steps.
const MIN_STEPS_BEFORE: u64 = 20;
/// The step rate is much lower at this share of the rate before.
const MUCH_LOWER_SHARE: f64 = 0.5;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let line = evidence
        .find_line_anywhere(&["ran out of memory trying to allocate"])
        .filter(|line| line.contains("not a failure"));
    let said = line.map(|line| add_remedies(Found::new(evidence, 0.6, cut(&line, 160), "")));
    said.or_else(|| from_silent_spill(evidence)).into()
}

fn from_silent_spill(evidence: &RunEvidence<'_>) -> Option<Found> {
    let (room, full) = evidence.summary.gpus.step_rates();
    let is_known = room.time >= MIN_TIME_BEFORE
        && room.steps >= MIN_STEPS_BEFORE
        && full.time >= MIN_FULL_TIME
        && full.steps > 0;
    if !is_known || full.per_second() > room.per_second() * MUCH_LOWER_SHARE {
        return None;
    }
    let summary = format!(
        "the GPU was full for {}, with {:.1} steps a second, after {:.1} before",
        units::duration(full.time),
        full.per_second(),
        room.per_second()
    );
    Some(add_remedies(Found::new(
        evidence,
        0.45,
        summary,
        "cards.used",
    )))
}

fn add_remedies(found: Found) -> Found {
    found.with_remedy(
        "try a slightly smaller batch: it may be faster",
        Some("batch_size = batch_size * 3 // 4".into()),
    )
}
