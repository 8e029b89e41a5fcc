//! # unused-ignore (AF001)
//!
//! An ignore comment that ignores nothing.
//!
//! ## Why
//!
//! A comment that outlived its reason hides the next real finding on its line.
//!
//! ## Wrong
//!
//! ```python
//! total += loss.item()  # antifreeze: ignore[graph-in-accumulator]
//! ```
//!
//! ## Right
//!
//! ```python
//! total += loss.item()
//! ```
//!
//! ## When it is fine
//!
//! An ignore of a finding that only a smaller machine has is not reported: the same file is
//! checked where it trains and where it is written.
//!
//! ## Fix
//!
//! Safe: removes the comment, or the name in it.

use antifreeze_lint::rule::{Rule, Severity, Stage};

pub static UNUSED_IGNORE: Rule = Rule {
    code: "AF001",
    name: "unused-ignore",
    severity: Severity::Warning,
    stage: Stage::Stable,
    source: include_str!("unused_ignore.rs"),
    // Found by whoever applies the comments.
    check: |_, _| (),
};
