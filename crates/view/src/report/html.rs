//! Writes HTML. Markup from this source is written as it is; all other text is escaped, as text or as the value of
//! an attribute. Untrusted text is limited in length, each piece and all together, so that no record produces a page
//! that a browser cannot open.

use antifreeze_text::sanitize;
use std::fmt::Write;

/// The longest piece of text, in characters; a list of lines may have many pieces.
const MAX_TEXT_CHARS: usize = 2_000;
/// The largest number of lines of code to copy, and their deepest indentation.
const MAX_CODE_LINES: usize = 100;
const MAX_INDENT_COLUMNS: usize = 200;
/// The largest size of all untrusted text together. Text after it is left out.
const MAX_TOTAL_BYTES: usize = 600_000;

#[derive(Default)]
pub(crate) struct Html {
    page: String,
    strangers: usize,
}

/// An attribute: its name is from this source, its value may be untrusted.
pub(crate) type Attributes<'a> = &'a [(&'static str, Value<'a>)];

/// The value of an attribute. Text that is built at run time can only be `Text`.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    Ours(&'static str),
    Number(f64),
    Percent(f64),
    Drawn(&'a Drawn),
    Text(&'a str),
}

impl From<&'static str> for Value<'_> {
    fn from(ours: &'static str) -> Self {
        Value::Ours(ours)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

/// The `d` of a path: letters of ours and numbers.
#[derive(Default)]
pub(crate) struct Drawn(String);

impl Drawn {
    pub fn step(&mut self, command: char, x: f64, y: f64) {
        // Hundredths are finer than any screen. Writing to a String cannot fail.
        let _ = write!(self.0, "{command}{} {}", hundredths(x), hundredths(y));
    }

    pub fn close(&mut self) {
        self.0.push('Z');
    }

    pub fn rectangle(&mut self, from: (f64, f64), to: (f64, f64)) {
        let ((left, top), (right, bottom)) = (from, to);
        self.step('M', left, top);
        let (bottom, right, top) = (hundredths(bottom), hundredths(right), hundredths(top));
        let _ = write!(self.0, "V{bottom}H{right}V{top}Z");
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn hundredths(number: f64) -> f64 {
    if number.is_finite() {
        (number * 100.0).round() / 100.0
    } else {
        0.0
    }
}

impl Html {
    /// Adds markup from this source.
    pub fn raw(&mut self, ours: &'static str) -> &mut Html {
        self.page.push_str(ours);
        self
    }

    /// Adds untrusted text, on one line.
    pub fn text(&mut self, anyones: &str) -> &mut Html {
        self.limited(anyones, MAX_TEXT_CHARS);
        self
    }

    /// Adds lines of code to copy, each escaped by itself.
    pub fn code(&mut self, code: &str) -> &mut Html {
        self.raw("<code>");
        for (number, line) in code.split('\n').take(MAX_CODE_LINES).enumerate() {
            if number > 0 {
                self.raw("\n");
            }
            let rest = line.trim_start_matches([' ', '\t']);
            let indent = line.strip_suffix(rest).unwrap_or_default();
            if indent.len() <= MAX_INDENT_COLUMNS {
                self.page.push_str(indent);
                self.strangers += indent.len();
            }
            self.text(rest);
        }
        self.raw("</code>")
    }

    /// Adds untrusted text in which `names` in backticks become code.
    pub fn prose(&mut self, anyones: &str) -> &mut Html {
        let mut parts = anyones.split('`').enumerate().peekable();
        while let Some((index, part)) = parts.next() {
            match (index % 2 == 1, parts.peek().is_some()) {
                (true, true) => self.leaf("code", "", part),
                (true, false) => self.text("`").text(part),
                (false, _) => self.text(part),
            };
        }
        self
    }

    pub fn open(&mut self, name: &'static str, attributes: Attributes<'_>) -> &mut Html {
        self.page.push('<');
        self.page.push_str(name);
        for (name, value) in attributes {
            self.page.push(' ');
            self.page.push_str(name);
            self.page.push_str("=\"");
            // Writing to a String cannot fail.
            let _ = match value {
                Value::Ours(ours) => self.page.write_str(ours),
                Value::Number(number) => write!(self.page, "{}", hundredths(*number)),
                Value::Percent(share) => write!(self.page, "{}%", hundredths(share * 100.0)),
                Value::Drawn(drawn) => self.page.write_str(&drawn.0),
                Value::Text(text) => {
                    self.limited(text, MAX_TEXT_CHARS);
                    Ok(())
                }
            };
            self.page.push('"');
        }
        self.page.push('>');
        self
    }

    pub fn close(&mut self, name: &'static str) -> &mut Html {
        self.page.push_str("</");
        self.page.push_str(name);
        self.page.push('>');
        self
    }

    /// `<name class="class">text</name>`, without the class where it is empty.
    pub fn leaf(&mut self, name: &'static str, class: &'static str, text: &str) -> &mut Html {
        match class {
            "" => self.open(name, &[]),
            class => self.open(name, &[("class", class.into())]),
        };
        self.text(text).close(name)
    }

    /// Adds a block of data for the page's script. No string in it can end the block.
    pub fn data(&mut self, class: &'static str, json: &impl serde::Serialize) -> &mut Html {
        self.open(
            "script",
            &[("type", "application/json".into()), ("class", class.into())],
        );
        // Only maps with keys that are no strings fail, and ours have none.
        let json = serde_json::to_string(json).unwrap_or_else(|_| "null".into());
        for character in json.chars() {
            match character {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    // Writing to a String cannot fail.
                    let _ = write!(self.page, "\\u{:04x}", u32::from(character));
                }
                _ => self.page.push(character),
            }
        }
        self.close("script")
    }

    pub fn into_page(self) -> String {
        self.page
    }

    fn limited(&mut self, text: &str, longest: usize) {
        let before = self.page.len();
        let room = MAX_TOTAL_BYTES.saturating_sub(self.strangers);
        let cut = match text.char_indices().nth(longest) {
            Some((end, _)) => text.get(..end).unwrap_or_default(),
            None => text,
        };
        for character in sanitize::escape(cut.as_bytes()).chars() {
            if self.page.len() - before >= room {
                break;
            }
            self.page.push_str(match character {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                _ => {
                    self.page.push(character);
                    continue;
                }
            });
        }
        if cut.len() < text.len() && self.page.len() - before < room {
            self.page.push('…');
        }
        self.strangers += self.page.len() - before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Html) -> &mut Html) -> String {
        let mut html = Html::default();
        write(&mut html);
        html.into_page()
    }

    #[test]
    fn code_keeps_its_lines_and_their_indentation() {
        assert_eq!(
            written(|html| html.code("    x = '<'\n\tdel \x1b[2J")),
            "<code>    x = &#39;&lt;&#39;\n\tdel \\u{1b}[2J</code>"
        );
    }

    #[test]
    fn text_and_attributes_cannot_leave_their_place() {
        for (text, escaped) in [
            ("python", "python"),
            ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
            ("<script>x()</script>", "&lt;script&gt;x()&lt;/script&gt;"),
            ("\" onload='x()'", "&quot; onload=&#39;x()&#39;"),
            ("&lt;", "&amp;lt;"),
            ("\u{202e}evil\0", r"\u{202e}evil\0"),
        ] {
            assert_eq!(written(|html| html.text(text)), escaped);
            let opened = written(|html| html.open("p", &[("title", Value::Text(text))]));
            assert_eq!(opened, format!("<p title=\"{escaped}\">"));
        }
    }

    #[test]
    fn names_between_backticks_are_set_as_code() {
        for (text, set) in [
            ("`kept` holds 3 GB", "<code>kept</code> holds 3 GB"),
            ("see `ulimit -l`", "see <code>ulimit -l</code>"),
            ("one ` only <b>", "one ` only &lt;b&gt;"),
            ("`<b>`", "<code>&lt;b&gt;</code>"),
        ] {
            assert_eq!(written(|html| html.prose(text)), set);
        }
    }

    #[test]
    fn data_keeps_its_meaning_and_cannot_end_its_element() {
        let hostile = "</script><!--<script>&\u{2028}";
        let block = written(|html| html.data("x", &[hostile]));
        let json = block
            .strip_prefix("<script type=\"application/json\" class=\"x\">")
            .and_then(|rest| rest.strip_suffix("</script>"))
            .unwrap();
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        assert_eq!(
            serde_json::from_str::<[String; 1]>(json).unwrap(),
            [hostile]
        );
    }

    #[test]
    fn a_long_text_is_cut_and_marked_and_all_text_is_bounded() {
        let long = written(|html| html.text(&"é".repeat(9_000)));
        assert_eq!(long.chars().count(), MAX_TEXT_CHARS + 1);
        assert!(long.ends_with('…'));
        let page = written(|html| {
            for _ in 0..10_000 {
                html.leaf("p", "", &"&".repeat(1_000));
            }
            html
        });
        assert!(
            page.len() < MAX_TOTAL_BYTES + 10_000 * 7 + 10,
            "{}",
            page.len()
        );
    }

    proptest! {
        #[test]
        fn no_text_opens_an_element_or_closes_a_quote(text: String) {
            let shown = written(|html| html.text(&text));
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
        }
    }
}
