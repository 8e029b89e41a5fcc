//! An event: its stamp, the number of its kind, then the fields of that kind.

use super::wire::{Reader, Writer};
use super::{put_stamp, take_stamp};
use crate::event::{Event, Lack, Rung, Text, What, Why};
use antifreeze_sense::{Name, Pid};

/// No encoded event is longer: the page between guard and front keeps this much for each.
pub const EVENT_BYTES: usize = 248;

/// Numbers of the kinds. Stored: never change one, never reuse one.
mod kind {
    pub const STARTED: u64 = 1;
    pub const RUNG: u64 = 2;
    pub const WALLED: u64 = 3;
    pub const BRAKED: u64 = 4;
    pub const RELEASED: u64 = 5;
    pub const CHECKPOINT_ASKED: u64 = 6;
    pub const CHECKPOINT_SAVED: u64 = 7;
    pub const CHECKPOINT_MISSED: u64 = 8;
    pub const PAUSED: u64 = 9;
    pub const RESUMED: u64 = 10;
    pub const STOP_SENT: u64 = 11;
    pub const KILL_SENT: u64 = 12;
    pub const LACKS: u64 = 13;
    pub const REGAINED: u64 = 14;
    pub const GUARD_RESTORED: u64 = 15;
    pub const FRONT_GONE: u64 = 16;
    pub const USER_STOPPED: u64 = 17;
    pub const USER_CONTINUED: u64 = 18;
    pub const ENDED: u64 = 19;
    pub const TREE_ENDED: u64 = 20;
    pub const STILL: u64 = 21;
    pub const ATTACHED: u64 = 30;
    pub const DETACHED: u64 = 31;
}

/// How many bytes of `out` were used; 0 when it is too small. [`EVENT_BYTES`] always suffice.
pub fn encode_event(event: &Event, out: &mut [u8]) -> usize {
    let mut writer = Writer::new(out);
    put_stamp(&mut writer, event.at);
    put_what(&mut writer, &event.what);
    writer.finish()
}

/// `None` when the bytes are no event at all; an event of a kind or with a value that only a
/// newer writer knows is [`What::Unknown`].
pub fn decode_event(bytes: &[u8]) -> Option<Event> {
    let mut reader = Reader::new(bytes);
    let at = take_stamp(&mut reader)?;
    let kind = reader.number()?;
    let what = take_what(&mut reader, kind)?;
    Some(Event { at, what })
}

fn put_what(out: &mut Writer, what: &What) {
    match *what {
        What::Started {
            guard,
            root,
            total,
            reserve,
            budget,
        } => {
            numbers(
                out,
                &[kind::STARTED, guard.0.into(), root.0.into(), total, reserve],
            );
            out.optional(budget);
        }
        What::Rung {
            from,
            to,
            why,
            room,
            growth,
            forecast_ms,
            confidence,
        } => {
            numbers(out, &[kind::RUNG, from as u64, to as u64, why as u64]);
            out.signed(room);
            out.signed(growth);
            out.optional(forecast_ms);
            out.number(confidence.into());
        }
        What::Walled {
            pid,
            name,
            bytes,
            footprint,
        } => {
            numbers(out, &[kind::WALLED, pid.0.into()]);
            out.text(name.as_bytes());
            numbers(out, &[bytes, footprint]);
        }
        What::Braked { high } => numbers(out, &[kind::BRAKED, high]),
        What::Released { high } => numbers(out, &[kind::RELEASED, high]),
        What::CheckpointAsked { pid, signal } => {
            numbers(out, &[kind::CHECKPOINT_ASKED, pid.0.into(), signal.into()]);
        }
        What::CheckpointSaved {
            millis,
            bytes,
            file,
        } => {
            numbers(out, &[kind::CHECKPOINT_SAVED, millis, bytes]);
            out.text(file.as_bytes());
        }
        What::CheckpointMissed { millis } => numbers(out, &[kind::CHECKPOINT_MISSED, millis]),
        What::Paused { who, pid, grew } => {
            numbers(out, &[kind::PAUSED]);
            out.text(who.as_bytes());
            numbers(out, &[pid.0.into(), grew]);
        }
        What::Resumed { why, millis } => numbers(out, &[kind::RESUMED, why as u64, millis]),
        What::StopSent { pid, why } => {
            numbers(out, &[kind::STOP_SENT, pid.0.into(), why as u64]);
        }
        What::KillSent { pid, why } => {
            numbers(out, &[kind::KILL_SENT, pid.0.into(), why as u64]);
        }
        What::Lacks { lack, detail } => {
            numbers(out, &[kind::LACKS, lack as u64, detail.into()]);
        }
        What::Regained { lack } => numbers(out, &[kind::REGAINED, lack as u64]),
        What::GuardRestored => numbers(out, &[kind::GUARD_RESTORED]),
        What::FrontGone => numbers(out, &[kind::FRONT_GONE]),
        What::UserStopped => numbers(out, &[kind::USER_STOPPED]),
        What::UserContinued => numbers(out, &[kind::USER_CONTINUED]),
        What::Ended {
            status,
            peak,
            worst_delay_ms,
            ended_by_guard,
        } => {
            let by_guard = u64::from(ended_by_guard);
            numbers(
                out,
                &[kind::ENDED, status.into(), peak, worst_delay_ms, by_guard],
            );
        }
        What::Detached {
            process_ended,
            peak,
            worst_delay_ms,
            ended_by_guard,
        } => {
            let (ended, by_guard) = (u64::from(process_ended), u64::from(ended_by_guard));
            numbers(
                out,
                &[kind::DETACHED, ended, peak, worst_delay_ms, by_guard],
            );
        }
        What::Attached { pid } => numbers(out, &[kind::ATTACHED, pid.0.into()]),
        What::TreeEnded => numbers(out, &[kind::TREE_ENDED]),
        What::Still { steps } => numbers(out, &[kind::STILL, steps]),
        What::Unknown { kind } => numbers(out, &[kind]),
    }
}

fn numbers(out: &mut Writer, numbers: &[u64]) {
    for &number in numbers {
        out.number(number);
    }
}

fn take_what(from: &mut Reader, kind: u64) -> Option<What> {
    Some(match kind {
        kind::STARTED => What::Started {
            guard: pid(from)?,
            root: pid(from)?,
            total: from.number()?,
            reserve: from.number()?,
            budget: from.optional()?,
        },
        kind::RUNG => {
            let (left, entered) = (from.number()?, from.number()?);
            let (Some(left), Some(entered)) = (Rung::from_code(left), Rung::from_code(entered))
            else {
                return Some(What::Unknown { kind });
            };
            What::Rung {
                from: left,
                to: entered,
                why: why(from)?,
                room: from.signed()?,
                growth: from.signed()?,
                forecast_ms: from.optional()?,
                confidence: from.number()?.try_into().ok()?,
            }
        }
        kind::WALLED => What::Walled {
            pid: pid(from)?,
            name: name(from)?,
            bytes: from.number()?,
            footprint: from.number()?,
        },
        kind::BRAKED => What::Braked {
            high: from.number()?,
        },
        kind::RELEASED => What::Released {
            high: from.number()?,
        },
        kind::CHECKPOINT_ASKED => What::CheckpointAsked {
            pid: pid(from)?,
            signal: from.number()?.try_into().ok()?,
        },
        kind::CHECKPOINT_SAVED => What::CheckpointSaved {
            millis: from.number()?,
            bytes: from.number()?,
            file: Text::new(from.text()?),
        },
        kind::CHECKPOINT_MISSED => What::CheckpointMissed {
            millis: from.number()?,
        },
        kind::PAUSED => What::Paused {
            who: name(from)?,
            pid: pid(from)?,
            grew: from.number()?,
        },
        kind::RESUMED => What::Resumed {
            why: why(from)?,
            millis: from.number()?,
        },
        kind::STOP_SENT => What::StopSent {
            pid: pid(from)?,
            why: why(from)?,
        },
        kind::KILL_SENT => What::KillSent {
            pid: pid(from)?,
            why: why(from)?,
        },
        kind::LACKS => match Lack::from_code(from.number()?) {
            Some(lack) => What::Lacks {
                lack,
                detail: from.number()?.try_into().ok()?,
            },
            None => What::Unknown { kind },
        },
        kind::REGAINED => match Lack::from_code(from.number()?) {
            Some(lack) => What::Regained { lack },
            None => What::Unknown { kind },
        },
        kind::GUARD_RESTORED => What::GuardRestored,
        kind::FRONT_GONE => What::FrontGone,
        kind::USER_STOPPED => What::UserStopped,
        kind::USER_CONTINUED => What::UserContinued,
        kind::ENDED => What::Ended {
            status: from.number()?.try_into().ok()?,
            peak: from.number()?,
            worst_delay_ms: from.number()?,
            ended_by_guard: from.number()? != 0,
        },
        kind::DETACHED => What::Detached {
            process_ended: from.number()? != 0,
            peak: from.number()?,
            worst_delay_ms: from.number()?,
            ended_by_guard: from.number()? != 0,
        },
        kind::ATTACHED => What::Attached { pid: pid(from)? },
        kind::TREE_ENDED => What::TreeEnded,
        kind::STILL => What::Still {
            steps: from.number()?,
        },
        kind => What::Unknown { kind },
    })
}

fn pid(from: &mut Reader) -> Option<Pid> {
    from.number()?.try_into().ok().map(Pid)
}

fn why(from: &mut Reader) -> Option<Why> {
    from.number().map(Why::from_code)
}

fn name(from: &mut Reader) -> Option<Name> {
    from.text().map(Name::new)
}

#[cfg(test)]
mod tests;
