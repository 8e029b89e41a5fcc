use super::*;
use crate::codec::testing::calm_sample;
use crate::codec::{EVENT_BYTES, SAMPLE_BYTES, encode_event, encode_sample};
use crate::event::EventKind;
use crate::frame;
use crate::{LevelSizes, RecordWriter};
use proptest::prelude::*;

fn frame(kind: u8, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; frame::MAX_FRAME];
    let len = frame::write(&mut out, kind, sequence, payload).unwrap();
    out.truncate(len);
    out
}

fn event(number: u64) -> Vec<u8> {
    let at = Stamp {
        monotonic_ns: number,
        realtime_ns: number,
    };
    let mut out = vec![0; EVENT_BYTES];
    let len = encode_event(
        &Event {
            at,
            kind: EventKind::Braked { high: number },
        },
        &mut out,
    );
    out.truncate(len);
    out
}

fn stamps(record: &Record) -> Vec<u64> {
    record.events().map(|event| event.at.monotonic_ns).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_a_record(a: Vec<u8>, b: Vec<u8>, c: Vec<u8>, d: Vec<u8>) {
        let record = Record::from_bytes([a, b, c, d]);
        record.head();
        prop_assert_eq!(record.events().count() + record.samples().count(), 0);
    }

    #[test]
    fn intact_frames_with_any_content_are_read_without_a_panic(
        frames in prop::collection::vec((0..5u8, any::<u64>(), any::<Vec<u8>>()), 0..10),
    ) {
        let bytes: Vec<u8> =
            frames.iter().flat_map(|(kind, number, payload)| frame(*kind, *number, payload)).collect();
        let record = Record::from_bytes([bytes.clone(), bytes, vec![], vec![]]);
        record.head();
        record.first_stamp();
        record.last_stamp();
        record.events().for_each(drop);
        record.samples().for_each(drop);
        prop_assert_eq!(record.damaged_bytes(), 0);
    }

    #[test]
    fn levels_are_merged_in_order_and_each_frame_is_given_once(
        levels in prop::collection::vec(1..16u8, 1..60),
        turn: prop::sample::Index,
    ) {
        let mut files = [(); LEVEL_COUNT].map(|()| Vec::new());
        for (number, in_levels) in (1..).zip(&levels) {
            for (level, file) in files.iter_mut().enumerate() {
                if in_levels >> level & 1 == 1 {
                    file.push(frame(2, number, &event(number)));
                }
            }
        }
        // A lap may have begun anywhere.
        let files = files.map(|mut frames| {
            if !frames.is_empty() {
                let turn = turn.index(frames.len());
                frames.rotate_left(turn);
            }
            frames.concat()
        });
        let record = Record::from_bytes(files);
        prop_assert_eq!(stamps(&record), (1..=levels.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(record.last_stamp().unwrap().monotonic_ns, levels.len() as u64);
    }
}

#[test]
fn damage_is_counted_and_empty_space_and_the_seam_of_a_lap_are_not() {
    let old = frame(2, 1, &event(1));
    let new = frame(2, 9, &event(9));
    let zeros = vec![0; 5000];
    let level = |parts: &[&[u8]]| Record::from_bytes([parts.concat(), vec![], vec![], vec![]]);
    assert_eq!(level(&[&new, &zeros, &old]).damaged_bytes(), 0);
    assert_eq!(level(&[&new, &old[7..], &old]).damaged_bytes(), 0);
    assert_eq!(level(&[&old, b"garbage", &new, &zeros]).damaged_bytes(), 7);
    assert_eq!(level(&[b"garbage"]).damaged_bytes(), 7);
}

fn head() -> RecordHead {
    RecordHead {
        schema: crate::SCHEMA,
        run: "r".into(),
        boot: [0; 16],
        start: Stamp::default(),
        total: 1,
        reserve: 1,
        budget: None,
        folder: "/".into(),
        command: vec![],
        truncated: false,
    }
}

fn is_subsequence<T: PartialEq>(
    mut part: impl Iterator<Item = T>,
    mut whole: impl Iterator<Item = T>,
) -> bool {
    part.all(|wanted| whole.any(|item| item == wanted))
}

#[test]
fn a_follower_misses_nothing_that_a_fresh_reader_sees_over_several_laps() {
    let folder = tempfile::tempdir().unwrap();
    let mut log =
        RecordWriter::create(folder.path(), LevelSizes([64 * 1024; LEVEL_COUNT]), &head()).unwrap();
    let mut follower = Record::open(folder.path()).unwrap();
    assert!(!follower.refresh().unwrap());
    let mut seen = 0;
    for second in 0..400 {
        let mut out = [0; SAMPLE_BYTES];
        let len = encode_sample(&calm_sample(10, second), &mut out);
        log.append(FrameKind::Sample, &out[..len]);
        log.append(FrameKind::Event, &event(second));
        if second % 3 != 0 {
            continue;
        }
        log.sync().unwrap();
        assert!(follower.refresh().unwrap());
        assert!(!follower.refresh().unwrap());
        let fresh = Record::open(folder.path()).unwrap();
        // It may still hold an old frame that was overwritten since.
        assert!(is_subsequence(
            fresh.sample_stamps(),
            follower.sample_stamps()
        ));
        assert!(is_subsequence(fresh.events(), follower.events()));
        assert!(follower.sample_count() <= fresh.sample_count() + 20);
        assert_eq!(
            follower.samples().next_back(),
            Some(calm_sample(10, second))
        );
        assert_eq!(follower.head(), Some(head()));
        seen += 1;
    }
    assert_eq!(seen, 134);
}

#[test]
fn a_file_longer_than_the_bound_is_read_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = level_path(folder.path(), 0);
    std::fs::write(&path, frame(2, 1, &event(1))).unwrap();
    let huge = image::MAX_FILE_BYTES as u64 * 100;
    std::fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(huge)
        .unwrap();
    let record = Record::open(folder.path()).unwrap();
    assert_eq!(stamps(&record), [1]);
}

#[test]
fn a_folder_without_a_record_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let error = Record::open(folder.path()).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains(folder.path().to_str().unwrap()));
}

#[test]
fn a_record_that_cannot_be_read_is_not_called_missing() {
    let folder = tempfile::tempdir().unwrap();
    // Whoever runs the tests may be allowed to read anything, but not this.
    for level in 0..LEVEL_COUNT {
        let path = level_path(folder.path(), level);
        std::os::unix::fs::symlink(&path, &path).unwrap();
    }
    let error = Record::open(folder.path()).err().unwrap();
    assert_ne!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn an_error_names_the_file_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Record::open(folder.path()).err().unwrap();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert_eq!(missing.path(), folder.path());
    let file = folder.path().join("record.0");
    std::fs::create_dir(&file).unwrap();
    let unreadable = Record::open(folder.path()).err().unwrap();
    assert_eq!(unreadable.path(), file);
    let message = io::Error::from(unreadable).to_string();
    assert!(message.starts_with(file.to_str().unwrap()), "{message}");
}
