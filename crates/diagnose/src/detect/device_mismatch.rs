//! # device-mismatch
//!
//! Two tensors of one operation are on different devices, or of different types.
//!
//! ## How it looks
//!
//! `Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu`, `Input type
//! (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same`.
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

use super::{Finding, Found};
use crate::case::Case;
use crate::words::cut;

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
    let of_types = error.contains("Input type") && error.contains("weight type");
    let is_it = of_types || on_devices.iter().any(|words| error.contains(words));
    let found = is_it.then(|| {
        Found::new(case, 0.95, cut(error, 160), "")
            .at(case.location())
            .remedy("move the model and every batch to one device", Some("x, y = x.to(device), y.to(device)".into()))
    });
    found.into()
}
