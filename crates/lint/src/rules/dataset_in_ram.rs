//! # dataset-in-ram (AF202)
//!
//! A whole dataset is loaded into memory before the first step.
//!
//! ## Why it freezes
//!
//! Stacking the contents of all files needs all of them in memory at once, and for a moment twice:
//! the parts and the stacked array. Images as 32-bit floats take up to a hundred times their size
//! on disk. Once memory is full the machine swaps and stops responding. A `DataLoader` does not
//! help, because it only takes batches from memory.
//!
//! ## Wrong
//!
//! ```python
//! images = torch.stack([load(path) for path in paths])
//! loader = DataLoader(TensorDataset(images), batch_size=8)
//! ```
//!
//! ## Right
//!
//! ```python
//! class Images(Dataset):
//!     def __init__(self, paths):
//!         self.paths = paths
//!
//!     def __getitem__(self, index):
//!         return load(self.paths[index])
//! ```
//!
//! ## When it is fine
//!
//! When the data fits several times over. Arrays of known size are reported only if they take more
//! than half of this machine's memory; `mmap_mode="r"` is not reported.
//!
//! ## Fix
//!
//! None: only the author knows how to read one sample.

use crate::finding::Finding;
use crate::model::{Call, Device, FrameId, Module, ValueKind};
use crate::queries::bindings::{find_binding, is_training_script, resolve_names};
use crate::queries::files::{is_path_list, reads_file_named_by, target_names, yields_one_item};
use crate::queries::retention::is_test_code;
use crate::queries::wording::{format_bytes, format_count, format_memory};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Comprehension, Expr};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF202",
    name: "dataset-in-ram",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("dataset_in_ram.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        findings.extend(find_too_large_array(module, call));
    }
    let mut gathered = module
        .calls()
        .iter()
        .filter_map(|call| find_gathered_files(module, call))
        .peekable();
    if gathered.peek().is_some() && is_training_script(module) {
        for (place, what) in gathered {
            findings.push(finding(module, place, &what));
        }
    }
}

// ---- Arrays of known size ----

/// Returns a finding for an array that takes more than half of the memory.
fn find_too_large_array(module: &Module<'_>, call: &Call<'_>) -> Option<Finding> {
    let size = call.result.bytes()?;
    let ram = module.target.ram_bytes?;
    let is_made = match call.path {
        Some(path) => {
            matches!(path.first(), "torch" | "numpy" | "tensorflow") && !is_copy(path.last())
        }
        None => matches!(
            call.method(),
            Some("random" | "standard_normal" | "integers" | "normal" | "uniform")
        ),
    };
    let is_array = matches!(call.result.kind, ValueKind::Tensor | ValueKind::Array);
    if is_test_code(module, module.frame(call.context.frame)) {
        return None;
    }
    if !is_made
        || !is_array
        || size * 2.0 < ram as f64
        || call.result.device == Device::Gpu
        || is_on_other_device(module, call)
    {
        return None;
    }
    let source = module.source(call.expr);
    let short = if source.len() > 60 || source.contains('\n') {
        "this array".to_owned()
    } else {
        format!("`{source}`")
    };
    let lengths = module.shape(call.result).map(|lengths| {
        let lengths: Vec<String> = lengths.iter().map(|length| format_count(*length)).collect();
        lengths.join(" × ")
    });
    Some(Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!("{short} is {}, on a machine with {}", format_bytes(size), format_memory(ram)),
        label: format!("{} elements at once", lengths.unwrap_or_default()),
        help: "create or read one batch at a time: in __getitem__ of a Dataset, or with np.load(…, mmap_mode=\"r\")"
            .to_owned(),
        fix: None,
    })
}

fn is_copy(name: &str) -> bool {
    matches!(
        name,
        "tensor" | "as_tensor" | "from_numpy" | "array" | "asarray"
    )
}

/// Whether the array is on another device, or on none.
fn is_on_other_device(module: &Module<'_>, call: &Call<'_>) -> bool {
    call.keyword("device").is_some()
        || ["FakeTensor", "\"meta\"", "'meta'"]
            .iter()
            .any(|word| module.text.contains(word))
}

// ---- Data from files ----

/// Returns a call that combines the contents of many files, and the description of its result.
fn find_gathered_files<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<(TextRange, String)> {
    let frame = call.context.frame;
    let may_gather = call.path.is_some() || call.method() == Some("append");
    if !may_gather || call.context.inline || yields_one_item(module, frame) {
        return None;
    }
    if let Some(path) = call.path {
        let stacks = matches!(
            path.segments(),
            ["torch", "stack" | "cat" | "concat"]
                | [
                    "numpy",
                    "stack" | "concatenate" | "vstack" | "array" | "asarray"
                ]
                | ["pandas", "concat"]
                | ["tensorflow", "stack" | "concat"]
        );
        let parts = call.expr.arguments.args.first().filter(|_| stacks)?;
        let over = reads_all_files(module, parts, frame)?;
        return Some((
            call.expr.range(),
            format!(
                "`{}` holds the content of every file in `{over}`",
                module.source(&*call.expr.func)
            ),
        ));
    }
    // A list that a dataset fills in `__init__`.
    let name = module
        .dotted_name(call.object()?)
        .filter(|name| name.starts_with("self."))?;
    let added = call
        .expr
        .arguments
        .args
        .first()
        .filter(|_| call.method() == Some("append"))?;
    let around = module.loop_at(call.context.innermost_loop?);
    let (target, over) = around.for_clause?;
    let names = target_names(target);
    let kept = module.arguments(call).first()?;
    let is_array = matches!(
        kept.kind,
        ValueKind::Tensor | ValueKind::Array | ValueKind::Unknown
    );
    let reads = reads_file_named_by(module, added, frame, &names)
        || is_read_before(module, added, &names, call);
    let in_init = module.frame(frame).name() == "__init__";
    (in_init && is_array && reads && is_path_list(module, over, frame)).then(|| {
        (
            call.expr.range(),
            format!(
                "`{name}` keeps the content of every file in `{}`",
                module.source(over)
            ),
        )
    })
}

/// Whether a stored name was read from a file before: `wave, rate = torchaudio.load(path)`.
fn is_read_before<'a>(
    module: &Module<'a>,
    added: &'a Expr,
    names: &[&str],
    call: &Call<'a>,
) -> bool {
    let Some(name) = module.dotted_name(added) else {
        return false;
    };
    let origin = find_binding(module, name, call.context.frame, call.expr.start());
    origin.is_some_and(|origin| {
        origin.part.is_none_or(|part| part == 0)
            && reads_file_named_by(module, origin.expr, origin.frame, names)
    })
}

/// Returns the source of the path list that a list of arrays is read from: by a comprehension,
/// `map`, or an earlier loop.
fn reads_all_files<'a>(module: &Module<'a>, parts: &'a Expr, frame: FrameId) -> Option<&'a str> {
    let origin = resolve_names(module, parts, frame);
    match origin.expr {
        Expr::ListComp(list) => {
            files_of_comprehension(module, &list.elt, &list.generators, origin.frame)
        }
        Expr::Generator(list) => {
            files_of_comprehension(module, &list.elt, &list.generators, origin.frame)
        }
        Expr::Call(call) => {
            let Expr::Name(function) = &*call.func else {
                return None;
            };
            match (function.id.as_str(), &call.arguments.args[..]) {
                ("list" | "tuple", [inner]) => reads_all_files(module, inner, origin.frame),
                ("map", [reader, over]) => {
                    let reads = match module.import_path(reader) {
                        Some(path) => {
                            crate::queries::files::reads_file(&path) && !path.is("torch.load")
                        }
                        None => match module.final_value(reader, origin.frame).kind {
                            ValueKind::Function(id) => function_reads_file(module, FrameId(id)),
                            _ => false,
                        },
                    };
                    (reads && is_path_list(module, over, origin.frame)).then(|| module.source(over))
                }
                _ => None,
            }
        }
        Expr::List(list) if list.elts.is_empty() => {
            let name = module.dotted_name(parts)?;
            module.calls().iter().find_map(|call| {
                let is_append = call.method() == Some("append")
                    && call.context.frame == frame
                    && call.object().and_then(|object| module.dotted_name(object)) == Some(name);
                let around = module.loop_at(call.context.innermost_loop.filter(|_| is_append)?);
                let (target, over) = around.for_clause?;
                let added = call.expr.arguments.args.first()?;
                let names = target_names(target);
                let reads = reads_file_named_by(module, added, frame, &names)
                    || is_read_before(module, added, &names, call);
                (reads && is_path_list(module, over, frame)).then(|| module.source(over))
            })
        }
        _ => None,
    }
}

fn files_of_comprehension<'a>(
    module: &Module<'a>,
    element: &'a Expr,
    generators: &'a [Comprehension],
    frame: FrameId,
) -> Option<&'a str> {
    let [generator] = generators else { return None };
    let names = target_names(&generator.target);
    (reads_file_named_by(module, element, frame, &names)
        && is_path_list(module, &generator.iter, frame))
    .then(|| module.source(&generator.iter))
}

fn function_reads_file(module: &Module<'_>, frame: FrameId) -> bool {
    module.calls().iter().any(|call| {
        call.context.frame == frame
            && call
                .path
                .is_some_and(|path| crate::queries::files::reads_file(&path))
    })
}

fn finding(module: &Module<'_>, place: TextRange, what: &str) -> Finding {
    let machine = module.target.ram_bytes.map_or(String::new(), |ram| {
        format!(", on a machine with {}", format_memory(ram))
    });
    Finding {
        rule: &RULE,
        range: place,
        message: format!("{what} at once{machine}"),
        label: "all files are loaded before the first step".to_owned(),
        help: "keep the paths and read each file when it is needed: in __getitem__ of a Dataset, in a generator, or with np.load(…, mmap_mode=\"r\")"
            .to_owned(),
        fix: None,
    }
}
