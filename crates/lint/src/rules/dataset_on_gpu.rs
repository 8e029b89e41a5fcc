//! # dataset-on-gpu (AF201)
//!
//! A whole dataset is moved to the GPU before training.
//!
//! ## Why it crashes
//!
//! A GPU has a fraction of the machine's memory, and needs it for weights, gradients and
//! activations. The dataset occupies its part for the whole run, so the batch must be smaller, and
//! a slightly larger input ends with "CUDA out of memory".
//!
//! ## Wrong
//!
//! ```python
//! images = torch.load("train.pt").to(device)
//! loader = DataLoader(TensorDataset(images), batch_size=128)
//! ```
//!
//! ## Right
//!
//! ```python
//! images = torch.load("train.pt")
//! loader = DataLoader(TensorDataset(images), batch_size=128, pin_memory=True)
//! for (batch,) in loader:
//!     batch = batch.to(device, non_blocking=True)
//! ```
//!
//! ## When it is fine
//!
//! When the data is small compared with the GPU's memory: then it is even faster. Data of known
//! size is reported from 1/32 of the memory on; data of unknown size only if it was loaded from a
//! file.
//!
//! ## Fix
//!
//! None: every use of a batch would have to move it.

use super::full_batch::whole_table_input;
use crate::finding::Finding;
use crate::model::uses::find_uses;
use crate::model::{Call, Device, FrameId, Module, Role, Store, ValueKind};
use crate::queries::files::holds_whole_file;
use crate::queries::wording::{format_bytes, format_memory};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF201",
    name: "dataset-on-gpu",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("dataset_on_gpu.rs"),
    check,
};

/// The share of GPU memory from which data is large.
const LARGE_SHARE: f64 = 1.0 / 32.0;

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") {
        return;
    }
    let mut places: Vec<TextRange> = Vec::new();
    for call in module.calls() {
        if call.path.is_some_and(|path| path.last() == "TensorDataset")
            && let Some(moved) = first_part_on_gpu(module, call)
            && !places.contains(&moved.expr.range())
        {
            places.push(moved.expr.range());
            findings.push(finding(
                module,
                moved,
                &format!("the dataset at {}", module.line_label(call.expr.range())),
            ));
        }
    }
    for store in module.stores() {
        if store.value.device == Device::Gpu
            && store.value.is(ValueKind::Tensor)
            && store.context.innermost_loop.is_none()
            && let Some(moved) = find_move_to_gpu(module, store)
            && !places.contains(&moved.expr.range())
            && is_large(module, moved) == Some(true)
            && let Some(line) = find_partial_use(module, store)
        {
            places.push(moved.expr.range());
            findings.push(finding(module, moved, &format!("the batches at {line}")));
        }
    }
}

/// Returns the call that moves the first large part of a `TensorDataset` to the GPU.
fn first_part_on_gpu<'m, 'a>(module: &'m Module<'a>, dataset: &Call<'a>) -> Option<&'m Call<'a>> {
    module.arguments(dataset).iter().find_map(|part| {
        if part.device != Device::Gpu {
            return None;
        }
        let moved = module
            .calls()
            .iter()
            .filter(|call| call.expr.start() == part.site && moves_to_gpu(call))
            .max_by_key(|call| call.expr.end())?;
        (is_large(module, moved) == Some(true)).then_some(moved)
    })
}

/// Returns the call that moves the assigned value to the GPU.
fn find_move_to_gpu<'m, 'a>(module: &'m Module<'a>, store: &Store<'a>) -> Option<&'m Call<'a>> {
    let source = store.source?.range();
    module
        .calls()
        .iter()
        .filter(|call| {
            call.expr.start() == source.start()
                && source.contains_range(call.expr.range())
                && moves_to_gpu(call)
        })
        .max_by_key(|call| call.expr.end())
}

fn moves_to_gpu(call: &Call<'_>) -> bool {
    call.result.device == Device::Gpu
        && (matches!(call.method(), Some("to" | "cuda")) || call.keyword("device").is_some())
}

/// Whether data is large, by its size or because it was loaded from a file. `None` means small.
fn is_large<'a>(module: &Module<'a>, moved: &Call<'a>) -> Option<bool> {
    if let Some(size) = moved.result.bytes() {
        let vram = module.target.vram_bytes? as f64;
        return (size >= vram * LARGE_SHARE).then_some(true);
    }
    let frame = moved.context.frame;
    let data = match moved.object() {
        Some(object) => object,
        None => moved.expr.arguments.args.first()?,
    };
    Some(holds_whole_file(module, data, frame))
}

/// Returns the line that uses only parts of a tensor: a slice in a loop, a split, or `__getitem__`;
/// or the line that passes all of it to a model.
fn find_partial_use(module: &Module<'_>, store: &Store<'_>) -> Option<String> {
    let name = module.dotted_name(store.target)?;
    let frame = module.frame(store.context.frame);
    if name.starts_with("self.") {
        let class = module.classes().get(frame.class? as usize)?;
        let item = (class.role == Role::Dataset)
            .then(|| class.methods.get("__getitem__"))
            .flatten()?;
        return find_slice(module, name, module.frame(*item).body);
    }
    let own = |around: &&crate::model::Loop<'_>| {
        around.frame == store.context.frame && around.parent.is_none()
    };
    for around in module.loops().iter().filter(own) {
        if let Some(line) = find_slice(module, name, around.body) {
            return Some(line);
        }
    }
    let whole = module.calls().iter().find(|call| {
        call.context.frame == store.context.frame
            && whole_table_input(module, call).is_some_and(|(data, _)| data == name)
    });
    if let Some(call) = whole {
        return Some(module.line_label(call.expr.range()));
    }
    find_split(module, name, store.context.frame)
}

fn find_slice(module: &Module<'_>, name: &str, body: &[Stmt]) -> Option<String> {
    find_uses(module.text, name, body)
        .iter()
        .find_map(|used| match used.around[0] {
            Some(Expr::Subscript(subscript))
                if subscript.value.range() == used.expr.range()
                    && subscript.ctx.is_load()
                    && !subscript.slice.is_number_literal_expr()
                    && !subscript.slice.is_string_literal_expr() =>
            {
                Some(module.line_label(used.expr.range()))
            }
            _ => None,
        })
}

/// Returns the line of `for part in everything.split(chunk)`.
fn find_split(module: &Module<'_>, name: &str, frame: FrameId) -> Option<String> {
    module.loops().iter().find_map(|around| {
        let (_, Expr::Call(over)) = around.for_clause? else {
            return None;
        };
        let Expr::Attribute(method) = &*over.func else {
            return None;
        };
        let is_split = around.frame == frame
            && matches!(method.attr.as_str(), "split" | "chunk")
            && module.dotted_name(&method.value) == Some(name);
        is_split.then(|| module.line_label(over.range()))
    })
}

fn finding(module: &Module<'_>, moved: &Call<'_>, user: &str) -> Finding {
    let data = moved
        .object()
        .map_or_else(|| module.source(moved.expr), |object| module.source(object));
    let data = if data.len() > 50 || data.contains('\n') {
        "all data"
    } else {
        data
    };
    let card = module
        .target
        .vram_bytes
        .map_or("the GPU".to_owned(), |vram| {
            format!("a GPU with {}", format_memory(vram))
        });
    let size = moved.result.bytes();
    let message = match size {
        Some(size) => format!(
            "`{data}` takes {} on {card} for the whole training",
            format_bytes(size)
        ),
        None => {
            format!(
                "`{data}` is the content of a whole file and stays on {card} for the whole training"
            )
        }
    };
    Finding {
        rule: &RULE,
        range: moved.expr.range(),
        message,
        label: format!("only {user} needs it there, one batch at a time"),
        help: "keep it in main memory and move each batch: batch.to(device, non_blocking=True)"
            .to_owned(),
        fix: None,
    }
}
