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
use crate::words::cut;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let said = case.line_with(&["Input/output error", "[Errno 5]"]);
    let found = said.filter(|_| case.went_wrong()).map(|line| {
        Found::new(case, 0.6, cut(&line, 160), "")
            .at(case.location())
            .remedy("save what matters, and look at the disk", Some("sudo smartctl -a /dev/sda".into()))
    });
    found.into()
}
