//! The errors of this crate: what failed, on which input, and why.

use antifreeze_lint::rule::Rule;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a file could not be read, checked or written.
///
/// The text is a predicate whose subject is the file: "cannot be read: permission denied".
#[derive(Debug)]
pub enum FileError {
    /// The file cannot be read.
    Read(io::Error),
    /// The file is longer than this many bytes.
    TooLong(u64),
    /// The file contains NUL characters.
    NotText,
    /// The file is not UTF-8, first on this line.
    NotUtf8 {
        /// The line, from one.
        line: usize,
    },
    /// The file declares an encoding that is not known.
    UnknownEncoding(String),
    /// The file is not valid in the encoding that it declares.
    InvalidEncoding(&'static str),
    /// The text has characters that this encoding lacks.
    Unencodable(&'static str),
    /// The file is not a notebook.
    InvalidNotebook(String),
    /// The notebook has another format than 4.
    NotebookFormat(i64),
    /// The fixed notebook cannot be written back.
    NotWrittenBack(String),
    /// The encoding would not give the same bytes.
    LossyEncoding,
    /// The file cannot be written.
    Write(io::Error),
    /// antifreeze panicked with this message.
    Panic(String),
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Read(error) => write!(f, "cannot be read: {error}"),
            FileError::TooLong(limit) => {
                write!(
                    f,
                    "is longer than {} MiB, so it is not checked",
                    limit >> 20
                )
            }
            FileError::NotText => write!(f, "is not text (it contains NUL characters)"),
            FileError::NotUtf8 { line } => write!(
                f,
                "is not UTF-8 (line {line}) and declares no other encoding; if it is Latin-1, \
                 start it with `# -*- coding: latin-1 -*-`"
            ),
            FileError::UnknownEncoding(name) => write!(f, "declares the unknown encoding `{name}`"),
            FileError::InvalidEncoding(name) => write!(
                f,
                "is not valid {}, the encoding it declares",
                name.to_ascii_lowercase()
            ),
            FileError::Unencodable(name) => write!(f, "cannot be encoded as {name}"),
            FileError::InvalidNotebook(reason) => write!(f, "is not a readable notebook: {reason}"),
            FileError::NotebookFormat(format) => write!(
                f,
                "is a notebook of format {format}; save it with a current Jupyter"
            ),
            FileError::NotWrittenBack(reason) => write!(f, "cannot be written back: {reason}"),
            FileError::LossyEncoding => write!(
                f,
                "has an encoding that cannot be written back, so it was not fixed"
            ),
            FileError::Write(error) => write!(f, "cannot be written: {error}"),
            FileError::Panic(reason) => write!(
                f,
                "could not be checked: antifreeze itself failed ({reason}); please report it"
            ),
        }
    }
}

impl Error for FileError {}

/// Why a path given as an argument, or a path below it, could not be walked.
#[derive(Debug)]
pub enum FindError {
    /// The argument cannot be read.
    Argument(PathBuf, io::Error),
    /// A path below a folder cannot be read.
    Walk(ignore::Error),
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindError::Argument(path, error) => write!(f, "{}: {error}", path.display()),
            FindError::Walk(error) => error.fmt(f),
        }
    }
}

impl Error for FindError {}

/// A name that is no rule.
#[derive(Clone, Debug)]
pub struct UnknownRule {
    /// The name that was given.
    pub name: String,
    /// The rule with the most similar name.
    pub suggestion: Option<&'static Rule>,
}

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.suggestion {
            Some(rule) => write!(
                f,
                "there is no rule `{name}`; did you mean `{}`?",
                rule.name
            ),
            None => write!(
                f,
                "there is no rule `{name}`; `antifreeze check --explain` lists them"
            ),
        }
    }
}

impl Error for UnknownRule {}

/// Why the configuration or the flags are invalid.
#[derive(Debug)]
pub enum SettingsError {
    /// A name is no rule.
    Rule(UnknownRule),
    /// A path pattern is invalid.
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why it is invalid.
        error: globset::Error,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Rule(unknown) => unknown.fmt(f),
            SettingsError::Pattern { pattern, error } => {
                write!(
                    f,
                    "`{pattern}` is not a valid path pattern: {}",
                    error.kind()
                )
            }
        }
    }
}

impl Error for SettingsError {}

impl From<UnknownRule> for SettingsError {
    fn from(unknown: UnknownRule) -> SettingsError {
        SettingsError::Rule(unknown)
    }
}
