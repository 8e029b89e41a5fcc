//! # variable-or-function-in-loop (AF502)
//!
//! A `tf.Variable`, `tf.function` or Keras model is created anew in every step.
//!
//! ## Why it freezes
//!
//! A variable created in the loop is not the one trained in the last step, so nothing is learned,
//! and the optimizer keeps state for each. A `tf.function` created in the loop is traced every
//! time, which takes longer than the step, and the graphs accumulate. Keras keeps global state for
//! every model, so a hyperparameter search fills memory with unused models.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in data:
//!     scale = tf.Variable(1.0)
//!     with tf.GradientTape() as tape:
//!         loss = mse(y, model(x) * scale)
//! ```
//!
//! ## Right
//!
//! ```python
//! scale = tf.Variable(1.0)
//! for x, y in data:
//!     with tf.GradientTape() as tape:
//!         loss = mse(y, model(x) * scale)
//! ```
//!
//! ## When it is fine
//!
//! In a loop that builds something from variables, or creates one function per model. A few models
//! one after another do no harm, nor do many with `keras.backend.clear_session()` between them.
//!
//! ## Fix
//!
//! None: the initial value must be known before the loop.

use crate::finding::Finding;
use crate::model::{Call, Loop, LoopId, LoopSource, Module, ValueKind};
use crate::queries::bindings::resolve_names;
use crate::queries::retention::is_test_code;
use crate::queries::wording::every_step_label;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF502",
    name: "variable-or-function-in-loop",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("variable_or_function_in_loop.rs"),
    check,
};

/// The number of models that does no harm.
const MAX_HARMLESS_MODELS: f64 = 10.0;

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("tensorflow") && !module.imports("keras") {
        return;
    }
    for call in module.calls() {
        if let Some(id) = call.context.innermost_loop
            && let Some(what) = find_created(module, call, id)
        {
            findings.push(finding(module, what, call.expr.range(), id));
        }
    }
    for (index, around) in module.loops().iter().enumerate() {
        for statement in around.body {
            if let Stmt::FunctionDef(def) = statement
                && def
                    .decorator_list
                    .iter()
                    .any(|decorator| is_tf_function(module, &decorator.expression))
            {
                let id = LoopId(index as u32);
                if is_only_called(module, def.name.as_str(), id) && !creates_model(module, id) {
                    let range = TextRange::new(def.start(), def.parameters.end());
                    findings.push(finding(module, Created::Function, range, id));
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Created {
    Variable,
    Function,
    Model,
}

fn find_created(module: &Module<'_>, call: &Call<'_>, id: LoopId) -> Option<Created> {
    let path = call.path?;
    if call.context.inline || is_test_code(module, module.frame(call.context.frame)) {
        return None;
    }
    let what = match path.segments() {
        ["tensorflow", "Variable"] => Created::Variable,
        ["tensorflow", "function"] => Created::Function,
        ["keras", "Sequential" | "Model"] | ["keras", "models", "Sequential" | "Model"] => {
            Created::Model
        }
        _ => return None,
    };
    // A plain name, `scale = tf.Variable(…)`, not an element of a larger structure.
    let name = module
        .loop_at(id)
        .body
        .iter()
        .find_map(|statement| match statement {
            Stmt::Assign(assign) if assign.value.range() == call.expr.range() => {
                match &assign.targets[..] {
                    [Expr::Name(name)] => Some(name.id.as_str()),
                    _ => None,
                }
            }
            _ => None,
        })?;
    let is_fault = match what {
        Created::Variable => {
            takes_steps(module, id) && !creates_model(module, id) && !has_few_iterations(module, id)
        }
        Created::Function => is_only_called(module, name, id) && !creates_model(module, id),
        Created::Model => is_one_of_many(module, name, id),
    };
    is_fault.then_some(what)
}

fn is_tf_function<'a>(module: &Module<'a>, decorator: &'a Expr) -> bool {
    let function = match decorator {
        Expr::Call(call) => &*call.func,
        other => other,
    };
    module
        .import_path(function)
        .is_some_and(|path| path.is("tensorflow.function"))
}

/// Whether the loop itself computes or applies gradients.
fn takes_steps(module: &Module<'_>, id: LoopId) -> bool {
    module.calls().iter().any(|call| {
        call.context.innermost_loop == Some(id)
            && matches!(
                call.method(),
                Some("apply_gradients" | "gradient" | "train_on_batch" | "minimize")
            )
    })
}

/// Whether a function is only called in the loop that creates it, and not passed on.
fn is_only_called(module: &Module<'_>, name: &str, id: LoopId) -> bool {
    let around = module.loop_at(id);
    let uses = crate::model::uses::find_uses(module.text, name, around.body);
    let mut reads = uses.iter().filter(|used| !used.is_store).peekable();
    reads.peek().is_some()
        && reads.all(|used| {
            matches!(used.around[0], Some(Expr::Call(call)) if call.func.range() == used.expr.range())
        })
}

/// Whether the loop creates a model in each iteration, which needs its own function.
fn creates_model(module: &Module<'_>, id: LoopId) -> bool {
    module.calls().iter().any(|call| {
        module.is_inside_loop(&call.context, id)
            && (call.result.is(ValueKind::Optimizer)
                || (call.result.is(ValueKind::Model)
                    && (call.path.is_some() || call.local_function.is_some())))
    })
}

/// Whether many models are created and trained one after another, and none is kept.
fn is_one_of_many(module: &Module<'_>, name: &str, id: LoopId) -> bool {
    let around = module.loop_at(id);
    let is_fitted = module.calls().iter().any(|call| {
        call.context.innermost_loop == Some(id)
            && call.method() == Some("fit")
            && call.object().and_then(|object| module.dotted_name(object)) == Some(name)
    });
    let uses = crate::model::uses::find_uses(module.text, name, around.body);
    let is_kept = uses
        .iter()
        .any(|used| used.argument_of().is_some() || matches!(used.statement, Stmt::Return(_)));
    is_fitted
        && !has_few_iterations(module, id)
        && !is_kept
        && !module.text.contains("clear_session")
}

/// Whether a loop and its outer loops have few iterations in total, as far as the text says.
fn has_few_iterations(module: &Module<'_>, id: LoopId) -> bool {
    let turns = module
        .enclosing_loops(Some(id))
        .map(|around| iteration_count(module, around));
    turns
        .product::<Option<f64>>()
        .is_some_and(|turns| turns < MAX_HARMLESS_MODELS)
}

/// Returns the number of iterations of a loop, if the text gives it.
fn iteration_count(module: &Module<'_>, around: &Loop<'_>) -> Option<f64> {
    if let LoopSource::Times(times) = around.loop_source {
        return times;
    }
    let (_, over) = around.for_clause?;
    match resolve_names(module, over, around.frame).expr {
        Expr::List(list) => Some(list.elts.len() as f64),
        Expr::Tuple(list) => Some(list.elts.len() as f64),
        _ => None,
    }
}

fn finding(module: &Module<'_>, what: Created, range: TextRange, id: LoopId) -> Finding {
    let when = every_step_label(module, Some(id));
    let (message, label, help) = match what {
        Created::Variable => (
            format!(
                "a new `tf.Variable` is created {when}: what the last one learned is lost, but its state stays"
            ),
            "a new variable in every step",
            "create it once, before the loop",
        ),
        Created::Function => (
            format!(
                "a new `tf.function` is traced {when}: slower than the step, and the graphs accumulate"
            ),
            "traced in every step",
            "create it once, before the loop",
        ),
        Created::Model => (
            format!("a new model is created {when}, and Keras keeps the state of all of them"),
            "none of them is freed",
            "free the previous one first: keras.backend.clear_session()",
        ),
    };
    Finding {
        rule: &RULE,
        range,
        message,
        label: label.to_owned(),
        help: help.to_owned(),
        fix: None,
    }
}
