use super::*;
use antifreeze_sense::Reading;

fn at(seconds: u64) -> Stamp {
    Stamp {
        monotonic_ns: seconds * 1_000_000_000,
        realtime_ns: seconds * 1_000_000_000,
    }
}

fn event(seconds: u64, kind: EventKind) -> Event {
    Event {
        at: at(seconds),
        kind,
    }
}

fn rung(seconds: u64, from: Rung, to: Rung) -> Event {
    let kind = EventKind::Rung {
        from,
        to,
        trigger: Trigger::Unspecified,
        room: 0,
        growth: 0,
        forecast_ms: None,
        confidence: 0,
    };
    event(seconds, kind)
}

fn sample(seconds: u64, footprint: u64) -> Sample {
    let mut sample = Sample {
        at: at(seconds),
        ..Sample::default()
    };
    sample.tree.footprint = Reading::Value(footprint);
    for pid in 1..=8u32 {
        let rss_anon = Reading::Value(footprint / u64::from(pid));
        sample.processes.push(Process {
            pid: Pid(pid),
            rss_anon,
            ..Process::default()
        });
    }
    sample
}

fn facts() -> Facts {
    Facts {
        started: at(100),
        ..Facts::default()
    }
}

#[test]
fn the_peak_is_remembered_with_its_largest_processes() {
    let samples = [(100, 10), (101, 800), (102, 20)].map(|(time, size)| sample(time, size));
    let summary = RunSummary::build(&facts(), samples, []);
    let peak = summary.peak.unwrap();
    assert_eq!((peak.footprint, peak.at), (800, at(101)));
    assert_eq!(peak.largest.len(), MAX_LARGEST);
    assert_eq!(peak.largest[0].1, Pid(1));
}

#[test]
fn the_guards_own_peak_counts_where_it_is_higher() {
    let ended = EventKind::Ended {
        status: 0,
        peak: 900,
        worst_delay_ms: 0,
        ended_by_guard: false,
    };
    let summary = RunSummary::build(&facts(), [sample(101, 800)], [event(102, ended)]);
    assert_eq!(summary.peak.unwrap().footprint, 900);
}

#[test]
fn time_on_each_rung_adds_up_to_the_duration() {
    let ended = EventKind::Ended {
        status: 0,
        peak: 0,
        worst_delay_ms: 0,
        ended_by_guard: false,
    };
    let events = [
        rung(110, Rung::Calm, Rung::Warn),
        rung(115, Rung::Warn, Rung::Calm),
        rung(120, Rung::Calm, Rung::Watch),
        event(127, ended),
    ];
    let summary = RunSummary::build(&facts(), [], events);
    let times = Rung::ALL.map(|rung| summary.rungs.time(rung).as_secs());
    assert_eq!(times[..4], [15, 7, 5, 0]);
    assert_eq!(summary.duration().as_secs(), 27);
    assert_eq!(summary.rungs.highest, Rung::Warn);
}

#[test]
fn a_pause_that_never_ended_lasts_to_the_end() {
    let paused = EventKind::Paused {
        who: ProcessName::new(b"a"),
        pid: Pid(1),
        grew: 5,
    };
    let resumed = EventKind::Resumed {
        trigger: Trigger::RoomAvailable,
        millis: 4_000,
    };
    let events = [event(101, paused), event(105, resumed), event(110, paused)];
    let summary = RunSummary::build(&facts(), [sample(116, 1)], events);
    assert_eq!(
        (summary.pauses.count, summary.pauses.total.as_secs()),
        (2, 10)
    );
}

#[test]
fn refusals_keep_the_first_the_last_and_the_largest() {
    let refusal = |seconds, bytes| {
        event(
            seconds,
            EventKind::RequestRefused {
                pid: Pid(1),
                name: ProcessName::new(b"a"),
                bytes,
                footprint: 0,
            },
        )
    };
    let summary = RunSummary::build(
        &facts(),
        [],
        [refusal(101, 5), refusal(102, 9), refusal(103, 7)],
    );
    let refusals = summary.refusals;
    assert_eq!(refusals.count, 3);
    let bytes =
        [refusals.first, refusals.last, refusals.largest].map(|refusal| refusal.unwrap().bytes);
    assert_eq!(bytes, [5, 7, 9]);
}

#[test]
fn an_empty_record_has_an_empty_summary() {
    let summary = RunSummary::build(&Facts::default(), [], []);
    assert_eq!(summary.duration(), Duration::ZERO);
    assert!(summary.peak.is_none() && summary.until().is_none());
}
