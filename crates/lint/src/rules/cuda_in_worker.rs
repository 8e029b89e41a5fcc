//! # cuda-in-worker (AF208)
//!
//! A DataLoader worker moves data to the GPU.
//!
//! ## Why it crashes
//!
//! Workers are separate processes. A forked worker cannot use CUDA if its parent already did
//! ("Cannot re-initialize CUDA in forked subprocess"). A spawned worker can, but each one holds a
//! CUDA context of a few hundred megabytes and its batches on the GPU, and fails with misleading
//! errors.
//!
//! ## Wrong
//!
//! ```python
//! def __getitem__(self, index):
//!     return self.rows[index].cuda()
//! ```
//!
//! ## Right
//!
//! ```python
//! def __getitem__(self, index):
//!     return self.rows[index]
//!
//! for rows in DataLoader(dataset, num_workers=4, pin_memory=True):
//!     rows = rows.cuda(non_blocking=True)
//! ```
//!
//! ## When it is fine
//!
//! Without workers (`num_workers=0`) everything runs in one process. Only datasets and functions
//! used by a loader with workers in the same file are reported.
//!
//! ## Fix
//!
//! None: only the author knows where the batch is used.

use crate::finding::Finding;
use crate::model::{Call, FrameId, Module, Role, ValueKind};
use crate::queries::devices::is_gpu_device;
use crate::queries::loaders::{
    find_loaders, loader_line, loaders_with_workers, reachable_functions, worker_count,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF208",
    name: "cuda-in-worker",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("cuda_in_worker.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if find_loaders(module).next().is_none() || module.text.contains("set_start_method") {
        return;
    }
    for (id, class) in module.classes().iter().enumerate() {
        if class.role == Role::Dataset
            && let Some((loader, _)) = loaders_with_workers(module, id as u32).next()
        {
            for name in ["__getitem__", "__getitems__", "__iter__"] {
                if let Some(frame) = class.methods.get(name) {
                    let function = format!("`{}.{name}`", class.def.name);
                    report_moves(module, *frame, &function, loader, findings);
                }
            }
        }
    }
    for loader in find_loaders(module) {
        let collate = module.argument(loader, 6, "collate_fn");
        let has_workers = worker_count(module, loader).is_some_and(|(workers, _)| workers > 0.0);
        if has_workers && let Some(ValueKind::Function(id)) = collate.map(|value| value.kind) {
            let function = format!("`{}`", module.frame(FrameId(id)).name());
            report_moves(module, FrameId(id), &function, loader, findings);
        }
    }
}

fn report_moves(
    module: &Module<'_>,
    frame: FrameId,
    function: &str,
    loader: &Call<'_>,
    findings: &mut Vec<Finding>,
) {
    let frames = reachable_functions(module, frame, 2);
    let moves = module
        .calls()
        .iter()
        .filter(|call| frames.contains(&call.context.frame) && moves_to_gpu(module, call));
    for call in moves {
        let line = loader_line(module, loader);
        let known = findings
            .iter()
            .any(|other| other.rule.code == RULE.code && other.range == call.expr.range());
        if !known {
            findings.push(Finding {
                rule: &RULE,
                range: call.expr.range(),
                message: format!(
                    "{function} runs in the workers of the loader at {line}, which cannot share the GPU with the training process"
                ),
                label: "uses CUDA in a worker".to_owned(),
                help: "keep the data on the CPU here and move the batch in the training loop: batch.to(device, non_blocking=True)"
                    .to_owned(),
                fix: None,
            });
        }
    }
}

fn moves_to_gpu<'a>(module: &Module<'a>, call: &Call<'a>) -> bool {
    match call.method() {
        Some("cuda") => true,
        Some("to") => {
            let device = call.argument(0, "device");
            device.is_some_and(|device| is_gpu_device(module, device, call.context.frame))
        }
        _ => {
            let of_torch = call
                .path
                .is_some_and(|path| path.first() == "torch" && path.last() != "device");
            let device = call.keyword("device");
            of_torch
                && device.is_some_and(|device| is_gpu_device(module, device, call.context.frame))
        }
    }
}
