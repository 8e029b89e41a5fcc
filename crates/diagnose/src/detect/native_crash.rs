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
//! A signal that the kernel sends for what a program did ended it, or one of its processes, by its status or in the
//! words of the shell, the launcher or Windows (`0xC0000005`); and no request for memory had just been refused: then it would be that. `Illegal
//! instruction` means that a library was built for another processor. The shim has the interpreter write where it was;
//! the kernel's log names the library, where it tells of a process of this run, or of a thread that by name and time
//! is one of its own.
//!
//! ## What to do
//!
//! Update, or reinstall, the package that is called at the line that is named. Without the shim, let Python say where
//! it was:
//!
//! ```sh
//! PYTHONFAULTHANDLER=1 antifreeze run -- python train.py
//! ```

use antifreeze_text::{sanitize, signal};
use super::{Finding, Found, batch_too_large};
use crate::case::Case;
use crate::ending::user_file;
use crate::kernel::Kind;
use crate::stacks::{Stacks, own};
use crate::verdict::{EndKind, Location};
use crate::whose::Whose;

/// Of a status: a core was written.
const DUMPED: u32 = 0x80;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let signal = case.signal().filter(|number| signal::is_crash(*number));
    let is_whole = case.end == EndKind::Crashed || case.is_told_by_shell();
    // One of its processes may have crashed, and it ended with an error for that.
    let is_part = case.went_wrong() && case.printed.told.is_some_and(|told| told.is_part);
    let Some(number) = signal.filter(|_| is_whole || is_part) else {
        let died = notebook_died(case).map(|line| Found::new(case, 0.35, line, ""));
        return died.into();
    };
    // Libraries abort where they cannot raise an error: that is another cause.
    if number == signal::ABORT && batch_too_large::aborted(case).is_some() {
        return Finding::Nothing;
    }
    let name = signal::name(number);
    let summary = match is_whole {
        true => format!("{name} in the program or one of its libraries"),
        false => format!("{name} in one of its processes"),
    };
    let confidence = match is_whole {
        // Shared memory that is full looks so, and nobody looked at it.
        true if number == signal::BUS && case.last().is_none() => 0.5,
        true => 0.7,
        false => 0.8,
    };
    let mut found = Found::new(case, confidence, summary, "");
    let library = case.incidents().rev().find_map(|incident| match &incident.kind {
        Kind::Segfault { library, .. } | Kind::Trap { library, .. } => {
            let whose = Some(case.whose(incident)).filter(|whose| whose.is_ours())?;
            library.clone().zip(Some(whose))
        }
        _ => None,
    });
    if let Some((library, whose)) = library {
        found = found.and(case, format!("the kernel names {library}"), "kernel");
        found.summary = format!("{name} in {library}");
        found.confidence = match whose {
            Whose::Ours => 0.9,
            _ => found.confidence.max(0.8),
        };
    }
    let said = case.line_with(&["Fatal Python error:", "Windows fatal exception:"]);
    if let Some(line) = &said {
        found = found.and(case, line.clone(), "");
        found.confidence = found.confidence.max(0.85);
    }
    if case.story.end.is_some_and(|end| end.status & DUMPED != 0) {
        found = found.and(case, "it left a core: `coredumpctl info`, or where /proc/sys/kernel/core_pattern says".into(), "");
    }
    // What Python wrote where there is no shim stands in the output.
    let printed = || Stacks::of(0, &case.facts.last_output).crash();
    let crash = case.facts.stacks.crash().or_else(|| printed().filter(|(_, stack)| !stack.is_empty()));
    if let Some((fatal, stack)) = crash {
        let location = own(&stack).map(|call| Location {
            file: user_file(&call.frame.file, case.facts),
            line: call.frame.line,
            name: Some(call.function.clone()),
        });
        if said != Some(fatal.clone()) {
            found = found.and(case, fatal, "stacks");
        }
        found = found.at(location);
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

/// A notebook tells that its kernel went away, and not how.
pub(super) fn notebook_died(case: &Case<'_>) -> Option<String> {
    let said = case.line_with(&[
        "restarting kernel (",
        "appears to have died",
        "The Kernel crashed while executing code",
        "Kernel died",
    ]);
    said.filter(|_| case.end == EndKind::Unknown)
}

/// "torch", of a file in a folder of packages.
fn package_of(file: &[u8]) -> Option<String> {
    let file = sanitize::escape(file);
    let (_, inside) = file.rsplit_once("-packages/")?;
    Some(inside.split(['/', '.']).next()?.to_owned())
}
