//! The texts open in the editor.

use lsp_types::{Position, PositionEncodingKind, Range, TextDocumentContentChangeEvent, Uri};
use ruff_source_file::{LineIndex, OneIndexed, PositionEncoding, SourceLocation};
use ruff_text_size::{TextRange, TextSize};

/// The unit in which an editor counts columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Encoding::Utf8 => PositionEncodingKind::UTF8,
            Encoding::Utf16 => PositionEncodingKind::UTF16,
        }
    }

    fn to_ruff(self) -> PositionEncoding {
        match self {
            Encoding::Utf8 => PositionEncoding::Utf8,
            Encoding::Utf16 => PositionEncoding::Utf16,
        }
    }
}

pub struct Text {
    pub content: String,
    pub version: i32,
    /// The language identifier given by the editor.
    pub language: String,
}

impl Text {
    pub fn lines(&self) -> Lines<'_> {
        Lines {
            text: &self.content,
            index: LineIndex::from_source_text(&self.content),
        }
    }
}

/// The lines of a text, for converting between offsets and positions.
pub struct Lines<'a> {
    text: &'a str,
    index: LineIndex,
}

impl Lines<'_> {
    pub fn range(&self, range: TextRange, encoding: Encoding) -> Range {
        Range::new(
            self.position(range.start(), encoding),
            self.position(range.end(), encoding),
        )
    }

    fn position(&self, offset: TextSize, encoding: Encoding) -> Position {
        let within = self.text.floor_char_boundary(offset.to_usize());
        let offset = TextSize::try_from(within).unwrap_or_default();
        let at = self
            .index
            .source_location(offset, self.text, encoding.to_ruff());
        let number = |one: OneIndexed| u32::try_from(one.to_zero_indexed()).unwrap_or(u32::MAX);
        Position::new(number(at.line), number(at.character_offset))
    }

    /// Converts a position to an offset. A position beyond the end of a line is its end.
    fn offset(&self, position: Position, encoding: Encoding) -> usize {
        let number = |number: u32| OneIndexed::from_zero_indexed(number as usize);
        let line = number(position.line);
        if line.to_zero_indexed() >= self.index.line_count() {
            return self.text.len();
        }
        let at = SourceLocation {
            line,
            character_offset: number(position.character),
        };
        let offset = self.index.offset(at, self.text, encoding.to_ruff());
        let end = self.index.line_end(line, self.text);
        self.text.floor_char_boundary(offset.min(end).to_usize())
    }
}

#[derive(Default)]
pub struct OpenTexts(Vec<(Uri, Text)>);

impl OpenTexts {
    pub fn open(&mut self, uri: Uri, text: Text) {
        self.close(&uri);
        self.0.push((uri, text));
    }

    pub fn close(&mut self, uri: &Uri) {
        self.0.retain(|(other, _)| other != uri);
    }

    pub fn get(&self, uri: &Uri) -> Option<(&Uri, &Text)> {
        let found = self.0.iter().find(|(other, _)| other == uri);
        found.map(|(uri, text)| (uri, text))
    }

    /// Applies the editor's changes in order.
    pub fn change(
        &mut self,
        uri: &Uri,
        changes: &[TextDocumentContentChangeEvent],
        version: i32,
        encoding: Encoding,
    ) {
        let Some((_, text)) = self.0.iter_mut().find(|(other, _)| other == uri) else {
            return;
        };
        text.version = version;
        for change in changes {
            match change.range {
                None => text.content.clone_from(&change.text),
                Some(range) => {
                    let lines = text.lines();
                    let start = lines.offset(range.start, encoding);
                    let end = lines.offset(range.end, encoding).max(start);
                    text.content.replace_range(start..end, &change.text);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, range: Option<Range>, new: &str, encoding: Encoding) -> String {
        let uri: Uri = "file:///train.py".parse().unwrap();
        let mut texts = OpenTexts::default();
        let text = Text {
            content: text.to_owned(),
            version: 1,
            language: "python".to_owned(),
        };
        texts.open(uri.clone(), text);
        let change = TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text: new.to_owned(),
        };
        texts.change(&uri, &[change], 2, encoding);
        let (_, text) = texts.get(&uri).unwrap();
        assert_eq!(text.version, 2);
        text.content.clone()
    }

    fn range(from: (u32, u32), to: (u32, u32)) -> Option<Range> {
        Some(Range::new(
            Position::new(from.0, from.1),
            Position::new(to.0, to.1),
        ))
    }

    #[test]
    fn a_change_is_made_where_the_editor_means_it() {
        let text = "a = 'é😀b'\nc = 1\n";
        assert_eq!(
            typed(text, range((0, 8), (0, 9)), "X", Encoding::Utf16),
            "a = 'é😀X'\nc = 1\n"
        );
        assert_eq!(
            typed(text, range((0, 11), (0, 12)), "X", Encoding::Utf8),
            "a = 'é😀X'\nc = 1\n"
        );
        assert_eq!(
            typed(text, range((1, 0), (2, 0)), "", Encoding::Utf16),
            "a = 'é😀b'\n"
        );
        assert_eq!(typed(text, None, "new", Encoding::Utf16), "new");
    }

    #[test]
    fn places_that_are_not_there_do_no_harm() {
        for text in ["", "x", "é\r\n", "😀"] {
            for (from, to) in [
                ((0, 0), (9, 9)),
                ((9, 9), (0, 0)),
                ((0, 1), (0, 1)),
                ((0, 999), (3, 0)),
            ] {
                for encoding in [Encoding::Utf8, Encoding::Utf16] {
                    typed(text, range(from, to), "y", encoding);
                }
            }
        }
    }
}
