//! # oom-retry-in-except (AF108)
//!
//! After an out-of-memory error the model runs again while the memory is still held.
//!
//! ## Why it crashes
//!
//! Inside an `except` block the exception is alive; its traceback references every failed frame and
//! all tensors in it. `torch.cuda.empty_cache()` frees none of them. A retry there starts with full
//! memory and fails again, even with half the batch.
//!
//! ## Wrong
//!
//! ```python
//! try:
//!     loss = step(batch)
//! except torch.cuda.OutOfMemoryError:
//!     torch.cuda.empty_cache()
//!     loss = step(half(batch))
//! ```
//!
//! ## Right
//!
//! ```python
//! too_large = False
//! try:
//!     loss = step(batch)
//! except torch.cuda.OutOfMemoryError:
//!     too_large = True
//! if too_large:
//!     torch.cuda.empty_cache()
//!     loss = step(half(batch))
//! ```
//!
//! ## When it is fine
//!
//! When the handler only prints a message or skips the batch. Such handlers are not reported.
//!
//! ## Fix
//!
//! None: set a flag in the handler and retry after it.

use crate::finding::Finding;
use crate::model::{Call, Module};
use crate::queries::try_blocks::{
    calls_in_block, caught_exceptions, find_try_statements, runs_model,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{ExceptHandler, ExceptHandlerExceptHandler};
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF108",
    name: "oom-retry-in-except",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("oom_retry_in_except.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") {
        return;
    }
    for attempt in find_try_statements(module) {
        for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
            if catches_out_of_memory(module, handler)
                && let Some(again) =
                    calls_in_block(module, &handler.body).find(|call| is_retry(module, call))
                && calls_in_block(module, &attempt.body).any(|call| runs_model(module, call))
            {
                findings.push(finding(module, handler, again));
            }
        }
    }
}

/// Whether a handler is for out-of-memory errors.
fn catches_out_of_memory(module: &Module<'_>, handler: &ExceptHandlerExceptHandler) -> bool {
    let caught = caught_exceptions(handler);
    if caught.iter().any(|name| name.contains("OutOfMemory")) {
        return true;
    }
    let is_broad = caught.is_empty()
        || caught
            .iter()
            .any(|name| matches!(*name, "RuntimeError" | "Exception" | "BaseException"));
    let source = module.source(handler);
    is_broad && (source.contains("out of memory") || source.contains("OutOfMemory"))
}

/// Whether a call retries what failed, or the function in which it failed.
fn is_retry(module: &Module<'_>, call: &Call<'_>) -> bool {
    runs_model(module, call) || call.local_function == Some(call.context.frame)
}

fn finding(module: &Module<'_>, handler: &ExceptHandlerExceptHandler, again: &Call<'_>) -> Finding {
    let line = module.line_label(handler.range());
    let function = module.source(&*again.expr.func);
    Finding {
        rule: &RULE,
        range: again.expr.range(),
        message: format!(
            "`{function}` runs again inside the `except` at {line}, while the failed step is still in memory"
        ),
        label: "the failed step's tensors stay until the `except` ends".to_owned(),
        help:
            "set a flag in the handler and retry after it: `too_large = True`, then `if too_large:`"
                .to_owned(),
        fix: None,
    }
}
