//! Runs the linter on the file that a verdict names, for the verdict to add what it finds there.

use antifreeze_check::crew;
use antifreeze_check::examine::{self, Fixes, Orders, Report};
use antifreeze_check::settings::Flags;
use antifreeze_diagnose::verdict::LintFinding;
use antifreeze_diagnose::{Facts, Verdict};
use antifreeze_lint::here::Here;
use antifreeze_lint::rule::Severity;
use std::path::Path;

/// Adds to the causes of a verdict what `antifreeze check` finds in the file that they name.
pub fn add_lint_evidence(verdict: &mut Verdict, facts: &Facts) {
    verdict.add_lint_evidence(facts, |path| findings(&lint(path, facts)?));
}

fn lint(path: &Path, facts: &Facts) -> Option<Report> {
    let folder = path.parent().unwrap_or(&facts.folder);
    let selection = crate::check::selection_in(folder, &Flags::default()).ok()?;
    let orders = Orders {
        selection: &selection,
        here: Here {
            ram: Some(facts.usable_memory()).filter(|ram| *ram > 0),
            vram: None,
            cores: crate::check::cores(),
        },
        fixes: Fixes::None,
    };
    let reports = crew::each(&[()], |()| examine::file(path, &orders));
    reports.ok()?.pop()
}

/// The warnings and errors of a report; None where the file could not be parsed into lines.
fn findings(report: &Report) -> Option<Vec<LintFinding>> {
    let places = report.places.as_ref()?;
    let serious = report
        .findings
        .iter()
        .filter(|finding| finding.rule.severity > Severity::Info);
    let findings = serious.map(|finding| LintFinding {
        rule: finding.rule.name,
        lines: places.of(finding.range.start()).line..=places.of(finding.range.end()).line,
        message: finding.message.to_string(),
        help: finding.help.to_string(),
    });
    Some(findings.collect())
}
