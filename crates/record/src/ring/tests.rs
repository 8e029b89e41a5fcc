use super::*;
use crate::codec::testing::calm_sample;
use crate::codec::{decode_event, decode_sample};
use crate::event::EventKind;
use antifreeze_sense::Stamp;

fn event(number: u64) -> Event {
    Event {
        at: Stamp::default(),
        kind: EventKind::Braked { high: number },
    }
}

fn high(bytes: &[u8]) -> u64 {
    match decode_event(bytes).unwrap().kind {
        EventKind::Braked { high } => high,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_goes_in_comes_out_in_order() {
    let (mut producer, mut consumer) = frame_ring();
    let sample = calm_sample(10, 7);
    assert!(producer.push_event(&event(1)));
    assert!(producer.push_sample(&sample));
    assert!(producer.push_event(&event(2)));
    let mut came = Vec::new();
    consumer.drain(|kind, bytes| came.push((kind, bytes.to_vec())));
    assert_eq!(came.len(), 3);
    assert_eq!((came[0].0, high(&came[0].1)), (FrameKind::Event, 1));
    assert_eq!(
        (came[1].0, decode_sample(&came[1].1)),
        (FrameKind::Sample, Some(sample))
    );
    assert_eq!((came[2].0, high(&came[2].1)), (FrameKind::Event, 2));
}

#[test]
fn when_it_is_full_samples_are_dropped_and_counted_and_events_still_fit() {
    let (mut producer, mut consumer) = frame_ring();
    let sample = calm_sample(10, 7);
    let mut pushed = 0;
    while producer.push_sample(&sample) {
        pushed += 1;
    }
    assert_eq!(consumer.dropped(), 1);
    for number in 0..200 {
        assert!(producer.push_event(&event(number)));
    }
    let (mut samples, mut events) = (0, 0);
    consumer.drain(|kind, _| match kind {
        FrameKind::Sample => samples += 1,
        FrameKind::Event => events += 1,
    });
    assert_eq!((samples, events), (pushed, 200));
    assert!(producer.push_sample(&sample));
}

#[test]
fn it_is_finished_only_when_the_producer_left_and_all_was_read() {
    let (mut producer, mut consumer) = frame_ring();
    producer.push_event(&event(1));
    assert!(!consumer.is_finished());
    drop(producer);
    assert!(!consumer.is_finished());
    consumer.drain(|_, _| ());
    assert!(consumer.is_finished());
}

#[test]
fn a_bell_rung_before_the_wait_is_not_slept_through() {
    let (mut producer, mut consumer) = frame_ring();
    consumer.drain(|_, _| ());
    producer.push_event(&event(1));
    // Would hang until the test is killed if the bell were lost.
    consumer.wait(Duration::from_secs(1 << 40));
    let mut came = 0;
    consumer.drain(|_, _| came += 1);
    assert_eq!(came, 1);
}

#[test]
fn two_threads_lose_nothing_but_what_is_counted_and_keep_the_order() {
    const EVENTS: u64 = 200_000;
    let (mut producer, mut consumer) = frame_ring();
    let sample = calm_sample(3, 1);
    let writer = std::thread::spawn(move || {
        let mut refused = 0;
        for number in 0..EVENTS {
            refused += u64::from(!producer.push_event(&event(number)));
            if number % 16 == 0 {
                refused += u64::from(!producer.push_sample(&sample));
            }
        }
        refused
    });
    let mut received = 0;
    let mut last = None;
    while !consumer.is_finished() {
        consumer.wait(Duration::from_secs(3600));
        consumer.drain(|kind, bytes| {
            received += 1;
            match kind {
                FrameKind::Sample => assert_eq!(decode_sample(bytes), Some(sample)),
                FrameKind::Event => {
                    let number = high(bytes);
                    assert!(last < Some(number), "{last:?} before {number}");
                    last = Some(number);
                }
            }
        });
    }
    let refused = writer.join().unwrap();
    assert_eq!(consumer.dropped(), refused);
    assert_eq!(received + refused, EVENTS + EVENTS / 16);
}
