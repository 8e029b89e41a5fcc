//! # numeric-nan
//!
//! The loss or a gradient became NaN or infinite; from then on the training learns nothing.
//!
//! ## Symptoms
//!
//! `loss: nan` in the log, and every weight NaN soon after. The run continues as if nothing had happened.
//!
//! ## How it is detected
//!
//! The shim checks losses and gradients and names the first bad step, or the steps between two checks. Without the
//! shim, an error that says so, or the last losses or gradients in the output. A value that was good again later does
//! not count, since gradient scaling skips such steps; nor does a best value that is still infinite.
//!
//! ## What to do
//!
//! Look for a division, logarithm or square root of a value that may be 0; lower the learning rate, use a warm-up, clip
//! gradients:
//!
//! ```python
//! torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
//! ```
//!
//! With half precision use a `GradScaler`, or bfloat16.

use super::{CauseKind, Finding, Found, Role};
use crate::output::losses;
use crate::run::evidence::RunEvidence;
use crate::shim::Numbers;
use crate::verdict::place::user_file;
use crate::verdict::{Code, Location};
use antifreeze_text::layout::cut;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::NumericNan,
    word: "numeric-nan",
    title: "NaN or infinite loss",
    role: Role::BearableUnless(is_raised),
    lint_rules: &[],
    source: include_str!("numeric_nan.rs"),
    detect,
};

const MAX_COLUMNS: usize = 160;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let found =
        first_bad_value(evidence).filter(|first| matches!(first.first.as_str(), "nan" | "inf"));
    if let Some(first) = found {
        let became = match first.first.as_str() {
            "nan" => "became NaN",
            _ => "became infinite",
        };
        return Finding::Found(from_bad_value(evidence, 0.95, became, first));
    }
    if is_raised(evidence) {
        let found = Found::new(evidence, 0.9, cut(evidence.error(), MAX_COLUMNS), "");
        return Finding::Found(add_remedies(found.at_location(evidence.error_location())));
    }
    let said = evidence.find_line_with_confidence(&[
        "probability tensor contains either `inf`, `nan`",
        "Input contains NaN",
        "Invalid loss, terminating training",
    ]);
    if let Some((line, most)) = said.filter(|_| evidence.went_wrong()) {
        // NaN in the input may have been in the data from the beginning.
        let confidence = if line.contains("Input contains NaN") {
            0.45
        } else {
            0.8
        };
        let found = Found::new(evidence, f64::min(confidence, most), line, "");
        return Finding::Found(add_remedies(found.at_location(evidence.error_location())));
    }
    let printed = losses::last_bad_value(evidence.printed.lines()).map(|bad| {
        let what = if bad.is_gradient { "gradient" } else { "loss" };
        let summary = format!(
            "it printed a NaN or infinite {what}: {}",
            cut(&bad.line, MAX_COLUMNS)
        );
        let confidence = if bad.is_gradient { 0.7 } else { 0.8 };
        let found = add_remedies(Found::new(evidence, confidence, summary, ""));
        match bad.before {
            Some(before) => found.with_evidence(
                evidence,
                format!("before it: {}", cut(&before, MAX_COLUMNS)),
                "",
            ),
            None => found,
        }
    });
    printed.into()
}

/// Whether the error that ended it is about NaN or infinite values.
pub(super) fn is_raised(evidence: &RunEvidence<'_>) -> bool {
    let mut error = evidence.error().to_lowercase();
    // The error of a distribution prints its values below.
    if error.contains("of distribution") && error.contains("invalid values") {
        error = evidence.printed.message.to_lowercase() + " loss";
    }
    if error.contains("loss scale") && error.contains("minimum") {
        return true;
    }
    let words = error.split(|next: char| !next.is_alphanumeric() && next != '_');
    let mut words = words.filter(|word| matches!(*word, "nan" | "nans" | "inf" | "infinite"));
    let is_bad = words.next().is_some() || error.contains("non-finite");
    // NaN in the data is another matter.
    let is_of_training = ["loss", "grad", "backward", "(nan) encountered"]
        .iter()
        .any(|word| error.contains(word));
    is_bad && is_of_training
}

/// The first bad value that the shim reported.
pub(super) fn first_bad_value<'a>(evidence: &RunEvidence<'a>) -> Option<&'a Numbers> {
    let numbers = &evidence.facts.shim.numbers;
    numbers.iter().min_by_key(|numbers| numbers.step)
}

/// Describes it: "the loss became NaN at step 40", with its line.
pub(super) fn from_bad_value(
    evidence: &RunEvidence<'_>,
    confidence: f64,
    became: &str,
    first: &Numbers,
) -> Found {
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
        file: user_file(file.as_bytes(), evidence.facts),
        line,
        name: None,
    });
    let found = Found::new(
        evidence,
        confidence,
        format!("the {of} {became} {step}"),
        "",
    );
    add_remedies(found.at_location(location))
}

pub(super) fn add_remedies(found: Found) -> Found {
    found.with_remedy(
        "look for a division, logarithm or root of a value that may be 0; lower the learning rate, or clip gradients",
        Some("torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)".into()),
    )
}
