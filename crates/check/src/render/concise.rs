//! Prints one line per finding, in the format that editors parse.

use super::{each_finding, format_location, severity_name};
use crate::check_file::FileReport;
use antifreeze_text::sanitize;

pub fn concise(reports: &[FileReport]) -> String {
    each_finding(reports)
        .map(|(report, positions, finding)| {
            format!(
                "{}: {}[{}]: {}\n",
                format_location(&report.path, positions.position_of(finding.range.start())),
                severity_name(finding.rule.severity),
                finding.rule.name,
                sanitize::escape(finding.message.as_bytes()),
            )
        })
        .collect()
}
