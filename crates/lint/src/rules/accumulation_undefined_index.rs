//! # accumulation-undefined-index (AF304)
//!
//! The name that counts the batches is never assigned.
//!
//! ## Why it crashes
//!
//! The first batch is loaded, computed and backpropagated; then the step's condition raises
//! `NameError`. In a notebook it is worse: a value left over from another cell never changes, so
//! the optimizer steps always or never.
//!
//! ## Wrong
//!
//! ```python
//! for x, y in loader:
//!     loss = criterion(model(x), y) / 4
//!     loss.backward()
//!     if (i + 1) % 4 == 0:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## Right
//!
//! ```python
//! for i, (x, y) in enumerate(loader):
//!     loss = criterion(model(x), y) / 4
//!     loss.backward()
//!     if (i + 1) % 4 == 0:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## When it is fine
//!
//! Never. A name bound by an outer function, at module level or by an import is not reported.
//!
//! ## Fix
//!
//! Safe: the loop counts with `enumerate`, or the condition uses the name that already counts.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::Module;
use crate::model::uses::find_uses;
use crate::queries::optimizer_steps::{Accumulation, find_accumulations};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{ExceptHandler, Expr, ExprName, Pattern, Stmt};
use ruff_text_size::Ranged;

pub static RULE: Rule = Rule {
    code: "AF304",
    name: "accumulation-undefined-index",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("accumulation_undefined_index.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for accumulation in find_accumulations(module) {
        if let Some(name) = counter_name(accumulation.counter())
            && !is_bound(module, &accumulation, name.id.as_str())
        {
            findings.push(finding(module, &accumulation, name));
        }
    }
}

/// Returns the counting name of `i`, `i + 1` or `1 + i`.
fn counter_name(expression: &Expr) -> Option<&ExprName> {
    match expression {
        Expr::Name(name) => Some(name),
        Expr::BinOp(sum) => match (&*sum.left, &*sum.right) {
            (Expr::Name(name), Expr::NumberLiteral(_))
            | (Expr::NumberLiteral(_), Expr::Name(name)) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Whether anything could bind the name where it is used.
fn is_bound(module: &Module<'_>, accumulation: &Accumulation<'_, '_>, name: &str) -> bool {
    let mut frame = Some(accumulation.frame);
    while let Some(id) = frame {
        let here = module.frame(id);
        let is_parameter = here.def.is_some_and(|def| {
            def.parameters
                .iter()
                .any(|parameter| parameter.name().as_str() == name)
        });
        if is_parameter || here.names.contains_key(name) || Bindings::has(here.body, name) {
            return true;
        }
        frame = here.parent;
    }
    // Another function may declare the name as global.
    module
        .frames()
        .iter()
        .any(|frame| Bindings::has_global(frame.body, name))
}

/// Finds what binds a name in a block, including nested functions.
struct Bindings<'n> {
    name: &'n str,
    only_global: bool,
    found: bool,
}

impl Bindings<'_> {
    fn has(block: &[Stmt], name: &str) -> bool {
        Bindings::search(block, name, false)
    }

    fn has_global(block: &[Stmt], name: &str) -> bool {
        Bindings::search(block, name, true)
    }

    fn search(block: &[Stmt], name: &str, only_global: bool) -> bool {
        let mut bindings = Bindings {
            name,
            only_global,
            found: false,
        };
        bindings.visit_body(block);
        bindings.found
    }
}

impl<'a> Visitor<'a> for Bindings<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let is_name = |text: &str| text == self.name;
        self.found |= match statement {
            Stmt::Global(global) => global.names.iter().any(|name| is_name(name.as_str())),
            _ if self.only_global => false,
            Stmt::Import(import) => import.names.iter().any(|alias| {
                is_name(
                    alias
                        .asname
                        .as_ref()
                        .unwrap_or(&alias.name)
                        .as_str()
                        .split('.')
                        .next()
                        .unwrap_or(""),
                )
            }),
            Stmt::ImportFrom(import) => import.names.iter().any(|alias| {
                alias.name.as_str() == "*"
                    || is_name(alias.asname.as_ref().unwrap_or(&alias.name).as_str())
            }),
            Stmt::FunctionDef(def) => is_name(def.name.as_str()),
            Stmt::ClassDef(def) => is_name(def.name.as_str()),
            Stmt::Try(attempt) => {
                attempt
                    .handlers
                    .iter()
                    .any(|ExceptHandler::ExceptHandler(handler)| {
                        handler
                            .name
                            .as_ref()
                            .is_some_and(|name| is_name(name.as_str()))
                    })
            }
            // A magic command may bind any name.
            Stmt::IpyEscapeCommand(command) => {
                let value = command.value.as_ref();
                value.starts_with("run") || value.contains(self.name)
            }
            _ => false,
        };
        if !self.found {
            visitor::walk_stmt(self, statement);
        }
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        if let Expr::Name(name) = expression {
            self.found |= !self.only_global && !name.ctx.is_load() && name.id.as_str() == self.name;
        }
        visitor::walk_expr(self, expression);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        // The names that a pattern binds are not listed.
        self.found |= !self.only_global;
        visitor::walk_pattern(self, pattern);
    }
}

fn finding(module: &Module<'_>, accumulation: &Accumulation<'_, '_>, name: &ExprName) -> Finding {
    let fix = fix(module, accumulation, name.id.as_str());
    let head = match &fix {
        Some((_, head)) => head.clone(),
        None => format!("assign `{}` in the loop", name.id),
    };
    Finding {
        rule: &RULE,
        range: name.range(),
        message: format!(
            "`{}` is never assigned: the loop at {} fails on its first batch",
            name.id,
            module.line_label(module.loop_header(accumulation.id))
        ),
        label: "undefined name".to_owned(),
        help: head,
        fix: fix.map(|(edits, _)| Fix {
            edits,
            safety: Safety::Safe,
            title: "Count the batches".to_owned(),
        }),
    }
}

/// Returns edits that make the loop count, and the help that describes them.
fn fix(
    module: &Module<'_>,
    accumulation: &Accumulation<'_, '_>,
    name: &str,
) -> Option<(Vec<Edit>, String)> {
    let around = module.loop_at(accumulation.id);
    let (target, iter) = around.for_clause?;
    if let Some(counted) = enumerate_counter(target, iter) {
        // The loop already counts with another name.
        let edits: Vec<Edit> = find_uses(module.text, name, around.body)
            .iter()
            .map(|used| Edit {
                range: used.expr.range(),
                content: counted.to_owned(),
            })
            .collect();
        return Some((
            edits,
            format!("use `{counted}`, which the loop counts with"),
        ));
    }
    let item = match target {
        Expr::Name(_) => module.source(target).to_owned(),
        Expr::Tuple(tuple) if tuple.parenthesized => module.source(target).to_owned(),
        Expr::Tuple(_) => format!("({})", module.source(target)),
        _ => return None,
    };
    if matches!(iter, Expr::Tuple(tuple) if !tuple.parenthesized) || iter.is_starred_expr() {
        return None;
    }
    let source = module.source(iter);
    let head = format!("count in the loop: for {name}, {item} in enumerate({source}):");
    let edits = vec![
        Edit {
            range: target.range(),
            content: format!("{name}, {item}"),
        },
        Edit {
            range: iter.range(),
            content: format!("enumerate({source})"),
        },
    ];
    Some((edits, head))
}

/// Returns the counter of `for i, … in enumerate(…)`.
pub fn enumerate_counter<'a>(target: &'a Expr, iter: &'a Expr) -> Option<&'a str> {
    let (Expr::Tuple(tuple), Expr::Call(call)) = (target, iter) else {
        return None;
    };
    let is_enumerate = find_enumerate(call).is_some();
    match tuple.elts.first() {
        Some(Expr::Name(name)) if is_enumerate && tuple.elts.len() == 2 => Some(name.id.as_str()),
        _ => None,
    }
}

/// Returns the `enumerate(…)` call of a loop, directly or inside a progress bar.
pub fn find_enumerate(call: &ruff_python_ast::ExprCall) -> Option<&ruff_python_ast::ExprCall> {
    match &*call.func {
        Expr::Name(name) if name.id.as_str() == "enumerate" => Some(call),
        Expr::Name(name) if name.id.as_str() == "tqdm" => match call.arguments.args.first() {
            Some(Expr::Call(inner)) => find_enumerate(inner),
            _ => None,
        },
        _ => None,
    }
}
