//! What other users may have put where antifreeze reads and writes: folders, names and records that are theirs.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use antifreeze_record::{LevelSizes, RecordHead, RecordWriter, SCHEMA};
use antifreeze_sense::Stamp;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::{Ended, Scene};

const LIMIT: Duration = Duration::from_secs(60);
const STRANGER: u32 = 65534;
/// Sets the title of the terminal.
const ESCAPE: &str = "\u{1b}]0;title\u{7}";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn give_away(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => give_away(&path),
            false => chown(&path, Some(STRANGER), Some(STRANGER)).unwrap(),
        }
    }
    chown(folder, Some(STRANGER), Some(STRANGER)).unwrap();
}

/// The only run that is kept in a folder for records.
fn only_run(home: &Path) -> std::path::PathBuf {
    let mut runs = fs::read_dir(home.join("runs")).unwrap();
    let run = runs.next().unwrap().unwrap().path();
    assert!(runs.next().is_none());
    run
}

/// Nothing in it is a command to a terminal.
fn is_plain(ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}

#[test]
fn a_home_that_another_user_has_made_is_not_used() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let (home, theirs) = (scene.path("home"), scene.path("theirs"));
    fs::create_dir_all(theirs.join(".local/state/antifreeze/runs")).unwrap();
    give_away(&theirs);
    // A process that became root may have kept the variable.
    let with_home = |words: &[&str]| {
        let mut command = scene.antifreeze();
        command
            .args(words)
            .env_remove("ANTIFREEZE_HOME")
            .env_remove("XDG_STATE_HOME")
            .env("HOME", &theirs);
        scene.finish(&mut command, LIMIT)
    };
    with_home(&["runs"]).exits(0);
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
    // A folder that was asked for is not replaced by another one, and nothing is written there.
    fs::create_dir_all(home.join("runs")).unwrap();
    give_away(&home);
    let mut run = scene.run("200MB");
    scene
        .finish(run.args(["--", "true"]), LIMIT)
        .exits(0)
        .tells("no record of this run: ")
        .tells("it belongs to another user");
    assert_eq!(fs::read_dir(home.join("runs")).unwrap().count(), 0);
}

#[test]
fn the_page_of_a_run_is_not_written_into_the_folder_of_another_user() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let mut run = scene.run("200MB");
    scene
        .finish(run.args(["--", "sh", "-c", "exit 3"]), LIMIT)
        .exits(3);
    let folder = scene.path("theirs");
    fs::rename(only_run(&scene.path("home")), &folder).unwrap();
    give_away(&folder);
    let explain = |words: &[&str]| {
        let mut command = scene.antifreeze();
        command.arg("explain").arg(&folder).args(words);
        scene.finish(&mut command, LIMIT)
    };
    let told = explain(&[]);
    told.exits(0).prints("ended ");
    assert!(!told.stdout.contains("report.html"), "{}", told.stdout);
    assert!(!folder.join("report.html").exists());
    let page = scene.path("page.html");
    explain(&["--html", page.to_str().unwrap()]).exits(0);
    assert_eq!(page.metadata().unwrap().uid(), 0);
}

#[test]
fn no_name_in_a_record_from_elsewhere_controls_the_terminal_or_leads_out_of_the_folder() {
    let scene = Scene::new();
    let folder = scene.path("elsewhere");
    fs::create_dir(&folder).unwrap();
    let head = RecordHead {
        schema: SCHEMA,
        run: format!("../{ESCAPE}").repeat(40),
        boot: [7; 16],
        start: Stamp::default(),
        total: 16 << 30,
        reserve: 1 << 30,
        budget: None,
        folder: format!("/{ESCAPE}").into(),
        command: vec![ESCAPE.into(), format!("{ESCAPE}.py").into()],
        truncated: false,
    };
    RecordWriter::create(&folder, LevelSizes::default(), &head)
        .unwrap()
        .sync()
        .unwrap();
    fs::write(
        folder.join("output"),
        format!("{ESCAPE}Traceback\nValueError: {ESCAPE}\n"),
    )
    .unwrap();
    for words in [&[][..], &["--json"], &["--share"]] {
        let mut command = scene.antifreeze();
        let told = scene.finish(command.arg("explain").arg(&folder).args(words), LIMIT);
        told.exits(0);
        is_plain(&told);
    }
    let names = fs::read_dir(scene.path("")).unwrap();
    let is_bundle = |name: &String| name.ends_with(".tar.gz");
    let bundle = names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(is_bundle);
    let bundle = bundle.expect("a bundle in this folder");
    assert!(
        bundle.starts_with("antifreeze-") && bundle.len() < 100,
        "{bundle:?}"
    );
    assert!(!bundle.contains(char::is_control), "{bundle:?}");
}

#[test]
fn no_name_of_a_file_or_a_variable_controls_the_terminal_of_a_run() {
    let scene = Scene::new();
    let name = format!("{ESCAPE}.py");
    let keeps_graphs = "\
def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        total += loss
import torch
";
    scene.script(&name, keeps_graphs);
    let mut run = scene.run("200MB");
    // The program does not read the script, antifreeze does.
    let told = scene.finish(run.args(["--", "true", &name]), LIMIT);
    told.exits(0).tells(".py:7: `total`");
    is_plain(&told);
    let mut run = scene.antifreeze();
    run.args([
        "run",
        "--json",
        &format!("/dev/null/{ESCAPE}"),
        "--",
        "true",
    ]);
    let told = scene.finish(&mut run, LIMIT);
    told.exits(0).tells("writing /dev/null/");
    is_plain(&told);
    let mut run = scene.antifreeze();
    run.args(["run", "--", "true"])
        .env("ANTIFREEZE_HOME", format!("/proc/{ESCAPE}"));
    let told = scene.finish(&mut run, LIMIT);
    told.exits(0).tells("no record of this run: /proc/");
    is_plain(&told);
    let bundle = scene.path(format!("{ESCAPE}.tar.gz"));
    let mut share = scene.antifreeze();
    share
        .arg("explain")
        .arg(format!("--share={}", bundle.display()));
    let told = scene.finish(&mut share, LIMIT);
    told.exits(0).prints("wrote ");
    is_plain(&told);
}

#[test]
fn a_pipe_without_a_writer_is_refused_and_not_waited_for() {
    let scene = Scene::new();
    let pipe = scene.path("pipe.py");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let pipe = pipe.to_str().unwrap();
    for words in [
        &["explain", "--log", pipe][..],
        &["explain", "--log", "/dev/null", "--kernel-log", pipe],
        &["check", pipe],
        &["check", "--fix", pipe],
    ] {
        let told = scene.finish(scene.antifreeze().args(words), LIMIT);
        told.exits(2).tells("it is not a regular file");
    }
}

#[test]
fn a_folder_for_records_is_closed_to_others_whatever_the_umask_is() {
    let scene = Scene::new();
    let mut shell = scene.command("sh");
    let run = "umask 000; exec \"$0\" run --budget 200MB -- sh -c umask";
    shell.args(["-c", run, env!("CARGO_BIN_EXE_antifreeze")]);
    scene.finish(&mut shell, LIMIT).exits(0).prints("0000");
    for folder in [scene.path("home"), only_run(&scene.path("home"))] {
        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{folder:?}");
    }
}

#[test]
fn a_message_of_an_editor_that_claims_to_be_huge_ends_the_session_with_the_reason() {
    let scene = Scene::new();
    for (length, why) in [
        ("9223372036854775807", "a message is longer than"),
        ("-1", "Content-Length is not a number"),
    ] {
        let mut shell = scene.command("sh");
        let talk =
            format!("printf 'Content-Length: {length}\\r\\n\\r\\n{{}}' | \"$0\" check --lsp");
        shell.args(["-c", &talk, env!("CARGO_BIN_EXE_antifreeze")]);
        scene.finish(&mut shell, LIMIT).exits(2).tells(why);
    }
}
