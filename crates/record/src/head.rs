//! What a record says about itself before anything happened.

use antifreeze_sense::Stamp;
use std::ffi::OsString;
use std::path::PathBuf;

/// The number of the format. Raised only when an older reader could no longer pass over what
/// is new; so far, never.
pub const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHead {
    pub schema: u32,
    /// The run's name, at most [`RecordHead::RUN_BYTES`] long.
    pub run: String,
    /// The kernel's number of this boot: the monotonic clock means nothing in another one.
    pub boot: [u8; 16],
    pub start: Stamp,
    /// The machine's memory, what is kept for the person, and the user's own limit, in bytes.
    pub total: u64,
    pub reserve: u64,
    pub budget: Option<u64>,
    /// Where the command was started. A path longer than any kernel takes keeps its end.
    pub folder: PathBuf,
    /// The command, as much of it as fits into [`RecordHead::COMMAND_BYTES`].
    pub command: Vec<OsString>,
    /// The command was longer than what is here.
    pub truncated: bool,
}

impl RecordHead {
    pub const RUN_BYTES: usize = 32;
    pub const FOLDER_BYTES: usize = 4096;
    pub const COMMAND_BYTES: usize = 2048;
}
