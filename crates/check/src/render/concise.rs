//! One line a finding, as compilers write it and editors read it.

use super::{address, all, word};
use crate::examine::Report;
use antifreeze_text::sanitize;

pub fn concise(reports: &[Report]) -> String {
    all(reports)
        .map(|(report, places, finding)| {
            format!(
                "{}: {}[{}]: {}\n",
                address(&report.path, places.of(finding.range.start())),
                word(finding.rule.severity),
                finding.rule.name,
                sanitize::escape(finding.message.as_bytes()),
            )
        })
        .collect()
}
