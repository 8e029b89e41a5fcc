//! A rule: its names, how bad what it finds is, whether it has earned its place, its page.

use crate::finding::Finding;
use crate::model::Module;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// How far a rule can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Proven precise on real code: on unless it is ignored.
    Stable,
    /// Asked for with `--preview`.
    Preview,
}

pub struct Rule {
    /// Such as `AF101`. Never given to another rule.
    pub code: &'static str,
    /// Such as `graph-in-accumulator`.
    pub name: &'static str,
    pub severity: Severity,
    pub stage: Stage,
    /// The source of the rule's own file, whose first comment is its page.
    pub source: &'static str,
    pub check: fn(&Module<'_>, &mut Vec<Finding>),
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.code, self.name)
    }
}

impl Rule {
    /// The page of the rule: the `//!` lines its file begins with, as Markdown.
    pub fn page(&self) -> String {
        self.source
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect()
    }

    /// The first sentence of the page after its title.
    pub fn summary(&self) -> String {
        let page = self.page();
        let mut paragraphs = page.split("\n\n").filter(|part| !part.starts_with('#'));
        paragraphs.next().unwrap_or("").trim().replace('\n', " ")
    }
}
