//! # deadlock
//!
//! Threads or processes of the training wait for each other, and none makes progress.
//!
//! ## Symptoms
//!
//! No output, no load, no error, for ever. Common reasons: a fork after threads were started, a queue that nothing
//! reads, a collective that one rank never reaches, a full `/dev/shm`.
//!
//! ## How it is detected
//!
//! For a minute or more, and ten times the longest step where steps are known, there was no step, the run used less
//! than 0.5 % of a core and read nothing. The guard then asks the trainer for its stacks three times; without the shim
//! they are read from outside. Confidence is high if the main thread was at the same place each time, waits for a lock,
//! a descriptor or another process, and threads hardly wake. Waiting for input, a timer or the network is no deadlock,
//! and threads that wake several times a second may be a slow download.
//!
//! ## What to do
//!
//! The named line waits for something that does not happen: look for a fork after threads, ranks that disagree, or a
//! queue that nothing fills. The stacks of all threads are in the report.
//!
//! `num_workers=0` shows whether it is the loader; `multiprocessing.set_start_method("spawn")` avoids locks that were
//! held during a fork.

use super::{CauseKind, Finding, Found, Role};
use crate::run::evidence::RunEvidence;
use crate::run::stacks::{Call, innermost_user_call};
use crate::run::wait_states::WaitingOn;
use crate::verdict::place::user_file;
use crate::verdict::{Code, EndKind, Location};
use antifreeze_text::{sanitize, units};
use std::time::Duration;

pub(super) static CAUSE: CauseKind = CauseKind {
    code: Code::Deadlock,
    word: "deadlock",
    title: "deadlock",
    role: Role::EndsRun,
    lint_rules: &[],
    source: include_str!("deadlock.rs"),
    detect,
};

/// A run that uses fewer cores is idle.
const MAX_IDLE_CORES: f64 = 0.005;
/// Threads that only wait wake up at most so often in a second.
const MAX_WAKEUPS_PER_SECOND: f64 = 5.0;

fn detect(evidence: &RunEvidence<'_>) -> Finding {
    let rates = &evidence.summary.rates;
    let ending = rates.last_minute();
    let idle = ending.time >= Duration::from_secs(60)
        && ending.cores.is_some_and(|cores| cores < MAX_IDLE_CORES);
    if !idle || ending.read.is_some_and(|read| read > 0) || is_stopped(evidence) {
        return Finding::Nothing;
    }
    let knows_steps = rates.time_since_step().is_some();
    let stands = if knows_steps {
        time_without_steps(evidence)
    } else {
        may_hang(evidence).then_some(ending.time)
    };
    let Some(stands) = stands else {
        return Finding::Nothing;
    };
    let stacks = &evidence.facts.stacks;
    let waits = stacks
        .pid
        .and_then(|pid| evidence.facts.wait_states.main_thread(pid));
    let typed = evidence.facts.wait_states.any_waits_on(WaitingOn::Input);
    let is_online = stacks
        .repeated_stack()
        .and_then(|stack| stack.first())
        .is_some_and(is_network_call);
    let other = match waits {
        Some(WaitingOn::Input) => Some("it waits for input"),
        None if typed => Some("it waits for input"),
        Some(WaitingOn::Time) => Some("it waits for a timer"),
        Some(WaitingOn::Network) => Some("it waits for the network"),
        _ if is_online => Some("it waits for the network"),
        _ => None,
    };
    if let Some(why) = other {
        return Finding::RuledOut(why.into());
    }
    let since = units::duration(stands);
    let Some(stack) = stacks.repeated_stack() else {
        if !knows_steps {
            return Finding::Nothing;
        }
        let summary = format!(
            "no step and no CPU use for {since}: the longest step had taken {}",
            units::duration(rates.longest_step)
        );
        return Finding::Found(add_remedies(Found::new(evidence, 0.7, summary, "tree.cpu")));
    };
    // The function that the script called.
    let called = stack
        .iter()
        .take_while(|call| !call.frame.is_users())
        .last();
    let place = called.map_or_else(String::new, |call| {
        let function = sanitize::escape(call.function.as_bytes());
        format!(" in {function} ({})", sanitize::file_name(&call.frame.file))
    });
    let location = innermost_user_call(stack).map(|call| Location {
        file: user_file(&call.frame.file, evidence.facts),
        line: call.frame.line,
        name: Some(call.function.clone()),
    });
    let wakes = evidence.facts.wait_states.wakeups_per_second();
    let confidence = match (waits, wakes) {
        (_, Some(wakes)) if wakes > MAX_WAKEUPS_PER_SECOND => 0.6,
        (Some(WaitingOn::Nothing | WaitingOn::Other), _) => 0.7,
        _ if knows_steps => 0.9,
        _ => 0.85,
    };
    let what = if knows_steps { "no step" } else { "no work" };
    let either = if knows_steps {
        " and no work either"
    } else {
        ""
    };
    let summary = format!("{what} for {since}{either}: it waits{place}");
    let found = Found::new(evidence, confidence, summary, "tree.cpu").at_location(location);
    let asked = "its main thread was at the same place in every stack";
    let waits_for = waits
        .and_then(wait_name)
        .map_or_else(String::new, |what| format!(", waiting for {what}"));
    let mut found = found.with_evidence(evidence, format!("{asked}{waits_for}"), "stacks");
    if let Some(wakes) = wakes {
        let like = if wakes > MAX_WAKEUPS_PER_SECOND {
            ", as in a slow download"
        } else {
            ""
        };
        let woke = match wakes < 0.05 {
            true => "none of its threads woke".into(),
            false => format!("its threads woke {wakes:.1} times a second{like}"),
        };
        found = found.with_evidence(evidence, woke, "");
    }
    let of_loader = stack
        .iter()
        .any(|call| call.frame.file.ends_with(b"dataloader.py"));
    Finding::Found(match (of_loader, found.place()) {
        (false, Some(place)) => found.with_remedy(
            format!("find out what {place} waits for, and why it does not happen"),
            None,
        ),
        _ => add_remedies(found),
    })
}

fn add_remedies(found: Found) -> Found {
    found.with_remedy(
        "check whether it is the data loader: load in the main process",
        Some("num_workers=0".into()),
    )
}

/// What a thread waits for in words, if that can be part of a deadlock.
fn wait_name(waits: WaitingOn) -> Option<&'static str> {
    match waits {
        WaitingOn::Lock => Some("a lock"),
        WaitingOn::Poll => Some("one of several file descriptors"),
        WaitingOn::Pipe => Some("a pipe"),
        WaitingOn::Child => Some("the end of a process"),
        _ => None,
    }
}

fn is_network_call(call: &Call) -> bool {
    ["socket.py", "ssl.py"].contains(&sanitize::file_name(&call.frame.file).as_str())
}

/// Whether a process is stopped by a signal and may be continued.
fn is_stopped(evidence: &RunEvidence<'_>) -> bool {
    evidence.last_sample().is_some_and(|last| {
        last.processes
            .as_slice()
            .iter()
            .any(|process| process.state == b'T')
    })
}

/// Whether no step was made for much longer than any step took.
pub(crate) fn made_no_steps(evidence: &RunEvidence<'_>) -> bool {
    time_without_steps(evidence).is_some()
}

/// How long no step was made at the end, if that is much longer than any step took.
pub(super) fn time_without_steps(evidence: &RunEvidence<'_>) -> Option<Duration> {
    let since = evidence.summary.rates.time_since_step()?;
    let longest = evidence.summary.rates.longest_step;
    let is_long = since >= Duration::from_secs(60) && since > longest.saturating_mul(10);
    (may_hang(evidence) && is_long).then_some(since)
}

/// Whether it is running, or was ended from outside.
fn may_hang(evidence: &RunEvidence<'_>) -> bool {
    matches!(
        evidence.end,
        EndKind::Running | EndKind::Killed | EndKind::Stopped | EndKind::Hung | EndKind::Unknown
    ) || evidence.was_asked_to_stop()
}
