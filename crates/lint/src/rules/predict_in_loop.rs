//! # predict-in-loop (AF503)
//!
//! Keras `predict` is called in a loop for one sample at a time.
//!
//! ## Why it freezes
//!
//! `predict` is made for many batches. Each call builds a pipeline, callbacks and a progress bar
//! around a forward pass of about a millisecond, which makes it 10 to 100 times slower than calling
//! the model. TensorFlow 2 frees these objects late, so memory grows over hours.
//!
//! ## Wrong
//!
//! ```python
//! for state in states:
//!     values = model.predict(state[None], verbose=0)
//! ```
//!
//! ## Right
//!
//! ```python
//! for state in states:
//!     values = model(state[None], training=False).numpy()
//! ```
//!
//! ## When it is fine
//!
//! For many rows at once: `predict` splits them into batches. Only calls with one row are reported.
//!
//! ## Fix
//!
//! Unsafe: calls the model, and `.numpy()` on the result.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Call, FrameId, Module, ValueKind};
use crate::queries::bindings::{
    find_binding, find_local_function, resolve_names, single_return_value,
};
use crate::queries::files::target_names;
use crate::queries::wording::every_step_label;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, ExprCall, Number, UnaryOp};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF503",
    name: "predict-in-loop",
    severity: Severity::Warning,
    stage: Stage::Preview,
    source: include_str!("predict_in_loop.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("tensorflow") && !module.imports("keras") {
        return;
    }
    for call in module.calls() {
        if call.method() == Some("predict")
            && call.context.innermost_loop.is_some()
            && is_keras_model(module, call)
            && let Some(input) = call.argument(0, "x")
            && call.keyword("steps").is_none()
            && (is_one_row(module, input, call.context.frame)
                || is_from_replay_memory(module, call, input))
        {
            findings.push(finding(module, call, input));
        }
    }
}

/// Whether the receiver is a Keras model, or is named like one and no other library has models.
fn is_keras_model(module: &Module<'_>, call: &Call<'_>) -> bool {
    let Some(receiver) = call.receiver else {
        return false;
    };
    let name = call
        .object()
        .and_then(|object| module.dotted_name(object))
        .unwrap_or("");
    let others = [
        "sklearn", "xgboost", "lightgbm", "catboost", "torch", "joblib", "pickle",
    ];
    receiver.is(ValueKind::Model)
        || (receiver.is(ValueKind::Unknown)
            && name.ends_with("model")
            && !others.iter().any(|other| module.imports(other)))
}

/// Whether an expression is a batch of one row: `x[None]`, `np.expand_dims(x, 0)`, `x.reshape(1,
/// -1)`, `np.array([x])`.
fn is_one_row<'a>(module: &Module<'a>, input: &'a Expr, frame: FrameId) -> bool {
    let input = match module.dotted_name(input) {
        Some(name) => match find_binding(module, name, frame, input.start()) {
            Some(origin) if origin.part.is_none() => origin.expr,
            _ => return false,
        },
        None => resolve_names(module, input, frame).expr,
    };
    match input {
        Expr::Subscript(subscript) => {
            let first = match &*subscript.slice {
                Expr::Tuple(tuple) => tuple.elts.first(),
                other => Some(other),
            };
            first.is_some_and(|first| {
                first.is_none_literal_expr() || module.source(first).ends_with("newaxis")
            })
        }
        Expr::Call(call) => {
            is_one_row_call(module, call)
                || find_local_function(module, call, frame)
                    .and_then(|own| Some((single_return_value(module, own)?, own)))
                    .is_some_and(|(result, own)| {
                        module.dotted_name(result).is_some() && is_one_row(module, result, own)
                    })
        }
        _ => false,
    }
}

/// Whether the input is drawn from an agent's replay memory, one sample at a time.
fn is_from_replay_memory<'a>(module: &Module<'a>, call: &Call<'a>, input: &'a Expr) -> bool {
    let Expr::Name(name) = input else {
        return false;
    };
    module
        .enclosing_loops(call.context.innermost_loop)
        .any(|around| {
            around.for_clause.is_some_and(|(target, over)| {
                let over = resolve_names(module, over, around.frame).expr;
                let is_sample = matches!(over, Expr::Call(drawn)
                if module.import_path(&drawn.func).is_some_and(|path| path.is("random.sample")));
                is_sample && target_names(target).contains(&name.id.as_str())
            })
        })
}

fn is_one_row_call<'a>(module: &Module<'a>, call: &'a ExprCall) -> bool {
    let arguments = &call.arguments.args;
    let by_keyword = |name: &str| {
        call.arguments
            .find_keyword(name)
            .map(|keyword| &keyword.value)
    };
    let is_axis_0 = |at: usize| {
        arguments
            .get(at)
            .or_else(|| by_keyword("axis"))
            .is_some_and(|axis| is_number(axis, 0))
    };
    if let Some(path) = module.import_path(&call.func) {
        return match (path.first(), path.last()) {
            ("numpy" | "tensorflow", "expand_dims") => is_axis_0(1),
            ("numpy" | "tensorflow", "array" | "asarray" | "constant" | "convert_to_tensor") => {
                matches!(arguments.first(), Some(Expr::List(list)) if list.elts.len() == 1
                    && !list.elts.iter().any(Expr::is_starred_expr))
            }
            ("numpy" | "tensorflow", "zeros" | "ones" | "empty") => {
                arguments.first().is_some_and(starts_with_one)
            }
            ("numpy" | "tensorflow", "reshape") => arguments.get(1).is_some_and(starts_with_one),
            ("keras", "pad_sequences") => {
                matches!(arguments.first(), Some(Expr::List(list)) if list.elts.len() == 1)
            }
            _ => false,
        };
    }
    match &*call.func {
        Expr::Attribute(method) if method.attr.as_str() == "reshape" => arguments
            .first()
            .is_some_and(|first| is_number(first, 1) || starts_with_one(first)),
        _ => false,
    }
}

fn starts_with_one(shape: &Expr) -> bool {
    let first = match shape {
        Expr::Tuple(tuple) => tuple.elts.first(),
        Expr::List(list) => list.elts.first(),
        _ => None,
    };
    first.is_some_and(|first| is_number(first, 1))
}

fn is_number(expr: &Expr, number: u64) -> bool {
    match expr {
        Expr::NumberLiteral(literal) => {
            matches!(&literal.value, Number::Int(int) if int.as_u64() == Some(number))
        }
        Expr::UnaryOp(operation) => {
            operation.op == UnaryOp::UAdd && is_number(&operation.operand, number)
        }
        _ => false,
    }
}

fn finding(module: &Module<'_>, call: &Call<'_>, input: &Expr) -> Finding {
    let model = call
        .object()
        .map_or("model", |object| module.source(object));
    let source = module.source(input);
    let fix = call.object().map(|object| Fix {
        edits: vec![Edit {
            range: TextRange::new(object.end(), call.expr.end()),
            content: format!("({source}, training=False).numpy()"),
        }],
        safety: Safety::Unsafe,
        title: "Call the model".to_owned(),
    });
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{model}.predict` builds a whole pipeline for one row, {}",
            every_step_label(module, call.context.innermost_loop)
        ),
        label: "10 to 100 times slower than calling the model".to_owned(),
        help: format!("call the model: {model}({source}, training=False).numpy()"),
        fix,
    }
}
