//! The linter at work: files in, findings out, fixes written back.
//!
//! [`files`] finds what to check, [`crew`] shares it among the cores, [`examine`] takes one
//! file from its bytes to its report, and [`render`] says it to a person or a machine. What
//! is wrong in the code is for `antifreeze-lint` to know. A file that cannot be read or
//! parsed costs a line of its own and nothing else.

pub mod check_file;
mod encoding;
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
