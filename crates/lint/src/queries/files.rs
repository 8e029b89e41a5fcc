//! What is read from files: whole arrays, single files of a dataset, and lists of paths.

use super::bindings::{find_binding, find_local_function, resolve_names, single_return_value};
use crate::model::{FrameId, Module, Path, ValueKind};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

/// Whether a function reads a whole file into memory.
pub fn reads_file(path: &Path<'_>) -> bool {
    match path.segments() {
        ["numpy", "load" | "loadtxt" | "genfromtxt" | "fromfile"] => true,
        ["torch", "load"] | ["torchaudio", "load"] | ["torchvision", "io", _] => true,
        ["pandas", name] => name.starts_with("read_"),
        ["PIL", "Image", "open"]
        | ["cv2", "imread"]
        | ["imageio", "imread"]
        | ["skimage", "io", "imread"] => true,
        ["matplotlib", .., "imread"]
        | ["librosa", "load"]
        | ["soundfile", "read"]
        | ["nibabel", "load"] => true,
        ["scipy", "io", "loadmat"]
        | ["scipy", "io", "wavfile", "read"]
        | ["pydicom", "dcmread"] => true,
        ["rasterio", "open"] | ["tifffile", "imread"] => true,
        ["keras", "preprocessing", "image", "load_img"] | ["keras", "utils", "load_img"] => true,
        _ => false,
    }
}

/// Whether a call reads the whole file instead of mapping or chunking it.
fn reads_whole_file(path: &Path<'_>, call: &ExprCall) -> bool {
    let is_window = call.arguments.find_keyword("mmap_mode").is_some()
        || call.arguments.find_keyword("chunksize").is_some()
        || call.arguments.find_keyword("mmap").is_some()
        || call.arguments.find_keyword("iterator").is_some()
        || call.arguments.find_keyword("nrows").is_some();
    reads_file(path) && !is_window
}

/// Whether an expression is the whole content of a data file: loaded, converted, scaled, or one of
/// its fields.
pub fn holds_whole_file<'a>(module: &Module<'a>, expr: &'a Expr, frame: FrameId) -> bool {
    holds_whole_file_within(module, expr, frame, 12)
}

fn holds_whole_file_within<'a>(
    module: &Module<'a>,
    expr: &'a Expr,
    frame: FrameId,
    deep: u32,
) -> bool {
    let Some(deep) = deep.checked_sub(1) else {
        return false;
    };
    match expr {
        Expr::Name(_) => {
            let origin = module
                .dotted_name(expr)
                .and_then(|name| find_binding(module, name, frame, expr.start()));
            origin.is_some_and(|origin| match origin.part {
                None => holds_whole_file_within(module, origin.expr, origin.frame, deep),
                Some(part) => part_holds_whole_file(module, origin.expr, origin.frame, part, deep),
            })
        }
        Expr::Attribute(attribute) => {
            matches!(attribute.attr.as_str(), "values" | "T" | "data")
                && holds_whole_file_within(module, &attribute.value, frame, deep)
        }
        Expr::Subscript(subscript) => {
            subscript.slice.is_string_literal_expr()
                && holds_whole_file_within(module, &subscript.value, frame, deep)
        }
        Expr::BinOp(operation) => {
            let is_scale = operation.right.is_number_literal_expr();
            is_scale && holds_whole_file_within(module, &operation.left, frame, deep)
        }
        Expr::Call(call) => {
            let arguments = &call.arguments.args;
            let first = || {
                arguments
                    .first()
                    .is_some_and(|first| holds_whole_file_within(module, first, frame, deep))
            };
            if let Some(path) = module.import_path(&call.func) {
                return match path.segments() {
                    [
                        "torch",
                        "tensor" | "as_tensor" | "from_numpy" | "Tensor" | "FloatTensor"
                        | "LongTensor",
                    ] => first(),
                    [
                        "numpy",
                        "array" | "asarray" | "float32" | "transpose" | "ascontiguousarray",
                    ] => first(),
                    // Weights are stored in such files as well.
                    ["torch", "load"] => {
                        let name = module.source(expr).to_ascii_lowercase();
                        let is_weights = [
                            "model", "ckpt", "check", "weight", "state", "best", ".pth", "resume",
                        ]
                        .iter()
                        .any(|word| name.contains(word));
                        !is_weights
                    }
                    ["numpy" | "pandas", ..] => reads_whole_file(&path, call),
                    _ => false,
                };
            }
            match &*call.func {
                Expr::Attribute(method) => {
                    matches!(
                        method.attr.as_str(),
                        "float"
                            | "double"
                            | "half"
                            | "long"
                            | "astype"
                            | "to"
                            | "cuda"
                            | "div"
                            | "div_"
                            | "mul"
                            | "to_numpy"
                            | "contiguous"
                            | "unsqueeze"
                            | "permute"
                            | "transpose"
                            | "reshape"
                            | "view"
                            | "type"
                            | "squeeze"
                            | "requires_grad_"
                            | "drop"
                    ) && holds_whole_file_within(module, &method.value, frame, deep)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether one part of a local function's return value is the whole content of a file.
fn part_holds_whole_file<'a>(
    module: &Module<'a>,
    expr: &'a Expr,
    frame: FrameId,
    part: usize,
    deep: u32,
) -> bool {
    let Expr::Call(call) = expr else { return false };
    let Some(own) = find_local_function(module, call, frame) else {
        return false;
    };
    match single_return_value(module, own) {
        Some(Expr::Tuple(tuple)) => tuple
            .elts
            .get(part)
            .is_some_and(|part| holds_whole_file_within(module, part, own, deep)),
        _ => false,
    }
}

/// Whether an expression is a list of paths, from a folder or a pattern.
pub fn is_path_list<'a>(module: &Module<'a>, expr: &'a Expr, frame: FrameId) -> bool {
    is_path_list_within(module, expr, frame, 6)
}

fn is_path_list_within<'a>(module: &Module<'a>, expr: &'a Expr, frame: FrameId, deep: u32) -> bool {
    let Some(deep) = deep.checked_sub(1) else {
        return false;
    };
    let origin = resolve_names(module, expr, frame);
    let (expr, frame) = (origin.expr, origin.frame);
    match expr {
        Expr::Call(call) => {
            let first = || {
                let first = call.arguments.args.first();
                first.is_some_and(|first| is_path_list_within(module, first, frame, deep))
            };
            if let Some(path) = module.import_path(&call.func) {
                return match path.segments() {
                    ["glob", "glob" | "iglob"] | ["os", "listdir" | "scandir"] => true,
                    ["tqdm", ..] => first(),
                    _ => false,
                };
            }
            match &*call.func {
                Expr::Name(name)
                    if matches!(name.id.as_str(), "sorted" | "list" | "enumerate" | "tqdm") =>
                {
                    first()
                }
                Expr::Attribute(method) => {
                    matches!(method.attr.as_str(), "glob" | "rglob" | "iterdir")
                }
                _ => false,
            }
        }
        Expr::ListComp(list) => match &list.generators[..] {
            [generator] => is_path_list_within(module, &generator.iter, frame, deep),
            _ => false,
        },
        Expr::Generator(list) => match &list.generators[..] {
            [generator] => is_path_list_within(module, &generator.iter, frame, deep),
            _ => false,
        },
        // `files.append(os.path.join(root, name))`.
        Expr::List(list) if list.elts.is_empty() => name_of_list(module, &origin, expr)
            .is_some_and(|name| is_filled_with_paths(module, name, frame)),
        _ => false,
    }
}

/// Returns the name that a list is bound to.
fn name_of_list<'a>(
    module: &Module<'a>,
    origin: &super::bindings::BoundExpr<'a>,
    list: &'a Expr,
) -> Option<&'a str> {
    let bound = module.stores().iter().find(|store| {
        store.context.frame == origin.frame
            && store
                .source
                .is_some_and(|source| source.range() == list.range())
    });
    bound.and_then(|store| module.dotted_name(store.target))
}

fn is_filled_with_paths(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    module.calls().iter().any(|call| {
        call.context.frame == frame
            && call.context.innermost_loop.is_some()
            && call.method() == Some("append")
            && call.object().and_then(|object| module.dotted_name(object)) == Some(name)
            && call
                .expr
                .arguments
                .args
                .first()
                .is_some_and(|added| is_path_join(module, added))
    })
}

fn is_path_join<'a>(module: &Module<'a>, expr: &'a Expr) -> bool {
    let Expr::Call(call) = expr else { return false };
    module
        .import_path(&call.func)
        .is_some_and(|path| path.is("os.path.join"))
}

/// Whether an expression reads a data file whose path is one of these names, directly or through a
/// function in this text.
pub fn reads_file_named_by<'a>(
    module: &Module<'a>,
    expr: &'a Expr,
    frame: FrameId,
    names: &[&str],
) -> bool {
    struct Reads<'m, 'a, 'n> {
        module: &'m Module<'a>,
        frame: FrameId,
        names: &'n [&'n str],
        found: bool,
    }
    impl<'a> ruff_python_ast::visitor::Visitor<'a> for Reads<'_, 'a, '_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Call(call) = expr {
                let named = call
                    .arguments
                    .args
                    .iter()
                    .any(|argument| mentions(argument, self.names));
                let reads = match self.module.import_path(&call.func) {
                    Some(path) => reads_whole_file(&path, call) && !path.is("torch.load"),
                    None => find_local_function(self.module, call, self.frame)
                        .is_some_and(|own| returns_file_content(self.module, own)),
                };
                if named && reads {
                    self.found = true;
                }
            }
            ruff_python_ast::visitor::walk_expr(self, expr);
        }
    }
    let mut reads = Reads {
        module,
        frame,
        names,
        found: false,
    };
    ruff_python_ast::visitor::Visitor::visit_expr(&mut reads, expr);
    reads.found
}

fn mentions(expr: &Expr, names: &[&str]) -> bool {
    struct Names<'n> {
        names: &'n [&'n str],
        found: bool,
    }
    impl<'a> ruff_python_ast::visitor::Visitor<'a> for Names<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            match expr {
                Expr::Name(name) => self.found |= self.names.contains(&name.id.as_str()),
                _ => ruff_python_ast::visitor::walk_expr(self, expr),
            }
        }
    }
    let mut search = Names {
        names,
        found: false,
    };
    ruff_python_ast::visitor::Visitor::visit_expr(&mut search, expr);
    search.found
}

/// Whether a function reads a file and returns an array, not a number, a string or a label.
fn returns_file_content(module: &Module<'_>, frame: FrameId) -> bool {
    let reads = module.calls().iter().any(|call| {
        call.context.frame == frame
            && call
                .path
                .is_some_and(|path| reads_whole_file(&path, call.expr) && !path.is("torch.load"))
    });
    reads
        && matches!(
            module.frame(frame).returns.kind,
            ValueKind::Tensor | ValueKind::Array | ValueKind::Unknown
        )
}

/// Returns the names that a loop or comprehension binds.
pub fn target_names(target: &Expr) -> Vec<&str> {
    match target {
        Expr::Name(name) => vec![name.id.as_str()],
        Expr::Tuple(tuple) => tuple.elts.iter().flat_map(target_names).collect(),
        Expr::List(list) => list.elts.iter().flat_map(target_names).collect(),
        _ => Vec::new(),
    }
}

/// Whether a function yields one sample or batch at a time.
pub fn yields_one_item(module: &Module<'_>, frame: FrameId) -> bool {
    let frame = module.frame(frame);
    frame.yields.is_some()
        || matches!(
            frame.name(),
            "__getitem__" | "__iter__" | "__next__" | "__call__" | "collate_fn" | "__getitems__"
        )
        || frame.name().contains("batch")
        || frame.name().contains("collate")
}
