//! Lays out labelled lines: a column of labels, and text beside it that is wrapped between words.

use antifreeze_text::layout::{pad, wrap};
use antifreeze_text::{TermStyle, sanitize};
use unicode_width::UnicodeWidthStr;

const LABEL_COLUMNS: usize = 9;
/// Longer lines are hard to read, however wide the terminal is.
const MAX_COLUMNS: usize = 100;

/// One labelled line.
pub fn labelled(label: &str, text: &str, style: &TermStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.whole(label, text);
    sheet.finish()
}

/// Lines under construction: a label column, and text beside it.
pub(crate) struct Sheet<'a> {
    pub style: &'a TermStyle,
    width: usize,
    lines: Vec<String>,
}

impl<'a> Sheet<'a> {
    pub fn new(style: &'a TermStyle) -> Sheet<'a> {
        Sheet {
            style,
            width: style.width.min(MAX_COLUMNS),
            lines: Vec::new(),
        }
    }

    /// The width of the text beside a label.
    pub fn room(&self) -> usize {
        self.width.saturating_sub(LABEL_COLUMNS)
    }

    /// Returns the lines, without a line break at the end.
    pub fn finish(self) -> String {
        self.style.glyphs.render(self.lines.join("\n"))
    }

    pub fn rule(&mut self) {
        let title = "── antifreeze ";
        let rest = "─".repeat(self.width.saturating_sub(title.width()));
        self.lines.push(self.style.dim(&format!("{title}{rest}")));
    }

    /// Adds text that may be wrapped between words.
    pub fn text(&mut self, label: &str, text: &str) {
        let mut label = label;
        for line in wrap(text, self.room()) {
            self.whole(label, &line);
            label = "";
        }
    }

    /// Adds a line to be copied, which only the terminal may wrap. A verdict
    /// may come from a file, so its text is escaped like a name.
    pub fn whole(&mut self, label: &str, text: &str) {
        let label = self.style.bold(&pad(label, LABEL_COLUMNS));
        self.lines
            .push(format!("{label}{}", sanitize::escape(text.as_bytes())));
    }

    /// Adds lines of code to be copied, below a label.
    pub fn code(&mut self, code: &str) {
        let label = pad("", LABEL_COLUMNS);
        for line in sanitize::code_lines(code) {
            self.lines.push(format!("{label}{line}"));
        }
    }

    /// Adds a line to be copied and a note, beside it if it fits and below it otherwise.
    pub fn with_note(&mut self, label: &str, text: &str, note: &str) {
        if LABEL_COLUMNS + text.width() + 4 + note.width() <= self.width {
            self.whole(label, &format!("{text}    {note}"));
        } else {
            self.whole(label, text);
            self.whole("", note);
        }
    }
}
