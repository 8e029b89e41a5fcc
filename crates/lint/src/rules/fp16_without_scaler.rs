//! # fp16-without-scaler (AF307)
//!
//! A model is trained in `float16` without loss scaling.
//!
//! ## Why it crashes
//!
//! In `float16`, gradients below 6e-8 become zero, so without scaling most of them vanish and the
//! model learns little. Values above 65,504 become infinite and the loss NaN. A `GradScaler` keeps
//! gradients in range and skips steps that overflow.
//!
//! ## Wrong
//!
//! ```python
//! with torch.autocast("cuda", dtype=torch.float16):
//!     loss = criterion(model(x), y)
//! loss.backward()
//! optimizer.step()
//! ```
//!
//! ## Right
//!
//! ```python
//! with torch.autocast("cuda", dtype=torch.float16):
//!     loss = criterion(model(x), y)
//! scaler.scale(loss).backward()
//! scaler.step(optimizer)
//! scaler.update()
//! ```
//!
//! ## When it is fine
//!
//! With `bfloat16`, which has the range of `float32`, or where an engine scales the loss. Files
//! that mention a scaler anywhere are not reported.
//!
//! ## Fix
//!
//! None: the scaler must be created once, outside the loop.

use crate::finding::Finding;
use crate::model::{Call, Module, ValueKind};
use crate::queries::backward::is_backward_call;
use crate::queries::optimizer_steps::{OptimizerSteps, count_mentions};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF307",
    name: "fp16-without-scaler",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("fp16_without_scaler.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.text.contains("autocast") || mentions_scaler(module.text) {
        return;
    }
    for call in module.calls() {
        if is_float16_autocast(module, call)
            && !call.context.no_grad
            && trains_in_function(module, call)
        {
            findings.push(finding(call));
            // One finding per file is enough.
            return;
        }
    }
}

/// Whether anything in the text may scale the loss.
fn mentions_scaler(text: &str) -> bool {
    [
        "caler",
        "scale_loss",
        "loss_scale",
        "deepspeed",
        "accelerate",
        "lightning",
        "Fabric",
    ]
    .iter()
    .any(|word| count_mentions(text, word) > 0)
}

/// Whether this is `autocast` on a GPU with `float16`, by its argument or by default.
fn is_float16_autocast<'a>(module: &Module<'a>, call: &Call<'a>) -> bool {
    let Some(path) = call.path else { return false };
    let is_old =
        path.is("torch.cuda.amp.autocast") || path.is("torch.cuda.amp.autocast_mode.autocast");
    let is_new = path.is_any(&[
        "torch.autocast",
        "torch.amp.autocast",
        "torch.amp.autocast_mode.autocast",
    ]);
    if !is_old && !is_new || call.is_open() {
        return false;
    }
    let enabled = call
        .keyword("enabled")
        .or_else(|| call.argument(0, "enabled").filter(|_| is_old));
    if enabled.is_some_and(|enabled| !matches!(enabled, Expr::BooleanLiteral(on) if on.value)) {
        return false;
    }
    let device = call.argument(0, "device_type").filter(|_| is_new);
    let on_gpu = is_old
        || device.is_some_and(|device| {
            matches!(device, Expr::StringLiteral(text) if text.value.to_str().starts_with("cuda"))
        });
    let dtype = call.keyword("dtype").or_else(|| call.argument(1, "dtype"));
    match dtype {
        None => on_gpu,
        Some(dtype) => {
            let is_half = is_float16(module, dtype) || is_bound_to_float16(module, call, dtype);
            let on_cpu =
                matches!(device, Some(Expr::StringLiteral(text)) if text.value.to_str() == "cpu");
            is_half && !on_cpu
        }
    }
}

fn is_float16<'a>(module: &Module<'a>, dtype: &'a Expr) -> bool {
    module
        .import_path(dtype)
        .is_some_and(|path| path.is_any(&["torch.float16", "torch.half"]))
}

/// Whether a name is only ever bound to `float16`: `half = torch.float16`.
fn is_bound_to_float16<'a>(module: &Module<'a>, call: &Call<'a>, dtype: &'a Expr) -> bool {
    let Some(key) = module.dotted_name(dtype) else {
        return false;
    };
    let mut sources = module
        .stores()
        .iter()
        .filter(|store| {
            store.context.frame == call.context.frame
                && module.dotted_name(store.target) == Some(key)
        })
        .map(|store| store.source)
        .peekable();
    sources.peek().is_some()
        && sources.all(|source| source.is_some_and(|source| is_float16(module, source)))
}

/// Whether the same function runs a plain `backward()` and steps an optimizer.
fn trains_in_function(module: &Module<'_>, call: &Call<'_>) -> bool {
    let frame = call.context.frame;
    let has_backward = module.calls().iter().any(|back| {
        back.context.frame == frame
            && is_backward_call(back)
            && back.expr.start() > call.expr.start()
            && back.expr.arguments.is_empty()
            && back.receiver.is_some_and(|receiver| {
                matches!(receiver.kind, ValueKind::Tensor | ValueKind::Unknown)
            })
    });
    has_backward
        && OptimizerSteps::collect(module)
            .direct()
            .iter()
            .any(|(step, _)| step.context.frame == frame)
}

fn finding(call: &Call<'_>) -> Finding {
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: "this trains in `float16` without loss scaling: small gradients vanish, large ones become NaN".to_owned(),
        label: "half precision without scaling".to_owned(),
        help: "create `scaler = torch.cuda.amp.GradScaler()` once, then scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update(); or use dtype=torch.bfloat16 if the GPU supports it".to_owned(),
        fix: None,
    }
}
