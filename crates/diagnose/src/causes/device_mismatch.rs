//! # device-mismatch
//!
//! Two tensors of one operation are on different devices, or of different types.
//!
//! ## Symptoms
//!
//! `Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu`, `Input type
//! (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same`, `mat1 and mat2 must have the same
//! dtype`, `expected scalar type Half but found Float`.
//!
//! ## How it is detected
//!
//! By the error that ended the script.
//!
//! ## What to do
//!
//! Move the model once, and every batch:
//!
//! ```python
//! model.to(device)
//! x, y = x.to(device), y.to(device)
//! ```
//!
//! For types: convert one of them, or use autocast.
//!
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = model(x.to(model.dtype))
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::layout::cut;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::DeviceMismatch,
    word: "device-mismatch",
    title: "tensors on different devices",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("device_mismatch.rs"),
    detect,
};

/// Whether an error is about tensors of different types. Arrays and data frames have types as well, with other errors.
fn is_type_mismatch(error: &str) -> bool {
    let lower = error.to_lowercase();
    let has = |words: &[&str]| words.iter().all(|words| lower.contains(words));
    let is_torch = lower.starts_with("runtimeerror") || lower.contains("tensor");
    let is_same = has(&["same dtype"])
        && ["must", "expected", "should", "but got"]
            .iter()
            .any(|word| lower.contains(word));
    let is_other = has(&["expected", "scalar type", "but"])
        || has(&["found dtype", "but expected"])
        || has(&["expected dtype", "but got"])
        || has(&["expected object of scalar type"]);
    is_torch && (is_same || is_other)
}

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let error = evidence.error();
    let on_devices = [
        "Expected all tensors to be on the same device",
        "should be the same or input should be a MKLDNN tensor",
        "Input and parameter tensors are not at the same device",
        "is on cpu, but expected",
        "is not on the expected device",
        "indices should be either on cpu or on the same device",
        "Expected object of device type",
        "is on CPU, but expected",
        "is on GPU, but expected",
        "Placeholder storage has not been allocated on MPS device",
    ];
    let of_both = error.contains("Input type") && error.contains("weight type");
    let is_it = of_both || on_devices.iter().any(|words| error.contains(words));
    if is_type_mismatch(error) && !is_it {
        let remedy = "convert both to one type, or use autocast";
        let found =
            Found::new(evidence, 0.9, cut(error, 160), "").at_location(evidence.error_location());
        return Finding::Found(found.with_remedy(
            remedy,
            Some("x = x.to(next(model.parameters()).dtype)".into()),
        ));
    }
    let found = is_it.then(|| {
        Found::new(evidence, 0.95, cut(error, 160), "")
            .at_location(evidence.error_location())
            .with_remedy(
                "move the model and every batch to one device",
                Some("x, y = x.to(device), y.to(device)".into()),
            )
    });
    found.into()
}
