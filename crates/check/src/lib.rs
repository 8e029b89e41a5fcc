//! Checks files with the linter, prints findings and writes fixes.
//!
//! [`find_files`] finds the files, [`parallel`] distributes them over the cores, [`check_file`]
//! turns the bytes of one file into its report, and [`render`] prints reports for a person or a
//! program. The rules about code are in `antifreeze-lint`. A file that cannot be read or parsed
//! does not affect the others.

pub mod check_file;
mod encoding;
pub mod error;
pub mod find_files;
mod fix;
mod lint_source;
mod notebook;
pub mod pages;
pub mod parallel;
pub mod position;
mod precision;
mod python2;
pub mod render;
mod replace_file;
pub mod rule_names;
pub mod rules;
pub mod settings;
pub mod source;
mod statements;
mod suppressions;
#[cfg(test)]
mod test_findings;
