//! # native-crash
//!
//! Code that is not Python crashed: an extension, a driver, or the interpreter itself.
//!
//! ## Symptoms
//!
//! `Segmentation fault (core dumped)`, `Aborted`, `Illegal instruction`, and no traceback.
//!
//! ## How it is detected
//!
//! A signal for a program fault ended the run or one of its processes, by its status or in the words of the shell, the
//! launcher or Windows (`0xC0000005`), and no request for memory had just been refused. `Illegal instruction` means
//! that a library was built for another CPU. The shim has the interpreter write its stack; the kernel's log names the
//! library, if the line is about a process or thread of this run.
//!
//! ## What to do
//!
//! Update or reinstall the package that is called at the named line. Without the shim, have Python print its stack:
//!
//! ```sh
//! PYTHONFAULTHANDLER=1 antifreeze run -- python train.py
//! ```

use super::{CauseKind, Finding, Found, Role, batch_too_large};
use crate::kernel::Kind;
use crate::kernel::attribution::Attribution;
use crate::run::evidence::RunEvidence;
use crate::run::stacks::{Stacks, innermost_user_call};
use crate::verdict::place::user_file;
use crate::verdict::{Code, EndKind, Location};
use antifreeze_text::{sanitize, signal};

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::NativeCrash,
    word: "native-crash",
    title: "crash in native code",
    role: Role::Symptom,
    lint_rules: &[],
    source: include_str!("native_crash.rs"),
    detect,
};

/// The bit of a wait status that tells of a core dump.
const CORE_DUMPED: u32 = 0x80;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let signal = evidence.signal().filter(|number| signal::is_crash(*number));
    let is_whole = evidence.end == EndKind::Crashed || evidence.shell_reports_signal();
    // One of its processes may have crashed, and it ended with an error because of that.
    let is_part = evidence.went_wrong()
        && evidence
            .printed
            .exit_notice
            .is_some_and(|told| told.is_one_of_several);
    let Some(number) = signal.filter(|_| is_whole || is_part) else {
        let died = kernel_death_line(evidence).map(|line| Found::new(evidence, 0.35, line, ""));
        return died.into();
    };
    // A library that aborts because memory ran out is another cause.
    if number == signal::ABORT && batch_too_large::allocation_abort_line(evidence).is_some() {
        return Finding::Nothing;
    }
    let name = signal::name(number);
    let summary = match is_whole {
        true => format!("{name} in the program or one of its libraries"),
        false => format!("{name} in one of its processes"),
    };
    let confidence = match is_whole {
        // Full shared memory also raises a bus error, and it was not measured.
        true if number == signal::BUS && evidence.last_sample().is_none() => 0.5,
        true => 0.7,
        false => 0.8,
    };
    let mut found = Found::new(evidence, confidence, summary, "");
    let library = evidence
        .incidents()
        .rev()
        .find_map(|incident| match &incident.kind {
            Kind::Segfault { library, .. } | Kind::Trap { library, .. } => {
                let whose = Some(evidence.attribute(incident)).filter(|whose| whose.is_ours())?;
                library.clone().zip(Some(whose))
            }
            _ => None,
        });
    if let Some((library, whose)) = library {
        found = found.with_evidence(
            evidence,
            format!("the kernel's log names {library}"),
            "kernel",
        );
        found.summary = format!("{name} in {library}");
        found.confidence = match whose {
            Attribution::OurRun => 0.9,
            _ => found.confidence.max(0.8),
        };
    }
    let said = evidence.find_line(&["Fatal Python error:", "Windows fatal exception:"]);
    if let Some(line) = &said {
        found = found.with_evidence(evidence, line.clone(), "");
        found.confidence = found.confidence.max(0.85);
    }
    if evidence
        .summary
        .end
        .is_some_and(|end| end.status & CORE_DUMPED != 0)
    {
        found = found.with_evidence(
            evidence,
            "it left a core dump: `coredumpctl info`, or see /proc/sys/kernel/core_pattern".into(),
            "",
        );
    }
    // Without a shim, Python writes the stack to the output.
    let printed = || Stacks::parse(0, &evidence.facts.last_output).crash();
    let crash = evidence
        .facts
        .stacks
        .crash()
        .or_else(|| printed().filter(|(_, stack)| !stack.is_empty()));
    if let Some((fatal, stack)) = crash {
        let location = innermost_user_call(&stack).map(|call| Location {
            file: user_file(&call.frame.file, evidence.facts),
            line: call.frame.line,
            name: Some(call.function.clone()),
        });
        if said != Some(fatal.clone()) {
            found = found.with_evidence(evidence, fatal, "stacks");
        }
        found = found.at_location(location);
        found.confidence = found.confidence.max(0.9);
        // The function that the script called belongs to the package that crashed.
        let called = stack
            .iter()
            .take_while(|call| !call.frame.is_users())
            .last();
        let package = called.and_then(|call| package_of(&call.frame.file));
        let package =
            package.unwrap_or_else(|| "the package whose function is called there".into());
        return Finding::Found(found.with_remedy(format!("update or reinstall {package}"), None));
    }
    Finding::Found(found.with_remedy(
        "have Python print where it crashed:",
        Some(format!(
            "PYTHONFAULTHANDLER=1 antifreeze run -- {}",
            evidence.facts.command_line()
        )),
    ))
}

/// The line in which a notebook reports that its kernel died.
pub(super) fn kernel_death_line(evidence: &RunEvidence<'_>) -> Option<String> {
    let said = evidence.find_line(&[
        "restarting kernel (",
        "appears to have died",
        "The Kernel crashed while executing code",
        "Kernel died",
    ]);
    said.filter(|_| evidence.end == EndKind::Unknown)
}

/// The package of an installed file: "torch".
fn package_of(file: &[u8]) -> Option<String> {
    let file = sanitize::escape(file);
    let (_, inside) = file.rsplit_once("-packages/")?;
    Some(inside.split(['/', '.']).next()?.to_owned())
}
