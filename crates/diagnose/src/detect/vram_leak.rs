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
//! The card ran out of memory after at least a hundred steps. A larger batch, a longer sequence or an evaluation
//! can do the same, so it is only called likely where the shim saw a name that grows with each step.
//!
//! ## What to do
//!
//! Keep numbers, not tensors, and move what must be kept off the card:
//!
//! ```python
//! losses.append(loss.item())
//! outputs.append(logits.detach().cpu())
//! ```

use super::{Finding, Found, vram_exhausted};
use crate::case::Case;
use crate::safe;
use crate::shim::How;
use crate::units;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some((_, _)) = vram_exhausted::said(case).filter(|_| vram_exhausted::is_late(case)) else {
        return Finding::Nothing;
    };
    let steps = case.story.steps.unwrap_or(0);
    let keeps = case
        .suspect()
        .filter(|suspect| matches!(suspect.how, How::Step(_) | How::Graphs));
    let (confidence, summary) = match keeps {
        Some(suspect) => {
            let name = safe::shown(suspect.holder.name.as_bytes());
            (0.75, format!("`{name}` {}", suspect.does()))
        }
        None => (
            0.45,
            format!("it ran out after {} that fitted", units::count(steps, "step")),
        ),
    };
    Finding::Found(
        Found::new(case, confidence, summary, "")
            .at(case.location())
            .remedy(
                "keep numbers instead of tensors, and move what must be kept off the card",
                Some("losses.append(loss.item())".into()),
            ),
    )
}
