//! Prints findings as SARIF 2.1.0, for GitHub code scanning and other tools.

use super::gitlab::Fingerprints;
use super::{each_finding, start_and_end};
use crate::check_file::FileReport;
use crate::pages;
use crate::position::{Position, PositionMap};
use antifreeze_lint::finding::Fix;
use antifreeze_lint::rule::{Rule, Severity};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub fn sarif(reports: &[FileReport]) -> String {
    let mut rules: Vec<&'static Rule> = each_finding(reports)
        .map(|(_, _, finding)| finding.rule)
        .collect();
    rules.sort_unstable_by_key(|rule| rule.code);
    rules.dedup_by_key(|rule| rule.code);
    let mut fingerprints = Fingerprints::default();
    let results = each_finding(reports).map(|(report, positions, finding)| {
        let (start, end) = start_and_end(positions, finding);
        let artifact = json!({"uri": uri(&report.path)});
        let help = match finding.help.is_empty() {
            true => String::new(),
            false => format!("\nhelp: {}", finding.help),
        };
        // Lines of a cell are not lines of the file.
        let (region, cell) = match start.cell {
            None => (region(start, end), String::new()),
            Some(_) => (json!({"startLine": 1}), format!("{start}: ")),
        };
        let mut result = json!({
            "ruleId": finding.rule.code,
            "ruleIndex": rules.iter().position(|rule| rule.code == finding.rule.code),
            "level": level(finding.rule.severity),
            "message": {"text": format!("{cell}{}{help}", finding.message)},
            "locations": [{"physicalLocation": {"artifactLocation": artifact, "region": region}}],
            "partialFingerprints": {
                "antifreeze/v1": fingerprints.next(report, positions, finding),
            },
        });
        if let (Some(fix), None) = (&finding.fix, start.cell) {
            result["fixes"] = json!([self::fix(fix, positions, &artifact)]);
        }
        result
    });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "antifreeze",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.iter().map(|rule| self::rule(rule)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    });
    // Serializing strings and numbers cannot fail.
    serde_json::to_string_pretty(&log).unwrap_or_default() + "\n"
}

fn rule(rule: &Rule) -> Value {
    let page = pages::rule_page(rule);
    json!({
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary()},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": level(rule.severity)},
    })
}

fn fix(fix: &Fix, positions: &PositionMap, artifact: &Value) -> Value {
    let replacements = fix.edits.iter().map(|edit| {
        json!({
            "deletedRegion": region(positions.position_of(edit.range.start()), positions.position_of(edit.range.end())),
            "insertedContent": {"text": edit.content},
        })
    });
    json!({
        "description": {"text": fix.title},
        "artifactChanges": [{
            "artifactLocation": artifact,
            "replacements": replacements.collect::<Vec<_>>(),
        }],
    })
}

fn region(start: Position, end: Position) -> Value {
    json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// Encodes a path as a URI reference.
fn uri(path: &Path) -> String {
    let mut uri = match path.is_absolute() {
        true => String::from("file://"),
        false => String::new(),
    };
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
