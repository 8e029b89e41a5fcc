//! # cpu-oversubscribed
//!
//! Many more threads want a core than there are cores.
//!
//! ## How it looks
//!
//! All cores are busy, the machine is slow to answer, and the training is slower than with fewer workers. Each
//! worker process starts as many threads as the machine has cores.
//!
//! ## How it is told
//!
//! On average more than twice as many tasks wanted to run as there are cores, somebody waited for one for more
//! than half of the time, and the tree kept the cores busy.
//!
//! ## What to do
//!
//! One thread for each worker, and as many of both as there are cores:
//!
//! ```sh
//! OMP_NUM_THREADS=1 antifreeze run -- python train.py
//! ```

use antifreeze_text::units;
use super::{Finding, Found};
use crate::case::Case;

/// Tasks for each core.
const MANY: f64 = 2.0;
const WAITED: f64 = 0.5;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let course = &case.story.course;
    let (Some(cores), Some(runnable)) = (case.cores(), course.runnable()) else {
        return Finding::Nothing;
    };
    let whole = course.whole();
    let waited = whole.cpu_stall.unwrap_or(0.0);
    let busy = whole.cores.unwrap_or(0.0);
    if whole.time.as_secs() < 20 {
        return Finding::Nothing;
    }
    if runnable <= MANY * cores as f64 || waited < WAITED || busy < 0.6 * cores as f64 {
        return match runnable <= cores as f64 {
            true => Finding::RuledOut(format!("{runnable:.0} tasks for {cores} cores")),
            false => Finding::Nothing,
        };
    }
    let summary = format!(
        "{runnable:.0} tasks at a time wanted one of {}",
        units::count(cores, "core")
    );
    let threads = units::count(course.most_threads, "thread");
    let command = case.facts.command_line();
    Finding::Found(
        Found::new(case, 0.8, summary, "cpu.runnable")
            .and(case, format!("the run had {threads}"), "tree.threads")
            .and(
                case,
                format!("somebody waited for a core for {} of the time", units::percent(waited)),
                "pressure.cpu_some",
            )
            .remedy(
                "one thread for each process, and no more processes than cores",
                Some(format!("OMP_NUM_THREADS=1 antifreeze run -- {command}")),
            ),
    )
}
