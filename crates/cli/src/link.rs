//! What the linter knows of the line that a verdict names: the finding on that line, or else the
//! one in the same file that is about the same thing.

use antifreeze_check::crew;
use antifreeze_check::examine::{self, Fixes, Orders, Report};
use antifreeze_check::settings::Flags;
use antifreeze_diagnose::{Cause, Code, Evidence, Facts, Location, Remedy, Verdict};
use antifreeze_lint::finding::Finding;
use antifreeze_lint::here::Here;
use antifreeze_lint::rule::Severity;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Adds to each cause with a line what `antifreeze check` finds there, as evidence and as the first
/// thing to do. Nothing where the file has changed since the run began.
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
    for cause in &mut verdict.causes {
        add(cause, &file, &report);
    }
}

fn is_as_it_was(path: &Path, facts: &Facts) -> bool {
    let began = UNIX_EPOCH + Duration::from_nanos(facts.started.realtime);
    let changed = path.metadata().and_then(|file| file.modified());
    changed.is_ok_and(|changed| changed <= began)
}

fn examined(path: &Path, facts: &Facts) -> Option<Report> {
    let folder = path.parent().unwrap_or(&facts.folder);
    let selection = crate::check::selection_in(folder, &Flags::default()).ok()?;
    let orders = Orders {
        selection: &selection,
        here: Here {
            ram: Some(facts.may_use()).filter(|ram| *ram > 0),
            vram: None,
            cores: crate::check::cores(),
        },
        fixes: Fixes::None,
    };
    let reports = crew::each(&[()], |()| examine::file(path, &orders));
    reports.ok()?.pop()
}

fn add(cause: &mut Cause, file: &str, report: &Report) {
    let Some(location) = cause.location.as_ref().filter(|place| place.file == file) else {
        return;
    };
    let Some(places) = &report.places else {
        return;
    };
    let line = |finding: &Finding| places.of(finding.range.start()).line;
    let holds = |finding: &&Finding| {
        let last = places.of(finding.range.end()).line;
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
    let place = format!("{file}:{}", line(finding));
    cause.evidence.push(Evidence {
        text: format!("{place} {}: {}", finding.rule.name, finding.message),
        series: None,
        from: None,
        to: None,
    });
    let remedy = Remedy {
        text: format!("{place}: {}", finding.help),
        code: None,
        docs: Some(format!("rules/{}", finding.rule.name)),
    };
    cause.remedies.insert(0, remedy);
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
