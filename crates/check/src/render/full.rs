//! For a person: what is wrong, the lines it is wrong in, and the way out.

use super::excerpt::excerpt;
use super::{address, all, word};
use crate::examine::Report;
use antifreeze_lint::rule::Severity;
use antifreeze_view::{Look, safe};

pub fn full(reports: &[Report], look: &Look) -> String {
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
            painted(
                look,
                "1",
                &address(&report.path, places.of(finding.range.start()))
            ),
            painted(look, colour, &kind),
            safe::shown(finding.message.as_bytes()),
        ));
        text.push_str(&excerpt(places, finding, gutter, colour, look));
        let mut help = finding.help.lines();
        if let Some(first) = help.next() {
            let equals = painted(look, "2", "=");
            let first = safe::shown(first.as_bytes());
            text.push_str(&format!("{:gutter$} {equals} help: {first}\n", ""));
            for more in help {
                let more = more.replace('\t', "    ");
                let more = safe::shown(more.as_bytes());
                text.push_str(format!("{:gutter$}         {more}", "").trim_end());
                text.push('\n');
            }
        }
    }
    look.glyphs.render(text)
}

fn colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "1;31",
        Severity::Warning => "1;33",
        Severity::Info => "1;36",
    }
}

pub fn painted(look: &Look, code: &str, text: &str) -> String {
    match look.colour {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}
