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
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    if !case.went_wrong() {
        return Finding::Nothing;
    }
    let said = case.line_with(&[
        "an illegal memory access was encountered",
        "device-side assert triggered",
        "CUDA error: misaligned address",
        "CUDA error: an illegal instruction was encountered",
        "CUDA error: unspecified launch failure",
        "CUDA error: uncorrectable ECC error encountered",
        "HSA_STATUS_ERROR",
        "Memory access fault by GPU node",
    ]);
    let found = said.map(|line| {
        Found::new(case, 0.85, cut(&line, 160), "")
            .at(case.location())
            .remedy(
                "have it reported where it happens; look for an index or a label out of range",
                Some(format!(
                    "CUDA_LAUNCH_BLOCKING=1 antifreeze run -- {}",
                    case.facts.command_line()
                )),
            )
    });
    found.into()
}
