//! The levels of a record, which hold the same history at four densities, and the names of their files.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many levels a record has.
pub const LEVEL_COUNT: usize = 4;

/// The shortest time between two samples of each level. Events are only in the first and the last level.
pub const LEVEL_PERIODS: [Duration; LEVEL_COUNT] = [
    Duration::ZERO,
    Duration::from_secs(10),
    Duration::from_secs(100),
    Duration::from_secs(1000),
];

/// The path of a level's file in the folder of a run.
pub(crate) fn level_path(folder: &Path, level: usize) -> PathBuf {
    folder.join(format!("record.{level}"))
}
