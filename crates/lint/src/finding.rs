//! What a rule has to say: where, why, and the way out.

use crate::rule::Rule;
use ruff_text_size::TextRange;

/// One place that will give trouble.
#[derive(Clone, Debug)]
pub struct Finding {
    pub rule: &'static Rule,
    pub range: TextRange,
    /// One sentence: the thing by its name, and what it does to the machine.
    pub message: String,
    /// A few words beside the marked source, such as "grows every step of the loop at line 8".
    pub label: String,
    /// The way out, with the code to paste where there is one.
    pub help: String,
    pub fix: Option<Fix>,
}

/// A change that removes the finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// In order, none overlapping another.
    pub edits: Vec<Edit>,
    pub safety: Safety,
    /// What it does, in the imperative: "Keep the value, not the graph".
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub range: TextRange,
    pub content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safety {
    /// The program computes the same as before, with less memory.
    Safe,
    /// The program may compute something else.
    Unsafe,
}
