//! The text of a file, and how to write it back.

use crate::encoding::{self, Encoding};
use crate::error::FileError;
use crate::notebook::{self, Cells};
use antifreeze_lint::Dialect;
use antifreeze_lint::finding::Edit;
use antifreeze_sense::regular_file;
use std::io::Read;
use std::path::Path;

/// The largest script that is read. Longer files are data or generated code.
const MAX_SCRIPT_BYTES: u64 = 16 << 20;
/// The largest notebook that is read. Notebooks also contain images.
const MAX_NOTEBOOK_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub struct Source {
    pub text: String,
    origin: Origin,
}

#[derive(Clone, Debug)]
enum Origin {
    Script(Encoding),
    Notebook { json: String, cells: Cells },
}

/// Reads a file.
pub fn read_file(path: &Path) -> Result<Vec<u8>, FileError> {
    // A shell passes the output of a command as a pipe in /dev/fd.
    let is_passed = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    let file = match is_passed {
        true => std::fs::File::open(path),
        false => regular_file::open(path),
    };
    read_bounded(file.map_err(FileError::Read)?, path)
}

pub fn read_bounded(from: impl Read, name: &Path) -> Result<Vec<u8>, FileError> {
    let longest = match is_notebook(name) {
        true => MAX_NOTEBOOK_BYTES,
        false => MAX_SCRIPT_BYTES,
    };
    let mut bytes = Vec::new();
    from.take(longest + 1)
        .read_to_end(&mut bytes)
        .map_err(FileError::Read)?;
    if bytes.len() as u64 > longest {
        return Err(FileError::TooLong(longest));
    }
    Ok(bytes)
}

pub fn is_notebook(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

impl Source {
    /// Decodes the bytes of a file. Returns `None` for a notebook in another language.
    pub fn decode(bytes: Vec<u8>, path: &Path) -> Result<Option<Source>, FileError> {
        let (text, encoding) = encoding::decode(bytes)?;
        if !is_notebook(path) {
            return Ok(Some(Source {
                text,
                origin: Origin::Script(encoding),
            }));
        }
        if encoding != Encoding::Utf8 {
            return Err(FileError::InvalidNotebook(
                "it is not plain UTF-8".to_owned(),
            ));
        }
        let json = text;
        Ok(
            notebook::parse_notebook(&json)?.map(|(text, cells)| Source {
                text,
                origin: Origin::Notebook { json, cells },
            }),
        )
    }

    pub fn dialect(&self) -> Dialect<'_> {
        match &self.origin {
            Origin::Script(_) => Dialect::Python,
            Origin::Notebook { cells, .. } => Dialect::Notebook(cells.as_slice()),
        }
    }

    pub fn cells(&self) -> Option<&Cells> {
        match &self.origin {
            Origin::Script(_) => None,
            Origin::Notebook { cells, .. } => Some(cells),
        }
    }

    /// Returns the source after edits that are sorted, inside the text and without overlap.
    pub fn edited(&self, edits: &[&Edit]) -> Source {
        match &self.origin {
            Origin::Script(_) => {
                let mut text = String::with_capacity(self.text.len());
                let mut at = 0;
                for edit in edits {
                    let range = edit.range.to_std_range();
                    text.push_str(self.text.get(at..range.start).unwrap_or_default());
                    text.push_str(&edit.content);
                    at = range.end;
                }
                text.push_str(self.text.get(at..).unwrap_or_default());
                Source {
                    text,
                    origin: self.origin.clone(),
                }
            }
            Origin::Notebook { json, cells } => {
                let (text, cells) = cells.edited(&self.text, edits);
                let json = json.clone();
                Source {
                    text,
                    origin: Origin::Notebook { json, cells },
                }
            }
        }
    }

    /// Encodes the source as a file.
    pub fn bytes(&self) -> Result<Vec<u8>, FileError> {
        match &self.origin {
            Origin::Script(encoding) => encoding.encode(&self.text),
            Origin::Notebook { json, cells } => {
                notebook::write_notebook(json, &self.text, cells).map(String::into_bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_too_long_is_not_read_to_its_end() {
        let message = read_bounded(std::io::repeat(b' '), Path::new("a.py"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("16 MiB"), "{message}");
    }

    #[test]
    fn a_missing_file_is_explained() {
        let message = read_file(Path::new("/nowhere/a.py"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("No such file"), "{message}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_source_or_explained(bytes: Vec<u8>) {
            for name in ["a.py", "a.ipynb"] {
                if let Ok(Some(source)) = Source::decode(bytes.clone(), Path::new(name)) {
                    prop_assert_eq!(source.bytes().unwrap(), bytes.clone());
                }
            }
        }
    }
}
