//! # gpu-driver-mismatch
//!
//! The driver, the framework's CUDA version and the GPU do not match.
//!
//! ## Symptoms
//!
//! `CUDA driver version is insufficient for CUDA runtime version`, `Driver/library version mismatch`, `no kernel image
//! is available for execution on the device`, `Found no NVIDIA driver on your system`, `Torch not compiled with CUDA
//! enabled`.
//!
//! ## How it is detected
//!
//! By those words in the output. Each means something else: a driver too old for the framework; a driver that was
//! updated while the old one is still loaded (reboot); a GPU that this build of the framework does not support; no
//! driver; a build without CUDA; a toolkit of another version; a container without access to the GPU. They also explain
//! an error that only says that there is no GPU. A warning is likely at most, and does not count where the training
//! continued without the GPU, except for an old driver: that is why it is slow.
//!
//! ## What to do
//!
//! ```sh
//! nvidia-smi                                                    # the driver, and the newest CUDA that it supports
//! python -c "import torch; print(torch.version.cuda)"           # what the framework was built for
//! ```
//!
//! Builds for CUDA 12 need a driver of at least 525, those for CUDA 13 at least 580; or install a build for your
//! driver.

use super::{CauseKind, Finding, Found, Role};
use crate::output::error_line::ErrorLine;
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::GpuDriverMismatch,
    word: "gpu-driver-mismatch",
    title: "GPU driver mismatch",
    role: Role::BreaksGpu,
    lint_rules: &[],
    source: include_str!("gpu_driver_mismatch.rs"),
    detect,
};

const DRIVER_TOO_OLD: &[&str] = &[
    "driver version is insufficient for CUDA runtime",
    "The NVIDIA driver on your system is too old",
    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    "forward compatibility was attempted on non supported HW",
    "the provided PTX was compiled with an unsupported toolchain",
    "nvidia-container-cli: requirement error",
];
const DRIVER_UPDATED: &[&str] = &["Driver/library version mismatch"];
const GPU_NOT_SUPPORTED: &[&str] = &[
    "no kernel image is available for execution on the device",
    "error: invalid device function",
    "rocBLAS error: Cannot read",
];
const GPU_NOT_SUPPORTED_WARNING: &[&str] =
    &["is not compatible with the current PyTorch installation"];
const NO_DRIVER: &[&str] = &[
    "Found no NVIDIA driver on your system",
    "NVIDIA-SMI has failed because it couldn't communicate",
];
const NO_CONTAINER_TOOLKIT: &[&str] = &[
    "could not select device driver",
    "nvidia-container-cli: initialization error",
];
const ACCESS_LOST: &[&str] = &["Failed to initialize NVML: Unknown Error"];
const BUILD_WITHOUT_CUDA: &[&str] = &["Torch not compiled with CUDA enabled"];
const TOOLKIT_VERSION: &[&str] = &["mismatches the version that was used to compile"];
const CUDNN_VERSION: &[&str] = &["CuDNN library needs to have matching major version"];
const SHOW_SUPPORTED_GPUS: &str = "python -c \"import torch; print(torch.cuda.get_arch_list())\"";

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let kinds = [
        (
            NO_DRIVER,
            0.95,
            "install the driver of the GPU, or train on the CPU: device = \"cpu\"",
            "nvidia-smi",
        ),
        (
            BUILD_WITHOUT_CUDA,
            0.95,
            "install a build of PyTorch for CUDA (pytorch.org/get-started); the installed one is:",
            "python -c \"import torch; print(torch.__version__, torch.version.cuda)\"",
        ),
        (
            CUDNN_VERSION,
            0.9,
            "an older cuDNN is found before the framework's own: check LD_LIBRARY_PATH and the installed packages",
            "python -m pip list | grep -i -e cudnn -e cuda",
        ),
        (
            TOOLKIT_VERSION,
            0.9,
            "install the CUDA toolkit of the version that PyTorch was built for, or a build of PyTorch for that toolkit",
            "nvcc --version; python -c \"import torch; print(torch.version.cuda)\"",
        ),
        (
            NO_CONTAINER_TOOLKIT,
            0.9,
            "containers cannot use the GPU yet: install the NVIDIA Container Toolkit, configure Docker for it, and restart Docker",
            "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
        ),
        (
            ACCESS_LOST,
            0.7,
            "the container has lost access to the GPU: restart the container, or reboot",
            "nvidia-smi",
        ),
        (
            DRIVER_TOO_OLD,
            0.95,
            "update the driver, or install a build of the framework for an older CUDA",
            "nvidia-smi",
        ),
        (
            DRIVER_UPDATED,
            0.95,
            "reboot: the driver was updated while the old one is still loaded",
            "sudo reboot",
        ),
        (
            GPU_NOT_SUPPORTED,
            0.9,
            "install a build of the framework that supports this GPU; the installed one supports:",
            SHOW_SUPPORTED_GPUS,
        ),
        (
            GPU_NOT_SUPPORTED_WARNING,
            0.6,
            "install a build of the framework that supports this GPU; the installed one supports:",
            SHOW_SUPPORTED_GPUS,
        ),
    ];
    let found = kinds
        .into_iter()
        .find_map(|(words, confidence, text, paste)| {
            // It may have continued without the GPU, which is why it is slow.
            let said = evidence
                .find_line_with_confidence(words)
                .filter(|_| evidence.went_wrong());
            let (line, most) = match words == DRIVER_TOO_OLD || words == DRIVER_UPDATED {
                true => said.or_else(|| {
                    Some((
                        evidence.find_line_anywhere(words)?,
                        ErrorLine::Mention.max_confidence(),
                    ))
                }),
                false => said,
            }?;
            let found = Found::new(evidence, f64::min(confidence, most), cut(&line, 160), "")
                .at_location(evidence.error_location());
            Some(found.with_remedy(text, Some(paste.into())))
        });
    found.into()
}
