use super::*;
use crate::codec::testing::calm_sample;
use crate::codec::{EVENT_BYTES, SAMPLE_BYTES, encode_event, encode_sample};
use crate::event::{Event, EventKind};
use antifreeze_sense::Stamp;

const SMALL: LevelSizes = LevelSizes([256 * 1024, 128 * 1024, 64 * 1024, 64 * 1024]);

fn head() -> RecordHead {
    RecordHead {
        schema: crate::SCHEMA,
        run: "calm-otter".into(),
        boot: [3; 16],
        start: Stamp::default(),
        total: 64 << 30,
        reserve: 2 << 30,
        budget: None,
        folder: "/home/someone/net".into(),
        command: vec!["python".into(), "train.py".into()],
        truncated: false,
    }
}

fn append_sample(log: &mut RecordWriter, second: u64) {
    let mut out = [0; SAMPLE_BYTES];
    let len = encode_sample(&calm_sample(10, second), &mut out);
    log.append(FrameKind::Sample, &out[..len]);
}

fn append_event(log: &mut RecordWriter, number: u64) {
    let at = Stamp {
        monotonic_ns: number,
        realtime_ns: number,
    };
    let event = Event {
        at,
        kind: EventKind::Braked { high: number },
    };
    let mut out = [0; EVENT_BYTES];
    let len = encode_event(&event, &mut out);
    log.append(FrameKind::Event, &out[..len]);
}

/// The seconds of the samples in a record.
fn seconds(record: &Record) -> Vec<u64> {
    let start = calm_sample(0, 0).at.monotonic_ns;
    record
        .sample_stamps()
        .map(|at| (at.monotonic_ns - start) / 1_000_000_000)
        .collect()
}

fn highs(record: &Record) -> Vec<u64> {
    let high = |event: Event| match event.kind {
        EventKind::Braked { high } => Some(high),
        _ => None,
    };
    record.events().filter_map(high).collect()
}

#[test]
fn what_was_synced_is_there_in_order_and_once() {
    for way in [WriteMode::Direct, WriteMode::Synced, WriteMode::Plain] {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RecordWriter::create_in(folder.path(), SMALL, &head(), way).unwrap();
        for second in 0..50 {
            append_sample(&mut log, second);
            append_event(&mut log, second);
            log.sync().unwrap();
        }
        let record = Record::open(folder.path()).unwrap();
        assert_eq!(record.head(), Some(head()));
        assert_eq!(seconds(&record), (0..50).collect::<Vec<_>>());
        assert_eq!(highs(&record), (0..50).collect::<Vec<_>>());
        assert_eq!(record.damaged_bytes(), 0);
        assert_eq!(record.samples().next_back(), Some(calm_sample(10, 49)));
        assert_eq!(record.last_stamp().map(|at| at.monotonic_ns), Some(49));
    }
}

#[test]
fn after_many_laps_the_head_the_end_and_a_thinned_past_remain() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RecordWriter::create(folder.path(), SMALL, &head()).unwrap();
    for second in 0..5000 {
        append_sample(&mut log, second);
        if second % 1000 == 7 {
            append_event(&mut log, second);
        }
        if second % 7 == 0 {
            log.sync().unwrap();
        }
    }
    log.sync().unwrap();
    let record = Record::open(folder.path()).unwrap();
    assert_eq!(record.head(), Some(head()));
    assert_eq!(record.damaged_bytes(), 0);
    assert_eq!(highs(&record), [7, 1007, 2007, 3007, 4007]);
    let seconds = seconds(&record);
    assert!(seconds.is_sorted_by(|a, b| a < b));
    assert!(seconds.ends_with(&(4700..5000).collect::<Vec<_>>()));
    assert!(seconds.starts_with(&[0, 100, 200, 300]));
    assert!(seconds.contains(&4000) && !seconds.contains(&4001));
    for size in std::fs::read_dir(folder.path())
        .unwrap()
        .map(|f| f.unwrap().metadata().unwrap().len())
    {
        assert!(size <= 256 * 1024);
    }
}

/// What the disk would hold if the power failed now.
fn copy_of(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for level in 0..LEVEL_COUNT {
        std::fs::copy(level_path(folder, level), level_path(copy.path(), level)).unwrap();
    }
    copy
}

#[test]
fn a_power_cut_after_any_sync_costs_nothing_that_was_synced() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = LevelSizes([64 * 1024; LEVEL_COUNT]);
    let mut log = RecordWriter::create(folder.path(), sizes, &head()).unwrap();
    for second in 0..300 {
        append_sample(&mut log, second);
        append_event(&mut log, second);
        log.sync().unwrap();
        append_sample(&mut log, 1_000_000);
        let record = Record::open(copy_of(folder.path()).path()).unwrap();
        log.pending = Pending::new();
        assert_eq!(record.head(), Some(head()), "at {second}");
        assert_eq!(seconds(&record).last(), Some(&second));
        let newest = second.saturating_sub(50);
        assert!(seconds(&record).ends_with(&(newest..=second).collect::<Vec<_>>()));
        assert!(highs(&record).ends_with(&(newest..=second).collect::<Vec<_>>()));
        assert_eq!(record.damaged_bytes(), 0, "at {second}");
    }
}

#[test]
fn a_torn_last_block_costs_only_the_newest_frames() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RecordWriter::create(folder.path(), SMALL, &head()).unwrap();
    for second in 0..40 {
        append_sample(&mut log, second);
        log.sync().unwrap();
        let before = std::fs::read(level_path(folder.path(), 0)).unwrap();
        append_sample(&mut log, second + 1000);
        log.sync().unwrap();
        let after = std::fs::read(level_path(folder.path(), 0)).unwrap();
        // Every way in which the sectors of the new write can have arrived from the front.
        for sectors in 0..after.len() / 512 {
            let cut = sectors * 512;
            if after[cut..cut + 512] == before[cut..cut + 512] {
                continue;
            }
            let torn = [&after[..cut], &before[cut..]].concat();
            let record = Record::from_bytes([torn, vec![], vec![], vec![]]);
            let found = seconds(&record);
            assert!(
                (0..=second).all(|promised| found.contains(&promised)),
                "{second}, {cut}"
            );
        }
    }
}

#[test]
fn a_replaced_guard_goes_on_with_the_same_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RecordWriter::create(folder.path(), SMALL, &head()).unwrap();
    for second in 0..700 {
        append_sample(&mut log, second);
        append_event(&mut log, second);
        log.sync().unwrap();
        if second % 97 == 0 {
            append_sample(&mut log, 1_000_000);
            log = RecordWriter::continue_existing(folder.path(), SMALL, &head()).unwrap();
        }
    }
    let record = Record::open(folder.path()).unwrap();
    assert_eq!(record.head(), Some(head()));
    assert_eq!(record.damaged_bytes(), 0);
    assert!(seconds(&record).ends_with(&(500..700).collect::<Vec<_>>()));
    assert!(highs(&record).ends_with(&(500..700).collect::<Vec<_>>()));
    let level_1 = std::fs::read(level_path(folder.path(), 1)).unwrap();
    let samples = frame::scan(&level_1)
        .filter(|(_, frame)| frame.kind == 1)
        .count();
    assert_eq!(samples, 69, "the pace of the thinner levels goes on too");
}

#[test]
fn a_new_record_never_replaces_one_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RecordWriter::create(folder.path(), SMALL, &head()).unwrap();
    append_event(&mut log, 1);
    log.sync().unwrap();
    let again = RecordWriter::create(folder.path(), SMALL, &head());
    assert_eq!(
        again.err().map(|e| e.kind()),
        Some(io::ErrorKind::AlreadyExists)
    );
    assert_eq!(highs(&Record::open(folder.path()).unwrap()), [1]);
}

#[test]
fn a_record_that_had_not_begun_begins_with_the_guard_that_goes_on() {
    let nothing = |_: &std::path::Path| ();
    let room_alone = |folder: &std::path::Path| {
        for level in 0..LEVEL_COUNT {
            std::fs::write(level_path(folder, level), [0; 1 << 16]).unwrap();
        }
    };
    for before in [nothing as fn(&std::path::Path), room_alone] {
        let folder = tempfile::tempdir().unwrap();
        before(folder.path());
        let mut log = RecordWriter::continue_existing(folder.path(), SMALL, &head()).unwrap();
        append_event(&mut log, 5);
        log.sync().unwrap();
        let record = Record::open(folder.path()).unwrap();
        assert_eq!((record.head(), highs(&record)), (Some(head()), vec![5]));
    }
    assert!(
        RecordWriter::create(&std::path::Path::new("/").join("missing"), SMALL, &head()).is_err()
    );
}

#[test]
fn what_is_left_of_a_record_without_its_head_is_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RecordWriter::create(folder.path(), SMALL, &head()).unwrap();
    append_event(&mut log, 5);
    log.sync().unwrap();
    for level in 0..LEVEL_COUNT {
        let path = level_path(folder.path(), level);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.iter_mut().take(20).for_each(|byte| *byte ^= 0x55);
        std::fs::write(path, bytes).unwrap();
    }
    let again = RecordWriter::continue_existing(folder.path(), SMALL, &head());
    assert_eq!(
        again.err().map(|e| e.kind()),
        Some(io::ErrorKind::InvalidData)
    );
}

#[test]
fn a_payload_longer_than_a_frame_is_counted_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = RecordWriter::create(folder.path(), SMALL, &head()).unwrap();
    log.append(FrameKind::Event, &[0; MAX_PAYLOAD + 1]);
    append_event(&mut log, 5);
    log.sync().unwrap();
    assert_eq!(log.dropped(), 1);
    assert_eq!(highs(&Record::open(folder.path()).unwrap()), [5]);
}
