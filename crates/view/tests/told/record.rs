//! A real record on disk, read back as a person would see it.

use crate::scenes::{EXIT_1, GB, MB, Scene};
use crate::shown::style;
use antifreeze_diagnose::verdict::EndKind;
use antifreeze_diagnose::{Now, Run, Since};
use antifreeze_record::codec::{encode_event, encode_sample};
use antifreeze_record::{FrameKind, LevelSizes, RecordHead, RecordWriter, SCHEMA};
use antifreeze_sense::Reading;
use std::io;
use std::path::Path;

const BOOT: [u8; 16] = [7; 16];

fn write(folder: &Path, scene: &Scene) -> io::Result<()> {
    let facts = &scene.facts;
    let head = RecordHead {
        schema: SCHEMA,
        run: facts.run.clone(),
        boot: BOOT,
        start: facts.started,
        total: facts.total,
        reserve: facts.reserve,
        budget: facts.budget,
        folder: facts.folder.clone(),
        command: facts.command.clone(),
        truncated: false,
    };
    let mut log = RecordWriter::create(folder, LevelSizes::default(), &head)?;
    let mut buffer = [0; 8192];
    for sample in &scene.samples {
        let len = encode_sample(sample, &mut buffer);
        log.append(FrameKind::Sample, &buffer[..len]);
        log.sync()?;
    }
    for event in &scene.events {
        let len = encode_event(event, &mut buffer);
        log.append(FrameKind::Event, &buffer[..len]);
    }
    log.sync()
}

const AFTERWARDS: Now = Now {
    boot: BOOT,
    guarded: false,
    is_here: true,
};

#[test]
fn a_run_on_disk_reads_like_the_run_that_was() {
    let folder = tempfile::tempdir().unwrap();
    let scene = Scene::new()
        .memory(60, |second| 3 * GB + second * 180 * MB, |_| 0)
        .refused(59, 41 * MB, 13_800 * MB)
        .ended(60, EXIT_1);
    write(folder.path(), &scene).unwrap();
    let run = Run::open(folder.path(), Vec::new(), AFTERWARDS).unwrap();
    assert_eq!(run.verdict, scene.verdict());
    assert_eq!(run.facts.may_use(), scene.facts.may_use());
    assert_eq!(run.events.len(), scene.events.len());
    let told = antifreeze_view::closing(&run.verdict, &run.facts, &run.story, &style());
    assert!(
        told.contains("ended    by running out of room after 1 min (exit code 1)"),
        "{told}"
    );
}

#[test]
fn a_record_without_an_end_is_judged_by_boot_and_guard() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &Scene::new().steady(60, GB)).unwrap();
    for (boot, guarded, since, kind) in [
        (BOOT, true, Since::StillGuarded, EndKind::Running),
        (BOOT, false, Since::GuardGone, EndKind::Unknown),
        ([8; 16], false, Since::Rebooted, EndKind::MachineDied),
    ] {
        let run = Run::open(
            folder.path(),
            Vec::new(),
            Now {
                boot,
                guarded,
                is_here: true,
            },
        )
        .unwrap();
        assert_eq!((run.facts.since, run.verdict.end.kind), (since, kind));
    }
}

#[test]
fn a_folder_without_a_record_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let error = Run::open(folder.path(), Vec::new(), AFTERWARDS)
        .err()
        .unwrap();
    assert!(error.to_string().contains(folder.path().to_str().unwrap()));
}

#[test]
fn a_record_in_a_container_tells_what_the_container_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new().steady(2, GB);
    for sample in &mut scene.samples {
        sample.cgroup.limit = Reading::Value(8 * GB);
        sample.cgroup.limit_available = Reading::Value(5 * GB);
    }
    write(folder.path(), &scene).unwrap();
    let run = Run::open(folder.path(), Vec::new(), AFTERWARDS).unwrap();
    assert_eq!(run.facts.container, Some(8 * GB));
    // What is left below the limit, what the run has taken already, less the reserve.
    assert_eq!(run.facts.may_use(), 5 * GB + 400 * MB - 1_500 * MB);
}

#[test]
fn a_command_recorded_in_part_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let mut scene = Scene::new().steady(1, GB);
    scene
        .facts
        .command
        .push("x".repeat(3 * RecordHead::MAX_COMMAND_BYTES).into());
    write(folder.path(), &scene).unwrap();
    let run = Run::open(folder.path(), Vec::new(), AFTERWARDS).unwrap();
    assert!(
        run.facts.command_line().ends_with(" …"),
        "{}",
        run.facts.command_line()
    );
}
