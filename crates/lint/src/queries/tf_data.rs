//! `tf.data` pipelines, and the name under which TensorFlow is imported.

use super::bindings::find_binding;
use crate::model::{Call, FrameId, Module};
use ruff_python_ast::Expr;
use ruff_text_size::{Ranged, TextRange};

/// Whether an expression is surely a `tf.data` dataset.
pub fn is_tf_dataset<'a>(module: &Module<'a>, expr: &'a Expr, frame: FrameId) -> bool {
    is_tf_dataset_within(module, expr, frame, 24)
}

fn is_tf_dataset_within<'a>(
    module: &Module<'a>,
    expr: &'a Expr,
    frame: FrameId,
    deep: u32,
) -> bool {
    let Some(deeper) = deep.checked_sub(1) else {
        return false;
    };
    match expr {
        Expr::Call(call) => match module.import_path(&call.func) {
            Some(path) => matches!(
                path.segments(),
                ["tensorflow", "data", ..] | ["tensorflow_datasets", "load"]
            ),
            None => match &*call.func {
                Expr::Attribute(method) => {
                    is_dataset_method(&method.attr)
                        && is_tf_dataset_within(module, &method.value, frame, deeper)
                }
                _ => false,
            },
        },
        Expr::Name(_) => module
            .dotted_name(expr)
            .and_then(|name| find_binding(module, name, frame, expr.start()))
            .is_some_and(|origin| {
                origin.part.is_none()
                    && is_tf_dataset_within(module, origin.expr, origin.frame, deeper)
            }),
        _ => false,
    }
}

/// Whether a dataset method returns a dataset.
fn is_dataset_method(method: &str) -> bool {
    matches!(
        method,
        "map"
            | "batch"
            | "padded_batch"
            | "shuffle"
            | "repeat"
            | "cache"
            | "filter"
            | "take"
            | "skip"
            | "shard"
            | "interleave"
            | "flat_map"
            | "apply"
            | "with_options"
            | "unbatch"
            | "concatenate"
            | "enumerate"
            | "window"
            | "zip"
            | "prefetch"
    )
}

/// Returns the range of a method with its arguments: `.batch(32)`.
pub fn method_range(call: &Call<'_>) -> TextRange {
    match &*call.expr.func {
        Expr::Attribute(attribute) => TextRange::new(attribute.attr.start(), call.expr.end()),
        _ => call.expr.range(),
    }
}

/// Returns the name under which TensorFlow is imported, such as `tf`.
pub fn tensorflow_alias<'a>(module: &Module<'a>) -> Option<&'a str> {
    module.calls().iter().find_map(|call| {
        call.path.filter(|path| path.first() == "tensorflow")?;
        let mut root = &*call.expr.func;
        while let Expr::Attribute(attribute) = root {
            root = &attribute.value;
        }
        module
            .import_path(root)
            .filter(|path| path.is("tensorflow"))?;
        Some(module.source(root))
    })
}

/// Whether this text trains with TensorFlow.
pub fn trains_with_tensorflow(module: &Module<'_>) -> bool {
    !module.text.contains("TestCase")
        && module.calls().iter().any(|call| {
            matches!(
                call.method(),
                Some("fit" | "train_on_batch" | "fit_generator")
            ) || call
                .path
                .is_some_and(|path| path.is("tensorflow.GradientTape"))
        })
}
