//! # gpu-fault
//!
//! The card met an error: a wrong address, a broken kernel, memory that does not hold its bits.
//!
//! ## How it looks
//!
//! `CUDA error: an illegal memory access was encountered`, `device-side assert triggered`, `HSA_STATUS_ERROR`, and in the
//! kernel's log a line with `Xid` or `ring … timeout`.
//!
//! ## How it is told
//!
//! By the kernel's line, whose number says whether the program, the driver or the card is to blame; or by the error
//! in the output, which is most often the program's: an index beyond the end.
//!
//! ## What to do
//!
//! Have errors reported where they happen, and look for an index or a label out of range:
//!
//! ```sh
//! CUDA_LAUNCH_BLOCKING=1 antifreeze run -- python train.py
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::{Class, Incident, Kind, xid};
use crate::verdict::EndKind;
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    if let Some(found) = told(case) {
        return Finding::Found(found);
    }
    let said = case.said(&[
        "an illegal memory access was encountered",
        "device-side assert triggered",
        "CUDA error: misaligned address",
        "CUDA error: an illegal instruction was encountered",
        "CUDA error: unspecified launch failure",
        "CUDA error: uncorrectable ECC error encountered",
        "HSA_STATUS_ERROR",
        "Memory access fault by GPU node",
    ]);
    if let Some(found) = pasted(case) {
        return Finding::Found(found);
    }
    let found = said.map(|(line, most)| {
        Found::new(case, f64::min(0.85, most), cut(&line, 160), "")
            .at(case.location())
            .remedy(
                "have it reported where it happens; look for an index or a label out of range",
                Some(format!(
                    "CUDA_LAUNCH_BLOCKING=1 antifreeze run -- {}",
                    case.facts.command_line()
                )),
            )
    });
    match found {
        None if case.end == EndKind::MachineDied && case.knows_log() => {
            Finding::RuledOut("no Xid and no reset of a card in the kernel's log".into())
        }
        found => found.into(),
    }
}

/// A line of the kernel's log that somebody has put into the output.
fn pasted(case: &Case<'_>) -> Option<Found> {
    let (line, most) = case.said(&["NVRM: Xid ("])?;
    let (_, after) = line.split_once("NVRM: Xid (")?.1.split_once("): ")?;
    let known = xid(after.split(',').next()?.trim().parse().ok()?);
    if known.is_some_and(|known| known.class == Class::Lost) {
        return None;
    }
    let found = Found::new(case, f64::min(0.85, most), cut(&line, 160), "");
    Some(found.remedy(known.map_or("reset the card, or reboot", |known| known.remedy), None))
}

/// What the kernel's log tells; of several the first, whose consequences the others are.
fn told(case: &Case<'_>) -> Option<Found> {
    let class = |incident: &Incident| match incident.kind {
        Kind::Xid { code, .. } => xid(code).map_or(Some(Class::Reset), |xid| Some(xid.class)),
        Kind::AmdRingTimeout { .. } | Kind::AmdReset { .. } => Some(Class::Reset),
        _ => None,
    };
    let faults = || case.incidents().filter(|incident| class(incident).is_some());
    let first = faults()
        .find(|incident| class(incident) != Some(Class::Consequence))
        .or_else(|| faults().next())?;
    if class(first) == Some(Class::Lost) {
        return None;
    }
    let mut found = Found::said(case, 0.9, first);
    let known = match first.kind {
        Kind::Xid { code, .. } => xid(code),
        _ => None,
    };
    Some(match known {
        Some(known) => {
            found = found.and(case, format!("Xid {}: {}", known.code, known.meaning), "kernel");
            found.remedy(known.remedy, None)
        }
        None => found.remedy("reset the card, or reboot; if it comes back, try another driver version", None),
    })
}
