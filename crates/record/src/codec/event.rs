//! Encodes an event: its stamp, the number of its kind, then the fields of that kind.

use super::wire::{Reader, Writer};
use super::{put_stamp, take_stamp};
use crate::event::{Degradation, Event, EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{Pid, ProcessName};

/// The longest encoded event. The state that guard and front share has this much room for each.
pub const EVENT_BYTES: usize = 248;

/// The numbers of the kinds. They are stored in records: none is ever changed or reused.
mod kind {
    pub const STARTED: u64 = 1;
    pub const RUNG: u64 = 2;
    pub const REQUEST_REFUSED: u64 = 3;
    pub const BRAKED: u64 = 4;
    pub const RELEASED: u64 = 5;
    pub const CHECKPOINT_ASKED: u64 = 6;
    pub const CHECKPOINT_SAVED: u64 = 7;
    pub const CHECKPOINT_MISSED: u64 = 8;
    pub const PAUSED: u64 = 9;
    pub const RESUMED: u64 = 10;
    pub const STOP_SENT: u64 = 11;
    pub const KILL_SENT: u64 = 12;
    pub const DEGRADED: u64 = 13;
    pub const RECOVERED: u64 = 14;
    pub const GUARD_RESTORED: u64 = 15;
    pub const FRONT_LOST: u64 = 16;
    pub const USER_STOPPED: u64 = 17;
    pub const USER_CONTINUED: u64 = 18;
    pub const ENDED: u64 = 19;
    pub const TREE_ENDED: u64 = 20;
    pub const NO_PROGRESS: u64 = 21;
    pub const ATTACHED: u64 = 30;
    pub const DETACHED: u64 = 31;
}

/// Encodes an event and returns how many bytes of `out` were used; 0 when it is too small. [`EVENT_BYTES`] are always
/// enough.
pub fn encode_event(event: &Event, out: &mut [u8]) -> usize {
    let mut writer = Writer::new(out);
    put_stamp(&mut writer, event.at);
    encode_kind(&mut writer, &event.kind);
    writer.finish()
}

/// Decodes an event; `None` when the bytes are not an event. An event of a kind or with a value that only a newer writer
/// knows becomes [`EventKind::Unknown`].
pub fn decode_event(bytes: &[u8]) -> Option<Event> {
    let mut reader = Reader::new(bytes);
    let at = take_stamp(&mut reader)?;
    let kind = reader.number()?;
    let event_kind = decode_kind(&mut reader, kind)?;
    Some(Event {
        at,
        kind: event_kind,
    })
}

fn encode_kind(out: &mut Writer, event_kind: &EventKind) {
    match *event_kind {
        EventKind::Started {
            guard,
            root,
            total,
            reserve,
            budget,
        } => {
            put_numbers(
                out,
                &[kind::STARTED, guard.0.into(), root.0.into(), total, reserve],
            );
            out.optional(budget);
        }
        EventKind::Rung {
            from,
            to,
            trigger,
            room,
            growth,
            forecast_ms,
            confidence,
        } => {
            put_numbers(out, &[kind::RUNG, from as u64, to as u64, trigger as u64]);
            out.signed(room);
            out.signed(growth);
            out.optional(forecast_ms);
            out.number(confidence.into());
        }
        EventKind::RequestRefused {
            pid,
            name,
            bytes,
            footprint,
        } => {
            put_numbers(out, &[kind::REQUEST_REFUSED, pid.0.into()]);
            out.text(name.as_bytes());
            put_numbers(out, &[bytes, footprint]);
        }
        EventKind::Braked { high } => put_numbers(out, &[kind::BRAKED, high]),
        EventKind::Released { high } => put_numbers(out, &[kind::RELEASED, high]),
        EventKind::CheckpointAsked { pid, signal } => {
            put_numbers(out, &[kind::CHECKPOINT_ASKED, pid.0.into(), signal.into()]);
        }
        EventKind::CheckpointSaved {
            millis,
            bytes,
            file,
        } => {
            put_numbers(out, &[kind::CHECKPOINT_SAVED, millis, bytes]);
            out.text(file.as_bytes());
        }
        EventKind::CheckpointMissed { millis } => {
            put_numbers(out, &[kind::CHECKPOINT_MISSED, millis])
        }
        EventKind::Paused { who, pid, grew } => {
            put_numbers(out, &[kind::PAUSED]);
            out.text(who.as_bytes());
            put_numbers(out, &[pid.0.into(), grew]);
        }
        EventKind::Resumed { trigger, millis } => {
            put_numbers(out, &[kind::RESUMED, trigger as u64, millis])
        }
        EventKind::StopSent { pid, trigger } => {
            put_numbers(out, &[kind::STOP_SENT, pid.0.into(), trigger as u64]);
        }
        EventKind::KillSent { pid, trigger } => {
            put_numbers(out, &[kind::KILL_SENT, pid.0.into(), trigger as u64]);
        }
        EventKind::Degraded {
            degradation,
            detail,
        } => {
            put_numbers(out, &[kind::DEGRADED, degradation as u64, detail.into()]);
        }
        EventKind::Recovered { degradation } => {
            put_numbers(out, &[kind::RECOVERED, degradation as u64])
        }
        EventKind::GuardRestored => put_numbers(out, &[kind::GUARD_RESTORED]),
        EventKind::FrontLost => put_numbers(out, &[kind::FRONT_LOST]),
        EventKind::UserStopped => put_numbers(out, &[kind::USER_STOPPED]),
        EventKind::UserContinued => put_numbers(out, &[kind::USER_CONTINUED]),
        EventKind::Ended {
            status,
            peak,
            worst_delay_ms,
            ended_by_guard,
        } => {
            let by_guard = u64::from(ended_by_guard);
            put_numbers(
                out,
                &[kind::ENDED, status.into(), peak, worst_delay_ms, by_guard],
            );
        }
        EventKind::Detached {
            process_ended,
            peak,
            worst_delay_ms,
            ended_by_guard,
        } => {
            let (ended, by_guard) = (u64::from(process_ended), u64::from(ended_by_guard));
            put_numbers(
                out,
                &[kind::DETACHED, ended, peak, worst_delay_ms, by_guard],
            );
        }
        EventKind::Attached { pid } => put_numbers(out, &[kind::ATTACHED, pid.0.into()]),
        EventKind::TreeEnded => put_numbers(out, &[kind::TREE_ENDED]),
        EventKind::NoProgress { steps } => put_numbers(out, &[kind::NO_PROGRESS, steps]),
        EventKind::Unknown { kind } => put_numbers(out, &[kind]),
    }
}

fn put_numbers(out: &mut Writer, numbers: &[u64]) {
    for &number in numbers {
        out.number(number);
    }
}

fn decode_kind(from: &mut Reader, kind: u64) -> Option<EventKind> {
    Some(match kind {
        kind::STARTED => EventKind::Started {
            guard: take_pid(from)?,
            root: take_pid(from)?,
            total: from.number()?,
            reserve: from.number()?,
            budget: from.optional()?,
        },
        kind::RUNG => {
            let (left, entered) = (from.number()?, from.number()?);
            let (Some(left), Some(entered)) = (Rung::from_code(left), Rung::from_code(entered))
            else {
                return Some(EventKind::Unknown { kind });
            };
            EventKind::Rung {
                from: left,
                to: entered,
                trigger: take_trigger(from)?,
                room: from.signed()?,
                growth: from.signed()?,
                forecast_ms: from.optional()?,
                confidence: from.number()?.try_into().ok()?,
            }
        }
        kind::REQUEST_REFUSED => EventKind::RequestRefused {
            pid: take_pid(from)?,
            name: take_name(from)?,
            bytes: from.number()?,
            footprint: from.number()?,
        },
        kind::BRAKED => EventKind::Braked {
            high: from.number()?,
        },
        kind::RELEASED => EventKind::Released {
            high: from.number()?,
        },
        kind::CHECKPOINT_ASKED => EventKind::CheckpointAsked {
            pid: take_pid(from)?,
            signal: from.number()?.try_into().ok()?,
        },
        kind::CHECKPOINT_SAVED => EventKind::CheckpointSaved {
            millis: from.number()?,
            bytes: from.number()?,
            file: ShortText::new(from.text()?),
        },
        kind::CHECKPOINT_MISSED => EventKind::CheckpointMissed {
            millis: from.number()?,
        },
        kind::PAUSED => EventKind::Paused {
            who: take_name(from)?,
            pid: take_pid(from)?,
            grew: from.number()?,
        },
        kind::RESUMED => EventKind::Resumed {
            trigger: take_trigger(from)?,
            millis: from.number()?,
        },
        kind::STOP_SENT => EventKind::StopSent {
            pid: take_pid(from)?,
            trigger: take_trigger(from)?,
        },
        kind::KILL_SENT => EventKind::KillSent {
            pid: take_pid(from)?,
            trigger: take_trigger(from)?,
        },
        kind::DEGRADED => match Degradation::from_code(from.number()?) {
            Some(degradation) => EventKind::Degraded {
                degradation,
                detail: from.number()?.try_into().ok()?,
            },
            None => EventKind::Unknown { kind },
        },
        kind::RECOVERED => match Degradation::from_code(from.number()?) {
            Some(degradation) => EventKind::Recovered { degradation },
            None => EventKind::Unknown { kind },
        },
        kind::GUARD_RESTORED => EventKind::GuardRestored,
        kind::FRONT_LOST => EventKind::FrontLost,
        kind::USER_STOPPED => EventKind::UserStopped,
        kind::USER_CONTINUED => EventKind::UserContinued,
        kind::ENDED => EventKind::Ended {
            status: from.number()?.try_into().ok()?,
            peak: from.number()?,
            worst_delay_ms: from.number()?,
            ended_by_guard: from.number()? != 0,
        },
        kind::DETACHED => EventKind::Detached {
            process_ended: from.number()? != 0,
            peak: from.number()?,
            worst_delay_ms: from.number()?,
            ended_by_guard: from.number()? != 0,
        },
        kind::ATTACHED => EventKind::Attached {
            pid: take_pid(from)?,
        },
        kind::TREE_ENDED => EventKind::TreeEnded,
        kind::NO_PROGRESS => EventKind::NoProgress {
            steps: from.number()?,
        },
        kind => EventKind::Unknown { kind },
    })
}

fn take_pid(from: &mut Reader) -> Option<Pid> {
    from.number()?.try_into().ok().map(Pid)
}

fn take_trigger(from: &mut Reader) -> Option<Trigger> {
    from.number().map(Trigger::from_code)
}

fn take_name(from: &mut Reader) -> Option<ProcessName> {
    from.text().map(ProcessName::new)
}

#[cfg(test)]
mod tests;
