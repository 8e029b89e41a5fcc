//! A record on disks that refuse: full, read-only, full for a while.
#![allow(
    clippy::unwrap_used,
    reason = "a test may panic, in its own functions too"
)]

use antifreeze_record::codec::{EVENT_BYTES, encode_event};
use antifreeze_record::event::{Event, EventKind};
use antifreeze_record::{FrameKind, LevelSizes, Record, RecordHead, RecordWriter, SCHEMA};
use antifreeze_sense::Stamp;
use std::path::Path;
use std::process::Command;

fn head() -> RecordHead {
    RecordHead {
        schema: SCHEMA,
        run: "calm-otter".into(),
        boot: [3; 16],
        start: Stamp::default(),
        total: 64 << 30,
        reserve: 2 << 30,
        budget: None,
        folder: "/home/someone/net".into(),
        command: vec!["python".into()],
        truncated: false,
    }
}

fn append(log: &mut RecordWriter, number: u64) {
    let at = Stamp {
        monotonic_ns: number,
        realtime_ns: number,
    };
    let mut out = [0; EVENT_BYTES];
    let len = encode_event(
        &Event {
            at,
            kind: EventKind::Braked { high: number },
        },
        &mut out,
    );
    log.append(FrameKind::Event, &out[..len]);
}

fn numbers(folder: &Path) -> Vec<u64> {
    Record::open(folder)
        .unwrap()
        .events()
        .map(|event| event.at.monotonic_ns)
        .collect()
}

/// A small file system in memory, unmounted at the end.
struct Mount {
    folder: tempfile::TempDir,
}

impl Mount {
    /// None, with the reason printed, where mounting is not allowed.
    fn new(kib: u64) -> Option<Mount> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Mount { folder }),
            refused => {
                println!("skipped: mounting was refused ({refused:?})");
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn remount(&self, option: &str) {
        let status = Command::new("mount")
            .args(["-o", &format!("remount,{option}")])
            .arg(self.path())
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily, because the log under test may still hold its files.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

#[test]
fn on_a_full_disk_frames_wait_and_are_written_when_there_is_space() {
    let Some(mount) = Mount::new(32) else { return };
    let mut log = RecordWriter::create(mount.path(), LevelSizes::default(), &head()).unwrap();
    for number in 1..=2000 {
        append(&mut log, number);
    }
    let error = log.sync().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(log.sync().is_err());
    append(&mut log, 2001);
    mount.remount("size=4096k");
    log.sync().unwrap();
    assert_eq!(numbers(mount.path()), (1..=2001).collect::<Vec<_>>());
    assert_eq!(log.dropped(), 0);
}

#[test]
fn a_disk_that_fills_up_later_costs_the_oldest_and_never_the_end() {
    let Some(mount) = Mount::new(1536) else {
        return;
    };
    let mut log = RecordWriter::create(mount.path(), LevelSizes::default(), &head()).unwrap();
    append(&mut log, 1);
    log.sync().unwrap();
    // Whatever was free is taken by somebody else.
    let filler = mount.path().join("filler");
    std::fs::write(&filler, vec![1; 2 << 20]).unwrap_err();
    for number in 2..=20_000 {
        append(&mut log, number);
        if number % 100 == 0 {
            log.sync().unwrap();
        }
    }
    let found = numbers(mount.path());
    assert!(found.ends_with(&(18_000..=20_000).collect::<Vec<_>>()));
    assert!(!found.contains(&1));
    assert_eq!(Record::open(mount.path()).unwrap().head(), Some(head()));

    // With space again, the files grow again.
    std::fs::remove_file(filler).unwrap();
    mount.remount("size=16384k");
    for number in 20_001..=60_000 {
        append(&mut log, number);
        if number % 100 == 0 {
            log.sync().unwrap();
        }
    }
    assert!(numbers(mount.path()).ends_with(&(30_000..=60_000).collect::<Vec<_>>()));
    assert_eq!(log.dropped(), 0);
}

#[test]
fn a_read_only_disk_is_told_when_the_record_is_made() {
    let Some(mount) = Mount::new(1536) else {
        return;
    };
    mount.remount("ro");
    let error = RecordWriter::create(mount.path(), LevelSizes::default(), &head())
        .err()
        .unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn a_disk_refusing_for_hours_keeps_the_newest_in_memory() {
    let Some(mount) = Mount::new(32) else { return };
    let mut log = RecordWriter::create(mount.path(), LevelSizes::default(), &head()).unwrap();
    for number in 1..=20_000 {
        append(&mut log, number);
    }
    assert!(log.sync().is_err());
    assert!(log.dropped() > 0);
    mount.remount("size=4096k");
    log.sync().unwrap();
    let found = numbers(mount.path());
    assert_eq!(found.len() as u64 + log.dropped(), 20_000);
    assert!(found.ends_with(&(19_000..=20_000).collect::<Vec<_>>()));
}
