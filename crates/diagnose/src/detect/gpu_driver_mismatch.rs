//! # gpu-driver-mismatch
//!
//! The driver, the framework's CUDA and the card do not fit together.
//!
//! ## How it looks
//!
//! `CUDA driver version is insufficient for CUDA runtime version`, `Driver/library version mismatch`, `no kernel image
//! is available for execution on the device`.
//!
//! ## How it is told
//!
//! By those words in the output. Each means something else: a driver that is too old for the framework; a driver
//! that was updated while the old one still runs (restart the machine); a card that this build of the framework
//! no longer, or not yet, knows.
//!
//! ## What to do
//!
//! ```sh
//! nvidia-smi                                                    # the driver, and the newest CUDA that it can
//! python -c "import torch; print(torch.version.cuda)"           # what the framework was built for
//! ```
//!
//! A driver of at least 525 runs builds for CUDA 12, at least 580 those for CUDA 13; or install a build for the
//! driver that is there.

use super::{Finding, Found};
use crate::case::Case;
use crate::words::cut;

const OLD: &[&str] = &[
    "driver version is insufficient for CUDA runtime",
    "The NVIDIA driver on your system is too old",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "forward compatibility was attempted on non supported HW",
];
const UPDATED: &[&str] = &["Driver/library version mismatch"];
const CARD: &[&str] = &[
    "no kernel image is available for execution on the device",
    "is not compatible with the current PyTorch installation",
];

pub(super) fn look(case: &Case<'_>) -> Finding {
    let kinds = [
        (OLD, 0.95, "update the driver, or install a build of the framework for an older CUDA", "nvidia-smi"),
        (UPDATED, 0.95, "restart the machine: the driver was updated while the old one still runs", "sudo reboot"),
        (
            CARD,
            0.9,
            "install a build of the framework that knows this card; what this one knows:",
            "python -c \"import torch; print(torch.cuda.get_arch_list())\"",
        ),
    ];
    let found = kinds.into_iter().find_map(|(words, confidence, text, paste)| {
        let line = case.line_with(words)?;
        let found = Found::new(case, confidence, cut(&line, 160), "").at(case.location());
        Some(found.remedy(text, Some(paste.into())))
    });
    found.into()
}
