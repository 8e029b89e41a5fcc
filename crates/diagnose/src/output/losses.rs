//! Finds NaN and infinite losses and gradients in the output, in the forms that trainers print: `loss: 0.2`,
//! `train_loss=nan`, `{'loss': 2.3, 'grad_norm': nan}`, and columns below a header.

/// So many bad gradients in a row count, since gradient scaling skips single ones.
const MIN_BAD_GRADIENTS: usize = 2;
/// A longer line is not a row of a table.
const MAX_ROW_BYTES: usize = 4096;

/// The first of the NaN or infinite values that lasted until the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadValue {
    pub line: String,
    pub is_gradient: bool,
    /// The last line with a good value.
    pub before: Option<String>,
}

/// Finds the first bad value of those that lasted until the end; None where the last values are finite.
pub(crate) fn last_bad_value<'a>(lines: impl Iterator<Item = &'a str>) -> Option<BadValue> {
    let (mut losses, mut gradients) = (ValueHistory::default(), ValueHistory::default());
    let mut columns: Option<Vec<bool>> = None;
    for line in lines {
        let lower = line.to_lowercase();
        if is_best(&lower) {
            continue;
        }
        let cells = cells(&lower);
        if let Some(is_well) = value(&lower, "loss").or_else(|| row(&cells, columns.as_deref())) {
            losses.see(line, is_well);
        }
        if let Some(is_well) = value(&lower, "grad_norm").or_else(|| value(&lower, "grad norm")) {
            gradients.see(line, is_well);
        }
        columns = heading(&cells).or(columns);
    }
    let loss = losses.bad(1, false);
    loss.or_else(|| gradients.bad(MIN_BAD_GRADIENTS, true))
}

#[derive(Default)]
struct ValueHistory<'a> {
    well: Option<&'a str>,
    bad: Option<&'a str>,
    times: usize,
}

impl<'a> ValueHistory<'a> {
    fn see(&mut self, line: &'a str, is_well: bool) {
        if is_well {
            (self.well, self.bad, self.times) = (Some(line), None, 0);
        } else {
            self.bad = self.bad.or(Some(line));
            self.times += 1;
        }
    }

    fn bad(&self, at_least: usize, is_gradient: bool) -> Option<BadValue> {
        let line = self.bad.filter(|_| self.times >= at_least)?;
        Some(BadValue {
            line: line.trim().to_owned(),
            is_gradient,
            before: self.well.map(|line| line.trim().to_owned()),
        })
    }
}

/// Whether a line is about a best value, which is infinite at first.
fn is_best(line: &str) -> bool {
    ["best", "improved from", "patience", "minimum"]
        .iter()
        .any(|word| line.contains(word))
}

/// Whether all values of this name are finite; None where the line has none.
fn value(line: &str, name: &str) -> Option<bool> {
    // A word with the name twice is one name.
    let mut read = 0;
    let values = line.match_indices(name).filter_map(|(at, _)| {
        if at < read {
            return None;
        }
        let after = line.get(at + name.len()..)?;
        let rest = after.trim_start_matches(|next: char| next.is_alphanumeric() || next == '_');
        let more = after.get(..after.len() - rest.len())?;
        read = line.len() - rest.len();
        // A loss scale is not a loss.
        let is_other = more.contains("scale") || rest.trim_start().starts_with("scale");
        let value = rest.trim_start_matches([':', '=', ' ', '\'', '"', '(', '\t', '|']);
        let value = value.strip_prefix("is ").unwrap_or(value);
        let value = value.strip_prefix("tensor(").unwrap_or(value);
        (!is_other).then(|| number(value)).flatten()
    });
    values.reduce(|all, is_well| all && is_well)
}

/// Whether the text begins with a finite number (true) or NaN or infinity (false); None otherwise.
fn number(text: &str) -> Option<bool> {
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    if bare.starts_with(|next: char| next.is_ascii_digit()) {
        return Some(true);
    }
    let end = bare
        .find(|next: char| !next.is_alphanumeric() && next != '_')
        .unwrap_or(bare.len());
    let word = bare.get(..end)?;
    matches!(word, "nan" | "inf" | "infinity").then_some(false)
}

fn cells(line: &str) -> Vec<&str> {
    if line.len() > MAX_ROW_BYTES {
        return Vec::new();
    }
    let cells = line
        .split(['|', ',', '\t'])
        .flat_map(|part| part.split("  "));
    cells
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

/// Which columns are losses, if the line is a header.
fn heading(cells: &[&str]) -> Option<Vec<bool>> {
    let is_name = |cell: &&str| {
        cell.len() <= 40
            && !cell.contains(|next: char| next.is_ascii_digit() || ":=".contains(next))
    };
    let losses: Vec<bool> = cells.iter().map(|cell| cell.contains("loss")).collect();
    (cells.len() > 1 && cells.iter().all(is_name) && losses.contains(&true)).then_some(losses)
}

/// Whether the losses in a row below a header are finite.
fn row(cells: &[&str], columns: Option<&[bool]>) -> Option<bool> {
    // A progress bar may follow the last column.
    let has_bar = || cells.iter().any(|cell| cell.contains('%'));
    let fits = |columns: &&[bool]| {
        columns.len() == cells.len() || columns.len() < cells.len() && has_bar()
    };
    let columns = columns.filter(fits)?;
    let cells = cells.get(..columns.len())?;
    let numbers: Option<Vec<bool>> = cells.iter().map(|cell| number(cell)).collect();
    let mut losses = numbers?
        .into_iter()
        .zip(columns)
        .filter(|(_, is_loss)| **is_loss);
    Some(losses.all(|(is_well, _)| is_well))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bad(text: &str) -> Option<String> {
        last_bad_value(text.lines()).map(|bad| bad.line)
    }

    #[test]
    fn the_first_bad_value_that_lasts_is_found() {
        let text = "step 1 loss 2.3\nstep 2 loss nan\nstep 3 loss 2.1\nstep 4 loss: nan\nstep 5 loss=inf\ndone";
        let found = last_bad_value(text.lines()).unwrap();
        assert_eq!(found.line, "step 4 loss: nan");
        assert_eq!(found.before.as_deref(), Some("step 3 loss 2.1"));
        assert_eq!(bad("step 1 loss nan\nstep 2 loss 0.3\n"), None);
    }

    #[test]
    fn the_forms_of_trainers_are_read() {
        for text in [
            "{'loss': nan, 'epoch': 0.2}",
            "50/100 [=>..] - loss: nan - accuracy: 0.1 - val_loss: nan",
            "Epoch 0: 20%| 20/100 [00:02, v_num=3, train_loss=nan.0]",
            "loss tensor(nan, grad_fn=<x>)",
            "train/loss NaN",
            "loss_cls: 0.2 loss_box: nan",
            "epoch  train_loss  valid_loss  time\n0      nan         nan         00:03",
            "| epoch | loss |\n|---|---|\n| 1 | nan |",
            "epoch,loss\n0,nan",
            "{'loss': 0.0, 'grad_norm': nan}\n{'loss': 0.0, 'grad_norm': nan}",
            "loss 0.5 | grad norm nan\nloss 0.5 | grad norm: nan",
            "  Epoch  GPU_mem  box_loss  Size\n  1/9  2.3G  nan  640: 100%|███| 8/8 [00:03, 2.5it/s]",
        ] {
            assert!(bad(text).is_some(), "{text}");
        }
        for text in [
            "best val_loss: inf",
            "val_loss improved from inf to 0.62",
            "loss: nanometers",
            "checking for nan loss: enabled",
            "loss scale: inf",
            "loss 0.2\nloss_scale=inf",
            "{'loss': 1.0, 'grad_norm': inf}\n{'loss': 1.0, 'grad_norm': 2.0}",
            "a  b\nnan  nan",
            "  Epoch  box_loss\n  1/9  0.5  640: 100%|███| 8/8 [00:03, 2.5it/s]",
        ] {
            assert_eq!(bad(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            last_bad_value(text.lines());
        }
    }
}
