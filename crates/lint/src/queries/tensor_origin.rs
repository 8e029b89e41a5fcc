//! Traces a value back through the assignments of a function.

use crate::model::{Call, FrameId, LoopSource, Module, ValueKind};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

/// Where a tensor comes from.
pub enum TensorOrigin<'m, 'a> {
    /// The output of a model.
    Output(&'m Call<'a>),
    /// A batch of a loader.
    Batch,
    /// The gradients of weights.
    Gradient,
    /// The weights of a model.
    Weights,
    /// Anything else.
    Other,
}

/// Traces an expression back to its origin. A value that was reduced (a mean, an index) has no
/// origin, nor, unless `anywhere`, one that was moved to the CPU.
pub fn trace_origin<'m, 'a>(
    module: &'m Module<'a>,
    frame: FrameId,
    expression: &'a Expr,
    anywhere: bool,
) -> TensorOrigin<'m, 'a> {
    let trace = Tracer {
        module,
        frame,
        anywhere,
    };
    trace.trace(expression, 12)
}

struct Tracer<'m, 'a> {
    module: &'m Module<'a>,
    frame: FrameId,
    anywhere: bool,
}

impl<'m, 'a> Tracer<'m, 'a> {
    fn trace(&self, expression: &'a Expr, steps: u32) -> TensorOrigin<'m, 'a> {
        let Some(steps) = steps.checked_sub(1) else {
            return TensorOrigin::Other;
        };
        match expression {
            Expr::Name(_) => self.trace_name(expression, steps),
            Expr::Attribute(attribute) => match attribute.attr.as_str() {
                "grad" => TensorOrigin::Gradient,
                "data" | "logits" | "last_hidden_state" | "T" => {
                    self.trace(&attribute.value, steps)
                }
                _ => self.trace_name(expression, steps),
            },
            Expr::Subscript(subscript) => self.trace(&subscript.value, steps),
            Expr::Tuple(tuple) => self.trace_parts(&tuple.elts, steps),
            Expr::List(list) => self.trace_parts(&list.elts, steps),
            Expr::Call(call) => self.trace_call(call, steps),
            _ => TensorOrigin::Other,
        }
    }

    fn trace_parts(&self, parts: &'a [Expr], steps: u32) -> TensorOrigin<'m, 'a> {
        parts
            .iter()
            .map(|part| self.trace(part, steps))
            .find(|origin| !matches!(origin, TensorOrigin::Other))
            .unwrap_or(TensorOrigin::Other)
    }

    /// Traces the last assignment to a name before this position, or the loop that binds it.
    fn trace_name(&self, name: &'a Expr, steps: u32) -> TensorOrigin<'m, 'a> {
        let Some(key) = self.module.dotted_name(name) else {
            return TensorOrigin::Other;
        };
        let stores = self.module.stores().iter().filter(|store| {
            store.context.frame == self.frame && store.statement.end() <= name.start()
        });
        let store = stores
            .filter(|store| self.module.dotted_name(store.target) == Some(key))
            .max_by_key(|store| store.statement.start());
        let loops = self.module.loops().iter().filter(|around| {
            around.frame == self.frame && around.statement.range().contains_range(name.range())
        });
        let given = loops
            .filter(|around| {
                around
                    .for_clause
                    .is_some_and(|(target, _)| binds(target, key))
            })
            .max_by_key(|around| around.statement.start());
        match (store, given) {
            (Some(store), given)
                if given.is_none_or(|given| given.statement.start() < store.statement.start()) =>
            {
                match (store.source, store.statement) {
                    (Some(source), _) => self.trace(source, steps),
                    // One part of an unpacked tuple: `logits, state = model(x, state)`.
                    (None, Stmt::Assign(assign)) => self.trace(&assign.value, steps),
                    _ => TensorOrigin::Other,
                }
            }
            (_, Some(around)) if around.loop_source == LoopSource::Batches => TensorOrigin::Batch,
            _ => TensorOrigin::Other,
        }
    }

    fn trace_call(&self, call: &'a ExprCall, steps: u32) -> TensorOrigin<'m, 'a> {
        let mut calls = self.module.calls().iter();
        let Some(known) = calls.find(|known| known.expr.range() == call.range()) else {
            return TensorOrigin::Other;
        };
        if known.callee.is(ValueKind::Model) {
            return TensorOrigin::Output(known);
        }
        if let Some(path) = known.path {
            let keeps_origin = match path.segments() {
                ["copy", "deepcopy" | "copy"] => true,
                ["torch", "nn", "functional", name] | ["torch", name] => keeps_size(name),
                _ => false,
            };
            return match call.arguments.args.first() {
                Some(first) if keeps_origin => self.trace(first, steps),
                _ => TensorOrigin::Other,
            };
        }
        match (known.method(), known.object()) {
            (Some("state_dict"), _) => TensorOrigin::Weights,
            (Some("forward"), _) if known.receiver.is_some_and(|of| of.is(ValueKind::Model)) => {
                TensorOrigin::Output(known)
            }
            (Some("cpu" | "numpy"), Some(object)) if self.anywhere => self.trace(object, steps),
            (Some("to"), Some(object)) if self.anywhere || !goes_to_cpu(call) => {
                self.trace(object, steps)
            }
            (Some(method), Some(object)) if keeps_size(method) => self.trace(object, steps),
            _ => TensorOrigin::Other,
        }
    }
}

fn goes_to_cpu(call: &ExprCall) -> bool {
    let named = call.arguments.keywords.iter().map(|keyword| &keyword.value);
    call.arguments
        .args
        .iter()
        .chain(named)
        .any(|argument| match argument {
            Expr::StringLiteral(text) => text.value.to_str() == "cpu",
            Expr::Name(name) => name.id.contains("cpu"),
            Expr::Attribute(attribute) => attribute.attr.contains("cpu"),
            Expr::Call(inner) => goes_to_cpu(inner),
            _ => false,
        })
}

/// Whether the result of a function or method is about as large as its input.
fn keeps_size(name: &str) -> bool {
    matches!(
        name,
        "clone"
            | "detach"
            | "contiguous"
            | "cuda"
            | "float"
            | "half"
            | "double"
            | "bfloat16"
            | "view"
            | "reshape"
            | "squeeze"
            | "unsqueeze"
            | "flatten"
            | "permute"
            | "transpose"
            | "softmax"
            | "log_softmax"
            | "sigmoid"
            | "logsigmoid"
            | "tanh"
            | "relu"
            | "normalize"
            | "exp"
            | "log"
            | "clamp"
            | "interpolate"
            | "t"
    )
}

/// Whether a loop target binds this name.
fn binds(target: &Expr, key: &str) -> bool {
    match target {
        Expr::Name(name) => name.id.as_str() == key,
        Expr::Tuple(tuple) => tuple.elts.iter().any(|part| binds(part, key)),
        Expr::List(list) => list.elts.iter().any(|part| binds(part, key)),
        Expr::Starred(starred) => binds(&starred.value, key),
        _ => false,
    }
}
