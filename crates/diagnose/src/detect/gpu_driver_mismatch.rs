//! # gpu-driver-mismatch
//!
//! The driver, the framework's CUDA and the card do not fit together.
//!
//! ## How it looks
//!
//! `CUDA driver version is insufficient for CUDA runtime version`, `Driver/library version mismatch`, `no kernel image
//! is available for execution on the device`, `Found no NVIDIA driver on your system`, `Torch not compiled with CUDA
//! enabled`.
//!
//! ## How it is told
//!
//! By those words in the output. Each means something else: a driver that is too old for the framework; a driver
//! that was updated while the old one still runs (restart the machine); a card that this build of the framework
//! no longer, or not yet, knows; no driver; a build of the framework that knows no cards; a toolkit of another version;
//! a container that has lost the card, or never had it. An error of the script that only says that there is no card is
//! explained by such words before it. A mere warning is called likely at most, and is not told where the training went
//! on without the card, but for a driver that is too old: that is why it is slow.
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

use antifreeze_text::layout::cut;
use super::{Finding, Found};
use crate::case::Case;
use crate::weight::Weight;

const OLD: &[&str] = &[
    "driver version is insufficient for CUDA runtime",
    "The NVIDIA driver on your system is too old",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "forward compatibility was attempted on non supported HW",
    "the provided PTX was compiled with an unsupported toolchain",
    "nvidia-container-cli: requirement error",
];
const UPDATED: &[&str] = &["Driver/library version mismatch"];
const CARD: &[&str] = &[
    "no kernel image is available for execution on the device",
    "error: invalid device function",
    "rocBLAS error: Cannot read",
];
const CARD_WARNING: &[&str] = &["is not compatible with the current PyTorch installation"];
const NO_DRIVER: &[&str] = &[
    "Found no NVIDIA driver on your system",
    "NVIDIA-SMI has failed because it couldn't communicate",
];
const NO_CONTAINER: &[&str] = &["could not select device driver", "nvidia-container-cli: initialization error"];
const NO_ACCESS: &[&str] = &["Failed to initialize NVML: Unknown Error"];
const NO_CARDS: &[&str] = &["Torch not compiled with CUDA enabled"];
const TOOLKIT: &[&str] = &["mismatches the version that was used to compile"];
const LIBRARY: &[&str] = &["CuDNN library needs to have matching major version"];
const ARCHITECTURES: &str = "python -c \"import torch; print(torch.cuda.get_arch_list())\"";

pub(super) fn look(case: &Case<'_>) -> Finding {
    let kinds = [
        (NO_DRIVER, 0.95, "install the driver of the card, or train on the processor: device = \"cpu\"", "nvidia-smi"),
        (
            NO_CARDS,
            0.95,
            "install a build of PyTorch for CUDA: pytorch.org/get-started tells the command; what this one is:",
            "python -c \"import torch; print(torch.__version__, torch.version.cuda)\"",
        ),
        (
            LIBRARY,
            0.9,
            "an older cuDNN is found before the framework's own: look at LD_LIBRARY_PATH, and at what is installed",
            "python -m pip list | grep -i -e cudnn -e cuda",
        ),
        (
            TOOLKIT,
            0.9,
            "install the CUDA toolkit of the version that PyTorch was built for, or a build of PyTorch for that toolkit",
            "nvcc --version; python -c \"import torch; print(torch.version.cuda)\"",
        ),
        (
            NO_CONTAINER,
            0.9,
            "containers cannot use the card yet: install the NVIDIA Container Toolkit, have Docker know it, and start that anew",
            "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        ),
        (
            NO_ACCESS,
            0.7,
            "the card can no longer be reached from here: restart the container, or the machine",
            "nvidia-smi",
        ),
        (OLD, 0.95, "update the driver, or install a build of the framework for an older CUDA", "nvidia-smi"),
        (UPDATED, 0.95, "restart the machine: the driver was updated while the old one still runs", "sudo reboot"),
        (
            CARD,
            0.9,
            "install a build of the framework that knows this card; what this one knows:",
            ARCHITECTURES,
        ),
        (
            CARD_WARNING,
            0.6,
            "install a build of the framework that knows this card; what this one knows:",
            ARCHITECTURES,
        ),
    ];
    let found = kinds.into_iter().find_map(|(words, confidence, text, paste)| {
        // It may have gone on without the card, which is why it is slow.
        let said = case.said(words).filter(|_| case.went_wrong());
        let (line, most) = match words == OLD || words == UPDATED {
            true => said.or_else(|| Some((case.any_line_with(words)?, Weight::Word.most()))),
            false => said,
        }?;
        let found = Found::new(case, f64::min(confidence, most), cut(&line, 160), "").at(case.location());
        Some(found.remedy(text, Some(paste.into())))
    });
    found.into()
}
