//! # cpu-oversubscribed
//!
//! Many more threads want to run than there are CPU cores.
//!
//! ## Symptoms
//!
//! All cores are busy, the machine responds slowly, and the training is slower than with fewer workers. Each worker
//! process starts as many threads as the machine has cores.
//!
//! ## How it is detected
//!
//! On average more than twice as many tasks wanted to run as there are cores, some task waited for a core for more than
//! half of the time, and the run kept the cores busy.
//!
//! ## What to do
//!
//! Use one thread per worker, and no more workers than cores:
//!
//! ```sh
//! OMP_NUM_THREADS=1 antifreeze run -- python train.py
//! ```

use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::verdict::Code;
use antifreeze_text::units;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::CpuOversubscribed,
    word: "cpu-oversubscribed",
    title: "too many threads for the CPU",
    role: Role::SlowsRun,
    lint_rules: &[],
    source: include_str!("cpu_oversubscribed.rs"),
    detect,
};

/// So many tasks per core are too many.
const MAX_TASKS_PER_CORE: f64 = 2.0;
/// Tasks waited for a core for at least this share of the time.
const MIN_WAIT_SHARE: f64 = 0.5;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let rates = &evidence.summary.rates;
    let (Some(cores), Some(runnable)) = (evidence.cores(), rates.mean_runnable()) else {
        return Finding::Nothing;
    };
    let whole = rates.whole_run();
    let waited = whole.cpu_stall.unwrap_or(0.0);
    let busy = whole.cores.unwrap_or(0.0);
    if whole.time.as_secs() < 20 {
        return Finding::Nothing;
    }
    if runnable <= MAX_TASKS_PER_CORE * cores as f64
        || waited < MIN_WAIT_SHARE
        || busy < 0.6 * cores as f64
    {
        return match runnable <= cores as f64 {
            true => Finding::RuledOut(format!("{runnable:.0} tasks for {cores} cores")),
            false => Finding::Nothing,
        };
    }
    let summary = format!(
        "{runnable:.0} tasks on average wanted to run on {}",
        units::count(cores, "core")
    );
    let threads = units::count(rates.most_threads, "thread");
    let command = evidence.facts.command_line();
    Finding::Found(
        Found::new(evidence, 0.8, summary, "cpu.runnable")
            .with_evidence(evidence, format!("the run had {threads}"), "tree.threads")
            .with_evidence(
                evidence,
                format!(
                    "some task waited for a core for {} of the time",
                    units::percent(waited)
                ),
                "pressure.cpu_some",
            )
            .with_remedy(
                "use one thread per process, and no more processes than cores",
                Some(format!("OMP_NUM_THREADS=1 antifreeze run -- {command}")),
            ),
    )
}
