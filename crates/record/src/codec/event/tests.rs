use super::*;
use crate::codec::testing::event;
use antifreeze_sense::Stamp;
use proptest::prelude::*;

fn encoded(event: &Event) -> Vec<u8> {
    let mut out = [0; EVENT_BYTES];
    let len = encode_event(event, &mut out);
    assert_ne!(len, 0, "{event:?} takes more than {EVENT_BYTES} bytes");
    out[..len].to_vec()
}

proptest! {
    #[test]
    fn any_event_comes_back(event in event()) {
        prop_assert_eq!(decode_event(&encoded(&event)), Some(event));
    }

    #[test]
    fn what_a_newer_writer_appended_is_passed_over(event in event(), newer: Vec<u8>) {
        let mut bytes = encoded(&event);
        bytes.extend(newer);
        prop_assert_eq!(decode_event(&bytes), Some(event));
    }

    #[test]
    fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
        let _ = decode_event(&bytes);
    }
}

/// The largest of each kind: every number and every text as long as it can be.
fn largest() -> Vec<EventKind> {
    let max = u64::MAX;
    let pid = Pid(u32::MAX);
    let name = ProcessName::new(&[0xff; 15]);
    let trigger = Trigger::UserRequest;
    let degradation = Degradation::NoCushion;
    vec![
        EventKind::Started {
            guard: pid,
            root: pid,
            total: max,
            reserve: max,
            budget: Some(max),
        },
        EventKind::Rung {
            from: Rung::Kill,
            to: Rung::Kill,
            trigger,
            room: i64::MIN,
            growth: i64::MIN,
            forecast_ms: Some(max),
            confidence: u8::MAX,
        },
        EventKind::RequestRefused {
            pid,
            name,
            bytes: max,
            footprint: max,
        },
        EventKind::Braked { high: max },
        EventKind::Released { high: max },
        EventKind::CheckpointAsked {
            pid,
            signal: u32::MAX,
        },
        EventKind::CheckpointSaved {
            millis: max,
            bytes: max,
            file: ShortText::new(&[0xff; ShortText::MAX_BYTES]),
        },
        EventKind::CheckpointMissed { millis: max },
        EventKind::Paused {
            who: name,
            pid,
            grew: max,
        },
        EventKind::Resumed {
            trigger,
            millis: max,
        },
        EventKind::StopSent { pid, trigger },
        EventKind::KillSent { pid, trigger },
        EventKind::Degraded {
            degradation,
            detail: u32::MAX,
        },
        EventKind::Recovered { degradation },
        EventKind::GuardRestored,
        EventKind::FrontLost,
        EventKind::UserStopped,
        EventKind::UserContinued,
        EventKind::Ended {
            status: u32::MAX,
            peak: max,
            worst_delay_ms: max,
            ended_by_guard: true,
        },
        EventKind::Attached { pid },
        EventKind::Detached {
            process_ended: true,
            peak: max,
            worst_delay_ms: max,
            ended_by_guard: true,
        },
        EventKind::TreeEnded,
        EventKind::NoProgress { steps: max },
        EventKind::Unknown { kind: max },
    ]
}

#[test]
fn the_largest_event_of_every_kind_fits() {
    let at = Stamp {
        monotonic_ns: u64::MAX,
        realtime_ns: u64::MAX,
    };
    for what in largest() {
        let event = Event { at, kind: what };
        assert_eq!(decode_event(&encoded(&event)), Some(event));
    }
}

/// An event with these numbers behind its stamp.
fn raw(numbers: &[u64]) -> Vec<u8> {
    let mut out = [0; EVENT_BYTES];
    let mut writer = Writer::new(&mut out);
    put_stamp(&mut writer, Stamp::default());
    super::put_numbers(&mut writer, numbers);
    let len = writer.finish();
    out[..len].to_vec()
}

#[test]
fn kinds_and_values_of_a_newer_writer_are_unknown_and_no_error() {
    let what = |numbers: &[u64]| decode_event(&raw(numbers)).unwrap().kind;
    assert_eq!(what(&[22, 5, 6]), EventKind::Unknown { kind: 22 });
    assert_eq!(
        what(&[kind::RUNG, 8, 0, 0, 0, 0, 0, 0]),
        EventKind::Unknown { kind: kind::RUNG }
    );
    assert_eq!(
        what(&[kind::DEGRADED, 10, 0]),
        EventKind::Unknown {
            kind: kind::DEGRADED
        }
    );
    assert_eq!(
        what(&[kind::RECOVERED, 99]),
        EventKind::Unknown {
            kind: kind::RECOVERED
        }
    );
    let newer_reason = EventKind::StopSent {
        pid: Pid(7),
        trigger: Trigger::Unspecified,
    };
    assert_eq!(what(&[kind::STOP_SENT, 7, 77]), newer_reason);
}

#[test]
fn an_event_cut_short_is_none() {
    assert_eq!(decode_event(&raw(&[kind::ENDED, 1, 2])), None);
    assert_eq!(decode_event(&[]), None);
}
