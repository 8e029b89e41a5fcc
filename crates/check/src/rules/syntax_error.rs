//! # syntax-error (AF000)
//!
//! The file is not Python as version 3 reads it, so little or nothing of it could be checked.
//!
//! ## Why
//!
//! What cannot be parsed cannot be checked. The place is where reading failed first; the cause
//! is often a little above it, such as a bracket that was never closed. Code for Python 2
//! (`print "loss"`) is named as such.
//!
//! ## When it is fine
//!
//! Files for Python 2, templates, tests of parsers. Leave them out with `exclude`, or name them
//! under `per-file-ignores`. A comment cannot ignore it, because comments cannot be trusted in
//! a file that cannot be read.

use antifreeze_lint::rule::{Rule, Severity, Stage};

pub static SYNTAX_ERROR: Rule = Rule {
    code: "AF000",
    name: "syntax-error",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("syntax_error.rs"),
    // Found by whoever parses.
    check: |_, _| (),
};
