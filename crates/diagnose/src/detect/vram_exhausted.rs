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
//! By the error that ended the script, in any of the spellings that frameworks use; where those words stand in another
//! sentence, or the training went on after them, with doubt or not at all. In the first steps it is the
//! size of a step; after hundreds of them it may be a leak as well, and both are named. Where the card's memory was
//! read it is told how much of it was in use at the end, and whether it grew until then.
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

use antifreeze_text::layout::cut;
use antifreeze_text::units;
use super::{Finding, Found, vram_leak};
use crate::case::Case;
use crate::time::between;
use std::time::Duration;

/// After so many steps the size of a step alone does not explain it.
const LATE: u64 = 100;
const WIDEST: usize = 160;
/// A look so long before the end is of the end.
const AT_THE_END: Duration = Duration::from_secs(15);

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some(Said { line, is_plain, most }) = told(case) else {
        return Finding::Nothing;
    };
    let confidence = match (is_plain, is_late(case)) {
        _ if vram_leak::grew(case).is_some() => 0.4,
        (true, true) if vram_leak::levelled_off(case) => 0.85,
        (true, false) => 0.92,
        (true, true) => 0.5,
        (false, _) => 0.6,
    };
    let confidence = f64::min(confidence, most);
    let in_pieces = case
        .line_with(&["reserved by PyTorch but unallocated"])
        .is_some_and(|line| line.contains("expandable_segments"));
    let mut found = Found::new(case, confidence, cut(&line, WIDEST), "").at(case.location());
    if let Some(held) = held(case) {
        found = found.and(case, held, "cards.used");
    }
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

struct Said {
    line: String,
    is_plain: bool,
    /// How sure one may be by it.
    most: f64,
}

/// The line that tells of it, and whether it does so plainly.
pub(super) fn said(case: &Case<'_>) -> Option<(String, bool)> {
    told(case).map(|said| (said.line, said.is_plain))
}

fn told(case: &Case<'_>) -> Option<Said> {
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
        // What serves a model keeps room for what it has read.
        "No available memory for the cache blocks",
        "is less than desired GPU memory utilization",
    ];
    // Each says it with more words than these, and of a card.
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
    if !case.went_wrong() {
        return None;
    }
    // The allocator that had no room is named beside the error; the machine's own memory may be short as well.
    let on_card = |line: &str| ["GPU", "CUDA", "cuda", "HIP", "device memory"].iter().any(|name| line.contains(name));
    let allocator = case.any_line_with(&["Allocator (GPU", "by allocator GPU"]);
    let plain = case.said(&PLAIN).or_else(|| {
        let alike = case.said(&ALIKE);
        alike.filter(|(line, _)| on_card(line) || allocator.is_some() && !line.contains("by allocator cpu"))
    });
    let is_plain = plain.is_some();
    let (line, most) = plain.or_else(|| case.said(&VEILED))?;
    Some(Said { line, is_plain, most })
}

/// It had made many steps of the same size before.
pub(super) fn is_late(case: &Case<'_>) -> bool {
    let told = case.facts.told.out_of_memory.last().map(|error| error.step);
    told.or(case.story.steps).is_some_and(|step| step >= LATE)
}

/// "23.4 of 24 GB used at the end": what was held when it ended. When it was noticed, all may have been let go.
pub(super) fn held(case: &Case<'_>) -> Option<String> {
    let cards = &case.story.cards;
    let (high, peak) = (cards.high?, cards.peak?);
    let is_late = |until| between(high.at, until) <= AT_THE_END;
    let (held, when) = match case.story.until().is_some_and(is_late) {
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
            format!("{of_all} of the cards' memory used {when}, {share} of the fullest card's")
        }
        None => format!("{of_all} of the card's memory used {when}"),
    })
}
