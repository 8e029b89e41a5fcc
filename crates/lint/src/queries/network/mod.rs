//! Estimates the memory of one training step by following a batch through the layers, as far as the
//! sizes are written in the text.
//!
//! Unknown layers add nothing, so the result is a lower bound.

mod forward_pass;
mod structure;
#[cfg(test)]
mod tests;

use crate::model::{FrameId, Module, ValueKind};
use forward_pass::{ForwardPass, Tensor};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;
use std::cell::Cell;
use structure::resolve_network;

/// Bytes per weight, gradient or activation in `float32`.
const BYTES_PER_ELEMENT: f64 = 4.0;
/// Bytes per index that max pooling saves.
const BYTES_PER_INDEX: f64 = 8.0;

/// The least memory that a step needs, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryNeed {
    /// The batch.
    pub input: f64,
    /// The activations saved for `backward()`.
    pub activations: f64,
    /// Weights, gradients and optimizer state.
    pub weights: f64,
}

impl MemoryNeed {
    /// Returns the total.
    pub fn total(&self) -> f64 {
        self.input + self.activations + self.weights
    }
}

/// Estimates the memory of a step with a batch of this shape. Returns `None` if no layer is known.
pub fn estimate_step_memory<'a>(
    module: &Module<'a>,
    model: &'a Expr,
    frame: FrameId,
    lengths: &[f64],
) -> Option<MemoryNeed> {
    let budget = Cell::new(MAX_LAYERS);
    let net = resolve_network(&budget, module, model, frame, model.start(), MAX_NESTING)?;
    let mut pass = ForwardPass {
        module,
        saved: vec![true],
        activations: 0.0,
        weights: 0.0,
        layers: 0,
        each: if uses_half_precision(module) {
            BYTES_PER_ELEMENT / 2.0
        } else {
            BYTES_PER_ELEMENT
        },
        budget,
    };
    let input = Tensor {
        lengths: lengths.to_vec(),
        id: 0,
    };
    // The loss saves the output it is computed from.
    if let Some(output) = pass.run_network(&net, input, MAX_NESTING) {
        pass.save_activation(&output);
    }
    (pass.layers > 0).then(|| MemoryNeed {
        input: lengths.iter().product::<f64>() * BYTES_PER_ELEMENT,
        activations: pass.activations,
        weights: pass.weights * (2.0 * BYTES_PER_ELEMENT + optimizer_state_bytes(module)),
    })
}

const MAX_NESTING: u32 = 8;
/// The number of layers that are visited before giving up, because names may refer to each other in
/// circles.
const MAX_LAYERS: u32 = 5_000;

/// Whether activations may be in half precision.
fn uses_half_precision(module: &Module<'_>) -> bool {
    [
        "autocast",
        "mixed_precision",
        ".half()",
        "bfloat16",
        "float16",
        "fp16",
        "bf16",
    ]
    .iter()
    .any(|word| module.text.contains(word))
}

/// Returns the bytes of optimizer state per weight.
fn optimizer_state_bytes(module: &Module<'_>) -> f64 {
    let of = |name: &str, has_momentum: bool| match name.to_ascii_lowercase().as_str() {
        "adam" | "adamw" | "nadam" | "radam" | "adamax" => 8.0,
        "rmsprop" | "adagrad" | "adadelta" | "lion" => 4.0,
        "sgd" if has_momentum => 4.0,
        _ => 0.0,
    };
    let states = module.calls().iter().filter_map(|call| {
        if let Some(path) = call.path.filter(|_| call.result.is(ValueKind::Optimizer)) {
            let momentum = call.keyword("momentum").is_some();
            return Some(of(path.last(), momentum));
        }
        match (call.method(), call.argument(0, "optimizer")) {
            (Some("compile"), Some(Expr::StringLiteral(name))) => {
                Some(of(name.value.to_str(), false))
            }
            _ => None,
        }
    });
    states.fold(0.0, f64::max)
}
