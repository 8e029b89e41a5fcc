//! `antifreeze explain`, as a person asks it: of the last run, of a folder from elsewhere, of a log alone, and of
//! what is broken.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use antifreeze_record::codec::encode_sample;
use antifreeze_record::frame::MAX_PAYLOAD;
use antifreeze_record::{FrameKind, LevelSizes, RecordHead, RecordWriter, SCHEMA};
use antifreeze_sense::{Sample, Stamp};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use support::{Ended, Scene};

const LIMIT: Duration = Duration::from_secs(60);

/// Leaks a few megabytes at a time until the wall.
const LEAKS: &str = "\
import time
history = []
while True:
    history.append(bytearray(4_000_000))
    time.sleep(0.1)
";

fn leaked() -> Scene {
    let scene = Scene::new();
    let script = scene.script("train.py", LEAKS);
    let mut run = scene.run("200MB");
    let ended = scene.finish(run.arg("--").arg("python3").arg(script), LIMIT);
    ended.exits(1).tells("antifreeze explain ");
    scene
}

fn explain(scene: &Scene, arguments: &[&str]) -> Ended {
    scene.finish(scene.antifreeze().arg("explain").args(arguments), LIMIT)
}

fn run_folder(scene: &Scene) -> std::path::PathBuf {
    let runs = fs::read_dir(scene.path("home/runs")).expect("the runs");
    runs.map(|entry| entry.unwrap().path()).next().unwrap()
}

#[test]
fn the_last_run_is_explained_with_evidence_and_a_way_out() {
    let scene = leaked();
    explain(&scene, &[])
        .exits(0)
        .prints("why      memory leak, likely")
        .prints("memory grew ")
        .prints("not      ")
        .prints("container memory limit (")
        .prints("do       ");
    let json = explain(&scene, &["--json"]);
    let verdict: serde_json::Value = serde_json::from_str(&json.exits(0).stdout).unwrap();
    assert_eq!(verdict["causes"][0]["code"], "memory-leak", "{verdict:#}");
    assert_eq!(verdict["causes"][0]["location"]["line"], 4, "{verdict:#}");
}

/// A run of an earlier boot, whose record has no end.
fn machine_died(scene: &Scene, run: &str) {
    let folder = scene.path("home/runs").join(run);
    fs::create_dir_all(&folder).unwrap();
    let head = RecordHead {
        schema: SCHEMA,
        run: run.into(),
        boot: [7; 16],
        start: Stamp::default(),
        total: 16 << 30,
        reserve: 1 << 30,
        budget: None,
        folder: "/".into(),
        command: vec!["python3".into(), "train.py".into()],
        truncated: false,
    };
    let mut log = RecordWriter::create(&folder, LevelSizes::default(), &head).unwrap();
    let mut bytes = [0; MAX_PAYLOAD];
    let length = encode_sample(&Sample::default(), &mut bytes);
    log.append(FrameKind::Sample, &bytes[..length]);
    log.sync().unwrap();
}

#[test]
fn a_machine_that_died_under_an_earlier_run_is_told_first_until_somebody_asks() {
    let scene = leaked();
    let note = "antifreeze: the machine died during an earlier run: antifreeze explain 20200101-000000-000\n";
    let says_so = || explain(&scene, &[]).exits(0).stdout.starts_with(note);
    assert!(!says_so());
    machine_died(&scene, "20200101-000000-000");
    // What is left of another run, of which nothing is known, does not hide it.
    fs::create_dir_all(scene.path("home/runs/20210101-000000-000")).unwrap();
    assert!(says_so());
    explain(&scene, &["20200101-000000-000"])
        .exits(0)
        .prints("The machine died during this run");
    assert!(!says_so());
}

#[test]
fn a_folder_from_elsewhere_and_what_is_left_of_a_broken_one_are_explained() {
    let scene = leaked();
    let elsewhere = scene.path("elsewhere");
    fs::rename(run_folder(&scene), &elsewhere).unwrap();
    let folder = elsewhere.to_str().unwrap();
    explain(&scene, &[folder]).exits(0).prints("memory leak");
    for name in ["record.0", "record.1", "record.2", "record.3"] {
        let path = elsewhere.join(name);
        if let Ok(bytes) = fs::read(&path) {
            fs::write(&path, &bytes[..bytes.len() / 3]).unwrap();
        }
    }
    explain(&scene, &[folder]).exits(0).prints("ended ");
}

#[test]
fn a_log_alone_is_explained_whatever_is_in_it() {
    let scene = Scene::new();
    let log = scene.path("train.log");
    fs::write(
        &log,
        "epoch 1\nTraceback (most recent call last):\n  File \"t.py\", line 3, in f\n\
         torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    )
    .unwrap();
    explain(&scene, &["--log", log.to_str().unwrap()])
        .exits(0)
        .prints("out of GPU memory, sure");
    let junk: Vec<u8> = (0..200_000u32)
        .map(|n| (n.wrapping_mul(2_654_435) >> 7) as u8)
        .collect();
    fs::write(&log, junk).unwrap();
    explain(&scene, &["--log", log.to_str().unwrap()])
        .exits(0)
        .prints("why      unknown");
}

#[test]
fn a_log_that_comes_through_a_pipe_is_explained() {
    let scene = Scene::new();
    let log = "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nKeyError: 1\n";
    fs::write(scene.path("train.log"), log).unwrap();
    let through = "cat train.log | \"$0\" explain --log /dev/stdin";
    let mut command = scene.command("sh");
    command.args(["-c", through, env!("CARGO_BIN_EXE_antifreeze")]);
    scene
        .finish(&mut command, LIMIT)
        .exits(0)
        .prints("KeyError");
}

#[test]
fn what_cannot_be_explained_is_refused_with_the_reason() {
    let scene = Scene::new();
    explain(&scene, &[]).exits(2).tells("there is no run yet");
    explain(&scene, &["--log", "/nowhere/train.log"])
        .exits(2)
        .tells("/nowhere/train.log");
    explain(&scene, &["--log", "/dev/zero"])
        .exits(2)
        .tells("it is a device");
    // What somebody else may have named is no command to the terminal.
    explain(&scene, &["\u{1b}]0;title\u{7}"])
        .exits(2)
        .tells("no run `\\u{1b}]0;title\\u{7}`");
    explain(&scene, &["--cause", "bad-luck"])
        .exits(2)
        .tells("no cause `bad-luck`");
    explain(&scene, &["--cause", "memory-leak"])
        .exits(0)
        .prints("# memory-leak");
}

#[test]
fn a_bundle_is_named_after_its_run_also_where_the_run_is_named() {
    let scene = Scene::new();
    scene
        .finish(scene.run("200MB").args(["--", "sh", "-c", "exit 3"]), LIMIT)
        .exits(3);
    let folder = run_folder(&scene);
    let run = folder.file_name().unwrap().to_str().unwrap();
    let bundle = scene.path(format!("antifreeze-{run}.tar.gz"));
    for arguments in [&["--share"][..], &["--share", run], &[run, "--share"]] {
        explain(&scene, arguments)
            .exits(0)
            .prints(&format!("wrote antifreeze-{run}.tar.gz"));
        fs::remove_file(&bundle).unwrap();
    }
    let mode = fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(
        mode & 0o777,
        0o700,
        "what it printed is nobody else's to read"
    );
}

/// The name of a bundle can be guessed by whoever shares the folder.
#[test]
fn a_bundle_replaces_a_link_of_its_name() {
    let scene = leaked();
    explain(&scene, &["--share"]).exits(0);
    let is_bundle = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "gz");
    let mut files = fs::read_dir(scene.path("")).unwrap();
    let bundle = files.find_map(|file| Some(file.unwrap().path()).filter(is_bundle));
    let bundle = bundle.unwrap();
    let theirs = scene.path("theirs");
    fs::write(&theirs, "theirs").unwrap();
    fs::remove_file(&bundle).unwrap();
    std::os::unix::fs::symlink(&theirs, &bundle).unwrap();
    explain(&scene, &["--share"]).exits(0);
    assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
    assert!(bundle.symlink_metadata().unwrap().is_file());
}

#[test]
fn a_page_is_written_and_a_bundle_without_secrets() {
    let scene = Scene::new();
    let script = scene.script(
        "train.py",
        "print('api_key=hunter2')\nraise ValueError('no')\n",
    );
    let mut run = scene.run("200MB");
    run.arg("--").arg("python3").arg(script);
    scene
        .finish(run.args(["--token", "hunter2", "--lr", "1"]), LIMIT)
        .exits(1);
    let told = explain(&scene, &[]);
    told.exits(0).prints("report   ");
    let page = fs::read_to_string(run_folder(&scene).join("report.html")).unwrap();
    assert!(
        page.starts_with("<!doctype html>") && page.contains("ValueError"),
        "{page}"
    );
    let bundle = scene.path("bundle.tar.gz");
    explain(&scene, &[&format!("--share={}", bundle.display())])
        .exits(0)
        .prints("wrote ");
    let unpacked = scene.path("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let tar = std::process::Command::new("tar")
        .arg("xzf")
        .arg(&bundle)
        .arg("-C")
        .arg(&unpacked)
        .status();
    assert!(tar.unwrap().success());
    let [folder] = &fs::read_dir(&unpacked).unwrap().collect::<Vec<_>>()[..] else {
        panic!("one folder")
    };
    for name in ["report.html", "verdict.json", "output.txt"] {
        let text = fs::read_to_string(folder.as_ref().unwrap().path().join(name)).unwrap();
        assert!(!text.contains("hunter2"), "{name}: {text}");
        assert!(text.contains("ValueError"), "{name}: {text}");
    }
}
