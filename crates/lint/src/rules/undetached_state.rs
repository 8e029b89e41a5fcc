//! # undetached-state (AF104)
//!
//! A hidden state carries the autograd graph of all previous steps into the next one.
//!
//! ## Why it crashes
//!
//! A recurrent model receives the state it returned in the previous step. Unless detached, that
//! state belongs to the previous step's graph, and so on back to the first step. `backward()` then
//! runs through all of them: PyTorch raises "Trying to backward through the graph a second time",
//! or with `retain_graph=True` keeps everything, so that each step is slower than the last until
//! memory is full.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in chunks:
//!     output, state = model(x, state)
//!     loss = criterion(output, y)
//!     loss.backward()
//!     optimizer.step()
//! ```
//!
//! ## Right
//!
//! ```python
//! for x, y in chunks:
//!     state = state.detach()
//!     output, state = model(x, state)
//!     loss = criterion(output, y)
//!     loss.backward()
//!     optimizer.step()
//! ```
//!
//! ## When it is fine
//!
//! When `backward()` is called once after the loop, or the state is created anew before each call.
//! Such code is not reported.
//!
//! ## Fix
//!
//! Unsafe: `.detach()` on a state that is known to be one tensor. The state of an LSTM is two:
//! `state = tuple(part.detach() for part in state)`.

use crate::finding::{Finding, Fix, Safety};
use crate::model::uses::{find_uses, lies_in};
use crate::model::{Call, LoopId, Module, Role, Store, ValueKind};
use crate::queries::backward::runs_backward_in_loop;
use crate::queries::wording::append_fix;
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF104",
    name: "undetached-state",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("undetached_state.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.imports("torch") {
        return;
    }
    for store in module.stores() {
        if let Some((name, id)) = rebound_name(module, store)
            && let Some(call) = model_call(module, store)
            && let Some(argument) = argument_with_graph(module, call, name)
            && runs_backward_each_iteration(module, id)
            && !is_detached_or_replaced(module, name, id, store)
            && is_known_not_to_detach(module, call, id)
        {
            findings.push(finding(module, store, name, argument, id));
        }
    }
}

/// Returns a name that is bound in each iteration of a loop, and the loop.
fn rebound_name<'a>(module: &Module<'a>, store: &Store<'a>) -> Option<(&'a str, LoopId)> {
    let id = store.context.innermost_loop?;
    let is_fit = store.operator.is_none()
        && store.value.graph
        && !store.context.no_grad
        && !store.context.inline;
    is_fit.then_some((module.dotted_name(store.target)?, id))
}

/// Returns the model call whose result, or a part of it, is assigned.
fn model_call<'m, 'a>(module: &'m Module<'a>, store: &Store<'a>) -> Option<&'m Call<'a>> {
    let Stmt::Assign(assign) = store.statement else {
        return None;
    };
    let range = assign.value.range();
    module
        .calls()
        .iter()
        .find(|call| call.expr.range() == range)
        .filter(|call| call.callee.is(ValueKind::Model) || call.method() == Some("forward"))
}

/// Returns the argument that is the previous state with its graph.
fn argument_with_graph<'a>(module: &Module<'a>, call: &Call<'a>, name: &str) -> Option<&'a Expr> {
    let arguments = &call.expr.arguments;
    let all = arguments
        .args
        .iter()
        .chain(arguments.keywords.iter().map(|keyword| &keyword.value));
    let mut given = all
        .zip(module.arguments(call))
        .filter(|(_, value)| value.graph);
    given.find_map(|(argument, _)| match argument {
        Expr::Tuple(tuple) => tuple
            .elts
            .iter()
            .any(|part| module.dotted_name(part) == Some(name))
            .then_some(argument),
        _ => (module.dotted_name(argument) == Some(name)).then_some(argument),
    })
}

/// Whether gradients are computed in each iteration of the loop.
fn runs_backward_each_iteration(module: &Module<'_>, id: LoopId) -> bool {
    runs_backward_in_loop(module, id) && is_unconditional(module, id)
}

/// Whether `backward()` runs unconditionally. `if step % 20 == 0: loss.backward()` accumulates
/// graphs on purpose.
fn is_unconditional(module: &Module<'_>, id: LoopId) -> bool {
    fn has(module: &Module<'_>, block: &[Stmt]) -> bool {
        block.iter().any(|statement| match statement {
            Stmt::If(_)
            | Stmt::For(_)
            | Stmt::While(_)
            | Stmt::FunctionDef(_)
            | Stmt::ClassDef(_) => false,
            Stmt::With(with) => has(module, &with.body),
            Stmt::Try(attempt) => has(module, &attempt.body),
            _ => module.calls().iter().any(|call| {
                lies_in(call.expr.range(), statement.range())
                    && crate::queries::backward::call_runs_backward(module, call)
            }),
        })
    }
    has(module, module.loop_at(id).body)
}

/// Whether the state is detached or created anew somewhere in the loop.
fn is_detached_or_replaced(module: &Module<'_>, name: &str, id: LoopId, store: &Store<'_>) -> bool {
    let body = module.loop_at(id).body;
    find_uses(module.text, name, body).iter().any(|used| {
        if used.is_store {
            return used.statement.range() != store.statement.range();
        }
        let is_attribute = |around: &Option<&Expr>| {
            matches!(around, Some(Expr::Attribute(attribute))
                if matches!(attribute.attr.as_str(), "detach" | "detach_" | "data" | "zero_" | "copy_"))
        };
        // `for part in state: part.detach_()`
        used.around.iter().any(is_attribute) || matches!(used.statement, Stmt::For(_) | Stmt::Delete(_))
    })
}

/// Whether the model is known not to detach its output: it is a PyTorch layer, or defined in this
/// text, or the graph is retained.
fn is_known_not_to_detach<'a>(module: &Module<'a>, call: &Call<'a>, id: LoopId) -> bool {
    let mut models = module
        .classes()
        .iter()
        .filter(|class| matches!(class.role, Role::Model | Role::Lightning))
        .peekable();
    let is_here = models.peek().is_some();
    if models.any(|class| module.source(class.def).contains("detach")) {
        return false;
    }
    let key = module.dotted_name(&call.expr.func);
    let is_layer = || {
        module.stores().iter().any(|store| {
            module.dotted_name(store.target) == key
                && matches!(store.source, Some(Expr::Call(made)) if module.import_path(&made.func).is_some_and(|path| path.is_in("torch.nn")))
        })
    };
    let retains = || {
        let body = module.source(module.loop_at(id).statement);
        body.contains("retain_graph=True")
    };
    is_here || is_layer() || retains()
}

fn finding(
    module: &Module<'_>,
    store: &Store<'_>,
    name: &str,
    argument: &Expr,
    id: LoopId,
) -> Finding {
    let line = module.line_label(module.loop_header(id));
    let is_tensor = is_one_tensor(module, name, store) && !argument.is_tuple_expr();
    let help = if is_tensor {
        format!("cut the old graph: pass `{name}.detach()`")
    } else {
        format!(
            "cut the old graph before the call: `{name} = {name}.detach()`, for an LSTM `{name} = tuple(part.detach() for part in {name})`"
        )
    };
    Finding {
        rule: &RULE,
        range: store.statement.range(),
        message: format!(
            "`{name}` carries the graphs of all earlier steps of the loop at {line}, and `backward()` runs through them again"
        ),
        label: format!("`{name}` still has the previous step's graph"),
        help,
        fix: is_tensor.then(|| Fix {
            safety: Safety::Unsafe,
            ..append_fix(
                argument,
                ".detach()",
                "Detach the state from the previous step",
            )
        }),
    }
}

/// Whether the state is known to start as one tensor created in the same function.
fn is_one_tensor(module: &Module<'_>, name: &str, store: &Store<'_>) -> bool {
    let mut others = module.stores().iter().filter(|other| {
        other.context.frame == store.context.frame
            && module.dotted_name(other.target) == Some(name)
            && other.statement.range() != store.statement.range()
    });
    others
        .next()
        .is_some_and(|first| first.value.is(ValueKind::Tensor))
        && others.all(|other| other.value.is(ValueKind::Tensor))
}
