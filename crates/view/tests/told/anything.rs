//! Whatever a record holds, reading it out neither panics nor drives the terminal.

use crate::report::assert_harmless;
use crate::shown::style;
use antifreeze_diagnose::{Facts, Run, RunState, RunSummary, Verdict};
use antifreeze_record::event::{Degradation, Event, EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{Pid, Process, ProcessName, Reading, Sample, Stamp};
use antifreeze_text::{Glyphs, TermStyle};
use antifreeze_view::{Detail, RunRow, Speaker};
use proptest::collection::vec;
use proptest::prelude::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

fn reading() -> impl Strategy<Value = Reading<u64>> {
    prop_oneof![
        3 => any::<u64>().prop_map(Reading::Value),
        2 => (0..100u64).prop_map(Reading::Value),
        1 => Just(Reading::default()),
    ]
}

fn stamp() -> impl Strategy<Value = Stamp> {
    let time = || prop_oneof![any::<u64>(), 0..10_000_000_000_000u64];
    (time(), time()).prop_map(|(monotonic_ns, realtime_ns)| Stamp {
        monotonic_ns,
        realtime_ns,
    })
}

fn name() -> impl Strategy<Value = ProcessName> {
    vec(any::<u8>(), 0..16).prop_map(|bytes| ProcessName::new(&bytes))
}

fn kind() -> impl Strategy<Value = EventKind> {
    let pid = || any::<u32>().prop_map(Pid);
    let trigger = || prop::sample::select(Trigger::ALL.to_vec());
    let rung = || prop::sample::select(Rung::ALL.to_vec());
    let degradation = || prop::sample::select(Degradation::ALL.to_vec());
    let text = || vec(any::<u8>(), 0..200).prop_map(|bytes| ShortText::new(&bytes));
    prop_oneof![
        (
            rung(),
            rung(),
            trigger(),
            any::<i64>(),
            any::<Option<u64>>()
        )
            .prop_map(|(from, to, trigger, growth, forecast_ms)| EventKind::Rung {
                from,
                to,
                trigger,
                room: 0,
                growth,
                forecast_ms,
                confidence: 0
            }),
        (pid(), name(), any::<u64>(), any::<u64>()).prop_map(|(pid, name, bytes, footprint)| {
            EventKind::RequestRefused {
                pid,
                name,
                bytes,
                footprint,
            }
        }),
        any::<u64>().prop_map(|high| EventKind::Braked { high }),
        (any::<u64>(), any::<u64>(), text()).prop_map(|(millis, bytes, file)| {
            EventKind::CheckpointSaved {
                millis,
                bytes,
                file,
            }
        }),
        (name(), pid(), any::<u64>()).prop_map(|(who, pid, grew)| EventKind::Paused {
            who,
            pid,
            grew
        }),
        (trigger(), any::<u64>())
            .prop_map(|(trigger, millis)| EventKind::Resumed { trigger, millis }),
        (pid(), trigger()).prop_map(|(pid, trigger)| EventKind::StopSent { pid, trigger }),
        (degradation(), any::<u32>()).prop_map(|(degradation, detail)| EventKind::Degraded {
            degradation,
            detail
        }),
        (any::<u32>(), any::<u64>(), any::<u64>(), any::<bool>()).prop_map(
            |(status, peak, worst_delay_ms, ended_by_guard)| EventKind::Ended {
                status,
                peak,
                worst_delay_ms,
                ended_by_guard
            }
        ),
        any::<u64>().prop_map(|kind| EventKind::Unknown { kind }),
    ]
}

fn sample() -> impl Strategy<Value = Sample> {
    (stamp(), vec(reading(), 14), name()).prop_map(|(at, values, name)| {
        let mut values = values.into_iter();
        let mut next = || values.next().unwrap_or_default();
        let mut sample = Sample {
            at,
            ..Sample::default()
        };
        sample.memory.total = next();
        sample.memory.available = next();
        sample.tree.footprint = next();
        sample.tree.swap = next();
        sample.tree.cpu = next();
        sample.paging.oom_kills = next();
        sample.disk.space.total = next();
        sample.disk.space.free = next();
        sample.shm.total = next();
        sample.shm.free = next();
        sample.cgroup.limit = next();
        sample.cgroup.limit_available = next();
        sample.thermal.throttle_count = next();
        sample.processes.push(Process {
            name,
            rss_anon: next(),
            swap: next(),
            ..Process::default()
        });
        sample
    })
}

fn facts() -> impl Strategy<Value = Facts> {
    let since = prop::sample::select(vec![
        RunState::StillGuarded,
        RunState::GuardGone,
        RunState::Rebooted,
    ]);
    let sizes = (
        any::<u64>(),
        any::<u64>(),
        any::<Option<u64>>(),
        any::<u64>(),
    );
    (
        stamp(),
        since,
        sizes,
        vec(vec(any::<u8>(), 0..9), 0..4),
        vec(any::<u8>(), 0..300),
    )
        .prop_map(
            |(started, since, (total, reserve, budget, swap), command, last_output)| Facts {
                started,
                state: since,
                total,
                reserve,
                budget,
                swap,
                command: command.into_iter().map(OsString::from_vec).collect(),
                last_output,
                ..Facts::default()
            },
        )
}

fn is_harmless(text: &str) -> bool {
    text.chars()
        .all(|character| character == '\n' || !character.is_control())
}

proptest! {
    #[test]
    fn any_record_is_told_without_panic_and_without_harm(
        facts in facts(),
        samples in vec(sample(), 0..12),
        events in vec((stamp(), kind()), 0..12),
        width in 0usize..120,
    ) {
        let events: Vec<Event> = events.into_iter().map(|(at, kind)| Event { at, kind }).collect();
        let summary = RunSummary::build(&facts, samples.iter().copied(), events.iter().copied());
        let verdict = Verdict::reach(&facts, &summary);
        let style = TermStyle { width, ..style() };
        let shown = antifreeze_view::show(&verdict, &facts, &summary, events.iter().copied(), &style);
        prop_assert!(is_harmless(&shown), "{}", shown);
        let closing = antifreeze_view::closing(&verdict, &facts, &summary, &style);
        prop_assert!(is_harmless(&closing), "{}", closing);
        let row = RunRow::new(&facts, &summary, &verdict);
        prop_assert!(is_harmless(&antifreeze_view::table(&[row], &style)));

        let mut speaker = Speaker::new(Detail::Verbose, Glyphs::Ascii);
        for event in &events {
            let line = speaker.line_for(event, &facts).unwrap_or_default();
            prop_assert!(line.is_ascii() && !line.contains(char::is_control), "{}", line);
        }
        for pair in samples.windows(2) {
            let rung = summary.rungs.highest;
            let line = antifreeze_view::status(pair.first(), &pair[1], rung, &facts, &style);
            prop_assert!(!line.contains(char::is_control));
        }

        let json = serde_json::to_string(&verdict).unwrap();
        prop_assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict.clone());

        let mut run = Run { facts, summary, verdict, events };
        run.facts.stacks.text = b"\x1b[2J".to_vec();
        assert_harmless(&antifreeze_view::report(&run, samples, &style));
    }
}
