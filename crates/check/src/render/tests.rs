use super::*;
use crate::check_file::FixMode;
use crate::notebook::Cells;
use crate::test_findings::{BAD, finding, range_of, report, with_fix};
use antifreeze_lint::Cell;
use antifreeze_lint::finding::Safety;
use insta::assert_snapshot;
use ruff_text_size::TextSize;
use serde_json::Value;

const TRAIN: &str = "for x, y in loader:\n    loss.backward()\n    outputs.append((x, logits))\n";

fn one(text: &str, piece: &str) -> Vec<FileReport> {
    vec![report(
        "train.py",
        text,
        None,
        vec![finding(&BAD, range_of(text, piece))],
    )]
}

fn narrow() -> TermStyle {
    TermStyle {
        width: 60,
        ..TermStyle::default()
    }
}

fn shown_full(text: &str, piece: &str) -> String {
    findings(Format::Full, &one(text, piece), &narrow())
}

/// Two files, one of them a notebook; one finding has a fix.
fn several() -> Vec<FileReport> {
    let piece = range_of(TRAIN, "outputs.append((x, logits))");
    let fix = range_of(TRAIN, "logits");
    let script = with_fix(finding(&BAD, piece), &[(fix, "logits.detach()")]);
    let all = [(3, 0), (7, 6)].map(|(number, start)| Cell {
        number,
        start: TextSize::new(start),
    });
    let cells = Cells::new(all.to_vec(), TextSize::new(24));
    let text = "x = 1\nimport a\ntotal = x\n";
    let mut many = finding(&BAD, range_of(text, "total = x"));
    many.message = "100 % bad:\nreally, so".to_owned();
    vec![
        report("my dir/train,1.py", TRAIN, None, vec![script]),
        report("n.ipynb", text, Some(cells), vec![many]),
    ]
}

#[test]
fn the_lines_are_shown_with_what_is_meant() {
    assert_snapshot!(shown_full(TRAIN, "outputs.append((x, logits))"), @r"
    train.py:3:5 error[bad]: this is bad
      |
    2 |     loss.backward()
    3 |     outputs.append((x, logits))
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^ here
      = help: make it good
    ");
}

#[test]
fn marks_stand_under_tabs_and_wide_characters() {
    assert_snapshot!(
        "tab_and_wide",
        shown_full("if x:\n\ty = '日本' + bad\n", "bad")
    );
    assert_snapshot!(
        "controls",
        shown_full("x = '\u{1b}[31m\u{202e}' + bad\n", "bad")
    );
}

#[test]
fn a_span_of_several_lines_is_marked_at_its_side() {
    assert_snapshot!(
        "several_lines",
        shown_full("a = 1\nf(\n    x,\n    y,\n)\n", "f(\n    x,\n    y,\n)\n")
    );
    let long = format!("f(\n{})\n", "    x,\n".repeat(20));
    assert_snapshot!("many_lines", shown_full(&long, &long));
}

#[test]
fn a_long_line_is_cut_around_what_is_meant() {
    let long = format!("x = [{}bad, {}]\n", "1, ".repeat(200), "2, ".repeat(200));
    assert_snapshot!("long_line", shown_full(&long, "bad"));
    assert_snapshot!("all_of_a_long_line", shown_full(&long, long.trim_end()));
}

#[test]
fn an_empty_span_at_the_end_is_marked_too() {
    let text = "x = (\n";
    let end = crate::test_findings::range(text.len(), text.len());
    let reports = [report("a.py", text, None, vec![finding(&BAD, end)])];
    assert_snapshot!(
        "empty_at_the_end",
        findings(Format::Full, &reports, &narrow())
    );
}

#[test]
fn every_format_says_the_same() {
    let style = narrow();
    let reports = several();
    assert_snapshot!("full", findings(Format::Full, &reports, &style));
    assert_snapshot!("concise", findings(Format::Concise, &reports, &style));
    assert_snapshot!("json", findings(Format::Json, &reports, &style));
    assert_snapshot!("github", findings(Format::Github, &reports, &style));
    assert_snapshot!("gitlab", findings(Format::Gitlab, &reports, &style));
    assert_snapshot!("sarif", findings(Format::Sarif, &reports, &style));
}

#[test]
fn colour_is_only_added() {
    let colour = TermStyle {
        colour: true,
        ..narrow()
    };
    let coloured = findings(Format::Full, &several(), &colour);
    let plain = findings(Format::Full, &several(), &narrow());
    assert!(coloured.contains("\x1b[1;31merror[bad]\x1b[0m"));
    let mut stripped = String::new();
    for (index, piece) in coloured.split('\x1b').enumerate() {
        let rest = piece.split_once('m').map_or("", |(_, rest)| rest);
        stripped.push_str(if index == 0 { piece } else { rest });
    }
    assert_eq!(stripped, plain);
}

#[test]
fn sarif_has_what_its_schema_requires() {
    let log: Value = serde_json::from_str(&findings(Format::Sarif, &several(), &narrow())).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert!(driver["name"].is_string());
    let rules = driver["rules"].as_array().unwrap();
    assert!(rules.iter().all(|rule| rule["id"].is_string()));
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    for result in results {
        assert!(result["message"]["text"].is_string());
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        let location = &result["locations"][0]["physicalLocation"];
        let uri = location["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.is_ascii() && !uri.contains(' '), "{uri}");
        assert!(location["region"]["startLine"].as_u64().unwrap() >= 1);
    }
    for change in results[0]["fixes"][0]["artifactChanges"]
        .as_array()
        .unwrap()
    {
        assert!(change["artifactLocation"]["uri"].is_string());
        assert!(change["replacements"][0]["deletedRegion"]["startLine"].is_u64());
    }
    let empty: Value = serde_json::from_str(&findings(Format::Sarif, &[], &narrow())).unwrap();
    assert_eq!(empty["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn a_fingerprint_stays_while_its_line_moves_and_differs_from_its_twin() {
    let prints = |text: &str| -> Vec<String> {
        let findings = text
            .match_indices("bad")
            .map(|(at, _)| finding(&BAD, crate::test_findings::range(at, at + 3)))
            .collect();
        let reports = [report("a.py", text, None, findings)];
        let issues: Vec<Value> =
            serde_json::from_str(&super::findings(Format::Gitlab, &reports, &narrow())).unwrap();
        let prints = issues
            .iter()
            .map(|issue| issue["fingerprint"].as_str().unwrap().to_owned());
        prints.collect()
    };
    let before = prints("bad = 1\nbad = 1\n");
    assert_ne!(before[0], before[1]);
    assert_eq!(before, prints("x = 2\n\nbad = 1\nif x:\n    bad = 1\n"));
}

#[test]
fn the_last_line_counts_and_says_what_can_be_fixed() {
    let mut reports = several();
    let summary = |reports: &[FileReport], fixes| summary(reports, fixes).unwrap();
    assert_eq!(
        summary(&reports, FixMode::Off),
        "2 errors (1 fixable with --fix)"
    );
    reports[0].fixed = 3;
    assert_eq!(
        summary(&reports, FixMode::Apply(Safety::Unsafe)),
        "3 fixed, left: 2 errors"
    );
    let fix = reports[0].findings[0].fix.as_mut().unwrap();
    fix.safety = Safety::Unsafe;
    assert_eq!(
        summary(&reports, FixMode::Preview(Safety::Safe)),
        "3 would be fixed, left: 2 errors (1 fixable with --fix --unsafe-fixes)"
    );
    assert_eq!(super::summary(&[], FixMode::Off), None);
}
