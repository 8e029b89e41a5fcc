//! # vram-leak
//!
//! Data of every step stays on the GPU until it is full.
//!
//! ## Symptoms
//!
//! The same error as for a batch that is too large, but after hundreds of steps that fitted.
//!
//! ## How it is detected
//!
//! GPU memory grew steadily over the later half of the run until it was full; the allocator's cache levels off after
//! the first steps. Where GPU memory was not measured: it ran out after at least a hundred steps. A larger batch, a
//! longer sequence or an evaluation can do the same, so confidence is high only where the shim found a variable that
//! grows with each step. Ruled out where PyTorch ran out of memory that had not grown. JAX and TensorFlow reserve most
//! of a GPU when they start, so nothing can be seen there.
//!
//! ## What to do
//!
//! Keep numbers instead of tensors, and move what must be kept off the GPU:
//!
//! ```python
//! losses.append(loss.item())
//! outputs.append(logits.detach().cpu())
//! ```

use super::{CauseKind, Finding, Found, Role, vram_exhausted};
use crate::run::evidence::RunEvidence;
use crate::run::series::Growth;
use crate::shim::SuspectKind;
use crate::verdict::{Code, EndKind};
use antifreeze_text::{sanitize, units};

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::VramLeak,
    word: "vram-leak",
    title: "GPU memory leak",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("vram_leak.rs"),
    detect,
};

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let growth = growth_until_full(evidence);
    let ran_out = vram_exhausted::out_of_memory_line(evidence).is_some();
    // The reason may not have been printed.
    let ends_silently = matches!(
        evidence.end,
        EndKind::Failed | EndKind::Crashed | EndKind::Killed
    );
    if ran_out && levelled_off(evidence) {
        return Finding::RuledOut("GPU memory did not grow in the later half of the run".into());
    }
    let is_one = match ran_out {
        true => growth.is_some() || vram_exhausted::is_late(evidence),
        false => growth.is_some() && ends_silently,
    };
    if !is_one {
        return Finding::Nothing;
    }
    let keeps = evidence.suspect().filter(|suspect| {
        matches!(
            suspect.kind,
            SuspectKind::GrowsPerStep(_) | SuspectKind::KeepsGraphs
        )
    });
    let confidence = match (ran_out, growth, &keeps) {
        (true, Some(_), Some(_)) => 0.9,
        (true, Some(_), None) => 0.78,
        (true, None, Some(_)) => 0.75,
        (true, None, None) => 0.45,
        (false, ..) => 0.5,
    };
    let grows = growth.map(|growth| {
        format!(
            "GPU memory grew {} until it was full",
            format_growth(evidence, growth)
        )
    });
    let late = || {
        let steps = evidence.summary.steps.unwrap_or(0);
        format!(
            "it ran out after {} that fitted",
            units::count(steps, "step")
        )
    };
    let mut found = match (keeps, &grows) {
        (Some(suspect), _) => {
            let name = sanitize::escape(suspect.holder.name.as_bytes());
            Found::new(
                evidence,
                confidence,
                format!("`{name}` {}", suspect.does()),
                "",
            )
        }
        (None, Some(grows)) => Found::new(evidence, confidence, grows.clone(), "cards.used"),
        (None, None) => Found::new(evidence, confidence, late(), ""),
    };
    if let Some(grows) = grows.filter(|grows| *grows != found.summary) {
        found = found.with_evidence(evidence, grows, "cards.used");
    }
    if let Some(held) = vram_exhausted::describe_use(evidence) {
        found = found.with_evidence(evidence, held, "cards.used");
    }
    Finding::Found(found.at_location(evidence.error_location()).with_remedy(
        "keep numbers instead of tensors, and move what must be kept off the GPU",
        Some("losses.append(loss.item())".into()),
    ))
}

/// How GPU memory grew, if it grew until it was full.
pub(super) fn growth_until_full(evidence: &RunEvidence<'_>) -> Option<Growth> {
    let cards = &evidence.summary.gpus;
    cards.growth().filter(|_| cards.was_full())
}

/// Whether GPU memory is known not to have grown. Only for PyTorch, which allocates no more than it needs.
pub(super) fn levelled_off(evidence: &RunEvidence<'_>) -> bool {
    let is_pytorch =
        |line: &str| line.contains("CUDA out of memory") || line.contains("HIP out of memory");
    let said = vram_exhausted::out_of_memory_line(evidence);
    said.is_some_and(|(line, _)| is_pytorch(&line))
        && vram_exhausted::is_late(evidence)
        && evidence.summary.gpus.levelled_off()
}

/// The growth rate: "41 MB a step", or a second where steps are not known.
fn format_growth(evidence: &RunEvidence<'_>, growth: Growth) -> String {
    let seconds = evidence.summary.phases.time().as_secs_f64();
    match evidence.summary.steps {
        Some(steps) if seconds > 0.0 => {
            let each = growth.bytes_per_second * seconds / steps as f64;
            format!("{} a step", units::bytes(each.max(0.0) as u64))
        }
        _ => units::growth_rate(growth.bytes_per_second),
    }
}
