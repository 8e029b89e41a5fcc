//! What the linter knows of the line that a verdict names: the finding on that line, or else the
//! one in the same file that is about the same thing.

use antifreeze_check::check_file::{self, CheckOptions, FileReport, FixMode};
use antifreeze_check::parallel;
use antifreeze_check::settings::RuleFlags;
use antifreeze_diagnose::{Cause, Code, Evidence, Facts, Location, Remedy, Verdict};
use antifreeze_lint::finding::Finding;
use antifreeze_lint::rule::Severity;
use antifreeze_lint::target_machine::TargetMachine;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Adds to each cause with a line what `antifreeze check` finds there, as evidence and as the first
/// thing to do, unless a change of the same lines is offered already, or a likelier cause has it. Nothing where the file
/// has changed since the run began.
pub fn link(verdict: &mut Verdict, facts: &Facts) {
    let named = verdict
        .causes
        .iter()
        .find_map(|cause| cause.location.clone());
    let Some(Location { file, .. }) = named else {
        return;
    };
    let path = facts.folder.join(&file);
    if !is_as_it_was(&path, facts) {
        return;
    }
    let Some(report) = examined(&path, facts) else {
        return;
    };
    let mut known = Vec::new();
    for cause in &mut verdict.causes {
        add(cause, &file, &report, &mut known);
    }
}

fn is_as_it_was(path: &Path, facts: &Facts) -> bool {
    let began = UNIX_EPOCH + Duration::from_nanos(facts.started.realtime_ns);
    let changed = path.metadata().and_then(|file| file.modified());
    changed.is_ok_and(|changed| changed <= began)
}

fn examined(path: &Path, facts: &Facts) -> Option<FileReport> {
    let folder = path.parent().unwrap_or(&facts.folder);
    let selection = crate::check::selection_in(folder, &RuleFlags::default()).ok()?;
    let options = CheckOptions {
        selection: &selection,
        target: TargetMachine {
            ram_bytes: Some(facts.may_use()).filter(|ram| *ram > 0),
            vram_bytes: None,
            cores: crate::check::cores(),
        },
        fixes: FixMode::Off,
    };
    let reports = parallel::map_items(&[()], |()| check_file::check_file(path, &options));
    reports.ok()?.pop()
}

/// `known` are the findings that were added to other causes.
fn add(cause: &mut Cause, file: &str, report: &FileReport, known: &mut Vec<(&'static str, usize)>) {
    let Some(location) = cause.location.as_ref().filter(|place| place.file == file) else {
        return;
    };
    let Some(positions) = &report.positions else {
        return;
    };
    let line = |finding: &Finding| positions.position_of(finding.range.start()).line;
    let holds = |finding: &&Finding| {
        let last = positions.position_of(finding.range.end()).line;
        (line(finding)..=last).contains(&(location.line as usize))
    };
    let serious = || {
        let findings = report.findings.iter();
        findings.filter(|finding| finding.rule.severity > Severity::Info)
    };
    let same_thing = |finding: &&Finding| is_about(cause.code, finding.rule.name);
    let found = serious().find(holds).or_else(|| serious().find(same_thing));
    let Some(finding) = found else {
        return;
    };
    let mark = (finding.rule.name, line(finding));
    if known.contains(&mark) {
        return;
    }
    known.push(mark);
    let place = format!("{file}:{}", line(finding));
    cause.evidence.push(Evidence {
        text: format!("{place} {}: {}", finding.rule.name, finding.message),
        series: None,
        from: None,
        to: None,
    });
    let last = positions.position_of(finding.range.end()).line;
    let changes_it = |known: &Remedy| {
        let mut edits = known.edits.iter().filter(|edit| edit.file == file);
        edits.any(|edit| (line(finding)..=last).contains(&(edit.line as usize)))
    };
    // A state that is detached where its step begins is the same thing to do as where it is used.
    let is_state = finding.rule.name == "undetached-state";
    let same = |known: &&mut Remedy| changes_it(known) || is_state && !known.edits.is_empty();
    let docs = Some(format!("rules/{}", finding.rule.name));
    if let Some(known) = cause.remedies.iter_mut().find(same) {
        known.docs = docs;
        return;
    }
    let remedy = Remedy {
        text: format!("{place}: {}", finding.help),
        code: None,
        docs,
        edits: Vec::new(),
    };
    // A change that was made for this very place comes before general advice on it.
    let first = cause
        .remedies
        .iter()
        .take_while(|known| !known.edits.is_empty())
        .count();
    cause.remedies.insert(first, remedy);
}

/// Whether what a rule finds may well be this cause.
fn is_about(code: Code, rule: &str) -> bool {
    let rules: &[&str] = match code {
        Code::MemoryLeak => &[
            "graph-in-accumulator",
            "graph-in-container",
            "tensors-kept-forever",
            "undetached-state",
            "variable-or-function-in-loop",
        ],
        Code::BatchTooLarge => &["full-batch", "batch-too-large-here", "dataset-in-ram"],
        Code::DatasetInMemory => &["dataset-in-ram"],
        _ => &[],
    };
    rules.contains(&rule)
}
