//! # device-mismatch
//!
//! Two tensors of one operation are on different devices, or of different types.
//!
//! ## How it looks
//!
//! `Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu`, `Input type
//! (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same`, `mat1 and mat2 must have the same
//! dtype`, `expected scalar type Half but found Float`.
//!
//! ## How it is told
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
//! Of types: have one for both, or let autocast choose.
//!
//! ```python
//! with torch.autocast("cuda", dtype=torch.bfloat16):
//!     loss = model(x.to(model.dtype))
//! ```

use antifreeze_text::layout::cut;
use super::{Finding, Found};
use crate::case::Case;

/// Two tensors are of different types. Tables and arrays have types as well, and other errors.
fn is_of_types(error: &str) -> bool {
    let lower = error.to_lowercase();
    let has = |words: &[&str]| words.iter().all(|words| lower.contains(words));
    let is_torch = lower.starts_with("runtimeerror") || lower.contains("tensor");
    let is_same = has(&["same dtype"]) && ["must", "expected", "should", "but got"].iter().any(|word| lower.contains(word));
    let is_other = has(&["expected", "scalar type", "but"])
        || has(&["found dtype", "but expected"])
        || has(&["expected dtype", "but got"])
        || has(&["expected object of scalar type"]);
    is_torch && (is_same || is_other)
}

pub(super) fn look(case: &Case<'_>) -> Finding {
    let error = case.error();
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
    if is_of_types(error) && !is_it {
        let remedy = "give both one type, or let autocast choose";
        let found = Found::new(case, 0.9, cut(error, 160), "").at(case.location());
        return Finding::Found(found.remedy(remedy, Some("x = x.to(next(model.parameters()).dtype)".into())));
    }
    let found = is_it.then(|| {
        Found::new(case, 0.95, cut(error, 160), "")
            .at(case.location())
            .remedy("move the model and every batch to one device", Some("x, y = x.to(device), y.to(device)".into()))
    });
    found.into()
}
