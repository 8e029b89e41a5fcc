//! The causes that are looked for, one file each. A file declares everything about its cause in its `CAUSE`: code, title,
//! role, related lint rules and detector. The comment at its head is its page in docs/causes.
//!
//! A detector reports what it found and how sure that is, or why it was not that, or nothing. Where two causes look
//! alike, both are reported, and neither with high confidence.

mod finding;
#[cfg(test)]
mod pages;
mod remedy;

mod batch_too_large;
mod container_limit;
mod cpu_oversubscribed;
mod dataset_in_memory;
mod deadlock;
mod device_mismatch;
mod disk_full;
mod distributed_failure;
mod gpu_driver_mismatch;
mod gpu_fault;
mod gpu_lost;
mod hardware_error;
mod infinite_loop;
mod input_bound;
mod kernel_panic;
mod killed_externally;
mod library_not_mapped;
mod loader_memory;
mod machine_reset;
mod memory_leak;
mod missing_dependency;
mod native_crash;
mod numeric_divergence;
mod numeric_nan;
mod other_process;
mod power_limit;
mod shm_exhausted;
mod slow_storage;
mod swap_thrash;
mod thermal_throttle;
mod user_exception;
mod vram_exhausted;
mod vram_leak;
mod vram_spill;

pub(crate) use deadlock::made_no_steps;
pub(crate) use finding::{Finding, Found};
pub(crate) use user_exception::{own_exit_code, was_caught};

use crate::run::evidence::RunEvidence;
use crate::verdict::Code;

/// The declaration of a cause.
pub struct CauseKind {
    /// Its code in a verdict.
    pub code: Code,
    /// The word for it in `verdict.json` and the name of its page.
    pub word: &'static str,
    /// Its title in plain words.
    pub title: &'static str,
    /// How it relates to the end of a run.
    pub(crate) role: Role,
    /// Rules of the linter that find this cause in a script.
    pub lint_rules: &'static [&'static str],
    /// The text of its file.
    source: &'static str,
    pub(crate) detect: fn(&RunEvidence<'_>) -> Finding,
}

/// How a cause relates to the end of a run.
#[derive(Clone, Copy)]
pub(crate) enum Role {
    /// It ends a run.
    EndsRun,
    /// It ends a run because memory runs out, so it does not explain an error about anything else.
    ExhaustsMemory,
    /// It ends a run, and explains an error that only says that there is no usable GPU.
    BreaksGpu,
    /// It slows a run down that works otherwise.
    SlowsRun,
    /// It is how an end shows itself. A cause that explains the end replaces it.
    Symptom,
    /// A run may continue in spite of it and end for another reason.
    Bearable,
    /// The same, unless this function finds that it ended the run.
    BearableUnless(fn(&RunEvidence<'_>) -> bool),
}

/// All causes, those that explain the most first.
pub static ALL: &[&CauseKind] = &[
    &memory_leak::CAUSE,
    &batch_too_large::CAUSE,
    &dataset_in_memory::CAUSE,
    &loader_memory::CAUSE,
    &shm_exhausted::CAUSE,
    &swap_thrash::CAUSE,
    &container_limit::CAUSE,
    &library_not_mapped::CAUSE,
    &other_process::CAUSE,
    &vram_exhausted::CAUSE,
    &vram_leak::CAUSE,
    &vram_spill::CAUSE,
    &input_bound::CAUSE,
    &slow_storage::CAUSE,
    &disk_full::CAUSE,
    &cpu_oversubscribed::CAUSE,
    &deadlock::CAUSE,
    &infinite_loop::CAUSE,
    &gpu_driver_mismatch::CAUSE,
    &gpu_fault::CAUSE,
    &gpu_lost::CAUSE,
    &thermal_throttle::CAUSE,
    &power_limit::CAUSE,
    &machine_reset::CAUSE,
    &kernel_panic::CAUSE,
    &hardware_error::CAUSE,
    &numeric_nan::CAUSE,
    &numeric_divergence::CAUSE,
    &missing_dependency::CAUSE,
    &device_mismatch::CAUSE,
    &distributed_failure::CAUSE,
    &user_exception::CAUSE,
    &native_crash::CAUSE,
    &killed_externally::CAUSE,
];

impl CauseKind {
    /// The page of the cause in docs/causes, from the comment at the head of its file.
    pub fn page(&self) -> String {
        let head = self
            .source
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line));
        head.map(|line| format!("{line}\n")).collect()
    }
}

/// Finds a cause by its word.
pub fn cause_by_word(word: &str) -> Option<&'static CauseKind> {
    ALL.iter().copied().find(|kind| kind.word == word)
}
