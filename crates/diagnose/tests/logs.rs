//! Logs of all kinds, each explained by itself, against the causes that may come first: `tests/logs/TABLE`.

#![allow(clippy::unwrap_used)]

use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::{Run, Verdict};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From here on an answer is called sure.
const SURE: f64 = 0.8;

struct Row {
    name: String,
    wanted: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

fn rows() -> Vec<Row> {
    let table = fs::read_to_string(folder().join("TABLE")).unwrap();
    let lines = table
        .lines()
        .map(|line| line.split('#').next().unwrap().trim());
    let row = |line: &str| {
        let (name, wanted) = line.split_once(": ").unwrap();
        Row {
            name: name.into(),
            wanted: wanted.split_whitespace().map(Into::into).collect(),
        }
    };
    lines.filter(|line| !line.is_empty()).map(row).collect()
}

fn explain(name: &str) -> Verdict {
    let output = fs::read(folder().join(format!("{name}.txt"))).unwrap();
    Run::of_output(output, Log::default()).verdict
}

impl Row {
    fn allows(&self, verdict: &Verdict) -> bool {
        let wants = |word: &str| self.wanted.iter().any(|wanted| wanted == word);
        let Some(first) = verdict.causes.first() else {
            return wants("none") || self.wanted.iter().any(|wanted| wanted.starts_with("low:"));
        };
        let word = first.code.word();
        let is_low = first.confidence < SURE;
        wants(word) || is_low && (wants("low:any") || wants(&format!("low:{word}")))
    }
}

#[test]
fn what_comes_first_is_what_ended_it() {
    let mut misses = Vec::new();
    for row in rows() {
        let verdict = explain(&row.name);
        if row.allows(&verdict) {
            continue;
        }
        let found: Vec<String> = verdict
            .causes
            .iter()
            .map(|cause| format!("{} {:.2}", cause.code.word(), cause.confidence))
            .collect();
        let is_sure = verdict
            .causes
            .first()
            .is_some_and(|first| first.confidence >= SURE);
        let sure = if is_sure { "SURE" } else { "" };
        misses.push(format!(
            "{sure:4} {}: wanted {}, {} with [{}]",
            row.name,
            row.wanted.join(" "),
            verdict.end.kind.word(),
            found.join(", ")
        ));
    }
    assert!(
        misses.is_empty(),
        "{} wrong:\n{}",
        misses.len(),
        misses.join("\n")
    );
}

#[test]
fn every_log_is_in_the_table() {
    let named: BTreeSet<String> = rows().into_iter().map(|row| row.name).collect();
    let files = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let there: BTreeSet<String> = files
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(named, there);
}
