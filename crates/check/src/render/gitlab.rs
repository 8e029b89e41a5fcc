//! Prints GitLab's code quality report. A fingerprint stays the same when its line moves, so that a
//! merge request shows only new findings.

use super::{each_finding, escape_path, start_and_end};
use crate::check_file::FileReport;
use crate::position::PositionMap;
use antifreeze_lint::finding::Finding;
use antifreeze_lint::rule::Severity;
use serde_json::json;
use std::collections::HashMap;

pub fn gitlab(reports: &[FileReport]) -> String {
    let mut fingerprints = Fingerprints::default();
    let issues = each_finding(reports).map(|(report, positions, finding)| {
        let (start, end) = start_and_end(positions, finding);
        let cell = start.cell.map(|cell| format!("cell {cell}: "));
        json!({
            "description": format!("{}{}", cell.unwrap_or_default(), finding.message),
            "check_name": finding.rule.name,
            "fingerprint": fingerprints.next(report, positions, finding),
            "severity": match finding.rule.severity {
                Severity::Error => "major",
                Severity::Warning => "minor",
                Severity::Info => "info",
            },
            "location": {
                "path": escape_path(&report.path),
                "positions": {
                    "begin": {"line": start.line, "column": start.column},
                    "end": {"line": end.line, "column": end.column},
                },
            },
        })
    });
    let issues: Vec<_> = issues.collect();
    // Serializing strings and numbers cannot fail.
    serde_json::to_string_pretty(&issues).unwrap_or_default() + "\n"
}

/// Computes fingerprints from the file, the rule, the text of the line and the number of earlier
/// duplicates.
#[derive(Default)]
pub struct Fingerprints(HashMap<u64, u32>);

impl Fingerprints {
    pub fn next(
        &mut self,
        report: &FileReport,
        positions: &PositionMap,
        finding: &Finding,
    ) -> String {
        let line = positions.line(positions.row(finding.range.start()));
        let parts = [&escape_path(&report.path), finding.rule.name, line.trim()];
        let hash = parts.iter().fold(FNV_BASIS, |hash, part| {
            fnv(fnv(hash, part.as_bytes()), &[0])
        });
        let count = self.0.entry(hash).or_default();
        *count += 1;
        format!("{:016x}", fnv(hash, &count.to_le_bytes()))
    }
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which unlike the standard library's hash is the same in every version.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
