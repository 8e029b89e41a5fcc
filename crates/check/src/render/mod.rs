//! Renders findings for a person or a program.

mod concise;
mod diff;
mod excerpt;
mod full;
mod github;
mod gitlab;
mod json;
mod rule_page;
mod sarif;
mod summary;
#[cfg(test)]
mod tests;

pub use diff::diff;
pub use rule_page::{rule_list, rule_page};
pub use summary::summary;

use crate::check_file::FileReport;
use crate::position::{Position, PositionMap};
use antifreeze_lint::finding::Finding;
use antifreeze_lint::rule::Severity;
use antifreeze_text::{TermStyle, sanitize};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For a person: the message, the source lines and the help.
    #[default]
    Full,
    /// For a person or an editor: one line per finding.
    Concise,
    Json,
    /// GitHub Actions annotations.
    Github,
    /// SARIF 2.1.0 for code scanning.
    Sarif,
    /// The GitLab code quality report.
    Gitlab,
}

/// Renders the findings in a format.
pub fn findings(format: Format, reports: &[FileReport], style: &TermStyle) -> String {
    match format {
        Format::Full => full::full(reports, style),
        Format::Concise => concise::concise(reports),
        Format::Json => json::json(reports),
        Format::Github => github::github(reports),
        Format::Sarif => sarif::sarif(reports),
        Format::Gitlab => gitlab::gitlab(reports),
    }
}

/// Returns each finding with its file and positions.
fn each_finding(
    reports: &[FileReport],
) -> impl Iterator<Item = (&FileReport, &PositionMap, &Finding)> {
    reports.iter().flat_map(|report| {
        let findings = report.findings.iter();
        let positions = report.positions.iter();
        positions.flat_map(move |positions| {
            findings
                .clone()
                .map(move |finding| (report, positions, finding))
        })
    })
}

/// Escapes a path for printing.
pub fn escape_path(path: &Path) -> String {
    sanitize::escape(path.as_os_str().as_bytes())
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// Formats a location: "train.py:14:5", "train.ipynb:cell 3:14:5".
fn format_location(path: &Path, place: Position) -> String {
    let cell = place.cell.map(|cell| format!(":cell {cell}"));
    format!(
        "{}{}:{}:{}",
        escape_path(path),
        cell.unwrap_or_default(),
        place.line,
        place.column
    )
}

fn start_and_end(positions: &PositionMap, finding: &Finding) -> (Position, Position) {
    let range = finding.range;
    (
        positions.position_of(range.start()),
        positions.position_of(range.end()),
    )
}
