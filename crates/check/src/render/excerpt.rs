//! Renders the source lines of a finding and marks its range.

use crate::position::PositionMap;
use antifreeze_lint::finding::Finding;
use antifreeze_text::{TermStyle, sanitize};
use ruff_text_size::TextSize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The number of rows up to which a range is shown in full; of longer ranges only the first and
/// last rows are shown.
const MAX_WHOLE_ROWS: usize = 6;
/// The smallest width for source lines.
const MIN_WIDTH: usize = 40;

pub fn excerpt(
    positions: &PositionMap,
    finding: &Finding,
    gutter: usize,
    colour: &str,
    style: &TermStyle,
) -> String {
    let (start, end) = span(positions, finding);
    let (first, last) = (positions.row(start), positions.row(end));
    let room = style.width.max(MIN_WIDTH).saturating_sub(gutter + 5);
    let bar = style.paint("2", "|");
    let mut out = format!("{:gutter$} {bar}\n", "");
    let mut line = |number: Option<usize>, text: &str| {
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        let number = style.paint("2", &format!("{number:>gutter$}"));
        out.push_str(format!("{number} {bar} {text}").trim_end());
        out.push('\n');
    };
    let number = |row: usize| Some(positions.number_of_row(row));
    let label = match finding.label.is_empty() {
        true => String::new(),
        false => format!(" {}", sanitize::escape(finding.label.as_bytes())),
    };
    let before = first
        .checked_sub(1)
        .filter(|_| !positions.is_first(first))
        .filter(|row| !positions.line(*row).trim().is_empty());
    let column = |row: usize, offset: TextSize| {
        let start = positions.start_of_row(row);
        width_until(positions.line(row), (offset - start).to_usize())
    };
    if first == last {
        let (from, to) = (column(first, start), column(first, end));
        let to = to.max(from + 1);
        let window = Window::around(positions.line(first), from, to, room);
        if let Some(row) = before {
            line(number(row), &window.through(positions.line(row)));
        }
        line(number(first), &window.through(positions.line(first)));
        let (from, to) = (window.column(from), window.column(to));
        let marks = "^".repeat(to.saturating_sub(from).max(1));
        let marks = style.paint(colour, &format!("{marks}{label}"));
        line(None, &format!("{:from$}{marks}", ""));
        return out;
    }
    let room = room.saturating_sub(2);
    let window = Window::around(positions.line(last), 0, column(last, end), room);
    if let Some(row) = before {
        line(
            number(row),
            &format!("  {}", window.through(positions.line(row))),
        );
    }
    let side = style.paint(colour, "|");
    for row in first..=last {
        if last - first >= MAX_WHOLE_ROWS && (first + 3..last - 1).contains(&row) {
            if row == first + 3 {
                line(None, &format!("{side} ..."));
            }
            continue;
        }
        let side = match row == first {
            true => style.paint(colour, "/"),
            false => side.clone(),
        };
        line(
            number(row),
            &format!("{side} {}", window.through(positions.line(row))),
        );
    }
    let reach = window.column(column(last, end)).saturating_sub(1);
    let marks = style.paint(colour, &format!("|{}^{label}", "_".repeat(reach + 1)));
    line(None, &marks);
    out
}

/// Returns the range of a finding without trailing whitespace, so that a final line break does not
/// extend it to the next line.
fn span(positions: &PositionMap, finding: &Finding) -> (TextSize, TextSize) {
    let text = positions.text();
    let start = text.floor_char_boundary(finding.range.start().to_usize());
    let end = text.floor_char_boundary(finding.range.end().to_usize());
    let marked = text.get(start..end).unwrap_or_default();
    let kept = match marked.trim_end() {
        "" => marked.split(['\n', '\r']).next().unwrap_or_default(),
        kept => kept,
    };
    let offset = |at: usize| TextSize::try_from(at).unwrap_or_default();
    (offset(start), offset(start + kept.len()))
}

/// The visible columns of the source lines.
struct Window {
    from: usize,
    room: usize,
}

impl Window {
    /// Shows the whole line if it fits, otherwise the part around these columns.
    fn around(line: &str, from: usize, to: usize, room: usize) -> Window {
        let whole = expand_line(line).width();
        let spare = room.saturating_sub(to - from);
        let from = match whole <= room {
            true => 0,
            false => from.saturating_sub(spare / 2).min(whole - room),
        };
        Window { from, room }
    }

    /// Returns the visible part of a line, with an ellipsis where it is cut.
    fn through(&self, line: &str) -> String {
        let drawn = expand_line(line);
        if self.from == 0 && drawn.width() <= self.room {
            return drawn;
        }
        let until = self.from + self.room;
        let is_cut_behind = drawn.width() > until;
        let mut part = String::new();
        let mut at = 0;
        for character in drawn.chars() {
            let width = character.width().unwrap_or(0);
            let is_before = at < self.from + usize::from(self.from > 0);
            let is_behind = at + width > until - usize::from(is_cut_behind);
            if at >= self.from && at < until {
                match (is_before, is_behind) {
                    (false, false) => part.push(character),
                    (true, _) => part.push_str(&format!("{:…>width$}", "")),
                    // A wide character may leave two columns to fill.
                    (_, true) => part.push_str(&format!("{:…>width$}", "")),
                }
            }
            at += width;
        }
        part
    }

    /// Returns the position of a column in the visible part.
    fn column(&self, column: usize) -> usize {
        column.saturating_sub(self.from).min(self.room)
    }
}

/// Escapes a line for the terminal, with tabs as four spaces.
fn expand_line(line: &str) -> String {
    sanitize::escape(line.replace('\t', "    ").as_bytes())
}

fn width_until(line: &str, offset: usize) -> usize {
    let offset = line.floor_char_boundary(offset);
    expand_line(line.get(..offset).unwrap_or_default()).width()
}
