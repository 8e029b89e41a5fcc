//! # unknown-rule-in-ignore (AF002)
//!
//! An ignore comment that names an unknown rule or cannot be parsed.
//!
//! ## Why
//!
//! The comment seems to ignore a finding, but has no effect.
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
//! Safe: inserts the name that was probably meant, or removes the unknown one.

use antifreeze_lint::rule::{Rule, Severity, Stage};

pub static UNKNOWN_RULE_IN_IGNORE: Rule = Rule {
    code: "AF002",
    name: "unknown-rule-in-ignore",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("unknown_rule_in_ignore.rs"),
    // Reported by `suppressions`, not by the model.
    check: |_, _| (),
};
