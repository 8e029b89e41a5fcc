//! # hardware-error
//!
//! The processor, the memory, a disk or the bus reported an error of its own.
//!
//! ## How it looks
//!
//! Crashes at different places, files that cannot be read, a machine that stops.
//!
//! ## How it is told
//!
//! By the kernel's lines: machine checks, memory errors (EDAC), errors of the disk, of PCIe. Corrected errors are
//! told with less certainty: the machine went on from them.
//!
//! ## What to do
//!
//! Save what matters; test the memory (`memtest86+`), look at the disk:
//!
//! ```sh
//! sudo smartctl -a /dev/sda
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::{Kind, Severity};
use crate::verdict::EndKind;
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let sure_of = |kind: &Kind| -> f64 {
        match kind {
        Kind::MachineCheck => 0.85,
        Kind::MemoryError { corrected, .. } => if *corrected { 0.35 } else { 0.9 },
        Kind::DiskError { .. } | Kind::ReadOnlyRemount { .. } => 0.85,
        Kind::PcieError { severity, .. } => match severity {
            Severity::Fatal => 0.85,
            Severity::NonFatal | Severity::Unknown => 0.5,
            Severity::Corrected => 0.25,
        },
        _ => 0.0,
    }
    };
    // What was corrected tells something only of a machine that died.
    let least = match case.end {
        EndKind::MachineDied => 0.0,
        _ if case.went_wrong() => 0.4,
        _ => 0.8,
    };
    let worst = case
        .incidents()
        .map(|incident| (sure_of(&incident.kind), incident))
        .filter(|(sure, _)| *sure > least)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((sure, incident)) = worst {
        let (text, paste) = match incident.kind {
            Kind::DiskError { .. } | Kind::ReadOnlyRemount { .. } => (
                "save what matters, and look at the disk",
                Some("sudo smartctl -a /dev/sda".to_owned()),
            ),
            Kind::PcieError { .. } => ("check how the card sits in its slot, and its cables", None),
            _ => ("test the memory (memtest86+); check cooling and power", None),
        };
        return Finding::Found(Found::said(case, sure, incident).remedy(text, paste));
    }
    let said = case.said(&["Input/output error", "[Errno 5]"]);
    let found = said.filter(|_| case.went_wrong()).map(|(line, most)| {
        Found::new(case, f64::min(0.6, most), cut(&line, 160), "")
            .at(case.location())
            .remedy("save what matters, and look at the disk", Some("sudo smartctl -a /dev/sda".into()))
    });
    found.into()
}
