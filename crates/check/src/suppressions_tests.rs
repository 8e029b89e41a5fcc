use super::*;
use crate::rules;
use crate::test_findings::{finding, range};
use antifreeze_lint::Dialect;
use antifreeze_lint::target_machine::TargetMachine;

/// Treats each `X` in the text as a finding of graph-in-accumulator. Returns how many remain, and
/// the findings about the comments.
fn judged(text: &str) -> (usize, Vec<Finding>) {
    let rule = rules::find_rule("graph-in-accumulator").unwrap();
    let checked =
        antifreeze_lint::check_source(text, Dialect::Python, &TargetMachine::default(), &[]);
    assert_eq!(checked.parse_errors, []);
    let positions = PositionMap::new(text.to_owned(), None);
    let statements = Statements::parse(&positions, Dialect::Python);
    let mut suppressions =
        Suppressions::parse_all(&positions, &checked.antifreeze_comments, statements);
    let findings = text.match_indices('X');
    let left = findings
        .filter(|(at, _)| !suppressions.ignore(&finding(rule, range(*at, at + 1))))
        .count();
    (left, suppressions.findings_about_comments())
}

#[track_caller]
fn ignored(text: &str) {
    let (left, complaints) = judged(text);
    assert_eq!(left, 0, "{text}");
    assert!(complaints.is_empty(), "{complaints:?}");
}

/// Returns the text after the fixes of the findings about comments.
fn cleaned(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..5 {
        let (_, complaints) = judged(&text);
        let Some(fix) = complaints.into_iter().find_map(|finding| finding.fix) else {
            break;
        };
        for edit in fix.edits.iter().rev() {
            text.replace_range(edit.range.to_std_range(), &edit.content);
        }
    }
    text
}

#[test]
fn a_comment_at_the_end_of_the_line_ignores_by_name_by_code_or_all() {
    ignored("X  # antifreeze: ignore\n");
    ignored("X  # antifreeze: ignore[graph-in-accumulator]\n");
    ignored("X  # antifreeze: ignore[AF101] it is summed for ten steps only\n");
    ignored("X  #antifreeze:ignore[ af101 ]\n");
    ignored("X  # noqa: E501 # antifreeze: ignore[AF101] # type: ignore\n");
    ignored("X  # antifreeze: ignore[ALL]\n");
}

#[test]
fn a_comment_on_its_own_line_counts_for_the_next_line_of_code() {
    ignored("# antifreeze: ignore[AF101]\n\n# and why\nX\n");
    ignored("f(\n    # antifreeze: ignore[AF101]\n    X,\n    b)\n");
    let (left, _) = judged("# antifreeze: ignore[AF101]\na\nX\n");
    assert_eq!(left, 1);
}

#[test]
fn a_statement_is_covered_from_its_first_and_last_line() {
    ignored("f(  # antifreeze: ignore[AF101]\n    a,\n    X,\n)\n");
    ignored("f(\n    X,\n    b,\n)  # antifreeze: ignore[AF101]\n");
    ignored("# antifreeze: ignore[AF101]\nf(\n    a,\n    X,\n)\n");
    let (left, _) = judged("f(\n    a,  # antifreeze: ignore[AF101]\n    X,\n)\n");
    assert_eq!(left, 1);
    let (left, _) = judged("for a in b:  # antifreeze: ignore[AF101]\n    c\n    X\n");
    assert_eq!(left, 1);
}

#[test]
fn a_file_is_covered_from_its_first_comments() {
    ignored("#!/usr/bin/python\n\n# antifreeze: ignore-file[AF101]\nX\n\nX\n");
    ignored("# antifreeze: ignore-file\nX\n");
    let (left, complaints) = judged("X\n# antifreeze: ignore-file\nX\n");
    assert_eq!(left, 2);
    assert!(complaints[0].message.contains("above the first line"));
}

#[test]
fn what_ignores_nothing_is_removed() {
    for (text, clean) in [
        ("a  # antifreeze: ignore\nX\n", "a\nX\n"),
        ("a  # antifreeze: ignore[AF101]", "a"),
        ("    # antifreeze: ignore[AF101]\r\na\r\n", "a\r\n"),
        ("a  # noqa # antifreeze: ignore[AF101]\n", "a  # noqa\n"),
        ("a  # antifreeze: ignore[AF101] # noqa\n", "a  # noqa\n"),
        (
            "X  # antifreeze: ignore[AF001, AF101 ,AF002] why\n",
            "X  # antifreeze: ignore[AF101] why\n",
        ),
        ("a\n# antifreeze: ignore-file", "a\n"),
    ] {
        assert_eq!(cleaned(text), clean);
    }
}

#[test]
fn a_wrong_name_is_put_right_or_removed() {
    for (text, clean) in [
        (
            "X  # antifreeze: ignore[graph-in-acumulator]\n",
            "X  # antifreeze: ignore[graph-in-accumulator]\n",
        ),
        ("X  # antifreeze: ignore[quux]\n", "X\n"),
        (
            "X  # antifreeze: ignore[quux, AF101]\n",
            "X  # antifreeze: ignore[AF101]\n",
        ),
    ] {
        assert_eq!(cleaned(text), clean);
        let (_, complaints) = judged(text);
        let codes: Vec<_> = complaints.iter().map(|finding| finding.rule.code).collect();
        assert_eq!(codes, ["AF002"], "{text}");
    }
}

#[test]
fn what_cannot_be_understood_is_said_and_what_is_not_ours_is_not() {
    for text in [
        "X  # antifreeze: ignore[AF101\n",
        "X  # antifreeze: ignore[]\n",
        "X  # antifreeze: ignore(AF101)\n",
        "X  # antifreeze: ignore-next-line\n",
        "X  # antifreeze: ignored\n",
    ] {
        let (left, complaints) = judged(text);
        assert_eq!((left, complaints.len()), (1, 1), "{text}");
        assert_eq!(complaints[0].rule.code, "AF002");
    }
    for text in [
        "a  # see antifreeze: ignore it\n",
        "a = '# antifreeze: ignore'\n",
        "a  # antifreeze: run this first\n",
    ] {
        assert!(judged(text).1.is_empty(), "{text}");
    }
}
