//! # gpu-lost
//!
//! The card does not answer any more.
//!
//! ## How it looks
//!
//! `GPU has fallen off the bus`, `Unable to determine the device handle … GPU is lost`, a black screen, a machine that
//! must be restarted.
//!
//! ## How it is told
//!
//! By the kernel's line (Xid 79, or the words), or the driver's in the output.
//!
//! ## What to do
//!
//! Restart the machine. If it comes back: a power supply that is too weak, a cable or a riser, heat. A power limit
//! often helps:
//!
//! ```sh
//! sudo nvidia-smi -pl 300
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::{Class, Kind, xid};
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let is_lost = |kind: &Kind| match kind {
        Kind::GpuOffTheBus { .. } | Kind::AmdLost { .. } => true,
        Kind::Xid { code, .. } => xid(*code).is_some_and(|xid| xid.class == Class::Lost),
        _ => false,
    };
    if let Some(incident) = case.incident(is_lost) {
        return Finding::Found(remedied(Found::said(case, 0.95, incident)));
    }
    let said = case.line_with(&[
        "GPU is lost.",
        "GPU has fallen off the bus",
        "CUDA error: the launch timed out and was terminated",
    ]);
    let said = said.filter(|_| case.went_wrong());
    let found = said.map(|line| remedied(Found::new(case, 0.9, cut(&line, 160), "")));
    found.into()
}

fn remedied(found: Found) -> Found {
    found.remedy(
        "restart the machine; then check power supply, cables and heat, and limit the card's power",
        Some("sudo nvidia-smi -pl 300".into()),
    )
}
