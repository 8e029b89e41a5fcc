//! # shm-exhausted
//!
//! `/dev/shm` is full: workers pass batches through shared memory, and there was no space for the next.
//!
//! ## Symptoms
//!
//! `Bus error`, `unable to write to file </torch_…>`, `No space left on device`, or a training that hangs silently.
//! Containers have 64 MB of shared memory unless they are given more.
//!
//! ## How it is detected
//!
//! Less than 2 % of `/dev/shm` was free in the last sample, or the output says so. A bus error makes it more likely,
//! and is the only sign where just the output is known.
//!
//! ## What to do
//!
//! ```sh
//! docker run --shm-size=8g …
//! mount -o remount,size=8G /dev/shm
//! ```
//!
//! or use fewer workers, or `torch.multiprocessing.set_sharing_strategy("file_system")`.

use super::disk_full::{says_full, share_free};
use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::{signal, units};

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::ShmExhausted,
    word: "shm-exhausted",
    title: "shared memory full",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("shm_exhausted.rs"),
    detect,
};

/// Below this free share a file system is full.
pub(super) const FULL_SHARE: f64 = 0.02;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if !evidence.went_wrong() {
        return Finding::Nothing;
    }
    let (said, most) =
        full_line_with_confidence(evidence).map_or((None, 1.0), |(line, most)| (Some(line), most));
    let bus_error = evidence.signal() == Some(signal::BUS);
    let free = evidence.last_sample().and_then(|last| share_free(last.shm));
    let (confidence, summary) = match (free, &said) {
        (Some((share, free)), _) if share < FULL_SHARE => {
            let is_told = bus_error || said.is_some() || says_full(evidence);
            let confidence = match (is_told, said.is_some()) {
                (_, true) => 0.9,
                (true, _) => 0.75,
                _ => 0.5,
            };
            (
                confidence,
                format!("{} were free in /dev/shm", units::bytes(free)),
            )
        }
        (_, Some(said)) => (f64::min(0.9, most), said.clone()),
        (Some((_, free)), None) => {
            return Finding::RuledOut(format!("{} free in /dev/shm", units::bytes(free)));
        }
        (None, None) if bus_error => (
            0.65,
            "a bus error: in a training usually a full /dev/shm".into(),
        ),
        (None, None) => return Finding::Nothing,
    };
    Finding::Found(Found::new(evidence, confidence, summary, "shm.free").with_remedy(
        "use fewer DataLoader workers, or more shared memory for the container (docker run --shm-size)",
        Some("num_workers=0".into()),
    ))
}

/// The line of the output that reports it.
pub(super) fn full_line(evidence: &RunEvidence<'_>) -> Option<String> {
    full_line_with_confidence(evidence).map(|(line, _)| line)
}

fn full_line_with_confidence(evidence: &RunEvidence<'_>) -> Option<(String, f64)> {
    const PLAIN: [&str; 7] = [
        "insufficient shared memory (shm)",
        "out of shared memory",
        "unable to write to file </torch_",
        "unable to allocate shared memory(shm)",
        "error while attempting to allocate shared memory",
        "Error while creating shared memory segment",
        "failed to extend /dev/shm/",
    ];
    // The error is the same for any disk; the name shows that it is shared memory.
    let by_name = || {
        let full = evidence.find_line_with_confidence(&["No space left on device"])?;
        let is_shared = ["/dev/shm", "shared memory", "</torch_"]
            .iter()
            .any(|name| full.0.contains(name));
        is_shared.then_some(full)
    };
    evidence.find_line_with_confidence(&PLAIN).or_else(by_name)
}
