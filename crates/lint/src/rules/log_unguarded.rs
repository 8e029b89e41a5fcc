//! # log-unguarded (AF401)
//!
//! The logarithm of a probability that may be zero.
//!
//! ## Why it crashes
//!
//! `softmax` and `sigmoid` round to exactly 0 or 1 when the model is confident. The logarithm is
//! then minus infinity, the gradient NaN, and after the next step every weight is NaN. The run
//! continues for hours and learns nothing. Sums of exponentials overflow in the same way: `exp(89)`
//! is infinite.
//!
//! ## Wrong
//!
//! ```python
//! probs = torch.softmax(logits, dim=1)
//! loss = -(target * torch.log(probs)).sum(dim=1).mean()
//! ```
//!
//! ## Right
//!
//! ```python
//! log_probs = torch.log_softmax(logits, dim=1)
//! loss = -(target * log_probs).sum(dim=1).mean()
//! ```
//!
//! ## When it is fine
//!
//! When the probabilities are kept above zero: `torch.log(probs + 1e-8)`,
//! `probs.clamp(min=1e-8).log()`. Such code is not reported, nor is code that runs without
//! gradients.
//!
//! ## Fix
//!
//! Unsafe, because results change slightly: `log_softmax` for the logarithm of a softmax,
//! `logsumexp` for a sum of exponentials, otherwise a lower bound.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Activation, Call, Module, Value};
use crate::queries::activations::{
    find_activations, is_keras_prediction, is_tensor_method, parameter_index, parenthesized,
};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange};

pub static RULE: Rule = Rule {
    code: "AF401",
    name: "log-unguarded",
    severity: Severity::Warning,
    stage: Stage::Preview,
    source: include_str!("log_unguarded.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    for call in module.calls() {
        let Some((of, value)) = logarithm_argument(module, call) else {
            continue;
        };
        if call.context.no_grad {
            continue;
        }
        if let Some(activation) = risky_activation(module, call, of, value) {
            if !is_replaced_where_infinite(module, call) && !is_only_printed(module, call) {
                findings.push(finding(module, call, of, activation));
            }
        } else if let Some((summand, dimensions)) = sum_of_exponentials(module, call, of) {
            findings.push(overflow_finding(module, call, summand, &dimensions));
        }
    }
}

/// Returns the argument of a logarithm.
fn logarithm_argument<'a>(module: &Module<'a>, call: &Call<'a>) -> Option<(&'a Expr, Value)> {
    if let Some(path) = call.path {
        let is_log = matches!(
            path.segments(),
            ["torch", "log" | "log2" | "log10"]
                | ["tensorflow", "log"]
                | ["tensorflow", "math", "log"]
                | ["keras", "backend" | "ops", "log"]
        );
        if !is_log {
            return None;
        }
        let name = if path.first() == "torch" {
            "input"
        } else {
            "x"
        };
        return Some((call.argument(0, name)?, module.argument(call, 0, name)?));
    }
    let is_log =
        is_tensor_method(call, &["log", "log2", "log10"]) && call.expr.arguments.is_empty();
    Some((call.object()?, call.receiver?)).filter(|_| is_log)
}

fn risky_activation<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    of: &'a Expr,
    value: Value,
) -> Option<Activation> {
    let frame = call.context.frame;
    if is_keras_prediction(module, frame, of) {
        return Some(Activation::ModelOutput);
    }
    let mut known = find_activations(module, frame, of, value).into_iter();
    known.find(|activation| {
        matches!(
            activation,
            Activation::Softmax | Activation::Sigmoid | Activation::Relu
        )
    })
}

/// Whether infinite values are replaced: `torch.where(p > 0, p.log(), 0)`.
fn is_replaced_where_infinite(module: &Module<'_>, call: &Call<'_>) -> bool {
    module.calls().iter().any(|choice| {
        let is_choice = match choice.path {
            Some(path) => path.last() == "where",
            None => matches!(choice.method(), Some("where" | "masked_fill")),
        };
        is_choice && choice.expr.range().contains_range(call.expr.range())
    })
}

/// Whether the logarithm is only converted to a number: `p.log().cpu().numpy()`.
fn is_only_printed(module: &Module<'_>, call: &Call<'_>) -> bool {
    module.calls().iter().any(|shown| {
        matches!(
            shown.method(),
            Some("item" | "cpu" | "numpy" | "detach" | "tolist")
        ) && shown.object().is_some_and(|object| {
            object.start() == call.expr.start() && object.range().contains_range(call.expr.range())
        })
    })
}

/// Returns the `x` of `torch.exp(x).sum(dim=1)` or `torch.sum(torch.exp(x), dim=1)`, and the
/// arguments of the sum. If the maximum was subtracted before, nothing overflows.
fn sum_of_exponentials<'a>(
    module: &Module<'a>,
    call: &Call<'a>,
    of: &'a Expr,
) -> Option<(&'a Expr, String)> {
    let is_torch = call.path.is_none_or(|path| path.first() == "torch");
    let Expr::Call(sum) = of else { return None };
    let (summed, rest) = operand_of(module, sum, "sum").filter(|_| is_torch)?;
    let Expr::Call(exponential) = summed else {
        return None;
    };
    let (summand, _) = operand_of(module, exponential, "exp")?;
    let names_bound = |name: &str| {
        module
            .stores()
            .iter()
            .filter(|store| {
                store.context.frame == call.context.frame
                    && module.dotted_name(store.target) == Some(name)
            })
            .filter_map(|store| store.source)
            .any(|source| is_bounded_above(module, source))
    };
    let is_bounded =
        is_bounded_above(module, summand) || module.dotted_name(summand).is_some_and(names_bound);
    let is_parameter = matches!(summand, Expr::Name(name)
        if parameter_index(module, call.context.frame, name.id.as_str()).is_some());
    (!is_bounded && !is_parameter).then_some((summand, rest))
}

/// Returns the operand of a function or method with this name, and its other arguments.
fn operand_of<'a>(
    module: &Module<'a>,
    call: &'a ExprCall,
    name: &str,
) -> Option<(&'a Expr, String)> {
    let Expr::Attribute(attribute) = &*call.func else {
        return None;
    };
    if attribute.attr.as_str() != name {
        return None;
    }
    let (of, skip) = match module.import_path(&call.func) {
        Some(path) if path.first() == "torch" => (call.arguments.args.first()?, 1),
        Some(_) => return None,
        None => (&*attribute.value, 0),
    };
    let rest = call
        .arguments
        .args
        .iter()
        .skip(skip)
        .map(|argument| module.source(argument));
    let named = call
        .arguments
        .keywords
        .iter()
        .map(|keyword| module.source(keyword));
    Some((of, rest.chain(named).collect::<Vec<_>>().join(", ")))
}

/// Whether something is subtracted from an expression, or bounds it from above.
fn is_bounded_above(module: &Module<'_>, expression: &Expr) -> bool {
    let source = module.source(expression);
    source.contains(" - ")
        || source.starts_with('-')
        || ["max", "clamp", "log", "clip", "neg"]
            .iter()
            .any(|word| source.contains(word))
}

fn overflow_finding(
    module: &Module<'_>,
    call: &Call<'_>,
    summand: &Expr,
    dimensions: &str,
) -> Finding {
    let source = module.source(summand);
    let merged = format!("torch.logsumexp({source}, {dimensions})");
    let has_dimensions = !dimensions.is_empty();
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "exp of `{source}` overflows above 88, so its logarithm is infinite and the loss becomes NaN"
        ),
        label: "overflows before the logarithm".to_owned(),
        help: if has_dimensions {
            format!("use one function that subtracts the maximum first: {merged}")
        } else {
            format!(
                "use one function that subtracts the maximum first: torch.logsumexp({source}, dim=…)"
            )
        },
        fix: (has_dimensions && module.imports("torch") && module.text.contains("import torch\n"))
            .then(|| Fix {
                edits: vec![Edit {
                    range: call.expr.range(),
                    content: merged,
                }],
                safety: Safety::Unsafe,
                title: "Use logsumexp".to_owned(),
            }),
    }
}

fn finding(module: &Module<'_>, call: &Call<'_>, of: &Expr, activation: Activation) -> Finding {
    let source = module.source(of);
    let what = match activation {
        Activation::Softmax => "a softmax rounds to 0 when the model is confident",
        Activation::Sigmoid => "a sigmoid rounds to 0 when the model is confident",
        Activation::Relu => "a ReLU is 0 for negative input",
        _ => "a prediction may be 0",
    };
    let fix = log_softmax_edits(module, call, of).unwrap_or_else(|| clamp_edits(module, call, of));
    let shown = match &*fix {
        [edit] => edit.content.clone(),
        _ => "log_softmax(…)".to_owned(),
    };
    Finding {
        rule: &RULE,
        range: call.expr.range(),
        message: format!(
            "`{source}` may be zero: {what}, the logarithm is then infinite and the loss NaN"
        ),
        label: "minus infinity at zero".to_owned(),
        help: match &*fix {
            [_] => format!("keep it above zero: {shown}"),
            _ => "use one function for both: log_softmax(…)".to_owned(),
        },
        fix: Some(Fix {
            edits: fix,
            safety: Safety::Unsafe,
            title: "Keep the logarithm finite".to_owned(),
        }),
    }
}

/// Returns edits that turn `torch.log(torch.softmax(x, dim=1))` into `torch.log_softmax(x, dim=1)`.
fn log_softmax_edits(module: &Module<'_>, call: &Call<'_>, of: &Expr) -> Option<Vec<Edit>> {
    let Expr::Call(inner) = of else { return None };
    let Expr::Attribute(function) = &*inner.func else {
        return None;
    };
    let has_merged = module
        .calls()
        .iter()
        .find(|other| other.expr.range() == inner.range())
        .and_then(|inner| inner.path)
        .is_some_and(|path| {
            path.is_any(&[
                "torch.softmax",
                "torch.nn.functional.softmax",
                "tensorflow.nn.softmax",
            ])
        });
    // Only a natural logarithm with a single argument can be merged.
    let is_plain = call.path.is_some_and(|path| path.last() == "log")
        && call.expr.arguments.len() == 1
        && call.expr.arguments.keywords.is_empty();
    if !has_merged || !is_plain {
        return None;
    }
    Some(vec![
        Edit {
            range: TextRange::new(call.expr.start(), inner.start()),
            content: String::new(),
        },
        Edit {
            range: function.attr.range(),
            content: "log_softmax".to_owned(),
        },
        Edit {
            range: TextRange::new(inner.end(), call.expr.end()),
            content: String::new(),
        },
    ])
}

fn clamp_edits(module: &Module<'_>, call: &Call<'_>, of: &Expr) -> Vec<Edit> {
    let is_torch = call.path.is_none_or(|path| path.first() == "torch");
    let content = match (is_torch, of) {
        (true, _) => format!("{}.clamp(min=1e-8)", parenthesized(module, of)),
        (
            false,
            Expr::BinOp(_)
            | Expr::Name(_)
            | Expr::Attribute(_)
            | Expr::Call(_)
            | Expr::Subscript(_),
        ) => {
            format!("{} + 1e-7", module.source(of))
        }
        (false, _) => format!("({}) + 1e-7", module.source(of)),
    };
    vec![Edit {
        range: of.range(),
        content,
    }]
}
