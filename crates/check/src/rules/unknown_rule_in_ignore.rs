//! # unknown-rule-in-ignore (AF002)
//!
//! An ignore comment that names a rule there is not, or cannot be read.
//!
//! ## Why
//!
//! It looks as if something were ignored, and nothing is.
//!
//! ## Wrong
//!
//! ```python
//! total += loss  # antifreeze: ignore[graph-in-acumulator]
//! ```
//!
//! ## Right
//!
//! ```python
//! total += loss  # antifreeze: ignore[graph-in-accumulator]
//! ```
//!
//! ## Fix
//!
//! Safe: puts the name that was probably meant, or removes the unknown one.

use antifreeze_lint::rule::{Rule, Severity, Stage};

pub static UNKNOWN_RULE_IN_IGNORE: Rule = Rule {
    code: "AF002",
    name: "unknown-rule-in-ignore",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("unknown_rule_in_ignore.rs"),
    // Found by whoever applies the comments.
    check: |_, _| (),
};
