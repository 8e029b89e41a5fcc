//! Line and column of an offset, counted from one in characters, and in a notebook by cell.

use crate::notebook::Cells;
use antifreeze_lint::Cell;
use ruff_source_file::{LineIndex, OneIndexed};
use ruff_text_size::TextSize;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The number of the cell among all cells of the notebook.
    pub cell: Option<usize>,
    /// The line within the cell or the file.
    pub line: usize,
    pub column: usize,
}

/// Names the line as in a sentence: "cell 2, line 7".
impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cell) = self.cell {
            write!(f, "cell {cell}, ")?;
        }
        write!(f, "line {}", self.line)
    }
}

/// A text with an index of its lines and cells.
#[derive(Debug)]
pub struct PositionMap {
    text: String,
    lines: LineIndex,
    cells: Option<Cells>,
}

impl PositionMap {
    pub fn new(text: String, cells: Option<Cells>) -> PositionMap {
        PositionMap {
            lines: LineIndex::from_source_text(&text),
            text,
            cells,
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn position_of(&self, offset: TextSize) -> Position {
        let offset = self.on_a_character(offset);
        let at = self.lines.line_column(offset, &self.text);
        let row = at.line.to_zero_indexed();
        Position {
            cell: self.cell_of_row(row).map(|(number, _)| number),
            line: self.number_of_row(row),
            column: at.column.get(),
        }
    }

    /// Returns the cell that contains an offset, if this is a notebook.
    pub fn cell(&self, offset: TextSize) -> Option<&Cell> {
        self.cells.as_ref()?.containing(offset)
    }

    /// Returns the row of an offset, counted from zero through the whole text.
    pub fn row(&self, offset: TextSize) -> usize {
        let offset = self.on_a_character(offset);
        self.lines.line_index(offset).to_zero_indexed()
    }

    /// Returns the text of a row without its line break.
    pub fn line(&self, row: usize) -> &str {
        let row = OneIndexed::from_zero_indexed(row);
        self.text
            .get(self.lines.line_range(row, &self.text).to_std_range())
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r'])
    }

    pub fn start_of_row(&self, row: usize) -> TextSize {
        let row = OneIndexed::from_zero_indexed(row);
        self.lines.line_start(row, &self.text)
    }

    /// Returns the line number of a row in its file or cell.
    pub fn number_of_row(&self, row: usize) -> usize {
        row + 1 - self.cell_of_row(row).map_or(0, |(_, first)| first)
    }

    /// Whether the row is the first of the file or of a cell.
    pub fn is_first(&self, row: usize) -> bool {
        self.number_of_row(row) == 1
    }

    /// Returns the number of a row's cell and the cell's first row.
    fn cell_of_row(&self, row: usize) -> Option<(usize, usize)> {
        let cells = self.cells.as_ref()?;
        let cell = cells.containing(self.start_of_row(row))?;
        let first = self.lines.line_index(cell.start).to_zero_indexed();
        Some((cell.number, first))
    }

    /// Moves an offset beyond the text or inside a character to a valid boundary.
    fn on_a_character(&self, offset: TextSize) -> TextSize {
        let within = self.text.floor_char_boundary(offset.to_usize());
        TextSize::try_from(within).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_any_line_end() {
        let positions = PositionMap::new("a\r\nbé👩c\rd\n".to_owned(), None);
        let at = |text: &str| {
            let offset = positions.text().find(text).unwrap();
            let place = positions.position_of(TextSize::try_from(offset).unwrap());
            (place.line, place.column)
        };
        assert_eq!(at("a"), (1, 1));
        assert_eq!(at("c"), (2, 4));
        assert_eq!(at("d"), (3, 1));
        assert_eq!(positions.line(1), "bé👩c");
        assert_eq!(positions.position_of(TextSize::new(999)).line, 4);
    }

    #[test]
    fn an_offset_of_a_notebook_is_placed_in_its_cell() {
        let all = [(2, 0), (5, 4)].map(|(number, start)| Cell {
            number,
            start: TextSize::new(start),
        });
        let cells = Cells::new(all.to_vec(), TextSize::new(10));
        let positions = PositionMap::new("a\nb\nc\ndd\n\n".to_owned(), Some(cells));
        let place = positions.position_of(TextSize::new(7));
        assert_eq!(
            place,
            Position {
                cell: Some(5),
                line: 2,
                column: 2
            }
        );
        assert!(positions.is_first(2));
    }
}
