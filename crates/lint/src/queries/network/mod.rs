//! The memory that a step through a network needs at least: its layers are followed with the
//! lengths of a batch, as far as they are written in the text.
//!
//! What is not known adds nothing, so the sum is a lower bound.

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

/// Bytes of an element: weights, gradients, activations.
const BYTES_PER_ELEMENT: f64 = 4.0;
/// An index of a pooled maximum.
const BYTES_PER_INDEX: f64 = 8.0;

/// What a step needs at least, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryNeed {
    /// The batch itself.
    pub input: f64,
    /// What the layers keep for the way back.
    pub activations: f64,
    /// Weights, their gradients and the optimizer's state.
    pub weights: f64,
}

impl MemoryNeed {
    pub fn all(&self) -> f64 {
        self.input + self.activations + self.weights
    }
}

/// What a step through a model needs with a batch of these lengths. None where nothing is known
/// of its layers.
pub fn estimate_step_memory<'a>(
    module: &Module<'a>,
    model: &'a Expr,
    frame: FrameId,
    lengths: &[f64],
) -> Option<MemoryNeed> {
    let budget = Cell::new(MAX_LAYERS);
    let net = resolve_network(&budget, module, model, frame, model.start(), MAX_NESTING)?;
    let mut walk = ForwardPass {
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
    // The loss is computed from the output, and keeps it.
    if let Some(output) = walk.through(&net, input, MAX_NESTING) {
        walk.keep(&output);
    }
    (walk.layers > 0).then(|| MemoryNeed {
        input: lengths.iter().product::<f64>() * BYTES_PER_ELEMENT,
        activations: walk.activations,
        weights: walk.weights * (2.0 * BYTES_PER_ELEMENT + optimizer_state_bytes(module)),
    })
}

const MAX_NESTING: u32 = 8;
/// Layers that are looked at before giving up: names may refer to each other in circles.
const MAX_LAYERS: u32 = 5_000;

/// Whether activations may be halves.
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

/// Bytes of optimizer state for each weight.
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

// ---- what a model is made of ----
