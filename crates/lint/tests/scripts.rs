//! The recall set: what the rules find in small scripts of training code.
//!
//! `support/cases.rs` describes the files. Lines of a notebook are those of its code cells, one
//! cell after the other.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use antifreeze_lint::rule::Rule;
use antifreeze_lint::rules::RULES;
use antifreeze_lint::target_machine::TargetMachine;
use antifreeze_lint::{Dialect, STACK_BYTES, check_source};
use std::collections::{BTreeMap, BTreeSet};

#[path = "support/cases.rs"]
mod cases;
use cases::{Case, folder, read_cases};

const TARGET: TargetMachine = TargetMachine {
    ram_bytes: Some(16 << 30),
    vram_bytes: Some(8 << 30),
    cores: Some(8),
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wrong,
    Right,
    Innocent,
}

struct Script {
    /// Such as `graph-in-container/notebook_cells.wrong.ipynb`.
    name: String,
    kind: Kind,
    dialect: Dialect<'static>,
    text: String,
    /// Rule and line, from 1.
    expected: Vec<(String, usize)>,
    instead: Vec<(String, usize)>,
}

struct Reported {
    rule: String,
    line: usize,
    message: String,
}

/// Names of rules are compared without hyphens and case, so that `sigmoid-then-BCEWithLogits`
/// may be spelled in any of the usual ways.
fn plain(rule: &str) -> String {
    rule.replace('-', "").to_lowercase()
}

/// The code cells of a notebook, each ended by a new line.
fn code_of(notebook: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(notebook).unwrap();
    assert_eq!(value["nbformat"], 4);
    let mut text = String::new();
    for cell in value["cells"].as_array().unwrap() {
        if cell["cell_type"] == "code" {
            for line in cell["source"].as_array().unwrap() {
                text.push_str(line.as_str().unwrap());
            }
            text.push('\n');
        }
    }
    text
}

fn marks(text: &str, word: &str) -> Vec<(String, usize)> {
    let mut marks = Vec::new();
    for (line, content) in text.lines().enumerate() {
        if let Some((_, names)) = content.rsplit_once(&format!("# {word}: ")) {
            for name in names.split(',') {
                marks.push((name.trim().to_owned(), line + 1));
            }
        }
    }
    marks
}

fn script(case: Case) -> Script {
    let Case { name, content } = case;
    let (text, dialect) = if name.ends_with(".ipynb") {
        (code_of(&content), Dialect::Notebook(&[]))
    } else {
        (content, Dialect::Python)
    };
    let kind = if name.starts_with("innocent/") {
        Kind::Innocent
    } else if name.contains(".wrong.") {
        Kind::Wrong
    } else {
        assert!(
            name.contains(".right."),
            "{name} is neither wrong nor right"
        );
        Kind::Right
    };
    Script {
        expected: marks(&text, "expect"),
        instead: marks(&text, "or"),
        name,
        kind,
        dialect,
        text,
    }
}

fn scripts() -> Vec<Script> {
    read_cases().into_iter().map(script).collect()
}

/// What all rules together say to each script.
fn all_reported(scripts: &[Script]) -> Vec<Vec<Reported>> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || {
                let rules: Vec<&'static Rule> = RULES.to_vec();
                scripts
                    .iter()
                    .map(|script| reported(script, &rules))
                    .collect()
            })
            .unwrap()
            .join()
            .unwrap()
    })
}

fn reported(script: &Script, rules: &[&'static Rule]) -> Vec<Reported> {
    let checked = check_source(&script.text, script.dialect, &TARGET, rules);
    assert!(
        checked.parse_errors.is_empty(),
        "{} is no Python: {:?}",
        script.name,
        checked.parse_errors
    );
    checked
        .findings
        .iter()
        .map(|finding| {
            let start = usize::from(finding.range.start());
            Reported {
                rule: finding.rule.name.to_owned(),
                line: script.text[..start].matches('\n').count() + 1,
                message: finding.message.clone(),
            }
        })
        .collect()
}

fn same(mark: &(String, usize), found: &Reported) -> bool {
    plain(&mark.0) == plain(&found.rule) && mark.1 == found.line
}

fn show(script: &Script, found: &Reported) -> String {
    format!(
        "  {}:{} {} {}",
        script.name, found.line, found.rule, found.message
    )
}

#[test]
fn wrong_scripts_are_found() {
    let scripts: Vec<Script> = scripts()
        .into_iter()
        .filter(|script| script.kind == Kind::Wrong)
        .collect();
    let mut by_rule: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    let mut unexpected = Vec::new();
    for (script, reported) in scripts.iter().zip(all_reported(&scripts)) {
        let mut spare: Vec<&(String, usize)> = script
            .instead
            .iter()
            .filter(|mark| reported.iter().any(|found| same(mark, found)))
            .collect();
        for mark in &script.expected {
            let tally = by_rule.entry(&mark.0).or_default();
            tally.1 += 1;
            let other = spare
                .iter()
                .position(|other| plain(&other.0) == plain(&mark.0));
            if reported.iter().any(|found| same(mark, found)) {
                tally.0 += 1;
            } else if let Some(other) = other {
                spare.remove(other);
                tally.0 += 1;
            } else {
                missed.push(format!("  {}:{} {}", script.name, mark.1, mark.0));
            }
        }
        for found in &reported {
            let known = |mark: &(String, usize)| same(mark, found);
            if !script.expected.iter().any(known) && !script.instead.iter().any(known) {
                unexpected.push(show(script, found));
            }
        }
    }
    let (mut found, mut expected) = (0, 0);
    println!("{:<34} {:>5} / expected", "rule", "found");
    for (rule, (hits, all)) in &by_rule {
        let there = RULES.iter().any(|known| plain(known.name) == plain(rule));
        let note = if there { "" } else { "  (no such rule yet)" };
        println!("{rule:<34} {hits:>5} / {all}{note}");
        found += hits;
        expected += all;
    }
    println!("{:<34} {found:>5} / {expected}", "all");
    println!("missed:\n{}", missed.join("\n"));
    println!("unexpected in wrong scripts:\n{}", unexpected.join("\n"));
    assert!(
        found * 10 >= expected * 9,
        "recall is {found} of {expected}, less than 90 %"
    );
    assert!(
        unexpected.is_empty(),
        "{} findings that the wrong scripts do not have",
        unexpected.len()
    );
}

#[test]
fn right_and_innocent_scripts_are_clean() {
    let scripts: Vec<Script> = scripts()
        .into_iter()
        .filter(|script| script.kind != Kind::Wrong)
        .collect();
    let mut by_rule: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for (script, reported) in scripts.iter().zip(all_reported(&scripts)) {
        for found in &reported {
            *by_rule.entry(found.rule.clone()).or_default() += 1;
            lines.push(show(script, found));
        }
    }
    println!("{:<34} false findings", "rule");
    for (rule, count) in &by_rule {
        println!("{rule:<34} {count}");
    }
    println!("in {} scripts:\n{}", scripts.len(), lines.join("\n"));
    assert!(lines.is_empty(), "{} false findings", lines.len());
}

/// The set itself: enough of it, each fault marked, each with its twin, every seed covered.
#[test]
fn the_set_is_whole() {
    let scripts = scripts();
    let names: BTreeSet<&str> = scripts.iter().map(|script| &*script.name).collect();
    let count = |kind| scripts.iter().filter(|script| script.kind == kind).count();
    assert!(count(Kind::Wrong) >= 130, "{} pairs", count(Kind::Wrong));
    assert!(count(Kind::Innocent) >= 40);
    for script in &scripts {
        let name = &script.name;
        let twin = match script.kind {
            Kind::Wrong => {
                let rule = name.split('/').next().unwrap();
                assert!(
                    script.expected.iter().any(|mark| mark.0 == rule),
                    "{name} marks no line with its rule"
                );
                name.replace(".wrong.", ".right.")
            }
            Kind::Right => name.replace(".right.", ".wrong."),
            Kind::Innocent => name.clone(),
        };
        assert!(names.contains(&*twin), "{name} has no twin");
        if script.kind != Kind::Wrong {
            assert!(
                script.expected.is_empty() && script.instead.is_empty(),
                "{name}"
            );
        }
    }
    let seeds = std::fs::read_to_string(folder().join("seeds.toml")).unwrap();
    let value = |line: &str| line.split_once(" = ").map(|(_, value)| value.to_owned());
    assert_eq!(seeds.matches("[[example]]").count(), 15);
    for line in seeds.lines().filter(|line| line.starts_with("scripts = ")) {
        for name in value(line).unwrap().split('"').skip(1).step_by(2) {
            assert!(names.contains(name), "seeds.toml: there is no {name}");
        }
    }
}
