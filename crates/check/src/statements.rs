//! Which rows of a text belong together as one statement. The head of a loop or a function
//! counts as one, its body as others.

use crate::place::Places;
use antifreeze_lint::Dialect;
use ruff_python_ast::token::TokenKind;
use ruff_text_size::Ranged;

/// First and last row of each statement of more than one row, in order.
#[derive(Debug, Default)]
pub struct Statements(Vec<(usize, usize)>);

impl Statements {
    /// To be called only for a text that was checked and has no mistakes: others may be
    /// nested deeper than the stack is.
    pub fn of(places: &Places, dialect: Dialect) -> Statements {
        let kind = dialect.source_type();
        let parsed = ruff_python_parser::parse_unchecked_source(places.text(), kind);
        let mut rows = Vec::new();
        let mut first = None;
        for token in parsed.tokens() {
            match token.kind() {
                TokenKind::Comment
                | TokenKind::NonLogicalNewline
                | TokenKind::Indent
                | TokenKind::Dedent => {}
                TokenKind::Newline => {
                    let last = places.row(token.start());
                    rows.extend(
                        first
                            .take()
                            .filter(|first| *first < last)
                            .map(|first| (first, last)),
                    );
                }
                _ => first = first.or_else(|| Some(places.row(token.start()))),
            }
        }
        Statements(rows)
    }

    /// Whether `end` is the first or last row of the statement that `row` is in.
    pub fn ends_hold(&self, end: usize, row: usize) -> bool {
        let Statements(rows) = self;
        let after = rows.partition_point(|(first, _)| *first <= row);
        after
            .checked_sub(1)
            .and_then(|index| rows.get(index))
            .is_some_and(|(first, last)| row <= *last && (end == *first || end == *last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_held_by_its_first_and_last_row() {
        let text = "a = 1\nfor x in f(\n    y,\n):\n    g('''\n\n''')\nb = \\\n  2\n";
        let places = Places::new(text.to_owned(), None);
        let statements = Statements::of(&places, Dialect::Python);
        assert_eq!(statements.0, [(1, 3), (4, 6), (7, 8)]);
        assert!(statements.ends_hold(1, 2) && statements.ends_hold(3, 2));
        assert!(!statements.ends_hold(2, 2) && !statements.ends_hold(4, 2));
        assert!(!statements.ends_hold(0, 0));
    }
}
