//! One plain sentence for each event: what happened, with numbers, and what follows.
//! Silence where nothing is worth a line at the level asked for, and never a second line
//! for what another event already tells.

use crate::lacks;
use antifreeze_diagnose::ending::user_place;
use antifreeze_diagnose::words::{process, reason};
use antifreeze_diagnose::{Facts, Told};
use antifreeze_record::event::{Event, Rung, What, Why};
use antifreeze_sense::{Name, Pid};
use antifreeze_text::{sanitize, signal, units};
use std::time::Duration;

/// How much the reader wants to hear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Only what was done to the run.
    Quiet,
    /// What changed, one line each.
    #[default]
    Normal,
    /// Everything.
    Verbose,
}

/// The sentence for an event; None when it deserves none at this level.
pub fn sentence(event: &Event, facts: &Facts, detail: Detail) -> Option<String> {
    let (level, text) = told(event, facts)?;
    (detail >= level).then_some(text)
}

/// The sentence, and the level from which on it is said.
pub(crate) fn told(event: &Event, facts: &Facts) -> Option<(Detail, String)> {
    use Detail::{Normal, Quiet, Verbose};
    // What the trainer had said by then: the sentence is the same while the run lasts and ever after.
    let known = || facts.told.as_of(event.at);
    Some(match event.what {
        What::Started { guard, root, .. } => {
            (Verbose, format!("the guard (pid {}) watches the run (pid {})", guard.0, root.0))
        }
        // Without a brake nothing changes on the way to its rung.
        What::Rung { from, to, .. } if from != to && shown_rung(from, facts) == shown_rung(to, facts) => return None,
        What::Rung { from, to, why, growth, forecast_ms, .. } => {
            rung(from, to, why, growth, forecast_ms, facts, &known())
        }
        What::Walled { pid, name, bytes, .. } => (Quiet, walled(pid, name, bytes, facts)),
        What::Braked { high } => (
            Normal,
            format!(
                "slowed the run down: held at {} of memory, so that the machine stays usable",
                units::bytes(high)
            ),
        ),
        What::Released { high: 0 } => (Normal, "the run has its full speed again".into()),
        What::Released { high } => {
            (Verbose, format!("loosened the brake: the run is held at {}", units::bytes(high)))
        }
        What::CheckpointAsked { signal: 0, .. } => (Normal, "asked for a checkpoint".into()),
        What::CheckpointAsked { signal: number, .. } => {
            (Normal, format!("asked for a checkpoint ({})", signal::name(number)))
        }
        What::CheckpointSaved { millis, bytes, file } => {
            let saved = match (file.as_bytes(), bytes) {
                (b"", 0) => by_trainer(&known()),
                (file, bytes) => landed(file, bytes),
            };
            (Normal, format!("checkpoint saved in {}{saved}", time(millis)))
        }
        What::CheckpointMissed { millis: 0 } => {
            let why = known().not_saved;
            let why = why.map_or_else(String::new, |why| format!(": {}", sanitize::escape(why.as_bytes())));
            (Quiet, format!("the run could not be saved{why}; going on without a checkpoint"))
        }
        What::CheckpointMissed { millis } => {
            (Quiet, format!("no checkpoint came within {}; going on without one", time(millis)))
        }
        What::Paused { who, pid, grew } => (
            Quiet,
            format!(
                "paused: {} and memory ran short; it goes on by itself when there is room, or with `antifreeze resume`",
                grown(who, pid, grew)
            ),
        ),
        What::Resumed { why, millis } => (Quiet, resumed(why, millis)),
        What::StopSent { why, .. } if facts.attached => (
            Quiet,
            format!("interrupted what it was at{}", because(why, facts)),
        ),
        What::StopSent { pid: Pid(0), why } => (
            Quiet,
            format!("asked the run to end at the end of its step{}", because(why, facts)),
        ),
        What::StopSent { pid, why } => (
            Quiet,
            format!("asked the run to end (SIGTERM to pid {}){}", pid.0, because(why, facts)),
        ),
        What::KillSent { pid, why } => (
            Quiet,
            format!("ended the run by force (SIGKILL to pid {}){}", pid.0, because(why, facts)),
        ),
        What::Lacks { lack, detail } => lacks::missing(lack, detail),
        What::Regained { lack } => lacks::regained(lack),
        What::GuardRestored => {
            (Normal, "the guard had died and was replaced; the run was not touched".into())
        }
        What::FrontGone => (
            Normal,
            "the terminal side of antifreeze is gone; the guard goes on alone and passes the output on".into(),
        ),
        What::UserStopped => (Verbose, "you stopped the job; it stays stopped until you continue it".into()),
        What::UserContinued => (Verbose, "you continued the job".into()),
        What::Ended { status, .. } => (Verbose, format!("the run ended: {}", exit(status))),
        What::Attached { pid } => (Verbose, format!("attached to process {}, which ran already", pid.0)),
        What::Detached { process_ended: false, .. } => {
            (Verbose, "detached: the process lives on, with the limits that it had before".into())
        }
        What::Detached { process_ended: true, .. } => {
            (Verbose, "the process has ended; its exit status is not known".into())
        }
        What::Still { steps: 0 } => (Verbose, "nobody works; looking where it stands".into()),
        What::Still { .. } => (Normal, "no step for a minute or more; `antifreeze explain` says where it stands".into()),
        What::TreeEnded => (Verbose, "the last process of the run has ended".into()),
        What::Unknown { kind } => (
            Verbose,
            format!("something this version does not know (event kind {kind})"),
        ),
    })
}

fn rung(
    from: Rung,
    to: Rung,
    why: Why,
    growth: i64,
    forecast_ms: Option<u64>,
    facts: &Facts,
    known: &Told,
) -> (Detail, String) {
    let reason = match (why, forecast_ms) {
        (Why::TreeGrowth, Some(millis)) => format!(
            "memory grows {}; full in about {}{}",
            units::growth_rate(growth as f64),
            units::rough_duration(Duration::from_millis(millis)),
            holder(known, facts).map_or(String::new(), |holder| format!(". {holder}"))
        ),
        _ => reason(why, facts).unwrap_or_else(|| "the machine is well".into()),
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

/// "`outputs` (train.py:14) holds 3.2 GB", of the name that grows, where it is known.
fn holder(known: &Told, facts: &Facts) -> Option<String> {
    let suspect = known.suspect()?;
    let holder = suspect.holder;
    let place = user_place(holder.file.as_bytes(), *holder.lines.first()?, facts);
    let name = sanitize::escape(holder.name.as_bytes());
    Some(format!("`{name}` ({place}) {}", suspect.does()))
}

/// The rung that the run stands on: without a brake the rung of that name is one more warning.
pub(crate) fn shown_rung(rung: Rung, facts: &Facts) -> Rung {
    match rung {
        Rung::Brake if facts.has_no_brake => Rung::Warn,
        rung => rung,
    }
}

/// The rung's word, as the documentation uses it.
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

fn because(why: Why, facts: &Facts) -> String {
    reason(why, facts).map_or_else(String::new, |reason| format!(": {reason}"))
}

fn walled(pid: Pid, name: Name, bytes: u64, facts: &Facts) -> String {
    let size = if bytes == 0 {
        "memory".into()
    } else {
        units::bytes(bytes)
    };
    let bound = match facts.binding_budget() {
        Some(budget) => format!(
            "it would have gone over its budget of {}",
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

/// What the trainer itself said of its save.
fn by_trainer(known: &Told) -> String {
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

fn grown(who: Name, pid: Pid, grew: u64) -> String {
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

fn resumed(why: Why, millis: u64) -> String {
    let reason = match why {
        Why::RoomAgain => ": there is room again",
        Why::Asked => ", as you asked",
        Why::Deadline => ": a pause may last no longer",
        _ => "",
    };
    format!("the run goes on after a pause of {}{reason}", time(millis))
}

/// "exit code 1", "SIGKILL".
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
