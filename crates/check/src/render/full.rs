//! Prints findings for a person: the message, the source lines and the help.

use super::excerpt::excerpt;
use super::{each_finding, format_location, severity_name};
use crate::check_file::FileReport;
use antifreeze_lint::rule::Severity;
use antifreeze_text::{TermStyle, sanitize};

pub fn full(reports: &[FileReport], style: &TermStyle) -> String {
    let mut text = String::new();
    for (report, positions, finding) in each_finding(reports) {
        let colour = colour(finding.rule.severity);
        let kind = format!(
            "{}[{}]",
            severity_name(finding.rule.severity),
            finding.rule.name
        );
        let gutter = positions
            .number_of_row(positions.row(finding.range.end()))
            .to_string()
            .len();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!(
            "{} {}: {}\n",
            style.paint(
                "1",
                &format_location(&report.path, positions.position_of(finding.range.start()))
            ),
            style.paint(colour, &kind),
            sanitize::escape(finding.message.as_bytes()),
        ));
        text.push_str(&excerpt(positions, finding, gutter, colour, style));
        let mut help = finding.help.lines();
        if let Some(first) = help.next() {
            let equals = style.paint("2", "=");
            let first = sanitize::escape(first.as_bytes());
            text.push_str(&format!("{:gutter$} {equals} help: {first}\n", ""));
            for more in help {
                let more = more.replace('\t', "    ");
                let more = sanitize::escape(more.as_bytes());
                text.push_str(format!("{:gutter$}         {more}", "").trim_end());
                text.push('\n');
            }
        }
    }
    style.glyphs.render(text)
}

fn colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Info => "1;36",
    }
}
