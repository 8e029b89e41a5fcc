//! # map-not-parallel (AF210)
//!
//! A `tf.data` pipeline prepares its elements one at a time.
//!
//! ## Why it is slow
//!
//! `map` without `num_parallel_calls` uses a single core. Decoding and augmenting images that way
//! often takes longer than the training step, and the GPU idles.
//!
//! ## Wrong
//!
//! ```python
//! data = files.map(load)
//! ```
//!
//! ## Right
//!
//! ```python
//! data = files.map(load, num_parallel_calls=tf.data.AUTOTUNE)
//! ```
//!
//! ## When it is fine
//!
//! When the function does almost nothing; a lambda that calls none of your functions is not
//! reported. Since TensorFlow 2.10, stateless functions (no random numbers, no `py_function`) run
//! in parallel by default.
//!
//! ## Fix
//!
//! Safe: `num_parallel_calls=tf.data.AUTOTUNE`. The order of elements stays.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Call, Module};
use crate::queries::tf_data::{
    is_tf_dataset, method_range, tensorflow_alias, trains_with_tensorflow,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::Expr;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF210",
    name: "map-not-parallel",
    severity: Severity::Info,
    stage: Stage::Preview,
    source: include_str!("map_not_parallel.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("tensorflow") {
        return;
    }
    let mut maps = module
        .calls()
        .iter()
        .filter(|call| is_serial_map(module, call))
        .peekable();
    if maps.peek().is_some() && trains_with_tensorflow(module) {
        for call in maps {
            findings.push(finding(module, call));
        }
    }
}

fn is_serial_map<'a>(module: &Module<'a>, call: &Call<'a>) -> bool {
    call.method() == Some("map")
        && call.argument(1, "num_parallel_calls").is_none()
        && !call.is_open()
        && !call.context.inline
        && call
            .argument(0, "map_func")
            .is_some_and(|function| does_work(module, function))
        && call
            .object()
            .is_some_and(|object| is_tf_dataset(module, object, call.context.frame))
}

/// Whether a function may be slow: a named function, or a lambda that calls one.
fn does_work<'a>(module: &Module<'a>, function: &'a Expr) -> bool {
    struct Calls<'m, 'a> {
        module: &'m Module<'a>,
        found: bool,
    }
    impl<'a> Visitor<'a> for Calls<'_, 'a> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Call(call) = expr {
                let known = self
                    .module
                    .import_path(&call.func)
                    .is_some_and(|path| path.first() == "tensorflow");
                self.found |= !known && matches!(&*call.func, Expr::Name(_) | Expr::Attribute(_));
            }
            visitor::walk_expr(self, expr);
        }
    }
    match function {
        Expr::Name(_) | Expr::Attribute(_) => true,
        Expr::Lambda(lambda) => {
            let mut calls = Calls {
                module,
                found: false,
            };
            calls.visit_expr(&lambda.body);
            calls.found
        }
        _ => false,
    }
}

fn finding(module: &Module<'_>, call: &Call<'_>) -> Finding {
    let name = tensorflow_alias(module);
    let cores = module.target.cores.filter(|cores| *cores > 1);
    let of = cores.map_or_else(
        || "one core".to_owned(),
        |cores| format!("one of {cores} cores"),
    );
    let function = call
        .argument(0, "map_func")
        .filter(|function| !function.is_lambda_expr());
    let function = function.map_or("the function", |function| module.source(function));
    let last = call.expr.arguments.args.last().map(Ranged::end);
    let last = last.max(call.expr.arguments.keywords.last().map(Ranged::end));
    Finding {
        rule: &RULE,
        range: method_range(call),
        message: format!(
            "`{function}` prepares one element at a time, on {of}: the GPU waits for it"
        ),
        label: "runs one at a time".to_owned(),
        help: format!(
            "prepare several at once: num_parallel_calls={}.data.AUTOTUNE",
            name.unwrap_or("tf")
        ),
        fix: name.zip(last).map(|(name, last)| Fix {
            edits: vec![Edit {
                range: TextRange::empty(last),
                content: format!(", num_parallel_calls={name}.data.AUTOTUNE"),
            }],
            safety: Safety::Safe,
            title: "Prepare several elements at once".to_owned(),
        }),
    }
}
