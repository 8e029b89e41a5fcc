//! The definition of a rule: its names, severity, stage and documentation page.

use crate::finding::Finding;
use crate::model::Module;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Wastes time or memory.
    Info,
    /// Probably fails or runs out of memory.
    Warning,
    /// Fails or runs out of memory.
    Error,
}

/// How well a rule is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Proven precise on real code, and on by default.
    Stable,
    /// On only with `--preview`, or when selected by name.
    Preview,
}

/// A rule of the linter.
pub struct Rule {
    /// A unique code such as `AF101`, never reused for another rule.
    pub code: &'static str,
    /// A unique name such as `graph-in-accumulator`.
    pub name: &'static str,
    /// How serious its findings are.
    pub severity: Severity,
    /// How well it is proven.
    pub stage: Stage,
    /// The source of the rule's file, whose first comment is its page.
    pub source: &'static str,
    /// Adds the rule's findings for a text.
    pub check: fn(&Module<'_>, &mut Vec<Finding>),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.name)
    }
}

impl Rule {
    /// Returns the rule's page as Markdown: the `//!` lines at the head of its file.
    pub fn page(&self) -> String {
        self.source
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect()
    }

    /// Returns the first paragraph of the page after its title.
    pub fn summary(&self) -> String {
        let page = self.page();
        let mut paragraphs = page.split("\n\n").filter(|part| !part.starts_with('#'));
        paragraphs.next().unwrap_or("").trim().replace('\n', " ")
    }
}
