//! # accumulation-without-division (AF303)
//!
//! Gradients of several batches are summed, and nothing divides by their number.
//!
//! ## Why it crashes
//!
//! The sum over `k` batches is `k` times the gradient of one large batch, as if the learning rate
//! were `k` times as high. The loss jumps, and often becomes NaN.
//!
//! ## Wrong
//!
//! ```python
//! for i, (x, y) in enumerate(loader):
//!     loss = criterion(model(x), y)
//!     loss.backward()
//!     if (i + 1) % k == 0:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## Right
//!
//! ```python
//! for i, (x, y) in enumerate(loader):
//!     loss = criterion(model(x), y) / k
//!     loss.backward()
//!     if (i + 1) % k == 0:
//!         optimizer.step()
//!         optimizer.zero_grad()
//! ```
//!
//! ## When it is fine
//!
//! When the loss is a sum and not a mean, when the learning rate was chosen for the sum, or when an
//! engine divides. Files that divide by the number anywhere are not reported.
//!
//! ## Fix
//!
//! Unsafe, because it changes the training: the loss is divided by the number of batches.

use super::accumulation_zeroes_every_step::clears_each_turn;
use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::uses::find_uses;
use crate::model::{Call, Module, ValueKind};
use crate::queries::backward::collect_names;
use crate::queries::optimizer_steps::{Accumulation, find_accumulations};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Operator};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF303",
    name: "accumulation-without-division",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("accumulation_without_division.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for accumulation in find_accumulations(module) {
        if let [back] = accumulation.backwards.as_slice()
            && is_plain_backward(back)
            && clears_each_turn(module, &accumulation).is_none()
            && !divides_somewhere(module, &accumulation)
            && !is_scaled_or_unknown(module, &accumulation, back)
        {
            findings.push(finding(module, &accumulation, back));
        }
    }
}

/// Whether this is `loss.backward()` or `scaler.scale(loss).backward()`. Engines divide by
/// themselves.
fn is_plain_backward(back: &Call<'_>) -> bool {
    back.expr.arguments.args.is_empty()
        && back
            .receiver
            .is_some_and(|receiver| matches!(receiver.kind, ValueKind::Tensor | ValueKind::Unknown))
}

/// Whether the number of batches is used for more than counting, or the sum is turned into a mean
/// in another way.
fn divides_somewhere(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> bool {
    let text = module.text;
    let sums = [
        "\"sum\"",
        "'sum'",
        "size_average=False",
        "scale_loss",
        "gradient_accumulation_steps=",
        "no_sync",
    ];
    if sums.iter().any(|word| text.contains(word)) || touches_gradients(module, accumulation) {
        return true;
    }
    let Some(key) = module.dotted_name(accumulation.every()) else {
        return !accumulation.every().is_number_literal_expr();
    };
    let name = key.rsplit('.').next().unwrap_or(key);
    is_divisor(text, name)
        || find_uses(text, key, module.loop_at(accumulation.id).body).iter().any(|used| {
            !matches!(used.around[0], Some(Expr::BinOp(operation)) if operation.op == Operator::Mod)
        })
}

/// Whether the loop modifies gradients, such as `p.grad /= k`.
fn touches_gradients(module: &Module<'_>, accumulation: &Accumulation<'_, '_>) -> bool {
    let source = module.source(module.loop_at(accumulation.id).statement);
    source.match_indices(".grad").any(|(at, word)| {
        let rest = source.get(at + word.len()..).unwrap_or("");
        !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
    })
}

/// Whether the text divides by this name: `/ k`, `/ float(args.k)`, `div_(k)`.
fn is_divisor(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        // The longest text expected between the division and the name.
        let near = (at.saturating_sub(80)..=at)
            .find_map(|start| text.get(start..at))
            .unwrap_or("");
        let before = near.trim_end_matches(|c: char| c.is_alphanumeric() || "_.( [".contains(c));
        let is_quotient = before.ends_with('/') && !before.ends_with("//");
        is_quotient
            || before.ends_with("/=")
            || near
                .strip_prefix(before)
                .is_some_and(|between| between.contains("div"))
    })
}

/// Whether the loss is a product, a quotient or a sum over elements, or its origin is unknown.
fn is_scaled_or_unknown(
    module: &Module<'_>,
    accumulation: &Accumulation<'_, '_>,
    back: &Call<'_>,
) -> bool {
    let mut names = Vec::new();
    let Some(object) = back.object() else {
        return true;
    };
    if has_factor(object) {
        return true;
    }
    collect_names(module, object, &mut names);
    let mut next = 0;
    while let Some(name) = names.get(next).copied() {
        next += 1;
        for store in module.stores() {
            if store.context.innermost_loop != Some(accumulation.id)
                || module.dotted_name(store.target) != Some(name)
            {
                continue;
            }
            let Some(source) = store.source else { continue };
            if matches!(store.operator, Some(Operator::Div | Operator::Mult))
                || has_factor(source)
                || is_unknown_result(module, source, accumulation)
            {
                return true;
            }
            if next < 8 {
                let mut found = Vec::new();
                collect_names(module, source, &mut found);
                found.retain(|name| !names.contains(name));
                names.extend(found);
            }
        }
    }
    false
}

fn has_factor(expression: &Expr) -> bool {
    struct Factors(bool);
    impl<'a> Visitor<'a> for Factors {
        fn visit_expr(&mut self, expression: &'a Expr) {
            self.0 |= match expression {
                Expr::BinOp(operation) => matches!(operation.op, Operator::Div | Operator::Mult),
                Expr::Attribute(attribute) => {
                    matches!(
                        attribute.attr.as_str(),
                        "div" | "div_" | "mul" | "mul_" | "sum"
                    )
                }
                _ => false,
            };
            visitor::walk_expr(self, expression);
        }
    }
    let mut factors = Factors(false);
    factors.visit_expr(expression);
    factors.0
}

/// Whether a call's result is unknown: a method of a class in another file, or a local function
/// that mentions the number.
fn is_unknown_result(
    module: &Module<'_>,
    source: &Expr,
    accumulation: &Accumulation<'_, '_>,
) -> bool {
    let Expr::Call(wanted) = source else {
        return false;
    };
    let Some(call) = module
        .calls()
        .iter()
        .find(|call| call.expr.range() == wanted.range())
    else {
        return true;
    };
    if let Some(own) = call.local_function {
        let name = module.source(accumulation.every());
        let name = name.rsplit('.').next().unwrap_or(name);
        let body = module.frame(own).body;
        let range = body
            .first()
            .zip(body.last())
            .map(|(first, last)| TextRange::new(first.start(), last.end()));
        return range.is_some_and(|range| module.source(range).contains(name));
    }
    let is_known =
        matches!(call.callee.kind, ValueKind::Model | ValueKind::Criterion) || call.path.is_some();
    !is_known
        && module.source(&*wanted.func).starts_with("self.")
        && call
            .receiver
            .is_none_or(|receiver| !receiver.is(ValueKind::Tensor))
}

fn finding(module: &Module<'_>, accumulation: &Accumulation<'_, '_>, back: &Call<'_>) -> Finding {
    let every = module.source(accumulation.every());
    let fixed = division_edits(module, back, every);
    Finding {
        rule: &RULE,
        range: back.expr.range(),
        message: format!(
            "gradients of `{every}` batches are summed before the step at {} but not divided by `{every}`: the step is `{every}` times too large",
            module.line_label(accumulation.choice)
        ),
        label: "adds the full gradient each time".to_owned(),
        help: match &fixed {
            Some(edits) => format!("divide the loss: {}", apply_edits(module, back, edits)),
            None => format!("divide the loss by {every} before `backward()`"),
        },
        fix: fixed.map(|edits| Fix {
            edits,
            safety: Safety::Unsafe,
            title: "Divide the loss by the number of batches".to_owned(),
        }),
    }
}

/// Returns edits that divide the loss.
fn division_edits(module: &Module<'_>, back: &Call<'_>, every: &str) -> Option<Vec<Edit>> {
    let object = back.object()?;
    let insert = |at: TextRange, content: String| Edit { range: at, content };
    match object {
        Expr::Name(_) | Expr::Attribute(_) => Some(vec![
            insert(TextRange::empty(object.start()), "(".to_owned()),
            insert(TextRange::empty(object.end()), format!(" / {every})")),
        ]),
        Expr::Call(scale) => match &*scale.arguments.args {
            [loss @ (Expr::Name(_) | Expr::Attribute(_))]
                if module.source(&*scale.func).ends_with(".scale") =>
            {
                Some(vec![insert(
                    TextRange::empty(loss.end()),
                    format!(" / {every}"),
                )])
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the source of the call after its edits.
fn apply_edits(module: &Module<'_>, back: &Call<'_>, edits: &[Edit]) -> String {
    let mut text = module.source(back.expr).to_owned();
    for edit in edits.iter().rev() {
        let at = usize::from(edit.range.start() - back.expr.start());
        if text.is_char_boundary(at) {
            text.insert_str(at, &edit.content);
        }
    }
    text
}
