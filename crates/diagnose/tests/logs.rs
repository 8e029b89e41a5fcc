//! Logs of many programs, each explained on its own and compared with the causes that may come first.
//!
//! Each file in `tests/logs` holds the cases of one kind of cause. A case begins with a line
//!
//! ```text
//! ==== NAME: CAUSE…          # why
//! ```
//!
//! and the log follows, byte for byte, up to the line break before the next case. A log that is not plain text is a
//! file in `tests/logs/raw`; its case holds only `@raw/NAME.txt`. The causes are those that may come first:
//!
//! - `CODE`: this cause, at any confidence
//! - `low:CODE`: this cause below 0.8, or no cause
//! - `low:any`: any cause below 0.8, or no cause
//! - `none`: no cause
//!
//! The logs were written for these tests, in the words of the programs that they imitate.

#![allow(clippy::unwrap_used)]

use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::{Run, Verdict};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A cause of at least this confidence counts as certain.
const CERTAIN: f64 = 0.8;

struct RunEvidence {
    name: String,
    expected: Vec<String>,
    log: Vec<u8>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

fn files_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

/// All cases of all files.
fn cases() -> Vec<RunEvidence> {
    let mut cases = Vec::new();
    for path in files_in(&folder(), "log") {
        let text = fs::read_to_string(&path).unwrap();
        cases.extend(text.split("\n==== ").skip(1).map(parse_case));
    }
    cases
}

fn parse_case(text: &str) -> RunEvidence {
    let (head, log) = text.split_once('\n').unwrap();
    let (name, expected) = head.split('#').next().unwrap().split_once(": ").unwrap();
    let log = match raw_file(log) {
        Some(file) => fs::read(folder().join(file)).unwrap(),
        None => log.into(),
    };
    RunEvidence {
        name: name.into(),
        expected: expected.split_whitespace().map(Into::into).collect(),
        log,
    }
}

/// The file that holds the log, where the case only names it.
fn raw_file(log: &str) -> Option<&str> {
    let file = log.strip_prefix('@')?.trim_end();
    file.starts_with("raw/").then_some(file)
}

impl RunEvidence {
    fn allows(&self, verdict: &Verdict) -> bool {
        let expects = |word: &str| self.expected.iter().any(|expected| expected == word);
        let Some(first) = verdict.causes.first() else {
            return expects("none") || self.expected.iter().any(|word| word.starts_with("low:"));
        };
        let code = first.code.word();
        let is_uncertain = first.confidence < CERTAIN;
        expects(code) || is_uncertain && (expects("low:any") || expects(&format!("low:{code}")))
    }
}

#[test]
fn the_first_cause_of_each_log_is_an_expected_one() {
    let mut failures = Vec::new();
    for evidence in cases() {
        let verdict = Run::from_output(evidence.log.clone(), Log::default()).verdict;
        if evidence.allows(&verdict) {
            continue;
        }
        let found: Vec<String> = verdict
            .causes
            .iter()
            .map(|cause| format!("{} {:.2}", cause.code.word(), cause.confidence))
            .collect();
        let is_certain = verdict
            .causes
            .first()
            .is_some_and(|first| first.confidence >= CERTAIN);
        failures.push(format!(
            "{:7} {}: expected {}, {} with [{}]",
            if is_certain { "CERTAIN" } else { "" },
            evidence.name,
            evidence.expected.join(" "),
            verdict.end.kind.word(),
            found.join(", ")
        ));
    }
    assert!(
        failures.is_empty(),
        "{} wrong:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

#[test]
fn every_case_has_a_name_of_its_own_and_every_raw_file_belongs_to_a_case() {
    let cases = cases();
    let names: BTreeSet<&str> = cases
        .iter()
        .map(|evidence| evidence.name.as_str())
        .collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 420, "{} cases", cases.len());
    for file in files_in(&folder().join("raw"), "txt") {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(names.contains(name), "{name}");
    }
}
