//! # list-in-dataset-with-workers (AF205)
//!
//! A dataset keeps a long Python list or dict, and several workers read it.
//!
//! ## Why it freezes
//!
//! Forked workers share the dataset's memory until someone writes to it. Python stores a reference
//! count in each object, so even reading a list element writes to its page, and the page is copied.
//! Over an epoch each worker gets its own copy: a 2 GB list with 8 workers becomes 16 GB, slowly
//! enough to look like a leak.
//!
//! ## Wrong
//!
//! ```python
//! class Reviews(Dataset):
//!     def __init__(self, path):
//!         self.records = [json.loads(line) for line in open(path)]
//!
//! loader = DataLoader(Reviews(path), num_workers=4)
//! ```
//!
//! ## Right
//!
//! ```python
//! class Reviews(Dataset):
//!     def __init__(self, path):
//!         self.packed = np.fromfile(path, dtype=np.uint8)   # one object, never copied
//!         self.ends = np.flatnonzero(self.packed == 10)
//! ```
//!
//! ## When it is fine
//!
//! When the list is short: below a few hundred thousand objects the copies do not matter. Lists of
//! arrays and tensors are not reported, nor are lists written out in the source.
//!
//! ## Fix
//!
//! None: how to pack the elements depends on their type.

use crate::finding::Finding;
use crate::model::uses::find_uses;
use crate::model::{Call, Class, FrameId, Module, Role, ValueKind};
use crate::queries::bindings::{find_statement, resolve_names};
use crate::queries::loaders::{find_loaders, loader_line, loaders_with_workers};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF205",
    name: "list-in-dataset-with-workers",
    severity: Severity::Warning,
    stage: Stage::Preview,
    source: include_str!("list_in_dataset_with_workers.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if find_loaders(module).next().is_none() {
        return;
    }
    for (id, class) in module.classes().iter().enumerate() {
        if class.role == Role::Dataset
            && let Some(init) = class.methods.get("__init__")
            && let Some(item) = class.methods.get("__getitem__")
            && let Some((loader, workers)) = loaders_with_workers(module, id as u32).next()
            && let Some((attribute, place)) = find_long_container(module, *init, *item)
        {
            findings.push(finding(module, class, attribute, place, (loader, workers)));
        }
    }
}

/// Returns an attribute that `__init__` fills with many objects and `__getitem__` reads by index.
fn find_long_container<'a>(
    module: &Module<'a>,
    init: FrameId,
    item: FrameId,
) -> Option<(&'a str, TextRange)> {
    let reads = |attribute: &str| {
        find_uses(module.text, attribute, module.frame(item).body)
            .iter()
            .any(|used| {
                matches!(used.around[0], Some(Expr::Subscript(subscript))
                if subscript.value.range() == used.expr.range() && subscript.ctx.is_load())
            })
    };
    let mut stores = module
        .stores()
        .iter()
        .filter(|store| store.context.frame == init);
    let by_store = stores.find_map(|store| {
        let attribute = module
            .dotted_name(store.target)
            .filter(|name| name.starts_with("self."))?;
        let many = store
            .source
            .is_some_and(|source| creates_many_objects(module, source, init));
        (many && reads(attribute)).then_some((attribute, store.statement.range()))
    });
    by_store.or_else(|| {
        let mut calls = module
            .calls()
            .iter()
            .filter(|call| call.context.frame == init);
        calls.find_map(|call| {
            let attribute = module
                .dotted_name(call.object()?)
                .filter(|name| name.starts_with("self."))?;
            let grows = call.method() == Some("append") && is_in_external_loop(module, call);
            let added = call.expr.arguments.args.first()?;
            let value = module.arguments(call).first()?;
            let plain = !matches!(
                value.kind,
                ValueKind::Tensor
                    | ValueKind::Array
                    | ValueKind::Dataset
                    | ValueKind::Model
                    | ValueKind::Unknown
            ) || is_made_of_parts(added);
            (grows && plain && is_list(module, attribute, init) && reads(attribute)).then(|| {
                let body = module.frame(init).body;
                let statement = find_statement(body, call.expr.range());
                let range = statement
                    .and_then(|(block, at)| block.get(at))
                    .map_or(call.expr.range(), Ranged::range);
                (attribute, range)
            })
        })
    })
}

/// Whether the attribute starts as `[]` in this function.
fn is_list(module: &Module<'_>, attribute: &str, init: FrameId) -> bool {
    module.stores().iter().any(|store| {
        store.context.frame == init
            && module.dotted_name(store.target) == Some(attribute)
            && matches!(store.source, Some(Expr::List(list)) if list.elts.is_empty())
    })
}

/// Whether an expression creates a tuple, list, dict or formatted string.
fn is_made_of_parts(expr: &Expr) -> bool {
    match expr {
        Expr::Tuple(tuple) => tuple.elts.len() > 1,
        Expr::List(list) => list.elts.len() > 1,
        Expr::Dict(dict) => !dict.items.is_empty(),
        Expr::FString(_) => true,
        _ => false,
    }
}

/// Whether a call is in a loop over external data, not over numbers or literals.
fn is_in_external_loop(module: &Module<'_>, call: &Call<'_>) -> bool {
    module
        .enclosing_loops(call.context.innermost_loop)
        .any(|around| match (around.statement, around.for_clause) {
            (Stmt::For(_), Some((_, over))) => iterates_external_data(module, over, around.frame),
            _ => false,
        })
}

/// Whether an expression iterates over the lines of a file, the names in a folder, or the rows of a
/// table.
fn iterates_external_data<'a>(module: &Module<'a>, over: &'a Expr, frame: FrameId) -> bool {
    let over = resolve_names(module, over, frame);
    match over.expr {
        Expr::Call(call) => {
            if let Expr::Name(name) = &*call.func
                && matches!(
                    name.id.as_str(),
                    "enumerate" | "sorted" | "tqdm" | "list" | "reversed" | "zip" | "open"
                )
            {
                return name.id == "open"
                    || call
                        .arguments
                        .args
                        .iter()
                        .any(|inner| iterates_external_data(module, inner, over.frame));
            }
            if let Some(path) = module.import_path(&call.func) {
                return matches!(
                    path.segments(),
                    ["os", "listdir" | "walk" | "scandir"]
                        | ["glob", "glob" | "iglob"]
                        | ["csv", ..]
                        | ["json", "load"]
                ) || (path.first() == "tqdm"
                    && call
                        .arguments
                        .args
                        .first()
                        .is_some_and(|inner| iterates_external_data(module, inner, over.frame)));
            }
            match &*call.func {
                Expr::Attribute(attribute) => matches!(
                    attribute.attr.as_str(),
                    "readlines"
                        | "splitlines"
                        | "glob"
                        | "rglob"
                        | "iterdir"
                        | "iterrows"
                        | "itertuples"
                ),
                _ => false,
            }
        }
        // A field of a loaded file.
        Expr::Subscript(subscript) if subscript.slice.is_string_literal_expr() => {
            let whole = resolve_names(module, &subscript.value, over.frame);
            matches!(whole.expr, Expr::Call(call)
                if module.import_path(&call.func).is_some_and(|path| path.is_any(&["json.load", "yaml.safe_load"])))
        }
        // `with open(path) as lines: for line in lines`.
        Expr::Name(name) => is_open_file(module, name.id.as_str(), over.frame),
        _ => false,
    }
}

fn is_open_file(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    fn opens(body: &[Stmt], name: &str) -> bool {
        body.iter().any(|statement| {
            let mut found = false;
            if let Stmt::With(with) = statement {
                found = with.items.iter().any(|item| {
                    let is_name = matches!(item.optional_vars.as_deref(), Some(Expr::Name(bound)) if bound.id == name);
                    let is_open = matches!(&item.context_expr, Expr::Call(call)
                        if matches!(&*call.func, Expr::Name(function) if function.id == "open")
                            || matches!(&*call.func, Expr::Attribute(method) if method.attr.as_str() == "open"));
                    is_name && is_open
                });
            }
            crate::model::each_block(statement, |block| found |= opens(block, name));
            found
        })
    }
    opens(module.frame(frame).body, name)
}

/// Whether an expression creates Python objects from external data.
fn creates_many_objects<'a>(module: &Module<'a>, source: &'a Expr, frame: FrameId) -> bool {
    let (generators, element) = match source {
        Expr::ListComp(list) => (&list.generators, Some(&*list.elt)),
        Expr::DictComp(dict) => (&dict.generators, Some(&*dict.value)),
        Expr::Call(call) => {
            // `json.load(file)` and `file.readlines()` are as long as the file.
            return match module.import_path(&call.func) {
                Some(path) => path.is("json.load"),
                None => {
                    matches!(&*call.func, Expr::Attribute(method) if method.attr.as_str() == "readlines")
                }
            };
        }
        _ => return false,
    };
    let outside = generators
        .iter()
        .any(|generator| iterates_external_data(module, &generator.iter, frame));
    let is_array = element.is_some_and(|element| match element {
        Expr::Call(call) => module.import_path(&call.func).is_some_and(|path| {
            matches!(
                path.first(),
                "torch" | "numpy" | "PIL" | "cv2" | "imageio" | "torchaudio"
            )
        }),
        _ => false,
    });
    outside && !is_array
}

fn finding(
    module: &Module<'_>,
    class: &Class<'_>,
    attribute: &str,
    place: TextRange,
    (loader, workers): (&Call<'_>, f64),
) -> Finding {
    let line = loader_line(module, loader);
    let name = &class.def.name;
    Finding {
        rule: &RULE,
        range: place,
        message: format!(
            "`{attribute}` of `{name}` is a Python container read by {workers} workers: over time each gets its own copy"
        ),
        label: format!("copied by each worker of the loader at {line}"),
        help: "store it as one NumPy array (np.array of paths or labels, packed bytes for texts): reading it writes nothing"
            .to_owned(),
        fix: None,
    }
}
