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
//! then it would be that. `Illegal instruction` means that a library was built for another processor. The shim has the
//! interpreter write where it was; the kernel's log names the library.
//!
//! ## What to do
//!
//! Update, or reinstall, the package that is called at the line that is named. Without the shim, let Python say where
//! it was:
//!
//! ```sh
//! PYTHONFAULTHANDLER=1 antifreeze run -- python train.py
//! ```

use super::{Finding, Found};
use crate::case::Case;
use crate::ending::user_file;
use crate::kernel::Kind;
use crate::safe;
use crate::signal::{self, Exit};
use crate::stacks::own;
use crate::verdict::{EndKind, Location};

/// Of a status: a core was written.
const DUMPED: u32 = 0x80;

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
    if case.story.end.is_some_and(|end| end.status & DUMPED != 0) {
        found = found.and(case, "it left a core: `coredumpctl info`, or where /proc/sys/kernel/core_pattern says".into(), "");
    }
    if let Some((said, stack)) = case.facts.stacks.crash() {
        let location = own(&stack).map(|call| Location {
            file: user_file(&call.frame.file, case.facts),
            line: call.frame.line,
            name: Some(call.function.clone()),
        });
        found = found.and(case, said, "stacks").at(location);
        found.confidence = found.confidence.max(0.9);
        // What the script called there belongs to the package that crashed.
        let called = stack.iter().take_while(|call| !call.frame.is_users()).last();
        let package = called.and_then(|call| package_of(&call.frame.file));
        let package = package.unwrap_or_else(|| "the package whose function is called there".into());
        return Finding::Found(found.remedy(format!("update, or reinstall, {package}"), None));
    }
    Finding::Found(found.remedy(
        "let Python tell where it crashed:",
        Some(format!(
            "PYTHONFAULTHANDLER=1 antifreeze run -- {}",
            case.facts.command_line()
        )),
    ))
}

/// "torch", of a file in a folder of packages.
fn package_of(file: &[u8]) -> Option<String> {
    let file = safe::shown(file);
    let (_, inside) = file.rsplit_once("-packages/")?;
    Some(inside.split(['/', '.']).next()?.to_owned())
}
