//! A finding of a rule: where it is, why it matters and how to fix it.

use crate::rule::Rule;
use ruff_text_size::TextRange;

/// One place in the code that will cause a problem.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule that reports the finding.
    pub rule: &'static Rule,
    /// The source range that is marked.
    pub range: TextRange,
    /// One sentence that names the variable or call and its effect.
    pub message: String,
    /// A short note shown beside the marked source, such as "grows every step of the loop at line
    /// 8".
    pub label: String,
    /// How to fix it, with code to paste where possible.
    pub help: String,
    /// A change that removes the finding, if there is one.
    pub fix: Option<Fix>,
}

/// A change that removes the finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// The edits, sorted by position and without overlap.
    pub edits: Vec<Edit>,
    /// Whether the fix keeps the result of the program.
    pub safety: Safety,
    /// What the fix does, in the imperative: "Keep the value, not the graph".
    pub title: String,
}

/// A replacement of a range of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The range to replace; empty for an insertion.
    pub range: TextRange,
    /// The new text.
    pub content: String,
}

/// Whether a fix keeps the result of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safety {
    /// The program computes the same result with less memory.
    Safe,
    /// The program may compute a different result.
    Unsafe,
}
