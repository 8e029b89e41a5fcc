//! # full-batch (AF203)
//!
//! One batch is the whole dataset.
//!
//! ## Why it freezes
//!
//! A step keeps the output of every layer for every sample in the batch until `backward()`. For a
//! whole dataset that is the dataset times the width of the network. It works with the first
//! thousand rows and runs out of memory with all of them.
//!
//! ## Wrong
//!
//! ```python
//! loader = DataLoader(dataset, batch_size=len(dataset))
//! ```
//!
//! ## Right
//!
//! ```python
//! loader = DataLoader(dataset, batch_size=256, shuffle=True)
//! ```
//!
//! ## When it is fine
//!
//! With small data, or with an optimizer that needs the full batch (L-BFGS). Where the size is
//! known it is compared with this machine's memory, and small data is not reported; otherwise only
//! data loaded from files is.
//!
//! ## Fix
//!
//! None: another batch size changes the training.

use crate::finding::Finding;
use crate::model::{Call, Device, FrameId, Module, ValueKind};
use crate::queries::backward::runs_backward_in_loop;
use crate::queries::bindings::{chain_root, resolve_names};
use crate::queries::files::{holds_whole_file, reads_file};
use crate::queries::loaders::{find_loaders, reachable_functions};
use crate::queries::network::estimate_step_memory;
use crate::queries::retention::is_test_code;
use crate::queries::wording::{format_bytes, format_count, format_memory};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF203",
    name: "full-batch",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("full_batch.rs"),
    check,
};

/// The share of memory from which the input of a step is large. Its activations are many times
/// larger.
const LARGE_INPUT_SHARE: f64 = 1.0 / 64.0;
/// The share of memory from which the input and activations of a step are large.
const LARGE_STEP_SHARE: f64 = 1.0 / 20.0;

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if module.text.contains("LBFGS") {
        return;
    }
    for loader in find_loaders(module) {
        if loader.path.is_some_and(|path| path.first() == "torch")
            && !is_test_code(module, module.frame(loader.context.frame))
        {
            findings.extend(check_loader(module, loader));
        }
    }
    for call in module.calls() {
        match call.method() {
            Some("fit") => findings.extend(check_fit(module, call)),
            Some("batch") => findings.extend(check_tf_dataset(module, call)),
            _ => findings.extend(check_forward(module, call)),
        }
    }
}

/// Checks `DataLoader(dataset, batch_size=len(dataset))`, or a number that is not smaller.
fn check_loader<'a>(module: &Module<'a>, loader: &Call<'a>) -> Option<Finding> {
    let size = loader.argument(1, "batch_size")?;
    let dataset = loader.argument(0, "dataset")?;
    let value = module.argument(loader, 0, "dataset")?;
    let frame = loader.context.frame;
    let known = known_dataset_size(module, dataset, frame, value);
    let all = if is_length_of(module, size, frame, &dataset_names(module, dataset)) {
        known.map(|(rows, _)| rows)
    } else {
        let batch = module.argument(loader, 1, "batch_size")?.as_number()?;
        Some(known.map(|(rows, _)| rows).filter(|rows| batch >= *rows)?)
    };
    let input = match known {
        Some((_, input)) if is_small(module, input) => return None,
        Some((_, input)) => Some(input),
        None if !comes_from_files(module, dataset, value.class, frame) => return None,
        None => None,
    };
    Some(finding(
        module,
        size.range(),
        module.source(dataset),
        all,
        input,
    ))
}

/// Checks `model.fit(x, y, batch_size=len(x))`.
fn check_fit<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<Finding> {
    let size = call.keyword("batch_size")?;
    let data = call.argument(0, "x")?;
    let name = module.dotted_name(data)?;
    // A `fit` in a loop trains on data that the loop has just collected.
    if !call.receiver?.is(ValueKind::Model)
        || call.context.innermost_loop.is_some()
        || !is_data_name(name)
    {
        return None;
    }
    let value = module.argument(call, 0, "x")?;
    let is_all = is_length_of(module, size, call.context.frame, &[name]);
    let by_number = value
        .rows()
        .zip(
            module
                .argument(call, usize::MAX, "batch_size")
                .and_then(|batch| batch.as_number()),
        )
        .is_some_and(|(rows, batch)| batch >= rows);
    if !is_all && !by_number {
        return None;
    }
    let input = value.bytes();
    let is_small = match input {
        Some(input) => is_small(module, input),
        None => !holds_whole_file(module, data, call.context.frame),
    };
    if is_small {
        return None;
    }
    Some(finding(module, size.range(), name, value.rows(), input))
}

/// Whether a dataset of unknown size reads files; such a dataset is not small.
fn comes_from_files<'a>(
    module: &Module<'a>,
    dataset: &'a Expr,
    class: Option<u32>,
    frame: FrameId,
) -> bool {
    if let Some(class) = class.and_then(|class| module.classes().get(class as usize)) {
        let Some(item) = class.methods.get("__getitem__") else {
            return false;
        };
        let frames = reachable_functions(module, *item, 2);
        return module.calls().iter().any(|call| {
            frames.contains(&call.context.frame) && call.path.is_some_and(|path| reads_file(&path))
        });
    }
    let Expr::Call(call) = resolve_names(module, dataset, frame).expr else {
        return false;
    };
    if is_tensor_dataset(module, call) {
        return call
            .arguments
            .args
            .iter()
            .any(|part| holds_whole_file(module, part, frame));
    }
    module
        .import_path(&call.func)
        .is_some_and(|path| path.is_in("torchvision.datasets") && path.last() != "FakeData")
}

fn is_data_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["train", "data", "images", "inputs", "features"]
        .iter()
        .any(|word| name.contains(word))
        || name == "x"
}

/// Checks `data.batch(rows)` of a dataset with that many rows.
fn check_tf_dataset<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<Finding> {
    let receiver = call
        .receiver
        .filter(|receiver| receiver.is(ValueKind::Dataset))?;
    let size = call.argument(0, "batch_size")?;
    let rows = receiver.rows()?;
    let input = receiver.bytes()?;
    let batch = module.argument(call, 0, "batch_size")?.as_number()?;
    let name = module.source(chain_root(call.object()?));
    (batch >= rows && rows > 1.0 && !is_small(module, input))
        .then(|| finding(module, size.range(), name, Some(rows), Some(input)))
}

/// Checks `model(table)` in a training loop with a whole table created before the loop.
fn check_forward<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<Finding> {
    let (data, lengths) = whole_table_input(module, call)?;
    let value = *module.arguments(call).first()?;
    let input = value.bytes()?;
    let rows = value.rows()?;
    let room = available_memory(module, value.device == Device::Gpu)?;
    let needed = estimate_step_memory(module, &call.expr.func, call.context.frame, &lengths);
    let large = match &needed {
        Some(needed) => needed.input + needed.activations >= room as f64 * LARGE_STEP_SHARE,
        None => input >= room as f64 * LARGE_INPUT_SHARE,
    };
    if !large || call.context.no_grad {
        return None;
    }
    let kept = match needed {
        Some(needed) => format!("{} for activations", format_bytes(needed.activations)),
        None => format!("{} per output column of a layer", format_bytes(rows * 4.0)),
    };
    let machine = if value.device == Device::Gpu {
        "a GPU"
    } else {
        "a machine"
    };
    Some(Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "each step processes all {} rows of `{data}`: {} for the input and {kept}, on {machine} with {}",
            format_count(rows),
            format_bytes(input),
            format_memory(room)
        ),
        label: "the whole table in one batch".to_owned(),
        help: format!(
            "use part of it in each step: {data}[torch.randint(0, len({data}), (4096,))]"
        ),
        fix: None,
    })
}

/// Returns the name and the shape of a model's input that was created before the loop.
pub fn whole_table_input<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<(&'a str, Vec<f64>)> {
    if !call.callee.is(ValueKind::Model) || call.path.is_some() {
        return None;
    }
    let id = call.context.innermost_loop?;
    let data = call
        .expr
        .arguments
        .args
        .first()
        .and_then(|data| module.dotted_name(data))?;
    let lengths = module.shape(*module.arguments(call).first()?)?.to_vec();
    let made_in_loop = module.stores().iter().any(|store| {
        module.dotted_name(store.target) == Some(data) && module.is_inside_loop(&store.context, id)
    });
    let bound_by_loop = module
        .enclosing_loops(Some(id))
        .filter_map(|around| around.for_clause)
        .any(|(target, _)| crate::queries::files::target_names(target).contains(&data));
    (!made_in_loop && !bound_by_loop && runs_backward_in_loop(module, id))
        .then_some((data, lengths))
}

/// Returns the memory that a step must fit in.
pub fn available_memory(module: &Module<'_>, on_gpu: bool) -> Option<u64> {
    if on_gpu {
        module.target.vram_bytes
    } else {
        module.target.ram_bytes
    }
}

fn is_small(module: &Module<'_>, input: f64) -> bool {
    match module.target.vram_bytes.or(module.target.ram_bytes) {
        Some(room) => input < room as f64 * LARGE_INPUT_SHARE,
        None => true,
    }
}

/// Whether a size is the length of one of these names: `len(x)`, `x.shape[0]`.
fn is_length_of<'a>(module: &Module<'a>, size: &'a Expr, frame: FrameId, names: &[&str]) -> bool {
    // A name that is assigned more than once is unknown.
    let is_plain = module.dotted_name(size).is_none_or(|name| {
        let stores = module
            .stores()
            .iter()
            .filter(|store| store.context.frame == frame);
        stores
            .filter(|store| module.dotted_name(store.target) == Some(name))
            .count()
            == 1
    });
    if !is_plain {
        return false;
    }
    match resolve_names(module, size, frame).expr {
        Expr::Call(call) => {
            let is_len = matches!(&*call.func, Expr::Name(name) if name.id == "len");
            let of = call
                .arguments
                .args
                .first()
                .and_then(|of| module.dotted_name(of));
            is_len && of.is_some_and(|of| names.contains(&of))
        }
        Expr::Subscript(subscript) => match (&*subscript.value, &*subscript.slice) {
            (Expr::Attribute(attribute), Expr::NumberLiteral(_)) => {
                attribute.attr.as_str() == "shape"
                    && module.source(&*subscript.slice) == "0"
                    && module
                        .dotted_name(&attribute.value)
                        .is_some_and(|of| names.contains(&of))
            }
            _ => false,
        },
        _ => false,
    }
}

/// Returns the names of a dataset: its own, and those of its tensors.
fn dataset_names<'a>(module: &Module<'a>, dataset: &'a Expr) -> Vec<&'a str> {
    match dataset {
        Expr::Call(call) if is_tensor_dataset(module, call) => call
            .arguments
            .args
            .iter()
            .filter_map(|part| module.dotted_name(part))
            .collect(),
        _ => module.dotted_name(dataset).into_iter().collect(),
    }
}

fn is_tensor_dataset<'a>(module: &Module<'a>, call: &'a ExprCall) -> bool {
    module
        .import_path(&call.func)
        .is_some_and(|path| path.last() == "TensorDataset")
}

/// Returns the rows and bytes of a dataset: computed, defined by its class, or of a well-known
/// dataset.
fn known_dataset_size<'a>(
    module: &Module<'a>,
    dataset: &'a Expr,
    frame: FrameId,
    value: crate::model::Value,
) -> Option<(f64, f64)> {
    if let Some(known) = value.rows().zip(value.bytes()) {
        return Some(known);
    }
    if let Some(class) = value
        .class
        .and_then(|class| module.classes().get(class as usize))
    {
        let rows = module
            .frame(*class.methods.get("__len__")?)
            .returns
            .as_number()?;
        let all: f64 = class
            .attributes
            .values()
            .filter_map(|attribute| attribute.bytes())
            .sum();
        return (all > 0.0).then_some((rows, all));
    }
    let Expr::Call(call) = resolve_names(module, dataset, frame).expr else {
        return None;
    };
    let path = module
        .import_path(&call.func)
        .filter(|path| path.first() == "torchvision")?;
    let is_test = ["train=False", "split=\"test\"", "split='test'"]
        .iter()
        .any(|way| module.source(call).contains(way));
    // As 32-bit floats, the usual input of a network.
    let (train, test, each) = match path.last() {
        "MNIST" | "FashionMNIST" | "KMNIST" | "QMNIST" => (60_000.0, 10_000.0, 28.0 * 28.0 * 4.0),
        "CIFAR10" | "CIFAR100" => (50_000.0, 10_000.0, 3.0 * 32.0 * 32.0 * 4.0),
        "SVHN" => (73_257.0, 26_032.0, 3.0 * 32.0 * 32.0 * 4.0),
        "STL10" => (5_000.0, 8_000.0, 3.0 * 96.0 * 96.0 * 4.0),
        _ => return None,
    };
    let rows = if is_test { test } else { train };
    Some((rows, rows * each))
}

fn finding(
    module: &Module<'_>,
    place: TextRange,
    name: &str,
    rows: Option<f64>,
    input: Option<f64>,
) -> Finding {
    let rows = rows.map_or("all rows".to_owned(), |rows| {
        format!("all {} rows", format_count(rows))
    });
    let size = match (input, module.target.vram_bytes, module.target.ram_bytes) {
        (Some(input), Some(vram), _) => {
            format!(
                ": {} of input alone, on a GPU with {}",
                format_bytes(input),
                format_memory(vram)
            )
        }
        (Some(input), None, Some(ram)) => {
            format!(
                ": {} of input alone, on a machine with {}",
                format_bytes(input),
                format_memory(ram)
            )
        }
        _ => ", and a step keeps every layer's output for each of them".to_owned(),
    };
    Finding {
        rule: &RULE,
        range: place,
        message: format!("one batch holds {rows} of `{name}`{size}"),
        label: "the whole dataset in one batch".to_owned(),
        help: "use a batch that fits, such as batch_size=256; to step once for all rows, accumulate gradients over several batches"
            .to_owned(),
        fix: None,
    }
}
