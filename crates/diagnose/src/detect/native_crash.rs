//! # native-crash
//!
//! Code that is not Python crashed: an extension, a driver, the interpreter itself.
//!
//! ## How it looks
//!
//! `Segmentation fault (core dumped)`, `Aborted`, `Illegal instruction`, and no traceback.
//!
//! ## How it is told
//!
//! A signal that the kernel sends for what a program did ended it, and no request for memory had just been refused:
//! then it would be that. `Illegal instruction` means that a library was built for another processor.
//!
//! ## What to do
//!
//! Let Python say where it was:
//!
//! ```sh
//! PYTHONFAULTHANDLER=1 antifreeze run -- python train.py
//! ```
//!
//! then update, or reinstall, the package that is named.

use super::{Finding, Found};
use crate::case::Case;
use crate::kernel::Kind;
use crate::signal::{self, Exit};
use crate::verdict::EndKind;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let signal = case.exit().and_then(Exit::deadly_signal);
    let Some(number) = signal.filter(|_| case.end == EndKind::Crashed) else {
        return Finding::Nothing;
    };
    let name = signal::name(number);
    let summary = format!("{name} in the program or one of its libraries");
    let mut found = Found::new(case, 0.7, summary, "");
    let library = case.incidents().rev().find_map(|incident| match &incident.kind {
        Kind::Segfault { library, .. } | Kind::Trap { library, .. } => library.clone(),
        _ => None,
    });
    if let Some(library) = library {
        found = found.and(case, format!("the kernel names {library}"), "kernel");
        found.summary = format!("{name} in {library}");
        found.confidence = 0.9;
    }
    if let Some(line) = case.line_with(&["Fatal Python error:"]) {
        found = found.and(case, line, "");
        found.confidence = found.confidence.max(0.85);
    }
    Finding::Found(found.remedy(
        "let Python tell where it crashed:",
        Some(format!(
            "PYTHONFAULTHANDLER=1 antifreeze run -- {}",
            case.facts.command_line()
        )),
    ))
}
