//! # vram-spill
//!
//! The card's memory is full and the driver or the framework makes do: everything still runs, much slower.
//!
//! ## How it looks
//!
//! Steps take several times as long as with a slightly smaller batch; TensorFlow says that the allocator ran out
//! of memory and that this "is not a failure".
//!
//! ## How it is told
//!
//! By that line in the output. Where a driver spills silently, this version cannot see it.
//!
//! ## What to do
//!
//! A slightly smaller batch is often faster.

use super::{Finding, Found};
use crate::case::Case;
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let line = case
        .line_with(&["ran out of memory trying to allocate"])
        .filter(|line| line.contains("not a failure"));
    let found = line.map(|line| {
        Found::new(case, 0.6, cut(&line, 160), "").remedy(
            "try a slightly smaller batch: it may be faster",
            Some("batch_size = batch_size * 3 // 4".into()),
        )
    });
    found.into()
}
