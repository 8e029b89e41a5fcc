//! Why a record could not be read: the path, and the reason.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A record, or one of its files, could not be read.
#[derive(Debug)]
pub struct RecordError {
    path: PathBuf,
    reason: io::Error,
}

impl RecordError {
    pub(crate) fn new(path: PathBuf, reason: io::Error) -> RecordError {
        RecordError { path, reason }
    }

    pub(crate) fn no_record(folder: &Path) -> RecordError {
        let reason = io::Error::new(io::ErrorKind::NotFound, "there is no record");
        RecordError::new(folder.to_path_buf(), reason)
    }

    /// The file that could not be read, or the folder that has no record.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kind of the reason; [`io::ErrorKind::NotFound`] when the folder has no record.
    pub fn kind(&self) -> io::ErrorKind {
        self.reason.kind()
    }

    /// The reason as the system gave it, without the path.
    pub fn into_io(self) -> io::Error {
        self.reason
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.reason)
    }
}

/// Keeps kind, path and reason, for callers that return [`io::Error`].
impl From<RecordError> for io::Error {
    fn from(error: RecordError) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}
