//! # gpu-fault
//!
//! The GPU reported an error: an invalid address, a faulty kernel, or defective memory.
//!
//! ## Symptoms
//!
//! `CUDA error: an illegal memory access was encountered`, `device-side assert triggered`, `HSA_STATUS_ERROR`, and in
//! the kernel's log a line with `Xid` or `ring … timeout`.
//!
//! ## How it is detected
//!
//! By the kernel's line, whose number shows whether the program, the driver or the GPU is at fault; or by the error in
//! the output, which is often the program's: an index out of range. A fault of another process, and a script error that
//! has nothing to do with a GPU, do not count.
//!
//! ## What to do
//!
//! Have errors reported where they happen, and look for an index or a label out of range:
//!
//! ```sh
//! CUDA_LAUNCH_BLOCKING=1 antifreeze run -- python train.py
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::kernel::attribution::Attribution;
use crate::kernel::hardware_relevance::Component;
use crate::kernel::{Class, Incident, Kind, xid};
use crate::run::evidence::RunEvidence;
use crate::verdict::{Code, EndKind};
use antifreeze_text::layout::cut;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::GpuFault,
    word: "gpu-fault",
    title: "GPU error",
    role: Role::BreaksGpu,
    lint_rules: &[],
    source: include_str!("gpu_fault.rs"),
    detect,
};

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    if !evidence.went_wrong() {
        return Finding::Nothing;
    }
    let tells_any = evidence
        .incidents()
        .any(|incident| class(incident).is_some());
    let told = from_kernel_log(evidence);
    let said = evidence.find_line_with_confidence(&[
        "an illegal memory access was encountered",
        "device-side assert triggered",
        "CUDA error: misaligned address",
        "CUDA error: an illegal instruction was encountered",
        "CUDA error: unspecified launch failure",
        "CUDA error: uncorrectable ECC error encountered",
        "HSA_STATUS_ERROR",
        "Memory access fault by GPU node",
    ]);
    let found = said.map(|(line, most)| {
        Found::new(evidence, f64::min(0.85, most), cut(&line, 160), "")
            .at_location(evidence.error_location())
            .with_remedy(
                "have the error reported where it happens; look for an index or a label out of range",
                Some(format!(
                    "CUDA_LAUNCH_BLOCKING=1 antifreeze run -- {}",
                    evidence.facts.command_line()
                )),
            )
    });
    let found = found.or_else(|| from_pasted_line(evidence));
    // The error of the program is more certain than a line that may be about another process.
    let is_surer = |told: &Found| {
        found
            .as_ref()
            .is_none_or(|found| told.confidence >= found.confidence)
    };
    match told.filter(is_surer).or(found) {
        None if evidence.end == EndKind::MachineDied && evidence.has_kernel_log() && !tells_any => {
            Finding::RuledOut("no Xid and no GPU reset in the kernel's log".into())
        }
        found => found.into(),
    }
}

/// A line of the kernel's log in the output.
fn from_pasted_line(evidence: &RunEvidence<'_>) -> Option<Found> {
    let (line, most) = evidence.find_line_with_confidence(&["NVRM: Xid ("])?;
    let (_, after) = line.split_once("NVRM: Xid (")?.1.split_once("): ")?;
    let known = xid(after.split(',').next()?.trim().parse().ok()?);
    if known.is_some_and(|known| known.class == Class::Lost) {
        return None;
    }
    let found = Found::new(evidence, f64::min(0.85, most), cut(&line, 160), "");
    Some(found.with_remedy(
        known.map_or("reset the GPU, or reboot", |known| known.remedy),
        None,
    ))
}

fn class(incident: &Incident) -> Option<Class> {
    match incident.kind {
        Kind::Xid { code, .. } => xid(code).map_or(Some(Class::Reset), |xid| Some(xid.class)),
        Kind::AmdRingTimeout { .. } | Kind::AmdReset { .. } => Some(Class::Reset),
        _ => None,
    }
}

/// The first fault in the kernel's log; later ones are its consequences.
fn from_kernel_log(evidence: &RunEvidence<'_>) -> Option<Found> {
    let is_ours = |incident: &&Incident| match class(incident) {
        None => false,
        // It affects only the process that caused it.
        Some(Class::Program | Class::Consequence) => {
            evidence.attribute(incident) != Attribution::OtherProcess
        }
        Some(Class::Reset | Class::Hardware | Class::Lost) => true,
    };
    let faults = || evidence.incidents().filter(is_ours);
    let first = faults()
        .find(|incident| class(incident) != Some(Class::Consequence))
        .or_else(|| faults().next())?;
    if class(first) == Some(Class::Lost) {
        return None;
    }
    let sure = match evidence.attribute(first) {
        Attribution::OurRun => 0.9,
        Attribution::LikelyOurRun | Attribution::Unknown => 0.85,
        // A reset because of another process affects all; a GPU error shows whether it affected this run.
        Attribution::OtherProcess => match evidence.end {
            EndKind::MachineDied => 0.85,
            EndKind::Exception => 0.8,
            _ => 0.6,
        },
    };
    let mut found = Found::from_hardware_incident(evidence, Component::Gpu, sure, first)?;
    let known = match first.kind {
        Kind::Xid { code, .. } => xid(code),
        _ => None,
    };
    Some(match known {
        Some(known) => {
            found = found.with_evidence(
                evidence,
                format!("Xid {}: {}", known.code, known.meaning),
                "kernel",
            );
            found.with_remedy(known.remedy, None)
        }
        None => found.with_remedy(
            "reset the GPU, or reboot; if it happens again, try another driver version",
            None,
        ),
    })
}
