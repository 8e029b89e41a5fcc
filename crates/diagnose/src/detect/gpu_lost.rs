//! # gpu-lost
//!
//! The card does not answer any more.
//!
//! ## How it looks
//!
//! `GPU has fallen off the bus`, `Unable to determine the device handle … GPU is lost`, a black screen, a machine that
//! must be restarted.
//!
//! ## How it is told
//!
//! By the kernel's line (Xid 79, or the words), or the driver's in the output; by its answer that a card is lost, which
//! is asked for every two seconds. Where the driver answered and then did not any more, or with errors, and memory was
//! not short, that is only called possible. A run that ended well, or with an error of its own that has nothing to do
//! with a card, is not explained by it.
//!
//! ## What to do
//!
//! Restart the machine. If it comes back: a power supply that is too weak, a cable or a riser, heat. A power limit
//! often helps:
//!
//! ```sh
//! sudo nvidia-smi -pl 300
//! ```

use antifreeze_text::layout::cut;
use antifreeze_text::units;
use super::{Finding, Found, power_limit};
use crate::bearing::Part;
use crate::case::Case;
use crate::kernel::{Class, Kind, xid};
use crate::time::between;
use antifreeze_sense::Reason;

/// Where everything waited for memory for so much of the time, the one who asks the driver did too.
const MUCH: f64 = 0.33;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let is_lost = |kind: &Kind| match kind {
        Kind::GpuOffTheBus { .. } | Kind::AmdLost { .. } => true,
        Kind::Xid { code, .. } => xid(*code).is_some_and(|xid| xid.class == Class::Lost),
        _ => false,
    };
    let lost = case.incident(is_lost);
    if let Some(found) = lost.and_then(|incident| Found::failed(case, Part::Card, 0.95, incident)) {
        return Finding::Found(remedied(case, found));
    }
    let said = case.said(&[
        "GPU is lost.",
        "Unable to determine the device handle for",
        "GPU has fallen off the bus",
        "CUDA error: the launch timed out and was terminated",
    ]);
    let said = said.filter(|_| case.went_wrong());
    let found = said.map(|(line, most)| Found::new(case, f64::min(0.9, most), cut(&line, 160), ""));
    let found = found.or_else(|| answered_no_more(case));
    found.map(|found| remedied(case, found)).into()
}

/// What the driver told of the cards, and then did not.
fn answered_no_more(case: &Case<'_>) -> Option<Found> {
    let cards = &case.story.cards;
    if !case.went_wrong() {
        return None;
    }
    if cards.lost() > 0 {
        // An error of something else may have ended it, while another card fell.
        let is_of_it = case.error().is_empty() || ["CUDA", "GPU", "NCCL"].iter().any(|word| case.error().contains(word));
        let cards = units::count(cards.lost(), "graphics card");
        let summary = format!("{cards} fell off the bus during the run, as the driver tells");
        return Some(Found::new(case, if is_of_it { 0.9 } else { 0.4 }, summary, "cards.lost"));
    }
    let (at, _) = cards.last?;
    let was_short = case.was_short_of_memory() || case.story.course.worst_stall >= MUCH;
    // A driver whose card is gone may hang, or give one error or another.
    let does = match cards.silent? {
        Reason::Stale => "did not answer any more",
        Reason::Failed | Reason::Gone => "answered with errors",
        _ => return None,
    };
    if was_short {
        return None;
    }
    let silent = units::duration(between(at, case.story.until()?));
    let summary = format!("the card's driver {does} in the last {silent}");
    Some(Found::new(case, 0.45, summary, "cards.used"))
}

fn remedied(case: &Case<'_>, found: Found) -> Found {
    let lower = power_limit::lower(case).unwrap_or_else(|| "sudo nvidia-smi -pl 300".into());
    found.remedy(
        "restart the machine; then check power supply, cables and heat, and limit the card's power",
        Some(lower),
    )
}
