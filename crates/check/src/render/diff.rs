//! Renders the fixes as a diff that `patch` accepts.

use super::escape_path;
use crate::check_file::{Change, FileReport};
use crate::encoding;
use similar::TextDiff;

pub fn diff(reports: &[FileReport]) -> String {
    reports
        .iter()
        .filter_map(|report| Some(report_diff(report, report.change.as_ref()?)))
        .collect()
}

fn report_diff(report: &FileReport, change: &Change) -> String {
    let name = escape_path(&report.path);
    // Both were read or produced here, so decoding cannot fail.
    let text = |bytes: &[u8]| {
        let decoded = encoding::decode(bytes.to_vec());
        decoded.map(|(text, _)| text).unwrap_or_default()
    };
    TextDiff::from_lines(text(&change.before), text(&change.after))
        .unified_diff()
        .header(&name, &name)
        .to_string()
}
