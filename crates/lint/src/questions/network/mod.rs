//! The memory that a step through a network needs at least: its layers are followed with the
//! lengths of a batch, as far as they are written in the text.
//!
//! What is not known adds nothing, so the sum is a lower bound.

mod nets;
#[cfg(test)]
mod tests;
mod walk;

use crate::model::{FrameId, Kind, Module};
use nets::net_of;
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;
use std::cell::Cell;
use walk::{Tensor, Walk};

/// Bytes of an element: weights, gradients, activations.
const EACH: f64 = 4.0;
/// An index of a pooled maximum.
const INDEX: f64 = 8.0;

/// What a step needs at least, in bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Need {
    /// The batch itself.
    pub input: f64,
    /// What the layers keep for the way back.
    pub activations: f64,
    /// Weights, their gradients and the optimizer's state.
    pub weights: f64,
}

impl Need {
    pub fn all(&self) -> f64 {
        self.input + self.activations + self.weights
    }
}

/// What a step through a model needs with a batch of these lengths. None where nothing is known
/// of its layers.
pub fn need<'a>(
    module: &Module<'a>,
    model: &'a Expr,
    frame: FrameId,
    lengths: &[f64],
) -> Option<Need> {
    let budget = Cell::new(MOST);
    let net = net_of(&budget, module, model, frame, model.start(), DEEPEST)?;
    let mut walk = Walk {
        module,
        saved: vec![true],
        activations: 0.0,
        weights: 0.0,
        layers: 0,
        each: if is_mixed(module) { EACH / 2.0 } else { EACH },
        budget,
    };
    let input = Tensor {
        lengths: lengths.to_vec(),
        id: 0,
    };
    // The loss is computed from the output, and keeps it.
    if let Some(output) = walk.through(&net, input, DEEPEST) {
        walk.keep(&output);
    }
    (walk.layers > 0).then(|| Need {
        input: lengths.iter().product::<f64>() * EACH,
        activations: walk.activations,
        weights: walk.weights * (2.0 * EACH + state(module)),
    })
}

const DEEPEST: u32 = 8;
/// Layers that are looked at before giving up: names may refer to each other in circles.
const MOST: u32 = 5_000;

/// Whether activations may be halves.
fn is_mixed(module: &Module<'_>) -> bool {
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
fn state(module: &Module<'_>) -> f64 {
    let of = |name: &str, has_momentum: bool| match name.to_ascii_lowercase().as_str() {
        "adam" | "adamw" | "nadam" | "radam" | "adamax" => 8.0,
        "rmsprop" | "adagrad" | "adadelta" | "lion" => 4.0,
        "sgd" if has_momentum => 4.0,
        _ => 0.0,
    };
    let states = module.calls().iter().filter_map(|call| {
        if let Some(path) = call.path.filter(|_| call.result.is(Kind::Optimizer)) {
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
