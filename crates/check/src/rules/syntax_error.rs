//! # syntax-error (AF000)
//!
//! The file is not valid Python 3, so little or nothing of it could be checked.
//!
//! ## Why
//!
//! A file that cannot be parsed cannot be checked. The position is where parsing failed first;
//! the cause is often slightly above it, such as an unclosed bracket. Python 2 code
//! (`print "loss"`) is named as such.
//!
//! ## When it is fine
//!
//! Python 2 files, templates, tests of parsers. Skip them with `exclude`, or list them under
//! `per-file-ignores`. A comment cannot ignore this rule, because comments are unreliable in a
//! file that cannot be parsed.

use antifreeze_lint::rule::{Rule, Severity, Stage};

pub static SYNTAX_ERROR: Rule = Rule {
    code: "AF000",
    name: "syntax-error",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: include_str!("syntax_error.rs"),
    // Reported by `lint_source`, not by the model.
    check: |_, _| (),
};
