//! What is gone back through: the names whose gradients are computed, and whether something
//! that is kept is kept for that.

use crate::model::uses::{Use, uses_of};
use crate::model::{Call, FrameId, Kind, LoopId, Module};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

/// Whether a call computes gradients: `loss.backward()`, `scaler.scale(loss).backward()`,
/// `accelerator.backward(loss)`, `engine.backward(loss)`, `self.manual_backward(loss)`.
pub fn is_backward(call: &Call<'_>) -> bool {
    match call.method() {
        Some("manual_backward") => true,
        Some("backward") => call
            .receiver
            .is_some_and(|receiver| receiver.kind != Kind::Tape),
        _ => call
            .path
            .is_some_and(|path| path.is_any(&["torch.autograd.backward", "torch.autograd.grad"])),
    }
}

/// What gradients are computed of, as it is written, within a frame.
pub fn backward_names<'a>(module: &Module<'a>, frame: FrameId) -> Vec<&'a str> {
    let mut names = Vec::new();
    for call in module.calls() {
        if call.place.frame == frame && is_backward(call) {
            let of = call.object().into_iter().chain(&call.expr.arguments.args);
            of.for_each(|expression| keys_in(module, expression, &mut names));
        }
    }
    names
}

/// Whether gradients are computed in this loop, or in a function that it calls.
pub fn goes_back_in(module: &Module<'_>, id: LoopId) -> bool {
    let mut here = module
        .calls()
        .iter()
        .filter(|call| module.is_within(&call.place, id));
    here.any(|call| goes_back(module, call, 3))
}

/// Whether gradients are computed in this function, or in one that it calls.
pub fn goes_back_during(module: &Module<'_>, frame: FrameId) -> bool {
    any_goes_back(module, frame, 3)
}

fn any_goes_back(module: &Module<'_>, frame: FrameId, deep: u32) -> bool {
    let mut here = module
        .calls()
        .iter()
        .filter(|call| call.place.frame == frame);
    here.any(|call| goes_back(module, call, deep))
}

/// Whether a call computes gradients, itself or in a function that it calls.
pub fn goes_back_by(module: &Module<'_>, call: &Call<'_>) -> bool {
    goes_back(module, call, 3)
}

fn goes_back(module: &Module<'_>, call: &Call<'_>, deep: u32) -> bool {
    is_backward(call)
        || (deep > 0
            && call
                .own
                .is_some_and(|own| any_goes_back(module, own, deep - 1)))
}

/// The names in an expression, plain or dotted.
pub fn keys_in<'a>(module: &Module<'a>, expression: &'a Expr, names: &mut Vec<&'a str>) {
    struct Names<'m, 'a, 'n> {
        module: &'m Module<'a>,
        names: &'n mut Vec<&'a str>,
    }
    impl<'a> Visitor<'a> for Names<'_, 'a, '_> {
        fn visit_expr(&mut self, expression: &'a Expr) {
            match self.module.key(expression) {
                Some(key) => self.names.push(key),
                None => match expression {
                    // Of `loss.mean()` the name is `loss`.
                    Expr::Call(call) => {
                        if let Expr::Attribute(attribute) = &*call.func {
                            self.visit_expr(&attribute.value);
                        }
                        call.arguments
                            .args
                            .iter()
                            .for_each(|argument| self.visit_expr(argument));
                    }
                    _ => visitor::walk_expr(self, expression),
                },
            }
        }
    }
    Names { module, names }.visit_expr(expression);
}

/// Whether what is kept under this name may be gone back through later: then keeping its graph
/// is what the author wants. Only uses that want a mere number, or a picture, say no.
pub fn may_go_back(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    let mut frame = module.frame(frame);
    // An attribute may be used by every method of its class.
    let bodies: Vec<&[Stmt]> = match (name.strip_prefix("self."), frame.class) {
        (Some(_), Some(class)) => module
            .frames()
            .iter()
            .filter(|other| other.class == Some(class))
            .map(|other| other.body)
            .collect(),
        _ => {
            // A name of an outer function is that function's.
            while !frame.names.contains_key(name)
                && let Some(parent) = frame.parent
            {
                frame = module.frame(parent);
            }
            vec![frame.body]
        }
    };
    bodies.into_iter().any(|body| {
        uses_of(module.text, name, body)
            .iter()
            .any(|used| wants_the_graph(module, used, body, 0))
    })
}

fn wants_the_graph<'a>(module: &Module<'a>, used: &Use<'a>, body: &'a [Stmt], depth: u32) -> bool {
    if used.is_store {
        return false;
    }
    if let Some(method) = used.method() {
        return match method {
            "backward" => true,
            "item" | "detach" | "cpu" | "tolist" | "numpy" | "size" | "append" | "extend"
            | "clear" | "pop" | "popleft" | "update" | "reset" | "add" | "insert" | "items"
            | "keys" | "values" | "get" | "copy" => false,
            // `total.mean()`: a number in the end, unless it is gone back through.
            "mean" | "sum" | "max" | "min" | "std" | "div" | "mul" => {
                outer_wants(module, used, 2, body, depth)
            }
            _ => true,
        };
    }
    outer_wants(module, used, 0, body, depth)
}

/// Whether what surrounds the use, from this level on, wants the graph.
fn outer_wants<'a>(
    module: &Module<'a>,
    used: &Use<'a>,
    level: usize,
    body: &'a [Stmt],
    depth: u32,
) -> bool {
    for around in used.around[level.min(3)..].iter().flatten() {
        match around {
            Expr::BinOp(_)
            | Expr::Tuple(_)
            | Expr::List(_)
            | Expr::Dict(_)
            | Expr::UnaryOp(_)
            | Expr::Subscript(_)
            | Expr::Starred(_)
            | Expr::If(_) => {}
            Expr::FString(_) | Expr::Compare(_) | Expr::BoolOp(_) => return false,
            Expr::Call(call) => return !only_looks(module, &call.func),
            Expr::Attribute(attribute) => return attribute.attr.as_str() == "backward",
            _ => return true,
        }
    }
    match used.statement {
        // It lives on under another name.
        Stmt::Assign(assign) => assign
            .targets
            .iter()
            .any(|target| is_wanted_as(module, target, body, depth)),
        Stmt::AugAssign(assign) => is_wanted_as(module, &assign.target, body, depth),
        Stmt::For(repeat) => is_wanted_as(module, &repeat.target, body, depth),
        Stmt::Return(_) => false,
        Stmt::Expr(_) | Stmt::If(_) | Stmt::While(_) | Stmt::Delete(_) | Stmt::Assert(_) => false,
        _ => true,
    }
}

/// Whether the graph of what is assigned here is wanted under this name, or one of these.
fn is_wanted_as<'a>(module: &Module<'a>, target: &'a Expr, body: &'a [Stmt], depth: u32) -> bool {
    if depth >= 2 {
        return true;
    }
    let parts = match target {
        Expr::Tuple(tuple) => &*tuple.elts,
        Expr::List(list) => &*list.elts,
        one => std::slice::from_ref(one),
    };
    parts.iter().any(|part| {
        module.key(part).is_some_and(|key| {
            uses_of(module.text, key, body)
                .iter()
                .any(|other| wants_the_graph(module, other, body, depth + 1))
        })
    })
}

/// Functions that only look at a value: they print, draw, count or convert it.
fn only_looks(module: &Module<'_>, function: &Expr) -> bool {
    if let Expr::Name(name) = function
        && matches!(
            name.id.as_str(),
            "print"
                | "len"
                | "float"
                | "int"
                | "round"
                | "str"
                | "format"
                | "repr"
                | "max"
                | "min"
                | "isinstance"
                | "type"
                | "list"
                | "sorted"
                | "enumerate"
                | "zip"
                | "bool"
                | "sum"
        )
    {
        // `sum(losses).backward()` is seen as a call on the sum, and rare.
        return name.id != "sum" && name.id != "zip" && name.id != "enumerate" && name.id != "list";
    }
    let text = module.text.get(std::ops::Range::<usize>::from(
        ruff_text_size::Ranged::range(function),
    ));
    let text = text.unwrap_or("");
    let first = text.split('.').next().unwrap_or("");
    let last = text.rsplit('.').next().unwrap_or("");
    matches!(
        first,
        "np" | "numpy"
            | "plt"
            | "logging"
            | "logger"
            | "log"
            | "wandb"
            | "mlflow"
            | "math"
            | "json"
            | "statistics"
            | "writer"
            | "pd"
            | "ax"
    ) || matches!(
        last,
        "format"
            | "set_postfix"
            | "set_description"
            | "add_scalar"
            | "info"
            | "debug"
            | "write"
            | "log"
            | "plot"
            | "log_metric"
            | "savetxt"
            | "append"
            | "dump"
            | "item"
            | "print"
    )
}
