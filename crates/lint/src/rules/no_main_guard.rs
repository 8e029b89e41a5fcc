//! # no-main-guard (AF207)
//!
//! A script starts DataLoader workers at top level, without `if __name__ == "__main__"`.
//!
//! ## Why it crashes
//!
//! On Windows, macOS and Linux since Python 3.14, a worker is a new Python process that first
//! imports the script. Without the guard each worker runs the whole script again: it loads the
//! data, creates the model and starts workers of its own. Python stops this with "An attempt has
//! been made to start a new process before the current process has finished its bootstrapping
//! phase", or the machine fills with processes first.
//!
//! ## Wrong
//!
//! ```python
//! loader = DataLoader(dataset, num_workers=4)
//! for x, y in loader:
//!     step(x, y)
//! ```
//!
//! ## Right
//!
//! ```python
//! def main():
//!     loader = DataLoader(dataset, num_workers=4)
//!     for x, y in loader:
//!         step(x, y)
//!
//! if __name__ == "__main__":
//!     main()
//! ```
//!
//! ## When it is fine
//!
//! In a notebook, or where workers are forked (Linux up to Python 3.13,
//! `multiprocessing_context="fork"`). Notebooks and scripts that ask for `fork` are not reported.
//!
//! ## Fix
//!
//! Unsafe: adds the guard, if the call on the last line is all that needs one.

use crate::Dialect;
use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::uses::lies_in;
use crate::model::{Call, FrameId, LoopSource, Module, ValueKind};
use crate::queries::loaders::{find_loaders, reachable_functions, worker_count};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF207",
    name: "no-main-guard",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("no_main_guard.rs"),
    check,
};

const MODULE_FRAME: FrameId = FrameId(0);

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    let is_forked = module.text.contains("\"fork\"") || module.text.contains("'fork'");
    if is_forked || module.dialect != Dialect::Python {
        return;
    }
    let started = |loader: &&Call<'_>| {
        worker_count(module, loader).is_some_and(|(workers, _)| workers >= 1.0)
    };
    let mut with_workers = find_loaders(module).filter(started).peekable();
    if with_workers.peek().is_none() {
        return;
    }
    let guards = main_guards(module.frame(MODULE_FRAME).body);
    let is_open = |range: TextRange| !guards.iter().any(|guard| lies_in(range, *guard));
    let reached = functions_run_on_import(module, &is_open);
    let runs = |frame: FrameId, range: TextRange| match frame {
        MODULE_FRAME => is_open(range),
        frame => reached.contains(&frame),
    };
    let Some(start) = find_worker_start(module, &runs) else {
        return;
    };
    // One guard is missing, however many loaders there are.
    let loader = with_workers.find(|loader| runs(loader.context.frame, loader.expr.range()));
    if let Some(loader) = loader {
        findings.push(finding(module, loader, start));
    }
}

/// Returns the ranges guarded by `if __name__ == "__main__"`.
fn main_guards(body: &[Stmt]) -> Vec<TextRange> {
    let names_itself = |test: &Expr| match test {
        Expr::Compare(compare) => {
            let mut sides = std::iter::once(&*compare.left).chain(&compare.comparators);
            sides.any(|side| matches!(side, Expr::Name(name) if name.id == "__name__"))
        }
        _ => false,
    };
    let is_guard =
        |statement: &&Stmt| matches!(statement, Stmt::If(choice) if names_itself(&choice.test));
    body.iter().filter(is_guard).map(Ranged::range).collect()
}

/// Returns the functions that run when the script is imported.
fn functions_run_on_import(
    module: &Module<'_>,
    is_open: &dyn Fn(TextRange) -> bool,
) -> Vec<FrameId> {
    let mut reached = Vec::new();
    for call in module.calls() {
        if let Some(own) = call.local_function
            && call.context.frame == MODULE_FRAME
            && !reached.contains(&own)
            && is_open(call.expr.range())
        {
            for frame in reachable_functions(module, own, 4) {
                if !reached.contains(&frame) {
                    reached.push(frame);
                }
            }
        }
    }
    reached
}

/// Returns the first place where an import makes a loader start its workers.
fn find_worker_start(
    module: &Module<'_>,
    runs: &dyn Fn(FrameId, TextRange) -> bool,
) -> Option<TextRange> {
    let by_loop = module.loops().iter().find(|around| {
        around.loop_source == LoopSource::Batches
            && around
                .for_clause
                .is_some_and(|(_, over)| is_loader(module, over, around.frame))
            && runs(around.frame, around.statement.range())
    });
    if let Some(around) = by_loop {
        let end = around
            .body
            .first()
            .map_or(around.statement.end(), Ranged::start);
        return Some(TextRange::new(around.statement.start(), end));
    }
    let fits = |call: &&Call<'_>| {
        call.method() == Some("fit")
            && module
                .arguments(call)
                .iter()
                .any(|value| value.is(ValueKind::Loader))
            && runs(call.context.frame, call.expr.range())
    };
    module
        .calls()
        .iter()
        .find(fits)
        .map(|call| call.expr.range())
}

/// Whether a loop iterates over a loader, also inside `enumerate` or `tqdm`.
fn is_loader<'a>(module: &Module<'a>, over: &'a Expr, frame: FrameId) -> bool {
    match over {
        Expr::Call(call) => {
            let made = module
                .import_path(&call.func)
                .is_some_and(|path| path.last() == "DataLoader");
            made || call
                .arguments
                .args
                .iter()
                .any(|argument| is_loader(module, argument, frame))
        }
        _ => module.final_value(over, frame).is(ValueKind::Loader),
    }
}

fn finding(module: &Module<'_>, loader: &Call<'_>, start: TextRange) -> Finding {
    let workers = worker_count(module, loader).map_or(1.0, |(workers, _)| workers);
    let line = module.line_label(start);
    Finding {
        rule: &RULE,
        range: loader.expr.range(),
        message: format!(
            "importing this script starts {workers} workers at {line}: unless they are forked, each of them runs the script again"
        ),
        label: format!("starts {workers} processes without a guard"),
        help: "move the code into `def main():` and call it under `if __name__ == \"__main__\":`"
            .to_owned(),
        fix: fix(module),
    }
}

/// Returns a fix that guards `main()`, if that is the only top-level call.
fn fix(module: &Module<'_>) -> Option<Fix> {
    let body = module.frame(MODULE_FRAME).body;
    let mut doing = body.iter().filter(|statement| {
        matches!(
            statement,
            Stmt::For(_) | Stmt::While(_) | Stmt::With(_) | Stmt::Try(_)
        ) || matches!(statement, Stmt::Expr(expression) if is_top_level_call(module, &expression.value))
            || matches!(statement, Stmt::Assign(assign) if is_top_level_call(module, &assign.value))
    });
    let (only, None) = (doing.next()?, doing.next()) else {
        return None;
    };
    let source = module.source(only);
    // Code after it would still run in each worker.
    let is_last = body.last().is_some_and(|last| last.range() == only.range());
    if !only.is_expr_stmt() || !is_last || source.contains('\n') || module.text.contains('\r') {
        return None;
    }
    Some(Fix {
        edits: vec![Edit {
            range: only.range(),
            content: format!("if __name__ == \"__main__\":\n    {source}"),
        }],
        safety: Safety::Unsafe,
        title: "Run it only when the script is executed".to_owned(),
    })
}

fn is_top_level_call(module: &Module<'_>, expr: &Expr) -> bool {
    module.calls().iter().any(|call| {
        call.context.frame == MODULE_FRAME
            && call.local_function.is_some()
            && call.expr.range() == expr.range()
    })
}
