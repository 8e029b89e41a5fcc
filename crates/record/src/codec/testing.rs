//! Samples and events for tests: any, the largest, and ordinary ones.

use super::groups::for_each_group;
use super::processes::readings;
use crate::event::{Degradation, Event, EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{
    MAX_CORES, MAX_LISTED_PROCESSES, Pid, Process, ProcessName, Processes, Reading, Reason, Sample,
    Stamp,
};
use proptest::prelude::*;

#[path = "../../testing/calm.rs"]
mod calm;
pub use calm::calm_sample;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        0..100u64,
        any::<u64>(),
        (0..1u64 << 24).prop_map(|pages| pages * 4096)
    ]
}

fn reading() -> impl Strategy<Value = Reading<u64>> {
    prop_oneof![
        4 => number().prop_map(Reading::Value),
        1 => prop::sample::select(&Reason::ALL).prop_map(Reading::Unavailable),
    ]
}

fn stamp() -> impl Strategy<Value = Stamp> {
    (number(), number()).prop_map(|(monotonic_ns, realtime_ns)| Stamp {
        monotonic_ns,
        realtime_ns,
    })
}

fn name() -> impl Strategy<Value = ProcessName> {
    prop_oneof![
        Just(ProcessName::new(b"python")),
        prop::collection::vec(any::<u8>(), 0..16).prop_map(|bytes| ProcessName::new(&bytes)),
    ]
}

fn process() -> impl Strategy<Value = Process> {
    let identity = (any::<u32>(), any::<u32>(), number(), name(), any::<u8>());
    let values = prop::collection::vec(reading(), 11);
    (identity, values).prop_map(|((pid, parent, started, name, state), values)| {
        let (pid, parent) = (Pid(pid), Pid(parent));
        let mut process = Process {
            pid,
            parent,
            started,
            name,
            state,
            ..Process::default()
        };
        for ((_, to), from) in readings(&mut process).into_iter().zip(values) {
            *to = from;
        }
        process
    })
}

pub fn sample() -> impl Strategy<Value = Sample> {
    let values = prop::collection::vec(reading(), 85);
    let cores = prop::collection::vec(any::<u8>(), 0..=MAX_CORES);
    let processes = prop::collection::vec(process(), 0..=MAX_LISTED_PROCESSES);
    (stamp(), values, cores, processes).prop_map(|(at, values, cores, list)| {
        let mut sample = Sample {
            at,
            ..Sample::default()
        };
        let mut values = values.into_iter();
        for_each_group(&mut sample, |fields| {
            for (_, reading) in fields {
                **reading = values.next().unwrap();
            }
            Some(())
        });
        sample.cpu.core_count = cores.len() as u16;
        sample.cpu.core_percents[..cores.len()].copy_from_slice(&cores);
        for process in list {
            assert!(sample.processes.push(process));
        }
        sample
    })
}

/// Every number as long as it can be, and no two processes alike.
pub fn largest_sample() -> Sample {
    let longest = Reading::Value(1 << 63 | 1);
    let at = Stamp {
        monotonic_ns: u64::MAX,
        realtime_ns: u64::MAX,
    };
    let mut sample = Sample {
        at,
        ..Sample::default()
    };
    for_each_group(&mut sample, |fields| {
        fields
            .iter_mut()
            .for_each(|(_, reading)| **reading = longest);
        Some(())
    });
    sample.cpu.core_count = u16::MAX;
    sample.cpu.core_percents = [255; MAX_CORES];
    sample.processes = Processes::default();
    for turn in 0..MAX_LISTED_PROCESSES as u8 {
        let odd = turn % 2 == 1;
        let far = if odd { u32::MAX } else { 0 };
        let mut process = Process {
            pid: Pid(far),
            parent: Pid(far),
            started: if odd { 0 } else { 1 << 63 },
            name: ProcessName::new(&[turn; 15]),
            state: 255,
            ..Process::default()
        };
        for (_, reading) in readings(&mut process) {
            *reading = Reading::Value(if odd { 0 } else { 1 << 63 | 1 });
        }
        sample.processes.push(process);
    }
    sample
}

pub fn event() -> impl Strategy<Value = Event> {
    (stamp(), what()).prop_map(|(at, what)| Event { at, kind: what })
}

fn what() -> impl Strategy<Value = EventKind> {
    let pid = || any::<u32>().prop_map(Pid);
    let rung = || prop::sample::select(&Rung::ALL);
    let trigger = || prop::sample::select(&Trigger::ALL);
    let degradation = || prop::sample::select(&Degradation::ALL);
    let text = prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| ShortText::new(&bytes));
    let budget = prop::option::of(number());
    prop_oneof![
        (pid(), pid(), number(), number(), budget).prop_map(
            |(guard, root, total, reserve, budget)| EventKind::Started {
                guard,
                root,
                total,
                reserve,
                budget
            }
        ),
        (
            rung(),
            rung(),
            trigger(),
            any::<i64>(),
            any::<i64>(),
            any::<Option<u64>>(),
            any::<u8>()
        )
            .prop_map(
                |(from, to, trigger, room, growth, forecast_ms, confidence)| {
                    EventKind::Rung {
                        from,
                        to,
                        trigger,
                        room,
                        growth,
                        forecast_ms,
                        confidence,
                    }
                }
            ),
        (pid(), name(), number(), number()).prop_map(|(pid, name, bytes, footprint)| {
            EventKind::RequestRefused {
                pid,
                name,
                bytes,
                footprint,
            }
        }),
        number().prop_map(|high| EventKind::Braked { high }),
        number().prop_map(|high| EventKind::Released { high }),
        (pid(), any::<u32>()).prop_map(|(pid, signal)| EventKind::CheckpointAsked { pid, signal }),
        (number(), number(), text).prop_map(|(millis, bytes, file)| EventKind::CheckpointSaved {
            millis,
            bytes,
            file
        }),
        number().prop_map(|millis| EventKind::CheckpointMissed { millis }),
        (name(), pid(), number()).prop_map(|(who, pid, grew)| EventKind::Paused { who, pid, grew }),
        (trigger(), number()).prop_map(|(trigger, millis)| EventKind::Resumed { trigger, millis }),
        (pid(), trigger()).prop_map(|(pid, trigger)| EventKind::StopSent { pid, trigger }),
        (pid(), trigger()).prop_map(|(pid, trigger)| EventKind::KillSent { pid, trigger }),
        (degradation(), any::<u32>()).prop_map(|(degradation, detail)| EventKind::Degraded {
            degradation,
            detail
        }),
        degradation().prop_map(|degradation| EventKind::Recovered { degradation }),
        number().prop_map(|steps| EventKind::NoProgress { steps }),
        prop::sample::select(&[
            EventKind::GuardRestored,
            EventKind::FrontLost,
            EventKind::UserStopped,
            EventKind::UserContinued,
            EventKind::TreeEnded,
        ]),
        (any::<u32>(), number(), number(), any::<bool>()).prop_map(
            |(status, peak, worst_delay_ms, ended_by_guard)| EventKind::Ended {
                status,
                peak,
                worst_delay_ms,
                ended_by_guard
            }
        ),
        pid().prop_map(|pid| EventKind::Attached { pid }),
        (any::<bool>(), number(), number(), any::<bool>()).prop_map(
            |(process_ended, peak, worst_delay_ms, ended_by_guard)| EventKind::Detached {
                process_ended,
                peak,
                worst_delay_ms,
                ended_by_guard
            }
        ),
        (1000..u64::MAX).prop_map(|kind| EventKind::Unknown { kind }),
    ]
}
