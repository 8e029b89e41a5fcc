//! # deadlock
//!
//! Threads or processes of the training wait for each other, and nobody works.
//!
//! ## How it looks
//!
//! No output, no load, no error; it would stay so for ever. A fork after threads were started, a queue that nobody
//! reads, a collective that one rank never reaches, a full `/dev/shm`.
//!
//! ## How it is told
//!
//! Steps were made, and then none for a minute or more and ten times the longest step, while the whole tree used
//! less than 0.5 % of a core and read and wrote nothing. Without stacks that agree it is called likely and no more.
//!
//! ## What to do
//!
//! See where it stands, then look for a fork after threads, or ranks that disagree:
//!
//! ```sh
//! py-spy dump --pid …
//! ```
//!
//! `num_workers=0` tells whether it is the loader; `multiprocessing.set_start_method("spawn")` avoids locks that
//! were held when it forked.

use super::{Finding, Found};
use crate::case::Case;
use crate::units;
use crate::verdict::EndKind;
use std::time::Duration;

/// Cores that are called idle.
const IDLE: f64 = 0.005;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let Some(stands) = stands_still(case) else {
        return Finding::Nothing;
    };
    let ending = case.story.course.ending();
    let idle = ending.time >= Duration::from_secs(60) && ending.cores.is_some_and(|cores| cores < IDLE);
    if !idle || ending.read.is_some_and(|read| read > 0) {
        return Finding::Nothing;
    }
    let summary = format!(
        "no step for {} and no work either: the longest had taken {}",
        units::duration(stands),
        units::duration(case.story.course.longest_step)
    );
    Finding::Found(
        Found::new(case, 0.7, summary, "tree.cpu").remedy(
            "see whether it is the loader: load in the process itself",
            Some("num_workers=0".into()),
        ),
    )
}

/// How long no step had been made at the end, where that is much longer than any step took.
pub(super) fn stands_still(case: &Case<'_>) -> Option<Duration> {
    let since = case.story.course.since_step()?;
    let was_cut = matches!(
        case.end,
        EndKind::Running | EndKind::Killed | EndKind::Stopped | EndKind::Hung | EndKind::Unknown
    );
    let longest = case.story.course.longest_step;
    let is_long = since >= Duration::from_secs(60) && since > longest.saturating_mul(10);
    (was_cut && is_long).then_some(since)
}
