//! # input-bound
//!
//! The training waits for its data more than it learns from it.
//!
//! ## How it looks
//!
//! The card or the cores are idle for much of the time; more computing power would change nothing.
//!
//! ## How it is told
//!
//! Of the time in which the shim saw what the training was at, 40 % or more went into waiting for the next
//! batch, over at least 50 steps. Under 10 % it is ruled out. Where phases are not seen, or the
//! training does not go on at all, nothing is said. Of a training on a graphics card it is told how busy that was;
//! one that was at work for 80 % of the time or more lacked nothing, whatever the script waited for.
//!
//! ## What to do
//!
//! More workers, or less work for each sample; decode and resize once, before the training:
//!
//! ```python
//! DataLoader(dataset, batch_size=64, num_workers=4, persistent_workers=True, pin_memory=True)
//! ```

use antifreeze_text::units;
use super::deadlock::stands_still;
use super::{Finding, Found};
use crate::case::Case;
use antifreeze_sense::Phase;

const MUCH: f64 = 0.4;
const LITTLE: f64 = 0.1;
const FEW_STEPS: u64 = 50;
/// Of a card, which works on while the script waits for the next batch.
const BUSY: f64 = 0.8;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let steps = case.story.steps.unwrap_or(0);
    let Some(share) = case
        .story
        .phases
        .share(Phase::Data)
        .filter(|_| steps >= FEW_STEPS && stands_still(case).is_none())
    else {
        return Finding::Nothing;
    };
    let waits = units::percent(share);
    if share < LITTLE {
        return Finding::RuledOut(format!("it waited for data for {waits} of the time"));
    }
    if share < MUCH {
        return Finding::Nothing;
    }
    let busy = case.story.cards.busy().filter(|_| trains_on_card(case));
    if let Some(busy) = busy.filter(|busy| *busy >= BUSY) {
        return Finding::RuledOut(format!("the graphics card was at work for {} of the time", units::percent(busy)));
    }
    let confidence = if share >= 0.6 { 0.85 } else { 0.7 };
    let summary = format!("it waited for data for {waits} of the time");
    let workers = case.cores().map_or(2, |cores| cores.clamp(2, 16));
    let mut found = Found::new(case, confidence, summary, "tree.phase");
    if let Some(busy) = busy {
        let text = format!("the graphics card was at work for {} of the time", units::percent(busy));
        found = found.and(case, text, "cards.busy");
    }
    Finding::Found(found.remedy(
        "load in more processes, or prepare samples once, before the training",
        Some(format!("num_workers={workers}, persistent_workers=True")),
    ))
}

/// Whether the card tells anything of this training.
fn trains_on_card(case: &Case<'_>) -> bool {
    let hello = case.facts.told.hello.as_ref();
    let device = hello.and_then(|hello| hello.device.as_deref());
    device.is_some_and(|device| device.starts_with("cuda") || device.starts_with("gpu"))
}
