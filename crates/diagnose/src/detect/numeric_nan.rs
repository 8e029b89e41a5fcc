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
//! Without the shim, an error that says so, or the loss or the gradients that were printed last: one that was well
//! again later is not told, since a scaler of half precision skips such steps. A best value that is still infinite is
//! none.
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

use antifreeze_text::layout::cut;
use super::{Finding, Found};
use crate::case::Case;
use crate::ending::user_file;
use crate::losses;
use crate::shim::Numbers;
use crate::verdict::Location;

const WIDEST: usize = 160;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let found = first(case).filter(|first| matches!(first.first.as_str(), "nan" | "inf"));
    if let Some(first) = found {
        let became = match first.first.as_str() {
            "nan" => "became NaN",
            _ => "became infinite",
        };
        return Finding::Found(told(case, 0.95, became, first));
    }
    if is_raised(case) {
        let found = Found::new(case, 0.9, cut(case.error(), WIDEST), "");
        return Finding::Found(remedied(found.at(case.location())));
    }
    let said = case.said(&[
        "probability tensor contains either `inf`, `nan`",
        "Input contains NaN",
        "Invalid loss, terminating training",
    ]);
    if let Some((line, most)) = said.filter(|_| case.went_wrong()) {
        // Those may have been in the data from the beginning.
        let confidence = if line.contains("Input contains NaN") { 0.45 } else { 0.8 };
        let found = Found::new(case, f64::min(confidence, most), line, "");
        return Finding::Found(remedied(found.at(case.location())));
    }
    let printed = losses::last_bad(case.printed.lines()).map(|bad| {
        let what = if bad.is_gradient { "gradient" } else { "loss" };
        let summary = format!("it printed a {what} that is no number: {}", cut(&bad.line, WIDEST));
        let confidence = if bad.is_gradient { 0.7 } else { 0.8 };
        let found = remedied(Found::new(case, confidence, summary, ""));
        match bad.before {
            Some(before) => found.and(case, format!("before it: {}", cut(&before, WIDEST)), ""),
            None => found,
        }
    });
    printed.into()
}

/// The error that ended it says that the numbers were bad.
pub(super) fn is_raised(case: &Case<'_>) -> bool {
    let mut error = case.error().to_lowercase();
    // A distribution shows the values that it was given below.
    if error.contains("of distribution") && error.contains("invalid values") {
        error = case.printed.message.to_lowercase() + " loss";
    }
    if error.contains("loss scale") && error.contains("minimum") {
        return true;
    }
    let words = error.split(|next: char| !next.is_alphanumeric() && next != '_');
    let mut words = words.filter(|word| matches!(*word, "nan" | "nans" | "inf" | "infinite"));
    let is_bad = words.next().is_some() || error.contains("non-finite");
    // Numbers of the data may be bad as well, and that is another matter.
    let is_of_training = ["loss", "grad", "backward", "(nan) encountered"].iter().any(|word| error.contains(word));
    is_bad && is_of_training
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

pub(super) fn remedied(found: Found) -> Found {
    found.remedy(
        "look for a division, a logarithm or a root of what may be 0; a smaller learning rate, or clipped gradients",
        Some("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)".into()),
    )
}
