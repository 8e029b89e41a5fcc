//! A loss that ran away, in what a run printed: finite, and at the end by orders of magnitude above what it had been.

use std::collections::HashMap;

/// So many values of one kind show a course.
const ENOUGH: usize = 6;
/// The last of them, all of which are far above: a spike is none.
const LAST: usize = 3;
/// As many times what it was at first, and in the first half.
const FAR: f64 = 100.0;
/// A page of text is no line of progress.
const LONGEST: usize = 600;

/// The first and the last of the values that ran away, as they were printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Runaway {
    pub first: String,
    pub last: String,
}

pub(crate) fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Runaway> {
    let mut courses: HashMap<String, Vec<(f64, &'a str)>> = HashMap::new();
    for line in lines.filter(|line| line.len() <= LONGEST) {
        if let Some((kind, value)) = loss(line) {
            courses.entry(kind).or_default().push((value, line));
        }
    }
    // Of those that are printed most often, which is the training's own.
    let course = courses.into_values().max_by_key(Vec::len)?;
    let values: Vec<f64> = course.iter().map(|(value, _)| *value).collect();
    let shown = |place: Option<&(f64, &str)>| place.map(|(_, line)| line.trim().to_owned());
    ran_away(&values).then_some(Runaway {
        first: shown(course.first())?,
        last: shown(course.last())?,
    })
}

fn ran_away(values: &[f64]) -> bool {
    // A likelihood may be below 0, and grows otherwise.
    if values.len() < ENOUGH || values.iter().any(|value| *value < 0.0) {
        return false;
    }
    let mut half: Vec<f64> = values.iter().copied().take(values.len() / 2).collect();
    half.sort_by(f64::total_cmp);
    let middle = half.get(half.len() / 2).copied().unwrap_or_default();
    let first = values.first().copied().unwrap_or_default();
    let before = f64::max(first, middle);
    let mut last = values.iter().rev().take(LAST);
    before > 0.0 && last.all(|value| *value >= before * FAR)
}

/// What kind of line it is, by the letters before the value, so that two quantities are not taken for one; and the
/// value of the loss.
fn loss(line: &str) -> Option<(String, f64)> {
    // Two that play against each other, and what only has the word in its name.
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
        of(text.lines()).is_some()
    }

    #[test]
    fn a_loss_that_rises_by_orders_of_magnitude_and_stays_there_ran_away() {
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
        let found = of((0..9).map(|step| ["loss 1", "loss 5000"][usize::from(step > 4)])).unwrap();
        assert_eq!(
            (found.first.as_str(), found.last.as_str()),
            ("loss 1", "loss 5000")
        );
    }

    #[test]
    fn what_has_another_reason_to_rise_did_not() {
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
            of(text.lines());
        }
    }
}
