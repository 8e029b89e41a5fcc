//! Applies every fix in the cases of the linter. The result is valid Python with nothing left to
//! fix, and otherwise unchanged.

// A failure in a test is a panic.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../lint/tests/support/cases.rs"]
mod cases;
mod support;

use antifreeze_check::check_file::{FileReport, FixMode};
use antifreeze_lint::finding::Safety;
use cases::read_cases;
use support::examined;

/// Checks each faulty script and previews its fixes.
fn fixed(safety: Safety) -> Vec<FileReport> {
    let wrong = read_cases().into_iter();
    let files: Vec<_> = wrong
        .filter(|case| case.name.contains(".wrong."))
        .map(|case| (case.name, case.content.into_bytes()))
        .collect();
    assert!(files.len() > 150, "{} scripts", files.len());
    examined(&files, FixMode::Preview(safety))
}

#[test]
fn a_fix_leaves_python_with_nothing_left_to_fix() {
    for safety in [Safety::Safe, Safety::Unsafe] {
        let mut changed = 0;
        for report in fixed(safety) {
            let name = report.path.display();
            assert!(
                report.errors.is_empty() && report.notes.is_empty(),
                "{name}: {report:?}"
            );
            let left: Vec<_> = report
                .findings
                .iter()
                .filter(|finding| finding.fix.as_ref().is_some_and(|fix| fix.safety <= safety))
                .map(|finding| finding.rule.name)
                .collect();
            assert!(left.is_empty(), "{name} still has {left:?}");
            changed += usize::from(report.change.is_some());
        }
        assert!(changed > 20, "{changed} scripts were changed");
    }
}

#[test]
fn what_is_not_fixed_stays_as_it_was() {
    for report in fixed(Safety::Unsafe) {
        let Some(change) = &report.change else {
            continue;
        };
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (before, after) = (text(&change.before), text(&change.after));
        let kept = |line: &&str| after.lines().any(|other| other == *line);
        let lost = before.lines().filter(|line| !kept(line)).count();
        // A block may be indented, but never a whole script.
        let name = report.path.display();
        assert!(
            lost * 2 < before.lines().count(),
            "{name} lost {lost} lines"
        );
        assert_eq!(before.ends_with('\n'), after.ends_with('\n'), "{name}");
    }
}
