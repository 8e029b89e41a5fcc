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
//! less than 0.5 % of a core and read nothing. After a minute the guard asks the trainer three times where its threads
//! are; if its main thread is at one place each time, it is called sure, and the place is named.
//!
//! ## What to do
//!
//! The line that is named waits for something that nobody does: look for a fork after threads, for ranks that
//! disagree, for a queue that nobody fills. The stacks of all threads are in the report.
//!
//! `num_workers=0` tells whether it is the loader; `multiprocessing.set_start_method("spawn")` avoids locks that
//! were held when it forked.

use super::{Finding, Found};
use crate::case::Case;
use crate::ending::user_file;
use crate::safe;
use crate::stacks::own;
use crate::units;
use crate::verdict::{EndKind, Location};
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
    let stacks = &case.facts.stacks;
    let since = units::duration(stands);
    let Some(stack) = stacks.standing() else {
        let summary = format!(
            "no step for {since} and no work either: the longest had taken {}",
            units::duration(case.story.course.longest_step)
        );
        return Finding::Found(remedied(Found::new(case, 0.7, summary, "tree.cpu")));
    };
    // What the script itself called.
    let called = stack.iter().take_while(|call| !call.frame.is_users()).last();
    let waits = called.map_or_else(String::new, |call| {
        let function = safe::shown(call.function.as_bytes());
        format!(" in {function} ({})", safe::file_name(&call.frame.file))
    });
    let location = own(stack).map(|call| Location {
        file: user_file(&call.frame.file, case.facts),
        line: call.frame.line,
        name: Some(call.function.clone()),
    });
    let summary = format!("no step for {since} and no work either: it waits{waits}");
    let found = Found::new(case, 0.9, summary, "tree.cpu").at(location);
    let asked = "each time it was asked, its main thread was at the same place";
    let found = found.and(case, asked.into(), "stacks");
    let of_loader = stack.iter().any(|call| call.frame.file.ends_with(b"dataloader.py"));
    Finding::Found(match (of_loader, found.place()) {
        (false, Some(place)) => {
            found.remedy(format!("find out who should end the waiting at {place}, and does not"), None)
        }
        _ => remedied(found),
    })
}

fn remedied(found: Found) -> Found {
    found.remedy(
        "see whether it is the loader: load in the process itself",
        Some("num_workers=0".into()),
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
