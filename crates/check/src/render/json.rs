//! Prints findings as a JSON list for programs.

use super::{each_finding, escape_path, severity_name, start_and_end};
use crate::check_file::FileReport;
use crate::position::{Position, PositionMap};
use antifreeze_lint::finding::{Finding, Fix, Safety};
use ruff_text_size::TextRange;
use serde::Serialize;

#[derive(Serialize)]
struct Item<'a> {
    code: &'a str,
    name: &'a str,
    severity: &'a str,
    message: &'a str,
    label: &'a str,
    help: &'a str,
    file: String,
    /// The number of the cell in a notebook; lines then count within it.
    cell: Option<usize>,
    start: JsonPosition,
    end: JsonPosition,
    fix: Option<Change<'a>>,
}

/// A position, from one. Columns count characters, and an end is exclusive.
#[derive(Serialize)]
struct JsonPosition {
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct Change<'a> {
    title: &'a str,
    safety: &'a str,
    edits: Vec<Replacement<'a>>,
}

#[derive(Serialize)]
struct Replacement<'a> {
    cell: Option<usize>,
    start: JsonPosition,
    end: JsonPosition,
    content: &'a str,
}

pub fn json(reports: &[FileReport]) -> String {
    let items: Vec<_> = each_finding(reports)
        .map(|(report, positions, finding)| item(report, positions, finding))
        .collect();
    // Serializing strings and numbers cannot fail.
    serde_json::to_string_pretty(&items).unwrap_or_default() + "\n"
}

fn item<'a>(report: &FileReport, positions: &PositionMap, finding: &'a Finding) -> Item<'a> {
    let (start, end) = start_and_end(positions, finding);
    Item {
        code: finding.rule.code,
        name: finding.rule.name,
        severity: severity_name(finding.rule.severity),
        message: &finding.message,
        label: &finding.label,
        help: &finding.help,
        file: escape_path(&report.path),
        cell: start.cell,
        start: position(start),
        end: position(end),
        fix: finding.fix.as_ref().map(|fix| change(positions, fix)),
    }
}

fn change<'a>(positions: &PositionMap, fix: &'a Fix) -> Change<'a> {
    let replacement = |range: TextRange, content: &'a str| Replacement {
        cell: positions.position_of(range.start()).cell,
        start: position(positions.position_of(range.start())),
        end: position(positions.position_of(range.end())),
        content,
    };
    Change {
        title: &fix.title,
        safety: match fix.safety {
            Safety::Safe => "safe",
            Safety::Unsafe => "unsafe",
        },
        edits: fix
            .edits
            .iter()
            .map(|edit| replacement(edit.range, &edit.content))
            .collect(),
    }
}

fn position(place: Position) -> JsonPosition {
    JsonPosition {
        line: place.line,
        column: place.column,
    }
}
