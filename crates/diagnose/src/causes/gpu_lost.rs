//! # gpu-lost
//!
//! The GPU no longer responds.
//!
//! ## Symptoms
//!
//! `GPU has fallen off the bus`, `Unable to determine the device handle … GPU is lost`, a black screen, a machine that
//! must be rebooted.
//!
//! ## How it is detected
//!
//! By the kernel's line (Xid 79, or those words), the driver's in the output, or the driver's answer that a GPU is
//! lost, for which it is asked every two seconds. If the driver stopped responding, or returned errors, while memory
//! was not short, it is only possible. A run that succeeded, or ended with an error that has nothing to do with a GPU,
//! is not explained by it.
//!
//! ## What to do
//!
//! Reboot the machine. If it happens again: a weak power supply, a cable or a riser, heat. A power limit often helps:
//!
//! ```sh
//! sudo nvidia-smi -pl 300
//! ```

use super::{CauseKind, Finding, Found, Role, power_limit};
use crate::kernel::hardware_relevance::Component;
use crate::kernel::{Class, Kind, xid};
use crate::run::evidence::RunEvidence;
use crate::time::between;
use crate::verdict::Code;
use antifreeze_sense::Reason;
use antifreeze_text::layout::cut;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::GpuLost,
    word: "gpu-lost",
    title: "GPU lost",
    role: Role::BreaksGpu,
    lint_rules: &[],
    source: include_str!("gpu_lost.rs"),
    detect,
};

/// If tasks waited for memory for this share of the time, so may the process that asks the driver.
const MAX_MEMORY_STALL: f64 = 0.33;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let is_lost = |kind: &Kind| match kind {
        Kind::GpuOffTheBus { .. } | Kind::AmdLost { .. } => true,
        Kind::Xid { code, .. } => xid(*code).is_some_and(|xid| xid.class == Class::Lost),
        _ => false,
    };
    let lost = evidence.last_incident(is_lost);
    if let Some(found) = lost.and_then(|incident| {
        Found::from_hardware_incident(evidence, Component::Gpu, 0.95, incident)
    }) {
        return Finding::Found(add_remedies(evidence, found));
    }
    let said = evidence.find_line_with_confidence(&[
        "GPU is lost.",
        "Unable to determine the device handle for",
        "GPU has fallen off the bus",
        "CUDA error: the launch timed out and was terminated",
    ]);
    let said = said.filter(|_| evidence.went_wrong());
    let found =
        said.map(|(line, most)| Found::new(evidence, f64::min(0.9, most), cut(&line, 160), ""));
    let found = found.or_else(|| from_silent_driver(evidence));
    found.map(|found| add_remedies(evidence, found)).into()
}

/// The driver answered, and then stopped.
fn from_silent_driver(evidence: &RunEvidence<'_>) -> Option<Found> {
    let cards = &evidence.summary.gpus;
    if !evidence.went_wrong() {
        return None;
    }
    if cards.lost() > 0 {
        // Another error may have ended it while another GPU was lost.
        let is_of_it = evidence.error().is_empty()
            || ["CUDA", "GPU", "NCCL"]
                .iter()
                .any(|word| evidence.error().contains(word));
        let cards = units::count(cards.lost(), "GPU");
        let summary = format!("{cards} fell off the bus during the run, as the driver reports");
        return Some(Found::new(
            evidence,
            if is_of_it { 0.9 } else { 0.4 },
            summary,
            "cards.lost",
        ));
    }
    let (at, _) = cards.last?;
    let was_short = evidence.was_short_of_memory()
        || evidence.summary.rates.worst_memory_stall >= MAX_MEMORY_STALL;
    // The driver of a lost GPU may hang or return errors.
    let does = match cards.silent? {
        Reason::Stale => "did not respond any more",
        Reason::Failed | Reason::Gone => "returned errors",
        _ => return None,
    };
    if was_short {
        return None;
    }
    let silent = units::duration(between(at, evidence.summary.until()?));
    let summary = format!("the GPU's driver {does} in the last {silent}");
    Some(Found::new(evidence, 0.45, summary, "cards.used"))
}

fn add_remedies(evidence: &RunEvidence<'_>, found: Found) -> Found {
    let lower = power_limit::lower_limit_command(evidence)
        .unwrap_or_else(|| "sudo nvidia-smi -pl 300".into());
    found.with_remedy(
        "reboot; then check power supply, cables and temperature, and limit the GPU's power",
        Some(lower),
    )
}
