//! # numeric-nan
//!
//! The loss or a gradient became NaN or infinite; from then on nothing is learnt.
//!
//! ## How it looks
//!
//! `loss: nan` in the log, and every weight NaN soon after. The run goes on as if nothing had happened.
//!
//! ## How it is told
//!
//! The shim looks at losses and gradients and names the step, or the steps between two looks, at which it was first.
//! Without the shim, a line of the output that says so.
//!
//! ## What to do
//!
//! Look for a division, a logarithm or a root of what may be 0; lower the learning rate, warm it up, clip:
//!
//! ```python
//! torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
//! ```
//!
//! With half precision use a `GradScaler`, or bfloat16.

use super::{Finding, Found};
use crate::case::Case;
use crate::ending::user_file;
use crate::shim::Numbers;
use crate::verdict::Location;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let found = first(case).filter(|first| matches!(first.first.as_str(), "nan" | "inf"));
    if let Some(first) = found {
        let became = match first.first.as_str() {
            "nan" => "became NaN",
            _ => "became infinite",
        };
        return Finding::Found(told(case, 0.95, became, first));
    }
    let said = case.line_with(&["probability tensor contains either `inf`, `nan`", "Input contains NaN"]);
    if let Some(line) = said.filter(|_| case.went_wrong()) {
        return Finding::Found(remedied(Found::new(case, 0.8, line, "").at(case.location())));
    }
    let printed = printed(case).map(|line| {
        let summary = format!("it printed a loss that is no number: {line}");
        remedied(Found::new(case, 0.8, summary, ""))
    });
    printed.into()
}

/// What was wrong first.
pub(super) fn first<'a>(case: &Case<'a>) -> Option<&'a Numbers> {
    let numbers = &case.facts.told.numbers;
    numbers.iter().min_by_key(|numbers| numbers.step)
}

/// "the loss became NaN at step 40", and where.
pub(super) fn told(case: &Case<'_>, confidence: f64, became: &str, first: &Numbers) -> Found {
    let of = match first.of.as_str() {
        "gradient" => "gradient",
        _ => "loss",
    };
    let step = match first.since {
        Some(well) if well + 1 < first.step => {
            format!("between step {} and step {}", well + 1, first.step)
        }
        _ => format!("at step {}", first.step),
    };
    let place = first.file.as_ref().zip(first.line);
    let location = place.map(|(file, line)| Location {
        file: user_file(file.as_bytes(), case.facts),
        line,
        name: None,
    });
    let found = Found::new(case, confidence, format!("the {of} {became} {step}"), "");
    remedied(found.at(location))
}

fn remedied(found: Found) -> Found {
    found.remedy(
        "look for a division, a logarithm or a root of what may be 0; a smaller learning rate, or clipped gradients",
        Some("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)".into()),
    )
}

/// A line of the output in which a loss is NaN.
fn printed(case: &Case<'_>) -> Option<String> {
    crate::safe::lines(&case.facts.last_output)
        .rev()
        .find(|line| {
            let line = line.to_lowercase();
            let after = line.split_once("loss").map(|(_, after)| after);
            after.is_some_and(|after| {
                let value = after.trim_start_matches([':', '=', ' ', '\'', '"', '(', '_']);
                ["nan", "-nan", "inf", "-inf", "tensor(nan"]
                    .iter()
                    .any(|word| is_word(value, word))
            })
        })
        .map(|line| line.trim().to_owned())
}

fn is_word(text: &str, word: &str) -> bool {
    let rest = text.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}
