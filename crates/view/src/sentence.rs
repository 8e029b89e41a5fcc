//! One plain sentence for each event: what happened, with numbers, and what follows. An event gets no sentence if it
//! does not matter at the requested level, or if another event already reports it.

use crate::degradations;
use antifreeze_diagnose::verdict::phrases::{process, reason};
use antifreeze_diagnose::verdict::place::user_place;
use antifreeze_diagnose::{Facts, ShimReport};
use antifreeze_record::event::{Event, EventKind, Rung, Trigger};
use antifreeze_sense::{Pid, ProcessName};
use antifreeze_text::{sanitize, signal, units};
use std::time::Duration;

/// How much is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Only actions that affect the run.
    Quiet,
    /// One line for each change.
    #[default]
    Normal,
    /// Every event.
    Verbose,
}

/// The sentence for an event; None if the event is not printed at this level.
pub fn sentence(event: &Event, facts: &Facts, detail: Detail) -> Option<String> {
    let (level, text) = sentence_with_level(event, facts)?;
    (detail >= level).then_some(text)
}

/// The sentence for an event, and the lowest level at which it is printed.
pub(crate) fn sentence_with_level(event: &Event, facts: &Facts) -> Option<(Detail, String)> {
    use Detail::{Normal, Quiet, Verbose};
    // What the trainer had said by then: the sentence is the same while the run lasts and ever after.
    let known = || facts.shim.known_at(event.at);
    Some(match event.kind {
        EventKind::Started { guard, root, .. } => (
            Verbose,
            format!(
                "the guard (pid {}) watches the run (pid {})",
                guard.0, root.0
            ),
        ),
        // Without a brake nothing changes on the way to its rung.
        EventKind::Rung { from, to, .. }
            if from != to && shown_rung(from, facts) == shown_rung(to, facts) =>
        {
            return None;
        }
        EventKind::Rung {
            from,
            to,
            trigger,
            growth,
            forecast_ms,
            ..
        } => rung(from, to, trigger, growth, forecast_ms, facts, &known()),
        EventKind::RequestRefused {
            pid, name, bytes, ..
        } => (Quiet, walled(pid, name, bytes, facts)),
        EventKind::Braked { high } => (
            Normal,
            format!(
                "slowed the run down: limited to {} of memory, so that the machine stays usable",
                units::bytes(high)
            ),
        ),
        EventKind::Released { high: 0 } => (Normal, "the run is at full speed again".into()),
        EventKind::Released { high } => (
            Verbose,
            format!(
                "loosened the brake: the run is limited to {}",
                units::bytes(high)
            ),
        ),
        EventKind::CheckpointAsked { signal: 0, .. } => (Normal, "asked for a checkpoint".into()),
        EventKind::CheckpointAsked { signal: number, .. } => (
            Normal,
            format!("asked for a checkpoint ({})", signal::name(number)),
        ),
        EventKind::CheckpointSaved {
            millis,
            bytes,
            file,
        } => {
            let saved = match (file.as_bytes(), bytes) {
                (b"", 0) => by_trainer(&known()),
                (file, bytes) => landed(file, bytes),
            };
            (
                Normal,
                format!("checkpoint saved in {}{saved}", time(millis)),
            )
        }
        EventKind::CheckpointMissed { millis: 0 } => {
            let why = known().not_saved;
            let why = why.map_or_else(String::new, |why| {
                format!(": {}", sanitize::escape(why.as_bytes()))
            });
            (
                Quiet,
                format!("no checkpoint was saved{why}; continuing without one"),
            )
        }
        EventKind::CheckpointMissed { millis } => (
            Quiet,
            format!(
                "no checkpoint was saved within {}; continuing without one",
                time(millis)
            ),
        ),
        EventKind::Paused { who, pid, grew } => (
            Quiet,
            format!(
                "paused: {} and memory ran short; it resumes when memory is free, or with `antifreeze resume`",
                grown(who, pid, grew)
            ),
        ),
        EventKind::Resumed { trigger, millis } => (Quiet, resumed(trigger, millis)),
        EventKind::StopSent { trigger, .. } if facts.attached => (
            Quiet,
            format!("interrupted the process{}", because(trigger, facts)),
        ),
        EventKind::StopSent {
            pid: Pid(0),
            trigger,
        } => (
            Quiet,
            format!(
                "asked the run to stop after this step{}",
                because(trigger, facts)
            ),
        ),
        EventKind::StopSent { pid, trigger } => (
            Quiet,
            format!(
                "asked the run to stop (SIGTERM to pid {}){}",
                pid.0,
                because(trigger, facts)
            ),
        ),
        EventKind::KillSent { pid, trigger } => (
            Quiet,
            format!(
                "killed the run (SIGKILL to pid {}){}",
                pid.0,
                because(trigger, facts)
            ),
        ),
        EventKind::Degraded {
            degradation,
            detail,
        } => degradations::describe_loss(degradation, detail),
        EventKind::Recovered { degradation } => degradations::describe_recovery(degradation),
        EventKind::GuardRestored => (
            Normal,
            "the guard died and was replaced; the run was not affected".into(),
        ),
        EventKind::FrontLost => (
            Normal,
            "antifreeze at the terminal is gone; the guard continues and forwards the output"
                .into(),
        ),
        EventKind::UserStopped => (
            Verbose,
            "you stopped the job; it stays stopped until you continue it".into(),
        ),
        EventKind::UserContinued => (Verbose, "you continued the job".into()),
        EventKind::Ended { status, .. } => (Verbose, format!("the run ended: {}", exit(status))),
        EventKind::Attached { pid } => (
            Verbose,
            format!("attached to the running process {}", pid.0),
        ),
        EventKind::Detached {
            process_ended: false,
            ..
        } => (
            Verbose,
            "detached: the process continues, with its previous limits".into(),
        ),
        EventKind::Detached {
            process_ended: true,
            ..
        } => (
            Verbose,
            "the process has ended; its exit status is not known".into(),
        ),
        EventKind::NoProgress { steps: 0 } => (
            Verbose,
            "the run is idle; recording where its threads are".into(),
        ),
        EventKind::NoProgress { .. } => (
            Normal,
            "no step for a minute or more; `antifreeze explain` shows where it is".into(),
        ),
        EventKind::TreeEnded => (Verbose, "the last process of the run has ended".into()),
        EventKind::Unknown { kind } => (
            Verbose,
            format!("an event that this version does not know (kind {kind})"),
        ),
    })
}

fn rung(
    from: Rung,
    to: Rung,
    trigger: Trigger,
    growth: i64,
    forecast_ms: Option<u64>,
    facts: &Facts,
    known: &ShimReport,
) -> (Detail, String) {
    let reason = match (trigger, forecast_ms) {
        (Trigger::TreeGrowth, Some(millis)) => format!(
            "memory grows {}; full in about {}{}",
            units::growth_rate(growth as f64),
            units::rough_duration(Duration::from_millis(millis)),
            holder(known, facts).map_or(String::new(), |holder| format!(". {holder}"))
        ),
        _ => reason(trigger, facts).unwrap_or_else(|| "the machine has recovered".into()),
    };
    // The first rung that matters gives the reason; what is done on the further ones tells
    // itself, and on the way down all is well.
    if from < Rung::Warn && to >= Rung::Warn {
        (Detail::Normal, reason)
    } else {
        let name = rung_name(shown_rung(to, facts));
        (Detail::Verbose, format!("{name}: {reason}"))
    }
}

/// Names the variable that grows, if it is known: "`outputs` (train.py:14) holds 3.2 GB".
fn holder(known: &ShimReport, facts: &Facts) -> Option<String> {
    let suspect = known.suspect()?;
    let holder = suspect.holder;
    let place = user_place(holder.file.as_bytes(), *holder.lines.first()?, facts);
    let name = sanitize::escape(holder.name.as_bytes());
    Some(format!("`{name}` ({place}) {}", suspect.does()))
}

/// The rung to show: without a brake, the brake's rung is shown as a warning.
pub(crate) fn shown_rung(rung: Rung, facts: &Facts) -> Rung {
    match rung {
        Rung::Brake if facts.has_no_brake => Rung::Warn,
        rung => rung,
    }
}

/// The name of a rung, as the documentation uses it.
pub fn rung_name(rung: Rung) -> &'static str {
    match rung {
        Rung::Calm => "calm",
        Rung::Watch => "watch",
        Rung::Warn => "warn",
        Rung::Brake => "brake",
        Rung::Checkpoint => "checkpoint",
        Rung::Pause => "pause",
        Rung::Stop => "stop",
        Rung::Kill => "kill",
    }
}

fn because(trigger: Trigger, facts: &Facts) -> String {
    reason(trigger, facts).map_or_else(String::new, |reason| format!(": {reason}"))
}

fn walled(pid: Pid, name: ProcessName, bytes: u64, facts: &Facts) -> String {
    let size = if bytes == 0 {
        "memory".into()
    } else {
        units::bytes(bytes)
    };
    let bound = match facts.binding_budget() {
        Some(budget) => format!(
            "it would have exceeded its budget of {}",
            units::bytes(budget)
        ),
        None => {
            format!(
                "it would have left less than the {} kept for you",
                units::bytes(facts.reserve)
            )
        }
    };
    format!(
        "refused {size} to {}: {bound}. The script gets an error at that line.",
        process(name, pid)
    )
}

/// The checkpoint as the shim reported it.
fn by_trainer(known: &ShimReport) -> String {
    let Some(saved) = &known.saved else {
        return String::new();
    };
    let size = saved.bytes.map(units::bytes);
    let path = saved
        .path
        .as_ref()
        .map(|path| sanitize::escape(path.as_bytes()));
    let step = Some(format!("step {}", saved.step));
    let parts: Vec<String> = [path, size, step].into_iter().flatten().collect();
    format!(" ({})", parts.join(", "))
}

fn landed(file: &[u8], bytes: u64) -> String {
    match (file, bytes) {
        (b"", 0) => String::new(),
        (b"", bytes) => format!(" ({})", units::bytes(bytes)),
        (file, 0) => format!(" ({})", sanitize::file_name(file)),
        (file, bytes) => format!(" ({}, {})", sanitize::file_name(file), units::bytes(bytes)),
    }
}

fn grown(who: ProcessName, pid: Pid, grew: u64) -> String {
    let who = match (who.as_bytes(), pid.0) {
        (b"", 0) => "other programs".into(),
        (b"", pid) => format!("process {pid}"),
        (name, _) => sanitize::escape(name),
    };
    if grew == 0 {
        format!("{who} grew")
    } else {
        format!("{who} grew by {}", units::bytes(grew))
    }
}

fn resumed(trigger: Trigger, millis: u64) -> String {
    let reason = match trigger {
        Trigger::RoomAvailable => ": memory is free again",
        Trigger::UserRequest => ", as you asked",
        Trigger::Deadline => ": the longest pause is over",
        _ => "",
    };
    format!("resumed after a pause of {}{reason}", time(millis))
}

/// Formats a wait status as "exit code 1" or "SIGKILL".
pub(crate) fn exit(status: u32) -> String {
    match signal::Exit::from_status(status) {
        signal::Exit::Code(code) => format!("exit code {code}"),
        signal::Exit::Signal(number) => signal::name(number),
    }
}

fn time(millis: u64) -> String {
    units::duration(Duration::from_millis(millis))
}

#[cfg(test)]
#[path = "sentence_tests.rs"]
mod tests;
