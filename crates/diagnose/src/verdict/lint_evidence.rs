//! Adds what the linter finds at the line that a verdict names: to the evidence of the cause, and as the first thing to
//! do. The caller runs the linter, so this crate does not depend on it.

use crate::run::facts::Facts;
use crate::verdict::{Cause, Evidence, Remedy, Verdict};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// A finding of the linter, as a warning or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintFinding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The lines that it is about, from 1.
    pub lines: RangeInclusive<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// A finding that another cause has already: the rule and the line.
type Known = (&'static str, usize);

impl Verdict {
    /// Adds to each cause with a line the finding of the linter on that line, or else one in the same file of a rule
    /// that is about the same cause. `lint` returns the findings in a file, in their order. Nothing is added where the
    /// file was changed after the run began.
    pub fn add_lint_evidence(
        &mut self,
        facts: &Facts,
        lint: impl FnOnce(&Path) -> Option<Vec<LintFinding>>,
    ) {
        let mut locations = self
            .causes
            .iter()
            .filter_map(|cause| cause.location.clone());
        let Some(named) = locations.next() else {
            return;
        };
        let path = facts.folder.join(&named.file);
        if !is_unchanged_since(&path, facts) {
            return;
        }
        let Some(findings) = lint(&path) else {
            return;
        };
        let mut known = Vec::new();
        for cause in &mut self.causes {
            add_finding(cause, &named.file, &findings, &mut known);
        }
    }
}

fn is_unchanged_since(path: &Path, facts: &Facts) -> bool {
    let began = UNIX_EPOCH + Duration::from_nanos(facts.started.realtime_ns);
    let changed = path.metadata().and_then(|file| file.modified());
    changed.is_ok_and(|changed| changed <= began)
}

fn add_finding(cause: &mut Cause, file: &str, findings: &[LintFinding], known: &mut Vec<Known>) {
    let Some(location) = cause.location.as_ref().filter(|place| place.file == file) else {
        return;
    };
    let line = location.line as usize;
    let related = cause.code.kind().map_or(&[][..], |kind| kind.lint_rules);
    let on_line = || findings.iter().find(|found| found.lines.contains(&line));
    let about_cause = || findings.iter().find(|found| related.contains(&found.rule));
    let Some(finding) = on_line().or_else(about_cause) else {
        return;
    };
    let first_line = *finding.lines.start();
    let mark = (finding.rule, first_line);
    if known.contains(&mark) {
        return;
    }
    known.push(mark);
    let place = format!("{file}:{first_line}");
    cause.evidence.push(Evidence {
        text: format!("{place} {}: {}", finding.rule, finding.message),
        series: None,
        from: None,
        to: None,
    });
    let changes_lines = |remedy: &Remedy| {
        let mut edits = remedy.edits.iter().filter(|edit| edit.file == file);
        edits.any(|edit| finding.lines.contains(&(edit.line as usize)))
    };
    // Detaching a state where its step begins has the same effect as detaching it where it is used.
    let is_state = finding.rule == "undetached-state";
    let is_same =
        |remedy: &&mut Remedy| changes_lines(remedy) || is_state && !remedy.edits.is_empty();
    let docs = Some(format!("rules/{}", finding.rule));
    if let Some(remedy) = cause.remedies.iter_mut().find(is_same) {
        remedy.docs = docs;
        return;
    }
    let remedy = Remedy {
        text: format!("{place}: {}", finding.help),
        code: None,
        docs,
        edits: Vec::new(),
    };
    // A change that was made for this very line comes before general advice about it.
    let with_edits = cause
        .remedies
        .iter()
        .take_while(|remedy| !remedy.edits.is_empty());
    let first = with_edits.count();
    cause.remedies.insert(first, remedy);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Code, Location};

    fn verdict(code: Code, line: u32) -> Verdict {
        let mut verdict = Verdict::reach(&Facts::default(), &crate::RunSummary::default());
        verdict.causes = vec![Cause {
            code,
            confidence: 0.9,
            summary: "x".into(),
            location: Some(Location {
                file: "train.py".into(),
                line,
                name: None,
            }),
            evidence: Vec::new(),
            remedies: Vec::new(),
        }];
        verdict
    }

    fn finding(rule: &'static str, lines: RangeInclusive<usize>) -> LintFinding {
        LintFinding {
            rule,
            lines,
            message: "message".into(),
            help: "help".into(),
        }
    }

    /// The rule that is added to a cause at a line.
    fn added(code: Code, line: u32, findings: &[LintFinding]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "").unwrap();
        let mut facts = Facts {
            folder: folder.path().into(),
            ..Facts::default()
        };
        facts.started.realtime_ns = u64::MAX / 4;
        let mut verdict = verdict(code, line);
        verdict.add_lint_evidence(&facts, |_| Some(findings.to_vec()));
        let remedy = verdict.causes[0].remedies.first()?;
        assert_eq!(verdict.causes[0].evidence.len(), 1);
        remedy.docs.clone()
    }

    #[test]
    fn a_finding_on_the_line_comes_before_one_about_the_same_cause() {
        let on_line = finding("log-unguarded", 3..=4);
        let about = finding("graph-in-container", 9..=9);
        let both = [about.clone(), on_line.clone()];
        let rule = |name: &str| Some(format!("rules/{name}"));
        assert_eq!(added(Code::MemoryLeak, 4, &both), rule("log-unguarded"));
        assert_eq!(
            added(Code::MemoryLeak, 5, &both),
            rule("graph-in-container")
        );
        assert_eq!(added(Code::DiskFull, 5, &both), None);
        assert_eq!(added(Code::DiskFull, 3, &[on_line]), rule("log-unguarded"));
    }

    #[test]
    fn nothing_is_added_for_a_file_that_was_changed_since() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "").unwrap();
        let facts = Facts {
            folder: folder.path().into(),
            ..Facts::default()
        };
        let mut verdict = verdict(Code::MemoryLeak, 3);
        let before = verdict.clone();
        verdict.add_lint_evidence(&facts, |_| Some(vec![finding("graph-in-container", 3..=3)]));
        assert_eq!(verdict, before);
    }
}
