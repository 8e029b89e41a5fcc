//! For programs: a list of objects, one a finding.

use super::{all, shown, start_and_end, word};
use crate::examine::Report;
use crate::place::{Place, Places};
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
    /// The number of the cell, in a notebook; lines then count within it.
    cell: Option<usize>,
    start: Position,
    end: Position,
    fix: Option<Change<'a>>,
}

/// Both from one; columns count characters, and the end is the first that is not meant.
#[derive(Serialize)]
struct Position {
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
    start: Position,
    end: Position,
    content: &'a str,
}

pub fn json(reports: &[Report]) -> String {
    let items: Vec<_> = all(reports)
        .map(|(report, places, finding)| item(report, places, finding))
        .collect();
    // Strings and numbers are always JSON.
    serde_json::to_string_pretty(&items).unwrap_or_default() + "\n"
}

fn item<'a>(report: &Report, places: &Places, finding: &'a Finding) -> Item<'a> {
    let (start, end) = start_and_end(places, finding);
    Item {
        code: finding.rule.code,
        name: finding.rule.name,
        severity: word(finding.rule.severity),
        message: &finding.message,
        label: &finding.label,
        help: &finding.help,
        file: shown(&report.path),
        cell: start.cell,
        start: position(start),
        end: position(end),
        fix: finding.fix.as_ref().map(|fix| change(places, fix)),
    }
}

fn change<'a>(places: &Places, fix: &'a Fix) -> Change<'a> {
    let replacement = |range: TextRange, content: &'a str| Replacement {
        cell: places.of(range.start()).cell,
        start: position(places.of(range.start())),
        end: position(places.of(range.end())),
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

fn position(place: Place) -> Position {
    Position {
        line: place.line,
        column: place.column,
    }
}
