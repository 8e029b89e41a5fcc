//! The last line of the output: how many findings there are, and how many can be fixed.

use crate::check_file::{FileReport, FixMode};
use antifreeze_lint::finding::Safety;
use antifreeze_lint::rule::Severity;

/// Returns "1 error, 2 warnings (1 fixable with --fix)", or `None` if nothing was found or fixed.
pub fn summary(reports: &[FileReport], fixes: FixMode) -> Option<String> {
    let findings = || reports.iter().flat_map(|report| &report.findings);
    let of = |severity: Severity| {
        findings()
            .filter(|finding| finding.rule.severity == severity)
            .count()
    };
    let mut parts = Vec::new();
    for (severity, one, many) in [
        (Severity::Error, "error", "errors"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Info, "info", "infos"),
    ] {
        match of(severity) {
            0 => {}
            1 => parts.push(format!("1 {one}")),
            count => parts.push(format!("{count} {many}")),
        }
    }
    let found = match (parts.is_empty(), left_to_fix(reports, fixes)) {
        (true, _) => None,
        (false, Some(left)) => Some(format!("{} ({left})", parts.join(", "))),
        (false, None) => Some(parts.join(", ")),
    };
    let fixed: usize = reports.iter().map(|report| report.fixed).sum();
    let fixed = match fixes {
        _ if fixed == 0 => return found,
        FixMode::Preview(_) => format!("{fixed} would be fixed"),
        _ => format!("{fixed} fixed"),
    };
    Some(match found {
        Some(found) => format!("{fixed}, left: {found}"),
        None => fixed,
    })
}

fn left_to_fix(reports: &[FileReport], fixes: FixMode) -> Option<String> {
    let of = |safety: Safety| {
        let fixes = reports
            .iter()
            .flat_map(|report| &report.findings)
            .filter_map(|finding| finding.fix.as_ref());
        fixes.filter(|fix| fix.safety == safety).count()
    };
    let (safe, unsure) = (of(Safety::Safe), of(Safety::Unsafe));
    match fixes {
        FixMode::Off if safe > 0 && unsure > 0 => Some(format!(
            "{safe} fixable with --fix, {unsure} more with --fix --unsafe-fixes"
        )),
        FixMode::Off if safe > 0 => Some(format!("{safe} fixable with --fix")),
        FixMode::Off | FixMode::Apply(Safety::Safe) | FixMode::Preview(Safety::Safe)
            if unsure > 0 =>
        {
            Some(format!("{unsure} fixable with --fix --unsafe-fixes"))
        }
        _ => None,
    }
}
