//! Handmade findings and reports for tests.

use crate::check_file::FileReport;
use crate::notebook::Cells;
use crate::position::PositionMap;
use antifreeze_lint::finding::{Edit, Finding, Fix, Safety};
use antifreeze_lint::model::Module;
use antifreeze_lint::rule::{Rule, Severity, Stage};
use ruff_text_size::{TextRange, TextSize};
use std::path::PathBuf;

/// A rule that finds every `bad` and fixes it to `good`.
pub static BAD: Rule = Rule {
    code: "AF900",
    name: "bad",
    severity: Severity::Error,
    stage: Stage::Stable,
    source: "//! # bad (AF900)\n//!\n//! It is bad.\n",
    check: find_bad,
};

fn find_bad(module: &Module<'_>, findings: &mut Vec<Finding>) {
    let positions = module.text.match_indices("bad");
    findings.extend(positions.map(|(start, word)| {
        let range = range(start, start + word.len());
        with_fix(finding(&BAD, range), &[(range, "good")])
    }));
}

pub fn range(start: usize, end: usize) -> TextRange {
    let offset = |at: usize| TextSize::try_from(at).unwrap();
    TextRange::new(offset(start), offset(end))
}

/// Returns the range of a piece of the text.
pub fn range_of(text: &str, piece: &str) -> TextRange {
    let start = text.find(piece).unwrap_or_else(|| panic!("no {piece:?}"));
    range(start, start + piece.len())
}

pub fn finding(rule: &'static Rule, range: TextRange) -> Finding {
    Finding {
        rule,
        range,
        message: "this is bad".to_owned(),
        label: "here".to_owned(),
        help: "make it good".to_owned(),
        fix: None,
    }
}

pub fn with_fix(mut finding: Finding, edits: &[(TextRange, &str)]) -> Finding {
    let edits = edits.iter().map(|(range, content)| Edit {
        range: *range,
        content: (*content).to_owned(),
    });
    finding.fix = Some(Fix {
        edits: edits.collect(),
        safety: Safety::Safe,
        title: "Make it good".to_owned(),
    });
    finding
}

pub fn report(path: &str, text: &str, cells: Option<Cells>, findings: Vec<Finding>) -> FileReport {
    FileReport {
        path: PathBuf::from(path),
        findings,
        positions: Some(PositionMap::new(text.to_owned(), cells)),
        ..FileReport::default()
    }
}
