//! Prints workflow commands, which GitHub shows beside the changed lines.

use super::{each_finding, escape_path, start_and_end};
use crate::check_file::FileReport;
use antifreeze_lint::rule::Severity;

pub fn github(reports: &[FileReport]) -> String {
    each_finding(reports)
        .map(|(report, positions, finding)| {
            let kind = match finding.rule.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Info => "notice",
            };
            let (start, end) = start_and_end(positions, finding);
            let mut properties = vec![
                format!(
                    "title={}",
                    property(&format!("antifreeze: {}", finding.rule.name))
                ),
                format!("file={}", property(&escape_path(&report.path))),
            ];
            let mut message = finding.message.clone();
            match start.cell {
                // Lines of a cell are not lines of the file.
                Some(_) => message = format!("{start}: {message}"),
                None => {
                    properties.push(format!("line={}", start.line));
                    properties.push(format!("endLine={}", end.line));
                    // GitHub accepts columns only within one line.
                    if start.line == end.line {
                        properties.push(format!("col={}", start.column));
                        properties.push(format!("endColumn={}", end.column));
                    }
                }
            }
            if !finding.help.is_empty() {
                message = format!("{message}\nhelp: {}", finding.help);
            }
            format!("::{kind} {}::{}\n", properties.join(","), data(&message))
        })
        .collect()
}

fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
