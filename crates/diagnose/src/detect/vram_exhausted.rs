//! # vram-exhausted
//!
//! The graphics card has less memory than one step needs.
//!
//! ## How it looks
//!
//! `torch.OutOfMemoryError: CUDA out of memory`, `CUBLAS_STATUS_ALLOC_FAILED`, `OOM when allocating tensor` with a
//! GPU's name, `RESOURCE_EXHAUSTED` from JAX. Some libraries hide it behind `CUDNN_STATUS_NOT_SUPPORTED`.
//!
//! ## How it is told
//!
//! By the error that ended the script, in any of the spellings that frameworks use. In the first steps it is the
//! size of a step; after hundreds of them it may be a leak as well, and both are named.
//!
//! ## What to do
//!
//! A smaller batch with accumulated gradients, half precision, or activation checkpointing:
//!
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = criterion(model(x), y)
//! ```
//!
//! When the error says that much is "reserved but unallocated", memory is in pieces:
//! `PYTORCH_ALLOC_CONF=expandable_segments:True` helps.

use super::{Finding, Found};
use crate::case::Case;
use crate::words::cut;

/// After so many steps the size of a step alone does not explain it.
const LATE: u64 = 100;
const WIDEST: usize = 160;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some((line, is_plain)) = said(case) else {
        return Finding::Nothing;
    };
    let confidence = match (is_plain, is_late(case)) {
        (true, false) => 0.92,
        (true, true) => 0.5,
        (false, _) => 0.6,
    };
    let in_pieces = case
        .line_with(&["reserved by PyTorch but unallocated"])
        .is_some_and(|line| line.contains("expandable_segments"));
    let found = Found::new(case, confidence, cut(&line, WIDEST), "").at(case.location());
    let found = found.remedy(
        "a smaller batch, with gradients summed over two of them; or half precision",
        Some("batch_size //= 2".into()),
    );
    Finding::Found(match in_pieces {
        true => found.remedy(
            "if much is reserved but unallocated, let the allocator join pieces:",
            Some(format!(
                "PYTORCH_ALLOC_CONF=expandable_segments:True antifreeze run -- {}",
                case.facts.command_line()
            )),
        ),
        false => found,
    })
}

/// The line that tells of it, and whether it does so plainly.
pub(super) fn said(case: &Case<'_>) -> Option<(String, bool)> {
    const PLAIN: [&str; 6] = [
        "CUDA out of memory",
        "CUDA error: out of memory",
        "HIP out of memory",
        "MPS backend out of memory",
        "XPU out of memory",
        "CUDA_ERROR_OUT_OF_MEMORY",
    ];
    const VEILED: [&str; 3] = [
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_INTERNAL_ERROR",
    ];
    if !case.went_wrong() {
        return None;
    }
    let on_card = |line: &String| line.contains("GPU") || line.contains("CUDA");
    let plain = case.line_with(&PLAIN).or_else(|| {
        let alike = case.line_with(&["OOM when allocating tensor", "RESOURCE_EXHAUSTED"]);
        alike.filter(on_card)
    });
    match plain {
        Some(line) => Some((line, true)),
        None => Some((case.line_with(&VEILED)?, false)),
    }
}

/// It had made many steps of the same size before.
pub(super) fn is_late(case: &Case<'_>) -> bool {
    let told = case.facts.told.out_of_memory.last().map(|error| error.step);
    told.or(case.story.steps).is_some_and(|step| step >= LATE)
}
