//! # vram-leak
//!
//! Something of every step stays on the graphics card until it is full.
//!
//! ## How it looks
//!
//! The same error as of a batch that is too large, but after hundreds of steps that fitted.
//!
//! ## How it is told
//!
//! The card's memory grew steadily over the later half of the run until it was full, as it does not once the
//! allocator's cache has levelled off after the first steps. Where it was not read: the card ran out of memory after
//! at least a hundred steps. A larger batch, a longer sequence or an evaluation can do the same, so that is only
//! called likely where the shim saw a name that grows with each step. Ruled out where PyTorch ran out and the card's
//! memory had not grown; JAX and TensorFlow take most of a card when they start, and nothing is to be seen in that.
//!
//! ## What to do
//!
//! Keep numbers, not tensors, and move what must be kept off the card:
//!
//! ```python
//! losses.append(loss.item())
//! outputs.append(logits.detach().cpu())
//! ```

use antifreeze_text::{sanitize, units};
use super::{Finding, Found, vram_exhausted};
use crate::case::Case;
use crate::series::Growth;
use crate::shim::How;
use crate::verdict::EndKind;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let growth = grew(case);
    let ran_out = vram_exhausted::said(case).is_some();
    // What ended it may have left no word.
    let ends_silently = matches!(case.end, EndKind::Failed | EndKind::Crashed | EndKind::Killed);
    if ran_out && levelled_off(case) {
        return Finding::RuledOut("the card's memory did not grow in the later half of the run".into());
    }
    let is_one = match ran_out {
        true => growth.is_some() || vram_exhausted::is_late(case),
        false => growth.is_some() && ends_silently,
    };
    if !is_one {
        return Finding::Nothing;
    }
    let keeps = case
        .suspect()
        .filter(|suspect| matches!(suspect.how, How::Step(_) | How::Graphs));
    let confidence = match (ran_out, growth, &keeps) {
        (true, Some(_), Some(_)) => 0.9,
        (true, Some(_), None) => 0.78,
        (true, None, Some(_)) => 0.75,
        (true, None, None) => 0.45,
        (false, ..) => 0.5,
    };
    let grows = growth.map(|growth| format!("the card's memory grew {} until it was full", pace(case, growth)));
    let late = || {
        let steps = case.story.steps.unwrap_or(0);
        format!("it ran out after {} that fitted", units::count(steps, "step"))
    };
    let mut found = match (keeps, &grows) {
        (Some(suspect), _) => {
            let name = sanitize::escape(suspect.holder.name.as_bytes());
            Found::new(case, confidence, format!("`{name}` {}", suspect.does()), "")
        }
        (None, Some(grows)) => Found::new(case, confidence, grows.clone(), "cards.used"),
        (None, None) => Found::new(case, confidence, late(), ""),
    };
    if let Some(grows) = grows.filter(|grows| *grows != found.summary) {
        found = found.and(case, grows, "cards.used");
    }
    if let Some(held) = vram_exhausted::held(case) {
        found = found.and(case, held, "cards.used");
    }
    Finding::Found(found.at(case.location()).remedy(
        "keep numbers instead of tensors, and move what must be kept off the card",
        Some("losses.append(loss.item())".into()),
    ))
}

/// How the card's memory grew, if it did so until it was full.
pub(super) fn grew(case: &Case<'_>) -> Option<Growth> {
    let cards = &case.story.cards;
    cards.growth().filter(|_| cards.was_full())
}

/// It is known not to have grown: of PyTorch, which takes from the card what it needs and no more.
pub(super) fn levelled_off(case: &Case<'_>) -> bool {
    let is_pytorch = |line: &str| line.contains("CUDA out of memory") || line.contains("HIP out of memory");
    let said = vram_exhausted::said(case);
    said.is_some_and(|(line, _)| is_pytorch(&line))
        && vram_exhausted::is_late(case)
        && case.story.cards.levelled_off()
}

/// "41 MB a step"; a second, where steps are not known.
fn pace(case: &Case<'_>, growth: Growth) -> String {
    let seconds = case.story.phases.time().as_secs_f64();
    match case.story.steps {
        Some(steps) if seconds > 0.0 => {
            let each = growth.bytes_per_second * seconds / steps as f64;
            format!("{} a step", units::bytes(each.max(0.0) as u64))
        }
        _ => units::growth_rate(growth.bytes_per_second),
    }
}
