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
//! By that line in the output. Where a driver spills silently: a card was full (97 % or more) for at least a minute,
//! the training went on, and made less than half as many steps a second as while there was room. Other things slow a
//! training down as well, so that is only called possible.
//!
//! ## What to do
//!
//! A slightly smaller batch is often faster.

use antifreeze_text::layout::cut;
use antifreeze_text::units;
use super::{Finding, Found};
use crate::case::Case;
use std::time::Duration;

/// A card that is full for less may just be saving.
const LONG: Duration = Duration::from_secs(60);
/// What the pace before is known from, at least.
const KNOWN: Duration = Duration::from_secs(20);
const FEW_STEPS: u64 = 20;
/// Of the pace before.
const MUCH_SLOWER: f64 = 0.5;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let line = case
        .any_line_with(&["ran out of memory trying to allocate"])
        .filter(|line| line.contains("not a failure"));
    let said = line.map(|line| remedied(Found::new(case, 0.6, cut(&line, 160), "")));
    said.or_else(|| silently(case)).into()
}

fn silently(case: &Case<'_>) -> Option<Found> {
    let (room, full) = case.story.cards.paces();
    let is_known = room.time >= KNOWN && room.steps >= FEW_STEPS && full.time >= LONG && full.steps > 0;
    if !is_known || full.per_second() > room.per_second() * MUCH_SLOWER {
        return None;
    }
    let summary = format!(
        "the card was full for {}, and made {:.1} steps a second then, after {:.1} before",
        units::duration(full.time),
        full.per_second(),
        room.per_second()
    );
    Some(remedied(Found::new(case, 0.45, summary, "cards.used")))
}

fn remedied(found: Found) -> Found {
    found.remedy(
        "try a slightly smaller batch: it may be faster",
        Some("batch_size = batch_size * 3 // 4".into()),
    )
}
