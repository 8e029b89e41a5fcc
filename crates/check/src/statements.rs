//! Finds the rows that belong to one statement. The header of a loop or function is a statement;
//! the body consists of others.

use crate::position::PositionMap;
use antifreeze_lint::Dialect;
use ruff_python_ast::token::TokenKind;
use ruff_text_size::Ranged;

/// The first and last row of each statement that spans several rows, in order.
#[derive(Debug, Default)]
pub struct Statements(Vec<(usize, usize)>);

impl Statements {
    /// Parses a text that was checked without errors. Other texts may overflow the stack.
    pub fn parse(positions: &PositionMap, dialect: Dialect) -> Statements {
        let kind = dialect.source_type();
        let parsed = ruff_python_parser::parse_unchecked_source(positions.text(), kind);
        let mut rows = Vec::new();
        let mut first = None;
        for token in parsed.tokens() {
            match token.kind() {
                TokenKind::Comment
                | TokenKind::NonLogicalNewline
                | TokenKind::Indent
                | TokenKind::Dedent => {}
                TokenKind::Newline => {
                    let last = positions.row(token.start());
                    rows.extend(
                        first
                            .take()
                            .filter(|first| *first < last)
                            .map(|first| (first, last)),
                    );
                }
                _ => first = first.or_else(|| Some(positions.row(token.start()))),
            }
        }
        Statements(rows)
    }

    /// Whether `end` is the first or last row of the statement that contains `row`.
    pub fn is_boundary_of(&self, end: usize, row: usize) -> bool {
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
        let positions = PositionMap::new(text.to_owned(), None);
        let statements = Statements::parse(&positions, Dialect::Python);
        assert_eq!(statements.0, [(1, 3), (4, 6), (7, 8)]);
        assert!(statements.is_boundary_of(1, 2) && statements.is_boundary_of(3, 2));
        assert!(!statements.is_boundary_of(2, 2) && !statements.is_boundary_of(4, 2));
        assert!(!statements.is_boundary_of(0, 0));
    }
}
