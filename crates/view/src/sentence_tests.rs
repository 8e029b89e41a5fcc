use super::*;
use antifreeze_record::event::{Degradation, ShortText};
use antifreeze_sense::Stamp;

const PYTHON: &[u8] = b"python";

fn facts() -> Facts {
    Facts {
        total: 15_400_000_000,
        reserve: 1_500_000_000,
        ..Facts::default()
    }
}

fn say(kind: EventKind, detail: Detail) -> Option<String> {
    sentence(
        &Event {
            at: Stamp::default(),
            kind,
        },
        &facts(),
        detail,
    )
}

fn normally(kind: EventKind) -> String {
    say(kind, Detail::Normal).unwrap_or_default()
}

fn rung_event(from: Rung, to: Rung, trigger: Trigger, forecast_ms: Option<u64>) -> EventKind {
    EventKind::Rung {
        from,
        to,
        trigger,
        room: 0,
        growth: 41_000_000,
        forecast_ms,
        confidence: 90,
    }
}

#[test]
fn a_warning_tells_growth_and_time_left() {
    let kind = rung_event(Rung::Watch, Rung::Warn, Trigger::TreeGrowth, Some(131_000));
    assert_eq!(
        normally(kind),
        "memory grows 41 MB a second; full in about 2 min 10 s"
    );
    let kind = rung_event(Rung::Calm, Rung::Warn, Trigger::ReserveBroken, None);
    assert_eq!(normally(kind), "less than the reserve of 1.5 GB is free");
}

#[test]
fn calm_and_watch_are_silent_and_so_is_the_way_down() {
    for (from, to) in [
        (Rung::Calm, Rung::Watch),
        (Rung::Watch, Rung::Calm),
        (Rung::Brake, Rung::Warn),
        (Rung::Warn, Rung::Calm),
    ] {
        let kind = rung_event(from, to, Trigger::RoomAvailable, None);
        assert_eq!(say(kind, Detail::Normal), None, "{from:?} to {to:?}");
        assert!(say(kind, Detail::Verbose).is_some());
    }
}

#[test]
fn rungs_told_by_their_action_are_not_told_twice() {
    for to in [
        Rung::Brake,
        Rung::Checkpoint,
        Rung::Pause,
        Rung::Stop,
        Rung::Kill,
    ] {
        assert_eq!(
            say(
                rung_event(Rung::Warn, to, Trigger::TreeGrowth, None),
                Detail::Normal
            ),
            None
        );
    }
}

#[test]
fn a_refusal_names_the_process_the_size_and_the_bound() {
    let kind = EventKind::RequestRefused {
        pid: Pid(1234),
        name: ProcessName::new(PYTHON),
        bytes: 41_943_040,
        footprint: 0,
    };
    assert_eq!(
        normally(kind),
        "refused 42 MB to python (pid 1234): it would have left less than the 1.5 GB kept for you. The script gets an error at that line."
    );
    let budget = Facts {
        budget: Some(400_000_000),
        ..facts()
    };
    let event = Event {
        at: Stamp::default(),
        kind,
    };
    assert_eq!(
        sentence(&event, &budget, Detail::Quiet).unwrap(),
        "refused 42 MB to python (pid 1234): it would have exceeded its budget of 400 MB. The script gets an error at that line."
    );
    let unsized_request = EventKind::RequestRefused {
        pid: Pid(9),
        name: ProcessName::new(b""),
        bytes: 0,
        footprint: 0,
    };
    assert!(normally(unsized_request).starts_with("refused memory to pid 9: "));
}

#[test]
fn saves_are_told_with_what_is_known() {
    let asked = |signal| EventKind::CheckpointAsked {
        pid: Pid(9),
        signal,
    };
    assert_eq!(normally(asked(10)), "asked for a checkpoint (SIGUSR1)");
    assert_eq!(normally(asked(0)), "asked for a checkpoint");
    let saved = |bytes, file: &[u8]| EventKind::CheckpointSaved {
        millis: 1_200,
        bytes,
        file: ShortText::new(file),
    };
    assert_eq!(
        normally(saved(80_000_000, b"/data/checkpoint.pt")),
        "checkpoint saved in 1.2 s (checkpoint.pt, 80 MB)"
    );
    assert_eq!(
        normally(saved(0, b"a.pt")),
        "checkpoint saved in 1.2 s (a.pt)"
    );
    assert_eq!(
        normally(saved(5_000, b"")),
        "checkpoint saved in 1.2 s (5 kB)"
    );
    assert_eq!(normally(saved(0, b"")), "checkpoint saved in 1.2 s");
    assert_eq!(
        normally(EventKind::CheckpointMissed { millis: 30_000 }),
        "no checkpoint was saved within 30 s; continuing without one"
    );
}

#[test]
fn a_pause_tells_who_grew_and_how_it_ends() {
    let kind = EventKind::Paused {
        who: ProcessName::new(b"firefox"),
        pid: Pid(5),
        grew: 2_100_000_000,
    };
    assert_eq!(
        normally(kind),
        "paused: firefox grew by 2.1 GB and memory ran short; it resumes when memory is free, or with `antifreeze resume`"
    );
    let unknown = EventKind::Paused {
        who: ProcessName::new(b""),
        pid: Pid(0),
        grew: 0,
    };
    assert!(normally(unknown).starts_with("paused: other programs grew and memory"));
    let resumed = |trigger| {
        normally(EventKind::Resumed {
            trigger,
            millis: 12_000,
        })
    };
    assert_eq!(
        resumed(Trigger::RoomAvailable),
        "resumed after a pause of 12 s: memory is free again"
    );
    assert_eq!(
        resumed(Trigger::UserRequest),
        "resumed after a pause of 12 s, as you asked"
    );
    assert_eq!(
        resumed(Trigger::Deadline),
        "resumed after a pause of 12 s: the longest pause is over"
    );
}

#[test]
fn an_end_by_the_guard_is_told_even_to_the_quiet() {
    let stop = EventKind::StopSent {
        pid: Pid(9),
        trigger: Trigger::SwapStorm,
    };
    assert_eq!(
        say(stop, Detail::Quiet).unwrap(),
        "asked the run to stop (SIGTERM to pid 9): the machine is thrashing swap"
    );
    let kill = EventKind::KillSent {
        pid: Pid(9),
        trigger: Trigger::Deadline,
    };
    assert_eq!(
        say(kill, Detail::Quiet).unwrap(),
        "killed the run (SIGKILL to pid 9): it did not end in time"
    );
}

#[test]
fn quiet_leaves_out_what_was_not_done_to_the_run() {
    let warning = rung_event(Rung::Watch, Rung::Warn, Trigger::TreeGrowth, Some(131_000));
    assert_eq!(say(warning, Detail::Quiet), None);
    assert_eq!(say(EventKind::Braked { high: 1 }, Detail::Quiet), None);
}

#[test]
fn the_brake_tells_what_it_does() {
    assert_eq!(
        normally(EventKind::Braked {
            high: 12_100_000_000
        }),
        "slowed the run down: limited to 12.1 GB of memory, so that the machine stays usable"
    );
    assert_eq!(
        normally(EventKind::Released { high: 0 }),
        "the run is at full speed again"
    );
    assert_eq!(say(EventKind::Released { high: 9 }, Detail::Normal), None);
}

#[test]
fn what_is_missing_is_one_sentence_with_its_consequence() {
    let degradation = |degradation, detail| EventKind::Degraded {
        degradation,
        detail,
    };
    assert!(
        normally(degradation(Degradation::RecordFailed, 28))
            .starts_with("the record cannot be written: the disk is full. ")
    );
    assert!(normally(degradation(Degradation::WallIgnored, 0)).contains("ignore_rlimit_data"));
    assert_eq!(
        say(degradation(Degradation::NoCgroup, 0), Detail::Normal),
        None
    );
    assert!(say(degradation(Degradation::NoCgroup, 0), Detail::Verbose).is_some());
    assert!(
        say(
            degradation(Degradation::TooManyProcesses, 900),
            Detail::Verbose
        )
        .unwrap()
        .contains("900 processes")
    );
}

#[test]
fn a_hostile_name_cannot_drive_the_terminal() {
    let kind = EventKind::Paused {
        who: ProcessName::new(b"\x1b[2J\nrm\xff"),
        pid: Pid(5),
        grew: 0,
    };
    assert!(normally(kind).starts_with(r"paused: \u{1b}[2J\nrm\xff grew"));
    let file = ShortText::new(b"dir/\x1b]0;x\x07.pt");
    let kind = EventKind::CheckpointSaved {
        millis: 5,
        bytes: 0,
        file,
    };
    assert!(!normally(kind).contains(char::is_control));
}

#[test]
fn the_end_is_left_to_the_closing_words() {
    let ended = EventKind::Ended {
        status: 0x0100,
        peak: 0,
        worst_delay_ms: 0,
        ended_by_guard: false,
    };
    assert_eq!(say(ended, Detail::Normal), None);
    assert_eq!(
        say(ended, Detail::Verbose).unwrap(),
        "the run ended: exit code 1"
    );
}

#[test]
fn without_a_brake_no_rung_is_called_one() {
    let step = |from, to| Event {
        at: Stamp::default(),
        kind: EventKind::Rung {
            from,
            to,
            trigger: Trigger::TreeGrowth,
            room: 0,
            growth: 1_000_000,
            forecast_ms: Some(2_000),
            confidence: 90,
        },
    };
    let line = |from, to, has_no_brake| {
        let facts = Facts {
            has_no_brake,
            ..Facts::default()
        };
        sentence(&step(from, to), &facts, Detail::Verbose)
    };
    let brakes = line(Rung::Warn, Rung::Brake, false).unwrap();
    assert!(brakes.starts_with("brake: "), "{brakes}");
    assert_eq!(line(Rung::Warn, Rung::Brake, true), None);
    assert_eq!(line(Rung::Brake, Rung::Warn, true), None);
    let warns = line(Rung::Watch, Rung::Brake, true).unwrap();
    assert!(warns.starts_with("memory grows "), "{warns}");
    let falls = line(Rung::Checkpoint, Rung::Brake, true).unwrap();
    assert!(falls.starts_with("warn: "), "{falls}");
}
