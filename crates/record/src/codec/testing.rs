//! Samples and events for tests: any, the largest, and ordinary ones.

use super::groups::for_each_group;
use super::processes::readings;
use crate::event::{Event, Lack, Rung, Text, What, Why};
use antifreeze_sense::{
    CORES, Name, PROCESSES, Pid, Process, Processes, Reading, Reason, Sample, Stamp,
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
    (number(), number()).prop_map(|(monotonic, realtime)| Stamp {
        monotonic,
        realtime,
    })
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        Just(Name::new(b"python")),
        prop::collection::vec(any::<u8>(), 0..16).prop_map(|bytes| Name::new(&bytes)),
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
    let cores = prop::collection::vec(any::<u8>(), 0..=CORES);
    let processes = prop::collection::vec(process(), 0..=PROCESSES);
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
        sample.cpu.cores[..cores.len()].copy_from_slice(&cores);
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
        monotonic: u64::MAX,
        realtime: u64::MAX,
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
    sample.cpu.cores = [255; CORES];
    sample.processes = Processes::default();
    for turn in 0..PROCESSES as u8 {
        let odd = turn % 2 == 1;
        let far = if odd { u32::MAX } else { 0 };
        let mut process = Process {
            pid: Pid(far),
            parent: Pid(far),
            started: if odd { 0 } else { 1 << 63 },
            name: Name::new(&[turn; 15]),
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
    (stamp(), what()).prop_map(|(at, what)| Event { at, what })
}

fn what() -> impl Strategy<Value = What> {
    let pid = || any::<u32>().prop_map(Pid);
    let rung = || prop::sample::select(&Rung::ALL);
    let why = || prop::sample::select(&Why::ALL);
    let lack = || prop::sample::select(&Lack::ALL);
    let text = prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Text::new(&bytes));
    let budget = prop::option::of(number());
    prop_oneof![
        (pid(), pid(), number(), number(), budget).prop_map(
            |(guard, root, total, reserve, budget)| What::Started {
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
            why(),
            any::<i64>(),
            any::<i64>(),
            any::<Option<u64>>(),
            any::<u8>()
        )
            .prop_map(|(from, to, why, room, growth, forecast_ms, confidence)| {
                What::Rung {
                    from,
                    to,
                    why,
                    room,
                    growth,
                    forecast_ms,
                    confidence,
                }
            }),
        (pid(), name(), number(), number()).prop_map(|(pid, name, bytes, footprint)| {
            What::Walled {
                pid,
                name,
                bytes,
                footprint,
            }
        }),
        number().prop_map(|high| What::Braked { high }),
        number().prop_map(|high| What::Released { high }),
        (pid(), any::<u32>()).prop_map(|(pid, signal)| What::CheckpointAsked { pid, signal }),
        (number(), number(), text).prop_map(|(millis, bytes, file)| What::CheckpointSaved {
            millis,
            bytes,
            file
        }),
        number().prop_map(|millis| What::CheckpointMissed { millis }),
        (name(), pid(), number()).prop_map(|(who, pid, grew)| What::Paused { who, pid, grew }),
        (why(), number()).prop_map(|(why, millis)| What::Resumed { why, millis }),
        (pid(), why()).prop_map(|(pid, why)| What::StopSent { pid, why }),
        (pid(), why()).prop_map(|(pid, why)| What::KillSent { pid, why }),
        (lack(), any::<u32>()).prop_map(|(lack, detail)| What::Lacks { lack, detail }),
        lack().prop_map(|lack| What::Regained { lack }),
        number().prop_map(|steps| What::Still { steps }),
        prop::sample::select(&[
            What::GuardRestored,
            What::FrontGone,
            What::UserStopped,
            What::UserContinued,
            What::TreeEnded,
        ]),
        (any::<u32>(), number(), number(), any::<bool>()).prop_map(
            |(status, peak, worst_delay_ms, ended_by_guard)| What::Ended {
                status,
                peak,
                worst_delay_ms,
                ended_by_guard
            }
        ),
        pid().prop_map(|pid| What::Attached { pid }),
        (any::<bool>(), number(), number(), any::<bool>()).prop_map(
            |(process_ended, peak, worst_delay_ms, ended_by_guard)| What::Detached {
                process_ended,
                peak,
                worst_delay_ms,
                ended_by_guard
            }
        ),
        (1000..u64::MAX).prop_map(|kind| What::Unknown { kind }),
    ]
}
