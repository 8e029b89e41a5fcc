//! A real record, damaged in any way: every frame that was not touched is given back.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic, in its own functions too"
)]

use antifreeze_record::codec::{SAMPLE_BYTES, encode_sample};
use antifreeze_record::{
    FrameKind, LEVEL_COUNT, LevelSizes, Record, RecordHead, RecordWriter, SCHEMA, frame,
};
use antifreeze_sense::Stamp;
use proptest::prelude::*;
use std::sync::OnceLock;

#[path = "../testing/calm.rs"]
mod calm;

/// The first level of a record that has been through a few laps.
fn level() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let head = RecordHead {
            schema: SCHEMA,
            run: "calm-otter".into(),
            boot: [3; 16],
            start: Stamp::default(),
            total: 1,
            reserve: 1,
            budget: None,
            folder: "/".into(),
            command: vec!["python".into()],
            truncated: false,
        };
        let mut log =
            RecordWriter::create(folder.path(), LevelSizes([64 * 1024; LEVEL_COUNT]), &head)
                .unwrap();
        for second in 0..400 {
            let mut out = [0; SAMPLE_BYTES];
            let len = encode_sample(&calm::calm_sample(10, second), &mut out);
            log.append(FrameKind::Sample, &out[..len]);
            log.sync().unwrap();
        }
        std::fs::read(folder.path().join("record.0")).unwrap()
    })
}

fn samples_of(bytes: Vec<u8>) -> Vec<Stamp> {
    Record::from_bytes([bytes, vec![], vec![], vec![]])
        .sample_stamps()
        .collect()
}

/// The samples whose frames lie wholly outside `from..to`, oldest first.
fn samples_outside(from: usize, to: usize) -> Vec<Stamp> {
    let mut outside: Vec<(u64, Stamp)> = frame::scan(level())
        .filter(|(at, found)| {
            found.kind == FrameKind::Sample as u8 && (at + found.size() <= from || *at >= to)
        })
        .map(|(_, found)| {
            let sample = antifreeze_record::codec::decode_sample(found.payload).unwrap();
            (found.sequence, sample.at)
        })
        .collect();
    outside.sort_by_key(|(sequence, _)| *sequence);
    outside.into_iter().map(|(_, at)| at).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_cut_gives_back_exactly_the_frames_before_it(cut in 0..=level().len()) {
        prop_assert_eq!(samples_of(level()[..cut].to_vec()), samples_outside(cut, level().len()));
    }

    #[test]
    fn a_flipped_bit_costs_one_frame_at_most(at in 0..level().len(), bit in 0..8u8) {
        let mut bytes = level().to_vec();
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(samples_of(bytes), samples_outside(at, at + 1));
    }

    #[test]
    fn zeroed_blocks_cost_only_what_they_touch(block in 0..level().len() / 4096, count in 1..4usize) {
        let (from, to) = (block * 4096, ((block + count) * 4096).min(level().len()));
        let mut bytes = level().to_vec();
        bytes[from..to].fill(0);
        prop_assert_eq!(samples_of(bytes), samples_outside(from, to));
    }

    #[test]
    fn foreign_bytes_cost_only_what_they_touch(
        from in 0..level().len(),
        foreign in prop::collection::vec(any::<u8>(), 1..9000),
    ) {
        let to = (from + foreign.len()).min(level().len());
        let mut bytes = level().to_vec();
        bytes[from..to].copy_from_slice(&foreign[..to - from]);
        let found = samples_of(bytes);
        for untouched in samples_outside(from, to) {
            prop_assert!(found.contains(&untouched));
        }
    }

    #[test]
    fn a_piece_of_the_record_copied_elsewhere_invents_nothing(
        from in 0..level().len(),
        to in 0..level().len(),
        len in 1..9000usize,
    ) {
        let len = len.min(level().len() - from).min(level().len() - to);
        let mut bytes = level().to_vec();
        bytes.copy_within(from..from + len, to);
        let found = samples_of(bytes);
        prop_assert!(found.is_sorted_by(|a, b| a.monotonic_ns < b.monotonic_ns));
        for untouched in samples_outside(to, to + len) {
            prop_assert!(found.contains(&untouched));
        }
    }
}
