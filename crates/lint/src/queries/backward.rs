//! Calls of `backward()`: which names it runs on, and whether a stored value is stored for it.

use crate::model::uses::{Use, find_uses};
use crate::model::{Call, FrameId, LoopId, Module, ValueKind};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};

/// Whether a call computes gradients: `loss.backward()`, `scaler.scale(loss).backward()`,
/// `accelerator.backward(loss)`, `engine.backward(loss)`, `self.manual_backward(loss)`.
pub fn is_backward_call(call: &Call<'_>) -> bool {
    match call.method() {
        Some("manual_backward") => true,
        Some("backward") => call
            .receiver
            .is_some_and(|receiver| receiver.kind != ValueKind::Tape),
        _ => call
            .path
            .is_some_and(|path| path.is_any(&["torch.autograd.backward", "torch.autograd.grad"])),
    }
}

/// Returns the names that `backward()` runs on in a function.
pub fn backward_names<'a>(module: &Module<'a>, frame: FrameId) -> Vec<&'a str> {
    let mut names = Vec::new();
    for call in module.calls() {
        if call.context.frame == frame && is_backward_call(call) {
            let of = call.object().into_iter().chain(&call.expr.arguments.args);
            of.for_each(|expression| collect_names(module, expression, &mut names));
        }
    }
    names
}

/// Whether this loop, or a function it calls, computes gradients.
pub fn runs_backward_in_loop(module: &Module<'_>, id: LoopId) -> bool {
    let mut here = module
        .calls()
        .iter()
        .filter(|call| module.is_inside_loop(&call.context, id));
    here.any(|call| runs_backward_within(module, call, 3))
}

/// Whether this function, or one it calls, computes gradients.
pub fn runs_backward_in_function(module: &Module<'_>, frame: FrameId) -> bool {
    function_runs_backward(module, frame, 3)
}

fn function_runs_backward(module: &Module<'_>, frame: FrameId, deep: u32) -> bool {
    let mut here = module
        .calls()
        .iter()
        .filter(|call| call.context.frame == frame);
    here.any(|call| runs_backward_within(module, call, deep))
}

/// Whether a call computes gradients, directly or through the functions it calls.
pub fn call_runs_backward(module: &Module<'_>, call: &Call<'_>) -> bool {
    runs_backward_within(module, call, 3)
}

fn runs_backward_within(module: &Module<'_>, call: &Call<'_>, deep: u32) -> bool {
    is_backward_call(call)
        || (deep > 0
            && call
                .local_function
                .is_some_and(|own| function_runs_backward(module, own, deep - 1)))
}

/// Collects the plain and dotted names in an expression.
pub fn collect_names<'a>(module: &Module<'a>, expression: &'a Expr, names: &mut Vec<&'a str>) {
    struct Names<'m, 'a, 'n> {
        module: &'m Module<'a>,
        names: &'n mut Vec<&'a str>,
    }
    impl<'a> Visitor<'a> for Names<'_, 'a, '_> {
        fn visit_expr(&mut self, expression: &'a Expr) {
            match self.module.dotted_name(expression) {
                Some(key) => self.names.push(key),
                None => match expression {
                    // The name in `loss.mean()` is `loss`.
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

/// Whether `backward()` may later run on the values stored under this name, so that the graph is
/// kept on purpose. Only uses that print, plot or convert a number rule it out.
pub fn may_need_graph(module: &Module<'_>, name: &str, frame: FrameId) -> bool {
    let mut frame = module.frame(frame);
    // Every method of the class may use an attribute.
    let bodies: Vec<&[Stmt]> = match (name.strip_prefix("self."), frame.class) {
        (Some(_), Some(class)) => module
            .frames()
            .iter()
            .filter(|other| other.class == Some(class))
            .map(|other| other.body)
            .collect(),
        _ => {
            // A name of an outer function belongs to that function.
            while !frame.names.contains_key(name)
                && let Some(parent) = frame.parent
            {
                frame = module.frame(parent);
            }
            vec![frame.body]
        }
    };
    bodies.into_iter().any(|body| {
        find_uses(module.text, name, body)
            .iter()
            .any(|used| use_needs_graph(module, used, body, 0))
    })
}

fn use_needs_graph<'a>(module: &Module<'a>, used: &Use<'a>, body: &'a [Stmt], depth: u32) -> bool {
    if used.is_store {
        return false;
    }
    if let Some(method) = used.method() {
        return match method {
            "backward" => true,
            "item" | "detach" | "cpu" | "tolist" | "numpy" | "size" | "append" | "extend"
            | "clear" | "pop" | "popleft" | "update" | "reset" | "add" | "insert" | "items"
            | "keys" | "values" | "get" | "copy" => false,
            // `total.mean()` is just a number unless `backward()` runs on it.
            "mean" | "sum" | "max" | "min" | "std" | "div" | "mul" => {
                surroundings_need_graph(module, used, 2, body, depth)
            }
            _ => true,
        };
    }
    surroundings_need_graph(module, used, 0, body, depth)
}

/// Whether the enclosing expressions, from this level on, need the graph.
fn surroundings_need_graph<'a>(
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
            Expr::Call(call) => return !only_reads_value(module, &call.func),
            Expr::Attribute(attribute) => return attribute.attr.as_str() == "backward",
            _ => return true,
        }
    }
    match used.statement {
        // The value gets another name.
        Stmt::Assign(assign) => assign
            .targets
            .iter()
            .any(|target| target_needs_graph(module, target, body, depth)),
        Stmt::AugAssign(assign) => target_needs_graph(module, &assign.target, body, depth),
        Stmt::For(repeat) => target_needs_graph(module, &repeat.target, body, depth),
        Stmt::Return(_) => false,
        Stmt::Expr(_) | Stmt::If(_) | Stmt::While(_) | Stmt::Delete(_) | Stmt::Assert(_) => false,
        _ => true,
    }
}

/// Whether the graph is needed under the name, or one of the names, that the value is assigned to.
fn target_needs_graph<'a>(
    module: &Module<'a>,
    target: &'a Expr,
    body: &'a [Stmt],
    depth: u32,
) -> bool {
    if depth >= 2 {
        return true;
    }
    let parts = match target {
        Expr::Tuple(tuple) => &*tuple.elts,
        Expr::List(list) => &*list.elts,
        one => std::slice::from_ref(one),
    };
    parts.iter().any(|part| {
        module.dotted_name(part).is_some_and(|key| {
            find_uses(module.text, key, body)
                .iter()
                .any(|other| use_needs_graph(module, other, body, depth + 1))
        })
    })
}

/// Whether a function only prints, plots, counts or converts a value.
fn only_reads_value(module: &Module<'_>, function: &Expr) -> bool {
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
        // `sum(losses).backward()` is a call on the sum, and rare.
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
