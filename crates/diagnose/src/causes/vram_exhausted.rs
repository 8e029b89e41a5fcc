//! # vram-exhausted
//!
//! One step needs more memory than the GPU has.
//!
//! ## Symptoms
//!
//! `torch.OutOfMemoryError: CUDA out of memory`, `CUBLAS_STATUS_ALLOC_FAILED`, `OOM when allocating tensor` with the
//! name of a GPU, `RESOURCE_EXHAUSTED` from JAX. Some libraries hide it behind `CUDNN_STATUS_NOT_SUPPORTED`.
//!
//! ## How it is detected
//!
//! By the error that ended the script, in the words of any framework. Words inside another sentence, or errors after
//! which training continued, count little or not at all. In the first steps the size of a step is the cause; after
//! hundreds of steps it may be a leak, so both are named. Where GPU memory was measured, its use at the end is shown.
//!
//! ## What to do
//!
//! Use a smaller batch with accumulated gradients, half precision, or activation checkpointing:
//!
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! ```
//!
//! If the error says that much memory is "reserved but unallocated", it is fragmented:
//! `PYTORCH_ALLOC_CONF=expandable_segments:True` helps.

use super::{CauseKind, Finding, Found, Role, vram_leak};
use crate::run::evidence::RunEvidence;
use crate::time::between;
use crate::verdict::Code;
use antifreeze_text::layout::cut;
use antifreeze_text::units;
use std::time::Duration;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::VramExhausted,
    word: "vram-exhausted",
    title: "out of GPU memory",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("vram_exhausted.rs"),
    detect,
};

/// After so many steps the size of a step alone does not explain the error.
const LATE_STEP: u64 = 100;
const MAX_COLUMNS: usize = 160;
/// A sample within so long before the end shows the end.
const NEAR_END: Duration = Duration::from_secs(15);

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let Some(Report {
        line,
        is_unambiguous,
        max_confidence,
    }) = find_report(evidence)
    else {
        return Finding::Nothing;
    };
    let confidence = match (is_unambiguous, is_late(evidence)) {
        _ if vram_leak::growth_until_full(evidence).is_some() => 0.4,
        (true, true) if vram_leak::levelled_off(evidence) => 0.85,
        (true, false) => 0.92,
        (true, true) => 0.5,
        (false, _) => 0.6,
    };
    let confidence = f64::min(confidence, max_confidence);
    let in_pieces = evidence
        .find_line(&["reserved by PyTorch but unallocated"])
        .is_some_and(|line| line.contains("expandable_segments"));
    let mut found = Found::new(evidence, confidence, cut(&line, MAX_COLUMNS), "")
        .at_location(evidence.error_location());
    if let Some(held) = describe_use(evidence) {
        found = found.with_evidence(evidence, held, "cards.used");
    }
    let found = found.with_remedy(
        "use a smaller batch, with gradients accumulated over two of them; or half precision",
        Some("batch_size //= 2".into()),
    );
    Finding::Found(match in_pieces {
        true => found.with_remedy(
            "if much is reserved but unallocated, memory is fragmented; let the allocator expand segments:",
            Some(format!(
                "PYTORCH_ALLOC_CONF=expandable_segments:True antifreeze run -- {}",
                evidence.facts.command_line()
            )),
        ),
        false => found,
    })
}

struct Report {
    line: String,
    is_unambiguous: bool,
    /// The highest confidence that the line allows.
    max_confidence: f64,
}

/// The line that reports it, and whether it is unambiguous.
pub(super) fn out_of_memory_line(evidence: &RunEvidence<'_>) -> Option<(String, bool)> {
    find_report(evidence).map(|said| (said.line, said.is_unambiguous))
}

fn find_report(evidence: &RunEvidence<'_>) -> Option<Report> {
    const PLAIN: [&str; 14] = [
        "CUDA out of memory",
        "CUDA error: out of memory",
        "CUDA driver error: out of memory",
        "HIP out of memory",
        "HIP error: out of memory",
        "MPS backend out of memory",
        "XPU out of memory",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "cudaErrorMemoryAllocation",
        "cudaMalloc failed: out of memory",
        "memory space hbm",
        "Out of GPU memory",
        // Inference servers reserve memory for their cache.
        "No available memory for the cache blocks",
        "is less than desired GPU memory utilization",
    ];
    // These count only with the name of a GPU.
    const ALIKE: [&str; 4] = [
        "OOM when allocating tensor",
        "RESOURCE_EXHAUSTED",
        "Out of memory error on GPU",
        "Out of memory allocating",
    ];
    const VEILED: [&str; 4] = [
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR",
        "CUBLAS_STATUS_NOT_INITIALIZED",
    ];
    if !evidence.went_wrong() {
        return None;
    }
    // The allocator is named beside the error, since the machine's memory may also run out.
    let on_card = |line: &str| {
        ["GPU", "CUDA", "cuda", "HIP", "device memory"]
            .iter()
            .any(|name| line.contains(name))
    };
    let allocator = evidence.find_line_anywhere(&["Allocator (GPU", "by allocator GPU"]);
    let plain = evidence.find_line_with_confidence(&PLAIN).or_else(|| {
        let alike = evidence.find_line_with_confidence(&ALIKE);
        alike.filter(|(line, _)| {
            on_card(line) || allocator.is_some() && !line.contains("by allocator cpu")
        })
    });
    let is_unambiguous = plain.is_some();
    let (line, max_confidence) = plain.or_else(|| evidence.find_line_with_confidence(&VEILED))?;
    Some(Report {
        line,
        is_unambiguous,
        max_confidence,
    })
}

/// Whether many steps were made before.
pub(super) fn is_late(evidence: &RunEvidence<'_>) -> bool {
    let told = evidence
        .facts
        .shim
        .out_of_memory
        .last()
        .map(|error| error.step);
    told.or(evidence.summary.steps)
        .is_some_and(|step| step >= LATE_STEP)
}

/// GPU memory in use when it ended: "23.4 of 24 GB used at the end". After the error it may have been freed.
pub(super) fn describe_use(evidence: &RunEvidence<'_>) -> Option<String> {
    let cards = &evidence.summary.gpus;
    let (high, peak) = (cards.high?, cards.peak?);
    let is_late = |until| between(high.at, until) <= NEAR_END;
    let (held, when) = match evidence.summary.until().is_some_and(is_late) {
        true => (high, "at the end"),
        false => (peak, "at most"),
    };
    let of_all = match held.total {
        Some(total) => units::bytes_of(held.used, total),
        None => units::bytes(held.used),
    };
    Some(match held.fullest {
        Some(fullest) => {
            let share = units::percent(fullest as f64 / 1000.0);
            format!("{of_all} of GPU memory used {when}, {share} on the fullest GPU")
        }
        None => format!("{of_all} of GPU memory used {when}"),
    })
}
