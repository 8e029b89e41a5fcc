//! For a person: what is wrong, the lines it is wrong in, and the way out.

use super::excerpt::excerpt;
use super::{address, all, word};
use crate::examine::Report;
use antifreeze_lint::rule::Severity;
use antifreeze_text::{TermStyle, sanitize};

pub fn full(reports: &[Report], style: &TermStyle) -> String {
    let mut text = String::new();
    for (report, places, finding) in all(reports) {
        let colour = colour(finding.rule.severity);
        let kind = format!("{}[{}]", word(finding.rule.severity), finding.rule.name);
        let gutter = places
            .number_of_row(places.row(finding.range.end()))
            .to_string()
            .len();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!(
            "{} {}: {}\n",
            style.paint(
                "1",
                &address(&report.path, places.of(finding.range.start()))
            ),
            style.paint(colour, &kind),
            sanitize::escape(finding.message.as_bytes()),
        ));
        text.push_str(&excerpt(places, finding, gutter, colour, style));
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
