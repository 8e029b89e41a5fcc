//! A file's bytes as the text to check, and the way back to bytes.

use crate::encoding::{self, Encoding};
use crate::notebook::{self, Cells};
use antifreeze_lint::Dialect;
use antifreeze_lint::finding::Edit;
use antifreeze_sense::regular_file;
use std::io::Read;
use std::path::Path;

/// No person writes a script this long; what is longer is data or generated.
const LONGEST: u64 = 16 << 20;
/// A notebook holds its pictures as well.
const LONGEST_NOTEBOOK: u64 = 64 << 20;

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

/// The bytes of a file. The error says why there are none, beginning with a verb.
pub fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    let file = regular_file::open_named(path);
    bytes_from(file.map_err(|error| cannot_be_read(&error))?, path)
}

pub fn bytes_from(from: impl Read, name: &Path) -> Result<Vec<u8>, String> {
    let longest = match is_notebook(name) {
        true => LONGEST_NOTEBOOK,
        false => LONGEST,
    };
    let mut bytes = Vec::new();
    from.take(longest + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| cannot_be_read(&error))?;
    if bytes.len() as u64 > longest {
        let longest = longest >> 20;
        return Err(format!(
            "is longer than {longest} MiB, so it is not checked"
        ));
    }
    Ok(bytes)
}

fn cannot_be_read(error: &std::io::Error) -> String {
    format!("cannot be read: {error}")
}

pub fn is_notebook(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

impl Source {
    /// None where there is nothing to check: a notebook in another language. The error
    /// says why these bytes are no text.
    pub fn of(bytes: Vec<u8>, path: &Path) -> Result<Option<Source>, String> {
        let (text, encoding) = encoding::decode(bytes)?;
        if !is_notebook(path) {
            return Ok(Some(Source {
                text,
                origin: Origin::Script(encoding),
            }));
        }
        if encoding != Encoding::Utf8 {
            return Err("is no notebook that can be read: it is not plain UTF-8".to_owned());
        }
        let json = text;
        Ok(notebook::read(&json)?.map(|(text, cells)| Source {
            text,
            origin: Origin::Notebook { json, cells },
        }))
    }

    pub fn dialect(&self) -> Dialect<'_> {
        match &self.origin {
            Origin::Script(_) => Dialect::Python,
            Origin::Notebook { cells, .. } => Dialect::Notebook(cells.all()),
        }
    }

    pub fn cells(&self) -> Option<&Cells> {
        match &self.origin {
            Origin::Script(_) => None,
            Origin::Notebook { cells, .. } => Some(cells),
        }
    }

    /// The same file after edits that are in order, lie within the text and overlap
    /// nowhere.
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

    /// The file this text is to be written as.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        match &self.origin {
            Origin::Script(encoding) => encoding.encode(&self.text),
            Origin::Notebook { json, cells } => {
                notebook::write(json, &self.text, cells).map(String::into_bytes)
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
        let message = bytes_from(std::io::repeat(b' '), Path::new("a.py")).unwrap_err();
        assert!(message.contains("16 MiB"), "{message}");
    }

    #[test]
    fn a_missing_file_is_explained() {
        let message = bytes_of(Path::new("/nowhere/a.py")).unwrap_err();
        assert!(message.contains("No such file"), "{message}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_source_or_explained(bytes: Vec<u8>) {
            for name in ["a.py", "a.ipynb"] {
                if let Ok(Some(source)) = Source::of(bytes.clone(), Path::new(name)) {
                    prop_assert_eq!(source.bytes().unwrap(), bytes.clone());
                }
            }
        }
    }
}
