//! # batch-too-large-here (AF204)
//!
//! By the sizes in the script, one training step does not fit in this machine's memory.
//!
//! ## Why it crashes
//!
//! Weights, gradients, optimizer state, the batch and the activations saved for `backward()` are in
//! memory at the same time. If they exceed the GPU's memory, the first step ends with "CUDA out of
//! memory". In main memory the machine swaps until the process is killed.
//!
//! ## Wrong
//!
//! ```python
//! model = nn.Sequential(nn.Linear(1024, 8192), nn.ReLU(), nn.Linear(8192, 8192), nn.ReLU()).cuda()
//! for x in batches(131_072):        # 8.6 GB of activations, on a GPU with 8 GB
//!     model(x).mean().backward()
//! ```
//!
//! ## Right
//!
//! ```python
//! for x in batches(4096):
//!     model(x).mean().backward()
//! ```
//!
//! ## When it is fine
//!
//! On a larger machine: name its size with `--vram` and `--ram`. Only what can be computed is
//! counted, so the reported size is a lower bound. Models that recompute activations or run on
//! several GPUs are not reported.
//!
//! ## Fix
//!
//! None: another batch size changes the training.

use super::full_batch::{available_memory, whole_table_input};
use crate::finding::Finding;
use crate::model::{Call, Device, Module, Value, ValueKind};
use crate::queries::backward::{runs_backward_in_function, runs_backward_in_loop};
use crate::queries::network::{MemoryNeed, estimate_step_memory};
use crate::queries::wording::{format_bytes, format_count, format_memory};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF204",
    name: "batch-too-large-here",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("batch_too_large_here.rs"),
    check,
};

/// The smallest number of input elements that is examined.
const MIN_INPUT_ELEMENTS: f64 = 50_000.0;

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if module.target.ram_bytes.is_none() && module.target.vram_bytes.is_none() {
        return;
    }
    let mut known: Vec<u32> = Vec::new();
    for call in module.calls() {
        let step = match call.method() {
            Some("fit") => estimate_fit(module, call),
            _ => estimate_forward(module, call),
        };
        if let Some((needed, rows, on_gpu)) = step
            && let Some(room) = available_memory(module, on_gpu)
            && needed.total() > room as f64
            && !saves_memory(module)
            && !known.contains(&call.context.frame.0)
        {
            known.push(call.context.frame.0);
            findings.push(finding(call, &needed, rows, on_gpu, room));
        }
    }
}

/// Estimates the step of `model(x)` before `backward()`.
fn estimate_forward<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<(MemoryNeed, f64, bool)> {
    if call.path.is_some() || !call.callee.is(ValueKind::Model) || call.context.no_grad {
        return None;
    }
    let input = *module.arguments(call).first()?;
    let lengths = large_shape(module, input)?;
    let trains = match call.context.innermost_loop {
        Some(id) => runs_backward_in_loop(module, id),
        None => runs_backward_in_function(module, call.context.frame),
    };
    if !trains || whole_table_input(module, call).is_some() {
        return None;
    }
    let needed = estimate_step_memory(module, &call.expr.func, call.context.frame, lengths)?;
    let on_gpu = input.device == Device::Gpu || moves_model_to_gpu(module);
    Some((needed, *lengths.first()?, on_gpu))
}

/// Estimates the step of Keras `model.fit(x, y, batch_size=…)`, which uses the GPU if there is one.
fn estimate_fit<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<(MemoryNeed, f64, bool)> {
    if !call.receiver?.is(ValueKind::Model) {
        return None;
    }
    let input = module.argument(call, 0, "x")?;
    let batch = match call.argument(2, "batch_size") {
        Some(_) => module.argument(call, 2, "batch_size")?.as_number()?,
        None => 32.0,
    };
    let mut lengths = module.shape(input)?.to_vec();
    let rows = lengths.first_mut()?;
    *rows = rows.min(batch);
    if lengths.iter().product::<f64>() < MIN_INPUT_ELEMENTS {
        return None;
    }
    let needed = estimate_step_memory(module, call.object()?, call.context.frame, &lengths)?;
    Some((
        needed,
        *lengths.first()?,
        module.target.vram_bytes.is_some(),
    ))
}

fn large_shape<'m>(module: &'m Module<'_>, input: Value) -> Option<&'m [f64]> {
    module
        .shape(input)
        .filter(|lengths| lengths.iter().product::<f64>() >= MIN_INPUT_ELEMENTS)
}

/// Whether the text moves a model to the GPU.
fn moves_model_to_gpu(module: &Module<'_>) -> bool {
    module.calls().iter().any(|call| {
        call.method() == Some("cuda") && call.receiver.is_some_and(|r| r.is(ValueKind::Model))
    })
}

/// Whether activations are recomputed or offloaded, or several GPUs are used.
fn saves_memory(module: &Module<'_>) -> bool {
    [
        "checkpoint(",
        "checkpoint_sequential",
        "DataParallel",
        "FullyShard",
        "deepspeed",
        "MirroredStrategy",
        "meta",
    ]
    .iter()
    .any(|word| module.text.contains(word))
}

fn finding(call: &Call<'_>, needed: &MemoryNeed, rows: f64, on_gpu: bool, room: u64) -> Finding {
    let machine = if on_gpu { "a GPU" } else { "a machine" };
    // Memory that does not depend on the batch size stays.
    let each = (needed.input + needed.activations) / rows;
    let left = (room as f64 - needed.weights).max(0.0);
    let fits = (left / each).floor();
    let at = match &*call.expr.func {
        Expr::Attribute(attribute) if call.method() == Some("fit") => {
            ruff_text_size::TextRange::new(attribute.value.start(), call.expr.end())
        }
        _ => call.expr.range(),
    };
    Finding {
        rule: &RULE,
        range: at,
        message: format!(
            "a step with {} rows needs at least {} ({} for activations, {} for weights, gradients and optimizer, {} for input), on {machine} with {}",
            format_count(rows),
            format_bytes(needed.total()),
            format_bytes(needed.activations),
            format_bytes(needed.weights),
            format_bytes(needed.input),
            format_memory(room)
        ),
        label: format!(
            "{} more than available",
            format_bytes(needed.total() - room as f64)
        ),
        help: if fits >= 1.0 {
            format!(
                "at most {} rows can fit: use a smaller batch and accumulate gradients over several batches",
                format_count(round_down_to_power_of_two(fits))
            )
        } else {
            "the weights alone do not fit: use a smaller model or several GPUs".to_owned()
        },
        fix: None,
    }
}

fn round_down_to_power_of_two(number: f64) -> f64 {
    number.max(1.0).log2().floor().exp2()
}
