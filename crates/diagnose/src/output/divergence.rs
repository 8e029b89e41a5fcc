//! Finds a diverged loss in the output: finite, and at the end orders of magnitude above its earlier values.

use std::collections::HashMap;

/// So many values of one kind are needed.
const MIN_VALUES: usize = 6;
/// So many last values must all be far above, so that a spike does not count.
const LAST_VALUES: usize = 3;
/// A value is far above at so many times the first value and the median of the first half.
const FAR_ABOVE: f64 = 100.0;
/// A longer line is not a line of progress.
const MAX_LINE_BYTES: usize = 600;

/// The lines with the first and the last value of a diverged loss.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Divergence {
    pub first: String,
    pub last: String,
}

/// Finds a diverged loss.
pub(crate) fn find<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Divergence> {
    let mut courses: HashMap<String, Vec<(f64, &'a str)>> = HashMap::new();
    for line in lines.filter(|line| line.len() <= MAX_LINE_BYTES) {
        if let Some((kind, value)) = loss(line) {
            courses.entry(kind).or_default().push((value, line));
        }
    }
    // The loss that is printed most often is the training loss.
    let course = courses.into_values().max_by_key(Vec::len)?;
    let values: Vec<f64> = course.iter().map(|(value, _)| *value).collect();
    let shown = |place: Option<&(f64, &str)>| place.map(|(_, line)| line.trim().to_owned());
    has_diverged(&values).then_some(Divergence {
        first: shown(course.first())?,
        last: shown(course.last())?,
    })
}

fn has_diverged(values: &[f64]) -> bool {
    // A log-likelihood may be negative and grows differently.
    if values.len() < MIN_VALUES || values.iter().any(|value| *value < 0.0) {
        return false;
    }
    let mut half: Vec<f64> = values.iter().copied().take(values.len() / 2).collect();
    half.sort_by(f64::total_cmp);
    let middle = half.get(half.len() / 2).copied().unwrap_or_default();
    let first = values.first().copied().unwrap_or_default();
    let before = f64::max(first, middle);
    let mut last = values.iter().rev().take(LAST_VALUES);
    before > 0.0 && last.all(|value| *value >= before * FAR_ABOVE)
}

/// The loss in a line, and the letters before it, which tell different quantities apart.
fn loss(line: &str) -> Option<(String, f64)> {
    // Losses of adversarial networks, and quantities with the word in their name.
    const OTHERS: [&str; 10] = [
        "gan", "disc", "gen", "critic", "adv", "scale", "best", "min", "reg", "kl",
    ];
    let lower = line.to_ascii_lowercase();
    let at = lower.find("loss")?;
    let is_name = |next: char| next.is_alphanumeric() || "_-/".contains(next);
    let (before, after) = (lower.get(..at)?, lower.get(at + "loss".len()..)?);
    let rest = after.trim_start_matches(is_name);
    let begin = before.trim_end_matches(is_name).len();
    let name = lower.get(begin..lower.len() - rest.len())?;
    let parts: Vec<&str> = name.split(|next: char| !next.is_alphanumeric()).collect();
    let is_other = parts.iter().any(|part| matches!(*part, "d" | "g"))
        || OTHERS
            .iter()
            .any(|other| before.contains(other) || name.contains(other));
    if is_other {
        return None;
    }
    let value = rest.trim_start_matches([':', '=', ' ', '\'', '"', '(', '\t', '|']);
    let end = value
        .find(|next: char| !(next.is_ascii_digit() || ".e+-".contains(next)))
        .unwrap_or(value.len());
    let number: f64 = value
        .get(..end)?
        .trim_end_matches(['.', '-', '+', 'e'])
        .parse()
        .ok()?;
    let kind = lower.get(..lower.len() - rest.len())?;
    let kind: String = kind.chars().filter(|next| next.is_alphabetic()).collect();
    number.is_finite().then_some((kind, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(each: impl Fn(i32) -> String) -> bool {
        let text: String = (0..20).map(|step| each(step) + "\n").collect();
        find(text.lines()).is_some()
    }

    #[test]
    fn a_loss_that_rises_by_orders_of_magnitude_and_stays_there_has_diverged() {
        assert!(printed(|step| format!(
            "step {step} loss {:.3e}",
            2.3 * 3f64.powi(step)
        )));
        assert!(printed(|step| format!(
            "{{'loss': {:.4}, 'epoch': 0.{step}}}",
            2.3 * 3f64.powi(step)
        )));
        let late = |step: i32| {
            if step < 12 {
                2.0 / f64::from(step + 1)
            } else {
                4e6
            }
        };
        assert!(printed(|step| format!(
            "Epoch {step}: train_loss={} val_loss=1",
            late(step)
        )));
        let found =
            find((0..9).map(|step| ["loss 1", "loss 5000"][usize::from(step > 4)])).unwrap();
        assert_eq!(
            (found.first.as_str(), found.last.as_str()),
            ("loss 1", "loss 5000")
        );
    }

    #[test]
    fn a_loss_that_rises_for_another_reason_has_not_diverged() {
        let fifty = |step: i32| 0.1 * f64::from(1 + step * 2);
        assert!(!printed(|step| format!("step {step} loss {}", fifty(step))));
        // A spike, a start from far above, a toy whose loss had been next to nothing.
        assert!(!printed(|step| format!(
            "loss {}",
            if step == 15 { 1e9 } else { 2.0 }
        )));
        assert!(!printed(|step| format!(
            "loss {}",
            if step == 19 { 1e9 } else { 2.0 }
        )));
        assert!(!printed(|step| format!(
            "loss {}",
            [1e6, 3.0][usize::from(step > 0)]
        )));
        assert!(!printed(|step| format!(
            "loss {}",
            [2.0, 1e-9, 0.5][step as usize / 7]
        )));
        // Two that play against each other; a likelihood; something else after the training.
        for name in ["Loss_D", "g_loss", "critic_loss", "loss_scale", "gan_loss"] {
            assert!(
                !printed(|step| format!("{name}: {}", 3f64.powi(step))),
                "{name}"
            );
        }
        assert!(!printed(|step| format!("loss -{}", 3f64.powi(step))));
        let other = |step: i32| {
            if step < 16 {
                "train loss 0.2"
            } else {
                "test sum of squares loss 4e9"
            }
        };
        assert!(!printed(|step| other(step).to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            find(text.lines());
        }
    }
}
