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
//! in the output, which is most often the program's: an index beyond the end. A fault that the kernel's log gives to
//! another process is not this run's, and an error of the script that has nothing to do with a card is not explained
//! by one.
//!
//! ## What to do
//!
//! Have errors reported where they happen, and look for an index or a label out of range:
//!
//! ```sh
//! CUDA_LAUNCH_BLOCKING=1 antifreeze run -- python train.py
//! ```

use antifreeze_text::layout::cut;
use super::{Finding, Found};
use crate::bearing::Part;
use crate::case::Case;
use crate::kernel::{Class, Incident, Kind, xid};
use crate::verdict::EndKind;
use crate::whose::Whose;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    let tells_any = case.incidents().any(|incident| class(incident).is_some());
    let told = told(case);
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
    let found = found.or_else(|| pasted(case));
    // Of a line that may be another's, the program's own words are surer.
    let is_surer = |told: &Found| found.as_ref().is_none_or(|found| told.confidence >= found.confidence);
    match told.filter(is_surer).or(found) {
        None if case.end == EndKind::MachineDied && case.knows_log() && !tells_any => {
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

fn class(incident: &Incident) -> Option<Class> {
    match incident.kind {
        Kind::Xid { code, .. } => xid(code).map_or(Some(Class::Reset), |xid| Some(xid.class)),
        Kind::AmdRingTimeout { .. } | Kind::AmdReset { .. } => Some(Class::Reset),
        _ => None,
    }
}

/// What the kernel's log tells; of several the first, whose consequences the others are.
fn told(case: &Case<'_>) -> Option<Found> {
    let is_ours = |incident: &&Incident| match class(incident) {
        None => false,
        // It hits the one that made it, and no other.
        Some(Class::Program | Class::Consequence) => case.whose(incident) != Whose::Others,
        Some(Class::Reset | Class::Hardware | Class::Lost) => true,
    };
    let faults = || case.incidents().filter(is_ours);
    let first = faults()
        .find(|incident| class(incident) != Some(Class::Consequence))
        .or_else(|| faults().next())?;
    if class(first) == Some(Class::Lost) {
        return None;
    }
    let sure = match case.whose(first) {
        Whose::Ours => 0.9,
        Whose::Likely | Whose::Unsaid => 0.85,
        // A reset for another's fault takes the work of all; whether it took this run's, an error of the card tells.
        Whose::Others => match case.end {
            EndKind::MachineDied => 0.85,
            EndKind::Exception => 0.8,
            _ => 0.6,
        },
    };
    let mut found = Found::failed(case, Part::Card, sure, first)?;
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
