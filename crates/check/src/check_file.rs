//! Checks one file: from its bytes to its report.

use crate::error::FileError;
use crate::fix::{self, Fixed};
use crate::lint_source::SourceLinter;
use crate::position::PositionMap;
use crate::replace_file;
use crate::settings::RuleSelection;
use crate::source::{self, Source};
use antifreeze_lint::finding::{Finding, Safety};
use antifreeze_lint::target_machine::TargetMachine;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// What to do with every file.
pub struct CheckOptions<'a> {
    pub selection: &'a RuleSelection,
    pub target: TargetMachine,
    pub fixes: FixMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixMode {
    /// Make no fixes.
    Off,
    /// Write the fixes of this safety to the file.
    Apply(Safety),
    /// Compute the fixes of this safety and return the change.
    Preview(Safety),
}

/// The result of checking one file.
#[derive(Debug, Default)]
pub struct FileReport {
    pub path: PathBuf,
    pub findings: Vec<Finding>,
    /// The text and positions of the findings, if there are any.
    pub positions: Option<PositionMap>,
    /// The number of fixes that were made, or would be made.
    pub fixed: usize,
    /// What failed and why, as predicates whose subject is the file.
    pub errors: Vec<FileError>,
    /// What was skipped on purpose, in the same form.
    pub notes: Vec<String>,
    /// The file before and after its fixes, in preview mode.
    pub change: Option<Change>,
}

#[derive(Debug)]
pub struct Change {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// Checks a file on disk and applies its fixes there.
pub fn check_file(path: &Path, options: &CheckOptions) -> FileReport {
    let mut report = match source::read_file(path) {
        Ok(bytes) => check_bytes(bytes, path, options),
        Err(error) => failed_report(path, error),
    };
    if let FixMode::Apply(_) = options.fixes
        && let Some(change) = report.change.take()
        && let Err(error) = replace_file::replace_file(path, &change.before, &change.after)
    {
        report.fixed = 0;
        report.errors.push(error);
    }
    report
}

/// Checks bytes under the name `path`. What would be fixed is in the report's change.
pub fn check_bytes(bytes: Vec<u8>, path: &Path, options: &CheckOptions) -> FileReport {
    // A bug in antifreeze must not lose the results of the other files.
    catch_unwind(AssertUnwindSafe(|| check_bytes_inner(bytes, path, options))).unwrap_or_else(
        |panic| {
            let reason = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("for an unknown reason");
            failed_report(path, FileError::Panic(reason.to_owned()))
        },
    )
}

fn check_bytes_inner(bytes: Vec<u8>, path: &Path, options: &CheckOptions) -> FileReport {
    let safety = match options.fixes {
        FixMode::Off => None,
        FixMode::Apply(safety) | FixMode::Preview(safety) => Some(safety),
    };
    let before = safety.map(|_| bytes.clone());
    let source = match Source::decode(bytes, path) {
        Ok(Some(source)) => source,
        Ok(None) => return empty_report(path),
        Err(error) => return failed_report(path, error),
    };
    let linter = SourceLinter {
        target: options.target,
        rules: options.selection.rules_for(path),
    };
    match (safety, before) {
        (Some(safety), Some(before)) => fix_source(source, path, &linter, safety, before),
        _ => report_findings(linter.lint(&source), source, path),
    }
}

fn fix_source(
    source: Source,
    path: &Path,
    linter: &SourceLinter,
    safety: Safety,
    before: Vec<u8>,
) -> FileReport {
    let original = source.clone();
    let Fixed {
        source,
        findings,
        count,
        refused,
    } = fix::apply_fixes(source, linter, safety);
    if count == 0 {
        return add_refused_fixes(report_findings(findings, source, path), &refused);
    }
    // The file is fixed only if it can be written back byte by byte.
    let after = match original.bytes() {
        Ok(same) if same == before => source.bytes(),
        _ => Err(FileError::LossyEncoding),
    };
    match after {
        Ok(after) => {
            let mut report = add_refused_fixes(report_findings(findings, source, path), &refused);
            report.fixed = count;
            report.change = Some(Change { before, after });
            report
        }
        Err(error) => {
            let mut report = report_findings(linter.lint(&original), original, path);
            report.errors.push(error);
            report
        }
    }
}

fn report_findings(findings: Vec<Finding>, source: Source, path: &Path) -> FileReport {
    let is_clean = findings.is_empty();
    let cells = source.cells().cloned();
    FileReport {
        findings,
        positions: (!is_clean).then(|| PositionMap::new(source.text, cells)),
        ..empty_report(path)
    }
}

fn add_refused_fixes(mut report: FileReport, refused: &[Finding]) -> FileReport {
    for finding in refused {
        let Some(positions) = &report.positions else {
            break;
        };
        let place = positions.position_of(finding.range.start());
        report.notes.push(format!(
            "was not fixed at {place}: the fix of {} would leave invalid Python; please report it",
            finding.rule.name
        ));
    }
    report
}

fn empty_report(path: &Path) -> FileReport {
    FileReport {
        path: path.to_owned(),
        ..FileReport::default()
    }
}

fn failed_report(path: &Path, error: FileError) -> FileReport {
    FileReport {
        errors: vec![error],
        ..empty_report(path)
    }
}
