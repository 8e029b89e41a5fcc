//! The levels of a record: the same history at four densities.

use std::path::{Path, PathBuf};
use std::time::Duration;

pub const LEVEL_COUNT: usize = 4;

/// How much time lies at least between two samples of a level. Events are in all of them.
pub const LEVEL_PERIODS: [Duration; LEVEL_COUNT] = [
    Duration::ZERO,
    Duration::from_secs(10),
    Duration::from_secs(100),
    Duration::from_secs(1000),
];

/// The file of a level within a run's folder.
pub(crate) fn level_path(folder: &Path, level: usize) -> PathBuf {
    folder.join(format!("record.{level}"))
}
