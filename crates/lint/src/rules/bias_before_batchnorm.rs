//! # bias-before-batchnorm (AF308)
//!
//! A layer has a bias that the batch normalization after it removes.
//!
//! ## Why it matters
//!
//! It wastes memory. Batch normalization subtracts the mean of each channel, and with it any bias.
//! The bias has no effect, yet it needs memory, a gradient and optimizer state, and is added to
//! every activation.
//!
//! ## Wrong
//!
//! ```python
//! nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.ReLU())
//! ```
//!
//! ## Right
//!
//! ```python
//! nn.Sequential(nn.Conv2d(3, 64, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
//! ```
//!
//! ## When it is fine
//!
//! When pretrained weights contain the bias. Layers that are also used elsewhere, or have an
//! activation in between, are not reported.
//!
//! ## Fix
//!
//! Unsafe, because saved weights with the bias no longer fit: `bias=False`, in Keras
//! `use_bias=False`.

use crate::finding::{Edit, Finding, Fix, Safety};
use crate::model::{Call, Module, Path};
use crate::rule::{Rule, Severity, Stage};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{Ranged, TextRange, TextSize};

pub static RULE: Rule = Rule {
    code: "AF308",
    name: "bias-before-batchnorm",
    severity: Severity::Info,
    stage: Stage::Stable,
    source: include_str!("bias_before_batchnorm.rs"),
    check,
};

fn check(module: &Module<'_>, findings: &mut Vec<Finding>) {
    if !module.text.contains("BatchNorm") && !module.text.contains("BatchNormalization") {
        return;
    }
    find_adjacent_layers(module, findings);
    find_chained_calls(module, findings);
    findings.dedup_by(|one, two| {
        one.rule.code == RULE.code && two.rule.code == RULE.code && one.range == two.range
    });
}

/// Whether a call creates a batch normalization layer.
fn is_norm(path: &Path<'_>) -> bool {
    match path.segments() {
        ["torch", "nn", name] => {
            matches!(
                *name,
                "BatchNorm1d" | "BatchNorm2d" | "BatchNorm3d" | "SyncBatchNorm"
            )
        }
        ["keras", "layers", "BatchNormalization"] => true,
        _ => false,
    }
}

/// Whether a call creates a layer with a bias and without activation.
fn has_bias(path: &Path<'_>, call: &ExprCall) -> bool {
    let arguments = &call.arguments;
    let is_open = arguments.args.iter().any(Expr::is_starred_expr)
        || arguments
            .keywords
            .iter()
            .any(|keyword| keyword.arg.is_none());
    let has = |name: &str| arguments.find_keyword(name).is_some();
    let by_place = arguments.args.len();
    let fits = match path.segments() {
        ["torch", "nn", "Linear"] => by_place < 3 && !has("bias"),
        ["torch", "nn", "Conv1d" | "Conv2d" | "Conv3d"] => by_place < 8 && !has("bias"),
        [
            "torch",
            "nn",
            "ConvTranspose1d" | "ConvTranspose2d" | "ConvTranspose3d",
        ] => by_place < 7 && !has("bias"),
        ["keras", "layers", "Dense"] => by_place < 2 && !has("activation") && !has("use_bias"),
        [
            "keras",
            "layers",
            "Conv1D" | "Conv2D" | "Conv3D" | "Conv2DTranspose" | "SeparableConv2D",
        ] => by_place < 5 && !has("activation") && !has("use_bias"),
        _ => false,
    };
    fits && !is_open
}

/// Finds layers next to each other in a list or a `Sequential`, or added to the same list one after
/// another.
fn find_adjacent_layers(module: &Module<'_>, findings: &mut Vec<Finding>) {
    let mut before: Option<&Call<'_>> = None;
    for call in module.calls() {
        let Some(path) = call.path else { continue };
        if is_norm(&path)
            && let Some(layer) = before.take()
            && follows(module, layer.expr, call.expr)
            && !is_argument_of_other(module, layer.expr)
        {
            push_finding(module, layer.expr, call.expr, findings);
        }
        before = Some(call).filter(|_| has_bias(&path, call.expr));
    }
}

/// Whether one layer directly follows another, after a comma or through `add` or `append`.
fn follows(module: &Module<'_>, layer: &ExprCall, norm: &ExprCall) -> bool {
    let text = module.text;
    let (Some(between), Some(rest)) = (
        text.get(usize::from(layer.end())..usize::from(norm.start())),
        text.get(usize::from(norm.end())..),
    ) else {
        return false;
    };
    let is_conditional = rest.trim_start().starts_with("if ");
    let between = strip_whitespace(between);
    if is_conditional {
        return false;
    }
    if between == "," {
        return true;
    }
    let line = text.get(..usize::from(layer.start())).unwrap_or("");
    let line = line.rsplit('\n').next().unwrap_or("").trim();
    let adds = |line: &str| line.ends_with(".add(") || line.ends_with(".append(");
    adds(line) && between.strip_prefix(')') == Some(line)
}

/// Returns the text without whitespace and comments.
fn strip_whitespace(text: &str) -> String {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or(""))
        .flat_map(str::chars)
        .filter(|c| !c.is_whitespace())
        .collect()
}

/// Whether a layer is an argument of something other than a `Sequential`.
fn is_argument_of_other(module: &Module<'_>, layer: &ExprCall) -> bool {
    module.calls().iter().any(|call| {
        let is_given = call
            .expr
            .arguments
            .args
            .iter()
            .any(|argument| argument.range() == layer.range());
        let is_sequence = call.path.is_some_and(|path| path.last() == "Sequential")
            || matches!(call.method(), Some("add" | "append" | "Sequential"));
        is_given && !is_sequence
    })
}

/// Finds layers called one after another: `norm(conv(x))`, or `x = conv(x)` and then `x = norm(x)`.
fn find_chained_calls<'a>(module: &Module<'a>, findings: &mut Vec<Finding>) {
    let layers = Layers::collect(module);
    let calls: Vec<&Call<'a>> = module
        .calls()
        .iter()
        .filter(|call| layers.made(module, call).is_some())
        .collect();
    let mut previous: Option<&Call<'a>> = None;
    for call in calls {
        let (Some((path, norm)), [argument]) =
            (layers.made(module, call), &*call.expr.arguments.args)
        else {
            previous = Some(call);
            continue;
        };
        let before = previous.replace(call);
        if !is_norm(&path) {
            continue;
        }
        let Some(before) = before else { continue };
        let is_nested = argument.range() == before.expr.range();
        if (is_nested || is_passed_on(module, before, call, argument))
            && let Some((path, layer)) = layers.made(module, before)
            && has_bias(&path, layer)
            && layers.is_used_once(module, before)
        {
            push_finding(module, layer, norm, findings);
        }
    }
}

/// Whether this is `x = conv(x)` followed by `x = norm(x)`.
fn is_passed_on(module: &Module<'_>, before: &Call<'_>, call: &Call<'_>, argument: &Expr) -> bool {
    let Expr::Name(name) = argument else {
        return false;
    };
    let (end, start) = (
        usize::from(before.expr.end()),
        usize::from(call.expr.start()),
    );
    let line = module
        .text
        .get(..usize::from(before.expr.start()))
        .unwrap_or("");
    let line = line.rsplit('\n').next().unwrap_or("").trim();
    let is_bound = line
        .strip_suffix('=')
        .is_some_and(|target| target.trim() == name.id.as_str());
    let Some(between) = module.text.get(end..start) else {
        return false;
    };
    let between = strip_whitespace(between);
    is_bound && between.strip_suffix('=').is_some_and(is_plain_name)
}

fn is_plain_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The layers that classes store in attributes.
struct Layers<'a> {
    /// The class, the attribute, and the path and the call that created the layer.
    kept: Vec<(u32, &'a str, Path<'a>, &'a ExprCall)>,
}

impl<'a> Layers<'a> {
    fn collect(module: &Module<'a>) -> Layers<'a> {
        let mut kept: Vec<(u32, &'a str, Path<'a>, &'a ExprCall)> = Vec::new();
        let mut twice: Vec<(u32, &'a str)> = Vec::new();
        for store in module.stores() {
            let Some(class) = module.frame(store.context.frame).class else {
                continue;
            };
            let Some(key) = module
                .dotted_name(store.target)
                .filter(|key| key.starts_with("self."))
            else {
                continue;
            };
            if kept
                .iter()
                .any(|(of, known, ..)| *of == class && *known == key)
            {
                twice.push((class, key));
            }
            if let Some(Expr::Call(call)) = store.source
                && let Some(path) = module.import_path(&call.func)
                && (is_norm(&path) || has_bias(&path, call))
            {
                kept.push((class, key, path, call));
            }
        }
        kept.retain(|(class, key, ..)| !twice.contains(&(*class, *key)));
        Layers { kept }
    }

    /// Returns the call that created the layer which is called here.
    fn made(&self, module: &Module<'a>, call: &Call<'a>) -> Option<(Path<'a>, &'a ExprCall)> {
        if call.path.is_some() {
            return None;
        }
        // Keras: `Conv2D(…)(x)`.
        if let Expr::Call(layer) = &*call.expr.func {
            let path = module.import_path(&layer.func)?;
            return (is_norm(&path) || has_bias(&path, layer)).then_some((path, layer));
        }
        let class = module.frame(call.context.frame).class?;
        let key = module.dotted_name(&call.expr.func)?;
        let found = self
            .kept
            .iter()
            .find(|(of, known, ..)| *of == class && *known == key)?;
        Some((found.2, found.3))
    }

    /// Whether the class mentions the layer only where it is created and here.
    fn is_used_once(&self, module: &Module<'a>, call: &Call<'a>) -> bool {
        if call.expr.func.is_call_expr() {
            return true;
        }
        let (Some(class), Some(key)) = (
            module.frame(call.context.frame).class,
            module.dotted_name(&call.expr.func),
        ) else {
            return false;
        };
        let Some(class) = module.classes().get(class as usize) else {
            return false;
        };
        let source = module.source(class.def.range());
        let uses = source.match_indices(key).filter(|(at, _)| {
            let rest = source.get(at + key.len()..).unwrap_or("");
            !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        });
        uses.count() == 2
    }
}

fn push_finding(
    module: &Module<'_>,
    layer: &ExprCall,
    norm: &ExprCall,
    findings: &mut Vec<Finding>,
) {
    let is_keras = module
        .import_path(&layer.func)
        .is_none_or(|path| path.first() != "torch");
    let argument = if is_keras {
        "use_bias=False"
    } else {
        "bias=False"
    };
    let name = match &*layer.func {
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        other => module.source(other),
    };
    findings.push(Finding {
        rule: &RULE,
        range: layer.range(),
        message: format!(
            "the bias of this `{name}` has no effect: the batch normalization at {} removes it",
            module.line_label(norm.range())
        ),
        label: "has a bias".to_owned(),
        help: format!("omit the bias: {argument}"),
        fix: append_argument_fix(module.text, layer, argument),
    });
}

/// Returns a fix that adds an argument at the end of a call.
fn append_argument_fix(text: &str, call: &ExprCall, argument: &str) -> Option<Fix> {
    let close = usize::from(call.end()).checked_sub(1)?;
    let arguments = &call.arguments;
    let last = arguments
        .args
        .iter()
        .map(Ranged::end)
        .chain(arguments.keywords.iter().map(Ranged::end))
        .max()?;
    let between = text.get(usize::from(last)..close)?;
    // After a trailing comma, the text goes before the closing parenthesis.
    let (at, content) = match between.find(',') {
        Some(_) if between.contains('#') => return None,
        Some(comma) => (usize::from(last) + comma + 1, format!(" {argument}")),
        None => (usize::from(last), format!(", {argument}")),
    };
    Some(Fix {
        edits: vec![Edit {
            range: TextRange::empty(TextSize::try_from(at).ok()?),
            content,
        }],
        safety: Safety::Unsafe,
        title: "Remove the bias".to_owned(),
    })
}
