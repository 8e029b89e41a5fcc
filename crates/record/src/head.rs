//! The head of a record: which run it is of, and under which conditions it began.

use antifreeze_sense::Stamp;
use std::ffi::OsString;
use std::path::PathBuf;

/// The version of the format. It is raised only for a change that older readers cannot skip, which has not happened yet.
pub const SCHEMA: u32 = 1;

/// What is known of a run when it begins. It is written at the start of each lap of each file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// The version of the format: [`SCHEMA`].
    pub schema: u32,
    /// The name of the run, at most [`RecordHead::MAX_RUN_BYTES`] long.
    pub run: String,
    /// The kernel's id of this boot: monotonic times of another boot cannot be compared.
    pub boot: [u8; 16],
    /// When the run began.
    pub start: Stamp,
    /// The memory of the machine, in bytes.
    pub total: u64,
    /// The memory that is kept available for the user, in bytes.
    pub reserve: u64,
    /// The user's own limit for the run, in bytes.
    pub budget: Option<u64>,
    /// The folder in which the command was started. Of a path longer than [`RecordHead::MAX_FOLDER_BYTES`] the end is kept.
    pub folder: PathBuf,
    /// The command, as many of its words as fit into [`RecordHead::MAX_COMMAND_BYTES`].
    pub command: Vec<OsString>,
    /// The command had more words.
    pub truncated: bool,
}

impl RecordHead {
    /// The longest name of a run.
    pub const MAX_RUN_BYTES: usize = 32;
    /// The longest folder, which is the longest path that the kernel accepts.
    pub const MAX_FOLDER_BYTES: usize = 4096;
    /// The longest command, with two bytes for each word.
    pub const MAX_COMMAND_BYTES: usize = 2048;
}
