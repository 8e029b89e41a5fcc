//! # unused-ignore (AF001)
//!
//! An ignore comment that ignores nothing.
//!
//! ## Why
//!
//! A comment that is no longer needed hides the next real finding on its line.
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
//! A comment for a finding that only a smaller machine would have is not reported, because the
//! same file may be checked on several machines.
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
    // Reported by `suppressions`, not by the model.
    check: |_, _| (),
};
