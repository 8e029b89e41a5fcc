//! # outputs-kept-on-gpu (AF106)
//!
//! The model's output for every batch is kept in GPU memory.
//!
//! ## Why it crashes
//!
//! Outputs collected over a dataset grow with the dataset; GPU memory does not. The run fails with
//! "CUDA out of memory" in the middle of an evaluation, often hours into training, although every
//! single batch fits.
//!
//! ## Wrong
//!
//! ```python
//! with torch.no_grad():
//!     for x, _ in loader:
//!         outputs.append(model(x.cuda()))
//! ```
//!
//! ## Right
//!
//! ```python
//! with torch.no_grad():
//!     for x, _ in loader:
//!         outputs.append(model(x.cuda()).cpu())
//! ```
//!
//! ## When it is fine
//!
//! When the dataset is small, or little is kept of each batch. Numbers and class indices
//! (`.item()`, `.argmax(1)`) are not reported, nor are outputs gathered from several GPUs.
//!
//! ## Fix
//!
//! Unsafe: `.cpu()` after the stored value. Later computation on it then runs on the CPU.

use crate::finding::{Finding, Fix, Safety};
use crate::model::uses::find_uses;
use crate::model::{Device, LoopId, LoopSource, Module};
use crate::queries::retention::{StoredItem, find_stored_items, is_emptied_in_block, root_name};
use crate::queries::tensor_origin::{TensorOrigin, trace_origin};
use crate::queries::wording::{append_fix, every_step_label, source_with_suffix};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;

pub static RULE: Rule = Rule {
    code: "AF106",
    name: "outputs-kept-on-gpu",
    severity: Severity::Warning,
    stage: Stage::Preview,
    source: include_str!("outputs_kept_on_gpu.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch")
        || !(module.text.contains("no_grad") || module.text.contains("inference_mode"))
    {
        return;
    }
    for kept in find_stored_items(module) {
        if kept.context.no_grad
            && let Some(id) = kept.outlived_loop
            && module.loop_at(id).loop_source == LoopSource::Batches
            && is_output_on_gpu(module, &kept)
            && !is_needed_on_gpu(module, &kept)
            && !is_emptied_in_block(module, kept.name, module.loop_at(id).body)
        {
            findings.push(finding(module, &kept, id));
        }
    }
}

/// Whether the item is the output of a model whose input is on the GPU.
fn is_output_on_gpu(module: &Module<'_>, kept: &StoredItem<'_>) -> bool {
    match trace_origin(module, kept.context.frame, kept.item, false) {
        TensorOrigin::Output(call) => module
            .arguments(call)
            .iter()
            .any(|value| value.device == Device::Gpu),
        _ => false,
    }
}

/// Whether the outputs are needed on the GPU: to be gathered from several GPUs, or for later
/// computation there.
fn is_needed_on_gpu(module: &Module<'_>, kept: &StoredItem<'_>) -> bool {
    let frame = module.frame(kept.context.frame);
    let source = frame.def.map_or(module.text, |def| module.source(def));
    source.contains("gather")
        || find_uses(module.text, root_name(kept.name), frame.body).iter().any(|used| {
            let is_moved = |around: &&Expr| {
                matches!(around, Expr::Attribute(attribute) if matches!(attribute.attr.as_str(), "to" | "cuda"))
            };
            used.around.iter().flatten().any(is_moved)
        })
}

fn finding(module: &Module<'_>, kept: &StoredItem<'_>, id: LoopId) -> Finding {
    let name = kept.name;
    let is_one = !matches!(kept.item, Expr::Tuple(_) | Expr::List(_) | Expr::Dict(_));
    Finding {
        rule: &RULE,
        range: kept.range,
        message: format!(
            "`{name}` keeps the output for every batch on the GPU until its memory is full"
        ),
        label: format!("grows {}", every_step_label(module, Some(id))),
        help: if is_one {
            format!(
                "move each one to the CPU: `{}`",
                source_with_suffix(module, kept.range, kept.item, ".cpu()")
            )
        } else {
            "move each one to the CPU with `.cpu()`".to_owned()
        },
        fix: is_one.then(|| Fix {
            safety: Safety::Unsafe,
            ..append_fix(kept.item, ".cpu()", "Keep the outputs in main memory")
        }),
    }
}
