//! # kernel-panic
//!
//! The kernel met an error from which it could not recover.
//!
//! ## Symptoms
//!
//! A screen full of text, blinking keyboard lights, or a reboot.
//!
//! ## How it is detected
//!
//! `Kernel panic - not syncing`, or an oops, in the log of the boot in which the machine died: the journal, pstore, or
//! a file given with `--kernel-log`; or the output, where a console has both. If the machine stayed up, a panic does
//! not belong to the run; an oops or a lockup is possible if the run was killed or crashed.
//!
//! ## What to do
//!
//! Update the kernel and the GPU driver. If the panic names memory or a machine check, test the memory (`memtest86+`).

use super::{CauseKind, Finding, Found, Role};
use crate::kernel::Kind;
use crate::kernel::hardware_relevance::Component;
use crate::run::evidence::RunEvidence;
use crate::run::facts::RunState;
use crate::verdict::{Code, EndKind};

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::KernelPanic,
    word: "kernel-panic",
    title: "kernel panic",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("kernel_panic.rs"),
    detect,
};

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let died = evidence.end == EndKind::MachineDied;
    let worst = |is_one: fn(&Kind) -> bool| evidence.last_incident(is_one);
    // A record that stops, from an unknown machine, may have stopped with the machine.
    let panicked =
        died || evidence.end == EndKind::Unknown && evidence.facts.state != RunState::GuardGone;
    let panic = worst(|kind| matches!(kind, Kind::Panic { .. })).filter(|_| panicked);
    let found = panic
        .map(|incident| (if died { 0.95 } else { 0.75 }, incident))
        .or_else(|| {
            let oops = worst(|kind| matches!(kind, Kind::Oops { .. }))?;
            Some((if died { 0.85 } else { 0.5 }, oops))
        })
        .or_else(|| {
            let lockup = worst(|kind| matches!(kind, Kind::Lockup))?;
            Some((if died { 0.75 } else { 0.4 }, lockup))
        });
    let Some((confidence, incident)) = found else {
        return match died && evidence.has_kernel_log() {
            true => Finding::RuledOut("the kernel's log of that boot has none".into()),
            false => Finding::Nothing,
        };
    };
    // An error of the script was not caused by the kernel.
    let is_possible = !matches!(evidence.end, EndKind::Exception | EndKind::Failed);
    let found = Found::from_hardware_incident(evidence, Component::Board, confidence, incident)
        .filter(|_| is_possible);
    let remedy =
        "update the kernel and the GPU driver; if it happens again, test the memory (memtest86+)";
    found.map(|found| found.with_remedy(remedy, None)).into()
}
