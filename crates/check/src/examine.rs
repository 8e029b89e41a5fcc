//! One file from its bytes to its report.

use crate::fix::{self, Fixed};
use crate::lens::Lens;
use crate::place::Places;
use crate::settings::Selection;
use crate::source::{self, Source};
use crate::write;
use antifreeze_lint::finding::{Finding, Safety};
use antifreeze_lint::here::Here;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// What to do with every file.
pub struct Orders<'a> {
    pub selection: &'a Selection,
    pub here: Here,
    pub fixes: Fixes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixes {
    /// Leave everything as it is.
    None,
    /// Write them.
    Make(Safety),
    /// Show what would be written.
    Show(Safety),
}

/// What there is to say about one file.
#[derive(Debug, Default)]
pub struct Report {
    pub path: PathBuf,
    pub findings: Vec<Finding>,
    /// The text of the findings, if there are any.
    pub places: Option<Places>,
    /// How many fixes were made, or would be.
    pub fixed: usize,
    /// What could not be done, and why, as sentences without their subject, the file.
    pub troubles: Vec<String>,
    /// What was left undone on purpose, in the same way.
    pub notes: Vec<String>,
    /// The file before and after its fixes, where they are to be shown.
    pub change: Option<Change>,
}

#[derive(Debug)]
pub struct Change {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

/// Examines a file of the disk, and fixes it there.
pub fn file(path: &Path, orders: &Orders) -> Report {
    let mut report = match source::bytes_of(path) {
        Ok(bytes) => bytes_at(bytes, path, orders),
        Err(trouble) => trouble_at(path, trouble),
    };
    if let Fixes::Make(_) = orders.fixes
        && let Some(change) = report.change.take()
        && let Err(trouble) = write::replace(path, &change.before, &change.after)
    {
        report.fixed = 0;
        report.troubles.push(trouble);
    }
    report
}

/// Examines bytes that are called `path`. What would be fixed is in the report's change.
pub fn bytes_at(bytes: Vec<u8>, path: &Path, orders: &Orders) -> Report {
    // A mistake of ours in one file must not cost the answers for the others.
    catch_unwind(AssertUnwindSafe(|| examined(bytes, path, orders))).unwrap_or_else(|panic| {
        let reason = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("for an unknown reason");
        trouble_at(
            path,
            format!("could not be checked: antifreeze itself failed ({reason}); please report it"),
        )
    })
}

fn examined(bytes: Vec<u8>, path: &Path, orders: &Orders) -> Report {
    let safety = match orders.fixes {
        Fixes::None => None,
        Fixes::Make(safety) | Fixes::Show(safety) => Some(safety),
    };
    let before = safety.map(|_| bytes.clone());
    let source = match Source::of(bytes, path) {
        Ok(Some(source)) => source,
        Ok(None) => return report_of(path),
        Err(trouble) => return trouble_at(path, trouble),
    };
    let lens = Lens {
        here: orders.here,
        rules: orders.selection.rules_for(path),
    };
    match (safety, before) {
        (Some(safety), Some(before)) => repaired(source, path, &lens, safety, before),
        _ => found(lens.at(&source), source, path),
    }
}

fn repaired(source: Source, path: &Path, lens: &Lens, safety: Safety, before: Vec<u8>) -> Report {
    let original = source.clone();
    let Fixed {
        source,
        findings,
        count,
        refused,
    } = fix::fix(source, lens, safety);
    if count == 0 {
        return with_refused(found(findings, source, path), &refused);
    }
    // Byte by byte, or not at all.
    let after = match original.bytes() {
        Ok(same) if same == before => source.bytes(),
        _ => Err("is encoded in a way that cannot be written back, so it was not fixed".into()),
    };
    match after {
        Ok(after) => {
            let mut report = with_refused(found(findings, source, path), &refused);
            report.fixed = count;
            report.change = Some(Change { before, after });
            report
        }
        Err(trouble) => {
            let mut report = found(lens.at(&original), original, path);
            report.troubles.push(trouble);
            report
        }
    }
}

fn found(findings: Vec<Finding>, source: Source, path: &Path) -> Report {
    let is_clean = findings.is_empty();
    let cells = source.cells().cloned();
    Report {
        findings,
        places: (!is_clean).then(|| Places::new(source.text, cells)),
        ..report_of(path)
    }
}

fn with_refused(mut report: Report, refused: &[Finding]) -> Report {
    for finding in refused {
        let Some(places) = &report.places else { break };
        let place = places.of(finding.range.start());
        report.notes.push(format!(
            "was not fixed at {place}: the fix of {} would leave no Python; please report it",
            finding.rule.name
        ));
    }
    report
}

fn report_of(path: &Path) -> Report {
    Report {
        path: path.to_owned(),
        ..Report::default()
    }
}

fn trouble_at(path: &Path, trouble: String) -> Report {
    Report {
        troubles: vec![trouble],
        ..report_of(path)
    }
}
