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
//! For a minute or more, and where steps are known ten times the longest of them, there was no step, the whole tree
//! used less than 0.5 % of a core and read nothing. Then the guard asks the trainer three times where its threads are;
//! without the shim they are read from outside. It is called sure if the main thread was at one place each time, waits
//! for a lock, a descriptor or another process, and its threads hardly wake. One that waits for what is typed, for the
//! clock or for the network is none, and threads that wake several times a second may be a slow download.
//!
//! ## What to do
//!
//! The line that is named waits for something that nobody does: look for a fork after threads, for ranks that
//! disagree, for a queue that nobody fills. The stacks of all threads are in the report.
//!
//! `num_workers=0` tells whether it is the loader; `multiprocessing.set_start_method("spawn")` avoids locks that
//! were held when it forked.

use antifreeze_text::{sanitize, units};
use super::{Finding, Found};
use crate::case::Case;
use crate::ending::user_file;
use crate::stacks::{Call, own};
use crate::verdict::{EndKind, Location};
use crate::waits::For;
use std::time::Duration;

/// Cores that are called idle.
const IDLE: f64 = 0.005;
/// Times a second that threads wake which do nothing but wait.
const FEW_WAKES: f64 = 5.0;

pub(super) fn look(case: &Case<'_>) -> Finding {
    let course = &case.story.course;
    let ending = course.ending();
    let idle = ending.time >= Duration::from_secs(60) && ending.cores.is_some_and(|cores| cores < IDLE);
    if !idle || ending.read.is_some_and(|read| read > 0) || is_stopped(case) {
        return Finding::Nothing;
    }
    let knows_steps = course.since_step().is_some();
    let stands = if knows_steps { stands_still(case) } else { may_stand(case).then_some(ending.time) };
    let Some(stands) = stands else {
        return Finding::Nothing;
    };
    let stacks = &case.facts.stacks;
    let waits = stacks.pid.and_then(|pid| case.facts.waits.of(pid));
    let typed = case.facts.waits.any(For::Input);
    let is_online = stacks.standing().and_then(|stack| stack.first()).is_some_and(is_of_network);
    let other = match waits {
        Some(For::Input) => Some("it waits for what is typed"),
        None if typed => Some("it waits for what is typed"),
        Some(For::Time) => Some("it sleeps for a time that it has set"),
        Some(For::Network) => Some("it waits for the network"),
        _ if is_online => Some("it waits for the network"),
        _ => None,
    };
    if let Some(why) = other {
        return Finding::RuledOut(why.into());
    }
    let since = units::duration(stands);
    let Some(stack) = stacks.standing() else {
        if !knows_steps {
            return Finding::Nothing;
        }
        let summary = format!(
            "no step for {since} and no work either: the longest had taken {}",
            units::duration(course.longest_step)
        );
        return Finding::Found(remedied(Found::new(case, 0.7, summary, "tree.cpu")));
    };
    // What the script itself called.
    let called = stack.iter().take_while(|call| !call.frame.is_users()).last();
    let place = called.map_or_else(String::new, |call| {
        let function = sanitize::escape(call.function.as_bytes());
        format!(" in {function} ({})", sanitize::file_name(&call.frame.file))
    });
    let location = own(stack).map(|call| Location {
        file: user_file(&call.frame.file, case.facts),
        line: call.frame.line,
        name: Some(call.function.clone()),
    });
    let wakes = case.facts.waits.wakes();
    let confidence = match (waits, wakes) {
        (_, Some(wakes)) if wakes > FEW_WAKES => 0.6,
        (Some(For::Nothing | For::Other), _) => 0.7,
        _ if knows_steps => 0.9,
        _ => 0.85,
    };
    let what = if knows_steps { "no step" } else { "no work" };
    let either = if knows_steps { " and no work either" } else { "" };
    let summary = format!("{what} for {since}{either}: it waits{place}");
    let found = Found::new(case, confidence, summary, "tree.cpu").at(location);
    let asked = "each time somebody looked, its main thread was at the same place";
    let waits_for = waits.and_then(named).map_or_else(String::new, |what| format!(", waiting for {what}"));
    let mut found = found.and(case, format!("{asked}{waits_for}"), "stacks");
    if let Some(wakes) = wakes {
        let like = if wakes > FEW_WAKES { ", as in a slow download" } else { "" };
        let woke = match wakes < 0.05 {
            true => "none of its threads woke".into(),
            false => format!("its threads woke {wakes:.1} times a second{like}"),
        };
        found = found.and(case, woke, "");
    }
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

/// In words, where it can be the half of a deadlock.
fn named(waits: For) -> Option<&'static str> {
    match waits {
        For::Lock => Some("a lock"),
        For::Poll => Some("one of several descriptors"),
        For::Pipe => Some("a pipe"),
        For::Child => Some("the end of a process"),
        _ => None,
    }
}

fn is_of_network(call: &Call) -> bool {
    ["socket.py", "ssl.py"].contains(&sanitize::file_name(&call.frame.file).as_str())
}

/// Somebody stopped it, and may let it go on.
fn is_stopped(case: &Case<'_>) -> bool {
    case.last().is_some_and(|last| last.processes.as_slice().iter().any(|process| process.state == b'T'))
}

/// How long no step had been made at the end, where that is much longer than any step took.
pub(super) fn stands_still(case: &Case<'_>) -> Option<Duration> {
    let since = case.story.course.since_step()?;
    let longest = case.story.course.longest_step;
    let is_long = since >= Duration::from_secs(60) && since > longest.saturating_mul(10);
    (may_stand(case) && is_long).then_some(since)
}

/// It runs, or was cut while it did.
fn may_stand(case: &Case<'_>) -> bool {
    matches!(
        case.end,
        EndKind::Running | EndKind::Killed | EndKind::Stopped | EndKind::Hung | EndKind::Unknown
    ) || case.was_asked_to_end()
}
