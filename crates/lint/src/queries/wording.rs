//! Phrases, number formats and edits that several rules share.

use crate::finding::{Edit, Fix, Safety};
use crate::model::{LoopId, Module};
use ruff_python_ast::Expr;
use ruff_text_size::{Ranged, TextRange};

/// Returns "every step of the loop at line 8", or "in every call" outside a loop.
pub fn every_step_label(module: &Module<'_>, id: Option<LoopId>) -> String {
    match id {
        Some(id) => format!(
            "every step of the loop at {}",
            module.line_label(module.loop_header(id))
        ),
        None => "in every call".to_owned(),
    }
}

/// Returns a fix that appends text to an expression, with parentheses where needed.
pub fn append_fix(expression: &Expr, suffix: &str, title: &str) -> Fix {
    let needs_parentheses = !matches!(
        expression,
        Expr::Name(_) | Expr::Attribute(_) | Expr::Call(_) | Expr::Subscript(_)
    );
    let mut edits = vec![Edit {
        range: TextRange::empty(expression.end()),
        content: if needs_parentheses {
            format!("){suffix}")
        } else {
            suffix.to_owned()
        },
    }];
    if needs_parentheses {
        edits.insert(
            0,
            Edit {
                range: TextRange::empty(expression.start()),
                content: "(".to_owned(),
            },
        );
    }
    Fix {
        edits,
        safety: Safety::Safe,
        title: title.to_owned(),
    }
}

/// Returns the source of a statement with text appended to one of its expressions.
pub fn source_with_suffix(
    module: &Module<'_>,
    statement: TextRange,
    part: &Expr,
    suffix: &str,
) -> String {
    let mut text = module.source(statement).to_owned();
    for edit in append_fix(part, suffix, "").edits.iter().rev() {
        let at = usize::from(edit.range.start()).checked_sub(usize::from(statement.start()));
        if let Some(at) = at.filter(|at| text.is_char_boundary(*at)) {
            text.insert_str(at, &edit.content);
        }
    }
    text
}

/// Formats a size in bytes: 400 MB, 1.2 GB.
pub fn format_bytes(bytes: f64) -> String {
    const UNITS: [(f64, &str); 5] = [
        (1e12, "TB"),
        (1e9, "GB"),
        (1e6, "MB"),
        (1e3, "kB"),
        (1.0, "bytes"),
    ];
    let (unit, name) = UNITS
        .into_iter()
        .find(|(unit, _)| bytes >= *unit)
        .unwrap_or((1.0, "bytes"));
    let number = bytes / unit;
    if number < 10.0 && unit > 1.0 && (number * 10.0).round() % 10.0 != 0.0 {
        format!("{number:.1} {name}")
    } else {
        format!("{number:.0} {name}")
    }
}

/// Formats the memory of a machine or GPU in GB (10⁹ bytes), the unit of `--ram 16GB`: 16 GB, 16.7
/// GB.
pub fn format_memory(bytes: u64) -> String {
    let number = bytes as f64 / 1e9;
    if (number - number.round()).abs() < 0.05 {
        format!("{number:.0} GB")
    } else {
        format!("{number:.1} GB")
    }
}

/// Formats a count with thousands separators: 2,000,000.
pub fn format_count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
