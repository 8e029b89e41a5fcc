//! Notebooks: joins the code cells into one text, and writes changed cells back to the JSON without
//! touching any other byte.

use crate::error::FileError;
use antifreeze_lint::Cell;
use antifreeze_lint::finding::Edit;
use ruff_notebook::NotebookError;
use ruff_text_size::{TextRange, TextSize};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// The cells of a notebook's text. Each cell ends with a line break that is only in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    all: Vec<Cell>,
    /// The end of the last cell.
    end: TextSize,
}

impl Cells {
    pub fn new(all: Vec<Cell>, end: TextSize) -> Cells {
        Cells { all, end }
    }

    pub fn as_slice(&self) -> &[Cell] {
        &self.all
    }

    pub fn containing(&self, offset: TextSize) -> Option<&Cell> {
        Cell::containing(&self.all, offset)
    }

    /// Whether each edit stays inside one cell.
    pub fn can_take(&self, edits: &[Edit]) -> bool {
        edits.iter().all(|edit| {
            self.ranges().any(|(_, range)| {
                // An edit at a border belongs to the next cell.
                range.contains(edit.range.start()) && edit.range.end() <= range.end()
            })
        })
    }

    /// Applies sorted edits for which [`Cells::can_take`] holds.
    pub fn edited(&self, text: &str, edits: &[&Edit]) -> (String, Cells) {
        let mut new = String::with_capacity(text.len());
        let mut all = Vec::with_capacity(self.all.len());
        for (number, range) in self.ranges() {
            let start = TextSize::of(&new);
            all.push(Cell { number, start });
            let mut at = range.start();
            for edit in edits
                .iter()
                .filter(|edit| range.contains(edit.range.start()))
            {
                new.push_str(part(text, TextRange::new(at, edit.range.start())));
                new.push_str(&edit.content);
                at = edit.range.end();
            }
            new.push_str(part(text, TextRange::new(at, range.end())));
            // An edit may have removed the line break between two cells.
            if !new.ends_with('\n') || start == TextSize::of(&new) {
                new.push('\n');
            }
        }
        let end = TextSize::of(&new);
        (new, Cells::new(all, end))
    }

    /// Returns the number and the range of each cell.
    fn ranges(&self) -> impl Iterator<Item = (usize, TextRange)> {
        let ends = self.all.iter().skip(1).map(|next| next.start);
        let ends = ends.chain([self.end]);
        let cells = self.all.iter().zip(ends);
        cells.map(|(cell, end)| (cell.number, TextRange::new(cell.start, end)))
    }

    /// Returns the number and the content of each cell, without the added line break.
    fn contents<'a>(&self, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        self.ranges().map(move |(number, range)| {
            let content = part(text, range);
            (number, content.strip_suffix('\n').unwrap_or(content))
        })
    }
}

fn part(text: &str, range: TextRange) -> &str {
    text.get(range.to_std_range()).unwrap_or_default()
}

#[derive(Deserialize)]
struct NotebookHead {
    #[serde(default)]
    metadata: Metadata,
    nbformat: Option<i64>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    kernelspec: Option<Kernel>,
    language_info: Option<Language>,
}

#[derive(Deserialize)]
struct Kernel {
    language: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Language {
    name: Option<String>,
}

impl Metadata {
    /// A notebook without a language is a Python notebook.
    fn is_python(&self) -> bool {
        let kernel = self.kernelspec.as_ref();
        let language = self.language_info.as_ref();
        let language = language
            .and_then(|language| language.name.as_deref())
            .or_else(|| kernel?.language.as_deref());
        match (language, kernel.and_then(|kernel| kernel.name.as_deref())) {
            (Some(language), _) => language.eq_ignore_ascii_case("python"),
            (None, Some(name)) => !["ir", "julia", "scala", "bash", "octave", "javascript"]
                .iter()
                .any(|other| name.starts_with(other)),
            (None, None) => true,
        }
    }
}

/// Parses a notebook. Returns `None` if it is in another language.
pub fn parse_notebook(json: &str) -> Result<Option<(String, Cells)>, FileError> {
    let refused = |error: serde_json::Error| FileError::InvalidNotebook(error.to_string());
    let head: NotebookHead = serde_json::from_str(json).map_err(refused)?;
    if let Some(format) = head.nbformat.filter(|format| *format != 4) {
        return Err(FileError::NotebookFormat(format));
    }
    if !head.metadata.is_python() {
        return Ok(None);
    }
    let notebook =
        ruff_notebook::Notebook::from_source_code(json).map_err(|error| match error {
            NotebookError::Json(error)
            | NotebookError::InvalidJson(error)
            | NotebookError::InvalidSchema(error) => refused(error),
            other => FileError::InvalidNotebook(other.to_string()),
        })?;
    let numbers = notebook.index().iter().map(|cell| cell.cell_index().get());
    let starts = notebook.cell_offsets().iter().copied();
    let all = numbers
        .zip(starts)
        .map(|(number, start)| Cell { number, start });
    let text = notebook.source_code().to_owned();
    let cells = Cells::new(all.collect(), TextSize::of(&text));
    Ok(Some((text, cells)))
}

#[derive(Deserialize)]
struct NotebookCells<'a> {
    #[serde(borrow)]
    cells: Vec<CellWithSource<'a>>,
}

#[derive(Deserialize)]
struct CellWithSource<'a> {
    #[serde(borrow)]
    source: &'a RawValue,
}

/// Writes the cells of `text` to the JSON. Unchanged cells keep their bytes.
pub fn write_notebook(json: &str, text: &str, cells: &Cells) -> Result<String, FileError> {
    let refused = |error: serde_json::Error| FileError::NotWrittenBack(error.to_string());
    let body: NotebookCells = serde_json::from_str(json).map_err(refused)?;
    let mut new = String::with_capacity(json.len());
    let mut copied = 0;
    for (number, content) in cells.contents(text) {
        let Some(cell) = body.cells.get(number - 1) else {
            continue;
        };
        let raw = cell.source.get();
        let old = CellSource::parse(raw).map_err(refused)?;
        if old.content() == content {
            continue;
        }
        // The raw value borrows from the JSON, so its position follows from both addresses.
        let start = raw.as_ptr() as usize - json.as_ptr() as usize;
        new.push_str(json.get(copied..start).unwrap_or_default());
        new.push_str(&old.with_content(content, json.is_ascii()));
        copied = start + raw.len();
    }
    new.push_str(json.get(copied..).unwrap_or_default());
    match parse_notebook(&new) {
        Ok(Some((back, _))) if back == text => Ok(new),
        _ => Err(FileError::NotWrittenBack(
            "it would read differently".to_owned(),
        )),
    }
}

/// The source of a cell in the JSON: one string, or a list of strings.
enum CellSource<'a> {
    One(String),
    List {
        raw: &'a str,
        /// The strings as written, and decoded.
        pieces: Vec<(&'a str, String)>,
    },
}

impl<'a> CellSource<'a> {
    fn parse(raw: &'a str) -> Result<CellSource<'a>, serde_json::Error> {
        if raw.starts_with('"') {
            return serde_json::from_str(raw).map(CellSource::One);
        }
        let pieces: Vec<&RawValue> = serde_json::from_str(raw)?;
        let pieces = pieces.into_iter().map(|piece| {
            let meant = serde_json::from_str(piece.get())?;
            Ok((piece.get(), meant))
        });
        Ok(CellSource::List {
            raw,
            pieces: pieces.collect::<Result<_, serde_json::Error>>()?,
        })
    }

    fn content(&self) -> String {
        match self {
            CellSource::One(content) => content.clone(),
            CellSource::List { pieces, .. } => {
                pieces.iter().map(|(_, meant)| meant.as_str()).collect()
            }
        }
    }

    /// Returns the JSON of another content in the same style.
    fn with_content(&self, content: &str, ascii: bool) -> String {
        let CellSource::List { raw, pieces } = self else {
            return to_json_string(content, ascii);
        };
        let written: HashMap<_, _> = pieces
            .iter()
            .map(|(written, meant)| (meant.as_str(), *written))
            .collect();
        let lines = content
            .split_inclusive('\n')
            .map(|line| match written.get(line) {
                Some(written) => (*written).to_owned(),
                None => to_json_string(line, ascii),
            });
        let lines: Vec<_> = lines.collect();
        if lines.is_empty() {
            return "[]".to_owned();
        }
        // The whitespace around the strings, taken from the first and the last one.
        let inner = raw.trim_start_matches('[');
        let before: &str = &inner[..inner.len() - inner.trim_start().len()];
        let before = if pieces.is_empty() { "" } else { before };
        let inner = raw.trim_end_matches(']');
        let after = &inner[inner.trim_end().len()..];
        format!("[{before}{}{after}]", lines.join(&format!(",{before}")))
    }
}

fn to_json_string(text: &str, ascii: bool) -> String {
    // Serializing a string cannot fail.
    let json = serde_json::Value::from(text).to_string();
    if !ascii {
        return json;
    }
    let mut plain = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            plain.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            plain.push_str(&format!("\\u{unit:04x}"));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r##"{
 "cells": [
  {"cell_type": "markdown", "metadata": {"z": 1, "a": 2}, "source": ["# T\u00eete"]},
  {
   "cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [ ],
   "source": [
    "import torch\n",
    "caf\u00e9 = 1"
   ]
  },
  {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": "%%bash\nls"},
  {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": "%time x = 1\ny = 2\n"}
 ],
 "metadata": {"kernelspec": {"name": "python3", "display_name": "P"}},
 "nbformat_minor": 4, "nbformat": 4
}"##;

    fn edit(text: &str, old: &str, new: &str) -> Edit {
        let start = TextSize::try_from(text.find(old).unwrap()).unwrap();
        Edit {
            range: TextRange::at(start, TextSize::of(old)),
            content: new.to_owned(),
        }
    }

    #[test]
    fn code_cells_become_one_text_and_other_cells_stay_out() {
        let (text, cells) = parse_notebook(JSON).unwrap().unwrap();
        assert_eq!(text, "import torch\ncafé = 1\n%time x = 1\ny = 2\n\n");
        let start = |offset: u32| TextSize::new(offset);
        let expected =
            [(2, start(0)), (4, start(23))].map(|(number, start)| Cell { number, start });
        assert_eq!(cells.as_slice(), expected);
    }

    #[test]
    fn a_changed_line_changes_that_line_of_the_json_alone() {
        let (text, cells) = parse_notebook(JSON).unwrap().unwrap();
        let edits = [edit(&text, "torch", "jax"), edit(&text, "y = 2", "y = 'é'")];
        assert!(cells.can_take(&edits));
        let (text, cells) = cells.edited(&text, &edits.iter().collect::<Vec<_>>());
        let expected = JSON
            .replace("import torch", "import jax")
            .replace("y = 2", "y = '\\u00e9'");
        assert_eq!(write_notebook(JSON, &text, &cells).unwrap(), expected);
    }

    #[test]
    fn an_unchanged_notebook_is_written_as_it_was() {
        let (text, cells) = parse_notebook(JSON).unwrap().unwrap();
        assert_eq!(write_notebook(JSON, &text, &cells).unwrap(), JSON);
    }

    #[test]
    fn removing_the_last_line_of_a_cell_leaves_the_cells_apart() {
        let (text, cells) = parse_notebook(JSON).unwrap().unwrap();
        let edits = [edit(&text, "café = 1\n", ""), edit(&text, "y = 2\n\n", "")];
        let (text, cells) = cells.edited(&text, &edits.iter().collect::<Vec<_>>());
        assert_eq!(text, "import torch\n%time x = 1\n");
        let new = write_notebook(JSON, &text, &cells).unwrap();
        assert!(new.contains("[\n    \"import torch\"\n   ]"), "{new}");
        let edits = [edit(&text, "import torch\n", "")];
        let (text, cells) = cells.edited(&text, &edits.iter().collect::<Vec<_>>());
        let new = write_notebook(&new, &text, &cells).unwrap();
        assert!(new.contains("\"source\": []"), "{new}");
    }

    #[test]
    fn an_edit_across_cells_is_not_taken() {
        let (text, cells) = parse_notebook(JSON).unwrap().unwrap();
        assert!(!cells.can_take(&[edit(&text, "1\n%time", "")]));
    }

    #[test]
    fn other_languages_are_passed_over_and_broken_notebooks_named() {
        let r = JSON.replace("python3", "ir");
        assert!(matches!(parse_notebook(&r), Ok(None)));
        let julia = JSON.replace(
            r#""name": "python3""#,
            r#""language": "julia", "name": "j""#,
        );
        assert!(matches!(parse_notebook(&julia), Ok(None)));
        for (json, reason) in [
            ("{", "line 1"),
            ("[]", "notebook"),
            ("{\"nbformat\": 3, \"worksheets\": []}", "format 3"),
            ("{\"nbformat\": 4, \"cells\": 1}", "notebook"),
        ] {
            let message = parse_notebook(json).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
