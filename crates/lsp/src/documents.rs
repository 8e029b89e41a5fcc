//! The documents open in the editor: single texts, and notebooks with their cells.

use crate::open_texts::{Encoding, OpenTexts, Text};
use antifreeze_check::position::PositionMap;
use antifreeze_check::source::is_notebook;
use lsp_types::{
    DidCloseNotebookDocumentParams, DidOpenNotebookDocumentParams, NotebookCell, NotebookCellKind,
    NotebookDocumentCellChange, TextDocumentItem, Uri,
};
use percent_encoding::percent_decode_str;
use ruff_text_size::TextRange;
use serde::Deserialize;
use serde_json::json;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

#[derive(Default)]
pub struct Documents {
    pub texts: OpenTexts,
    notebooks: Vec<(Uri, Vec<NotebookCell>)>,
}

impl Documents {
    pub fn open(&mut self, item: TextDocumentItem) {
        let text = Text {
            content: item.text,
            version: item.version,
            language: item.language_id,
        };
        self.texts.open(item.uri, text);
    }

    pub fn open_notebook(&mut self, opened: DidOpenNotebookDocumentParams) {
        let notebook = opened.notebook_document;
        self.notebooks.retain(|(uri, _)| *uri != notebook.uri);
        self.notebooks.push((notebook.uri, notebook.cells));
        for item in opened.cell_text_documents {
            self.open(item);
        }
    }

    /// Applies a change to the cells of a notebook. Returns the cells that were closed.
    pub fn change_notebook(
        &mut self,
        uri: &Uri,
        change: NotebookDocumentCellChange,
        encoding: Encoding,
    ) -> Vec<Uri> {
        let Some((_, cells)) = self.notebooks.iter_mut().find(|(other, _)| other == uri) else {
            return Vec::new();
        };
        let mut gone = Vec::new();
        if let Some(structure) = change.structure {
            let array = structure.array;
            let start = (array.start as usize).min(cells.len());
            let end = start.saturating_add(array.delete_count as usize);
            let end = end.min(cells.len());
            cells.splice(start..end, array.cells.unwrap_or_default());
            for closed in structure.did_close.unwrap_or_default() {
                self.texts.close(&closed.uri);
                gone.push(closed.uri);
            }
            for item in structure.did_open.unwrap_or_default() {
                self.open(item);
            }
        }
        for typed in change.text_content.unwrap_or_default() {
            let document = typed.document;
            self.texts
                .change(&document.uri, &typed.changes, document.version, encoding);
        }
        gone
    }

    /// Closes a notebook and returns its cells.
    pub fn close_notebook(&mut self, closed: DidCloseNotebookDocumentParams) -> Vec<Uri> {
        let notebook = closed.notebook_document.uri;
        self.notebooks.retain(|(uri, _)| *uri != notebook);
        let cells = closed.cell_text_documents.into_iter().map(|cell| cell.uri);
        let cells: Vec<_> = cells.collect();
        for cell in &cells {
            self.texts.close(cell);
        }
        cells
    }

    /// Returns the text or notebook with this URI, or the notebook with a cell of this URI.
    pub fn get(&self, uri: &Uri) -> Option<Document<'_>> {
        let notebook = self.notebooks.iter().find(|(notebook, cells)| {
            notebook == uri || cells.iter().any(|cell| cell.document == *uri)
        });
        if let Some((uri, cells)) = notebook {
            let parts = cells.iter().filter_map(|cell| {
                let (uri, text) = self.texts.get(&cell.document)?;
                let is_code = cell.kind == NotebookCellKind::Code && text.language == "python";
                Some(Part { uri, text, is_code })
            });
            return Some(Document {
                uri,
                parts: parts.collect(),
                is_notebook: true,
            });
        }
        let (uri, text) = self.texts.get(uri)?;
        Some(Document {
            uri,
            parts: vec![Part {
                uri,
                text,
                is_code: true,
            }],
            is_notebook: false,
        })
    }
}

/// A document that is checked as a whole.
pub struct Document<'a> {
    uri: &'a Uri,
    /// The text, or the cells of the notebook.
    pub parts: Vec<Part<'a>>,
    is_notebook: bool,
}

#[derive(Clone, Copy)]
pub struct Part<'a> {
    pub uri: &'a Uri,
    pub text: &'a Text,
    is_code: bool,
}

#[derive(Deserialize)]
struct Cells {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    source: String,
}

impl Document<'_> {
    pub fn file(&self) -> PathBuf {
        let mut file = uri_to_path(self.uri);
        if self.is_notebook && !is_notebook(&file) {
            file.as_mut_os_string().push(".ipynb");
        }
        file
    }

    /// Returns the document as the bytes of a file.
    pub fn bytes(&self) -> Vec<u8> {
        if !self.is_notebook {
            let contents = self.parts.iter().map(|part| part.text.content.as_bytes());
            return contents.flatten().copied().collect();
        }
        let cells = self.parts.iter().map(|part| match part.is_code {
            true => json!({
                "cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [],
                "source": part.text.content,
            }),
            false => json!({"cell_type": "raw", "metadata": {}, "source": part.text.content}),
        });
        let cells: Vec<_> = cells.collect();
        json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
            .to_string()
            .into_bytes()
    }

    /// Splits the bytes of the document into the contents of its parts.
    pub fn contents(&self, bytes: Vec<u8>) -> Option<Vec<String>> {
        if !self.is_notebook {
            return String::from_utf8(bytes).ok().map(|content| vec![content]);
        }
        let Cells { cells } = serde_json::from_slice(&bytes).ok()?;
        Some(cells.into_iter().map(|cell| cell.source).collect())
    }

    /// Returns the part that contains a range, and the range within it.
    pub fn locate(
        &self,
        range: TextRange,
        positions: &PositionMap,
    ) -> Option<(Part<'_>, TextRange)> {
        match positions.cell(range.start()) {
            None => Some((*self.parts.first()?, range)),
            Some(cell) => {
                let part = self.parts.get(cell.number.checked_sub(1)?)?;
                Some((*part, range.checked_sub(cell.start)?))
            }
        }
    }
}

/// Converts a URI to a path. A URI that is not a file serves as a name.
fn uri_to_path(uri: &Uri) -> PathBuf {
    let path = match uri.scheme() {
        Some(scheme) if scheme.as_str() == "file" => uri.path().as_str(),
        _ => uri.as_str(),
    };
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    PathBuf::from(OsStr::from_bytes(&decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_file() {
        let file = |text: &str| uri_to_path(&text.parse().unwrap());
        assert_eq!(
            file("file:///home/a%20b/train.py"),
            PathBuf::from("/home/a b/train.py")
        );
        assert_eq!(
            file("untitled:Untitled-1"),
            PathBuf::from("untitled:Untitled-1")
        );
    }
}
