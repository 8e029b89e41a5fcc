//! Runs the linter on the files that a verdict names, and adds its findings to the verdict.

use antifreeze_check::check_file::{self, CheckOptions, FileReport, FixMode};
use antifreeze_check::parallel;
use antifreeze_check::settings::RuleFlags;
use antifreeze_diagnose::verdict::LintFinding;
use antifreeze_diagnose::{Facts, Verdict};
use antifreeze_lint::rule::Severity;
use antifreeze_lint::target_machine::TargetMachine;
use std::path::Path;

/// Adds to the causes of a verdict what `antifreeze check` finds in the file that they name.
pub fn add_lint_evidence(verdict: &mut Verdict, facts: &Facts) {
    verdict.add_lint_evidence(facts, |path| findings(&lint(path, facts)?));
}

fn lint(path: &Path, facts: &Facts) -> Option<FileReport> {
    let folder = path.parent().unwrap_or(&facts.folder);
    let selection = crate::check::selection_in(folder, &RuleFlags::default()).ok()?;
    let options = CheckOptions {
        selection: &selection,
        target: TargetMachine {
            ram_bytes: Some(facts.usable_memory()).filter(|ram| *ram > 0),
            vram_bytes: None,
            cores: crate::check::cores(),
        },
        fixes: FixMode::Off,
    };
    let reports = parallel::map_items(&[()], |()| check_file::check_file(path, &options));
    reports.ok()?.pop()
}

/// The warnings and errors of a report; None where the file could not be parsed into lines.
fn findings(report: &FileReport) -> Option<Vec<LintFinding>> {
    let positions = report.positions.as_ref()?;
    let serious = report
        .findings
        .iter()
        .filter(|finding| finding.rule.severity > Severity::Info);
    let findings = serious.map(|finding| LintFinding {
        rule: finding.rule.name,
        lines: positions.position_of(finding.range.start()).line
            ..=positions.position_of(finding.range.end()).line,
        message: finding.message.to_string(),
        help: finding.help.to_string(),
    });
    Some(findings.collect())
}
