//! Libraries are loaded however much they map, and whether the loader, the guard or its slow worker is faster.
//!
//! The loader asks for memory by itself and cannot be told to wait, and what it maps takes no memory until it is
//! written to. So a library with more data than the whole budget loads, and what the program asks for itself is
//! refused as before.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use support::{Ended, Scene, framework_python, pythons};

const LIMIT: Duration = Duration::from_secs(300);
const MB: u64 = 1_000_000;

/// Loads the libraries that its arguments name, then asks for more than it may have.
const LOADS: &str = "\
import ctypes, sys
for name in sys.argv[1:]:
    print(ctypes.CDLL(name).touch())
print('loaded')
try:
    bytearray(2_000_000_000)
    print('too much was granted')
except MemoryError:
    print('refused')
";

/// Keeps the guard, its parent, from running while `work` is done: `stopped(work)`.
const STOPPED: &str = "\
import os, signal, threading
def stopped(work):
    guard = os.getppid()
    name = open(f'/proc/{guard}/comm').read().strip()
    assert name == 'antifreeze-guar', name
    wake = threading.Timer(0.2, os.kill, (guard, signal.SIGCONT))
    os.kill(guard, signal.SIGSTOP)
    wake.start()
    work()
    wake.join()
    print('loaded')
";

/// A library with so many megabytes from its file and so many of zeroes, that loads the others too.
fn library(scene: &Scene, name: &str, file: u64, zeroes: u64, needed: &[&Path]) -> PathBuf {
    let made = scene.path(name);
    let maker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/scenarios/library.py");
    let status = Command::new("python3")
        .args([maker.as_path(), made.as_path()])
        .args([file * MB, zeroes * MB].map(|bytes| bytes.to_string()))
        .args(needed)
        .status();
    assert!(status.unwrap().success());
    made
}

/// Where no guard may lag behind, it does: each of its looks at what is mapped comes two seconds late.
fn with_late_scout(run: &mut Command) -> &mut Command {
    run.env("ANTIFREEZE_TEST_SCOUT_DELAY", "2")
}

fn load(scene: &Scene, budget: &str, start: &[&str], libraries: &[&Path]) -> Ended {
    let script = scene.script("train.py", LOADS);
    let mut run = scene.run(budget);
    with_late_scout(&mut run).arg("--").args(start).arg(script);
    scene.finish(run.args(libraries), LIMIT)
}

#[test]
fn a_library_with_a_gigabyte_of_data_loads_under_a_smaller_budget_in_every_python() {
    for python in pythons() {
        let scene = Scene::new();
        let library = library(&scene, "libdata.so", 1000, 0, &[]);
        load(&scene, "300MB", &[python.to_str().unwrap()], &[&library])
            .exits(0)
            .prints("loaded\nrefused");
    }
}

#[test]
fn libraries_that_load_others_are_loaded_through_a_shell_and_its_exec() {
    let scene = Scene::new();
    let first = library(&scene, "libfirst.so", 250, 20, &[]);
    let second = library(&scene, "libsecond.so", 0, 400, &[]);
    let whole = library(&scene, "libwhole.so", 100, 0, &[&first, &second]);
    let start = [
        "sh",
        "-c",
        "exec sh -c 'exec python3 \"$0\" \"$@\"' \"$0\" \"$@\"",
    ];
    load(&scene, "300MB", &start, &[&whole])
        .exits(0)
        .prints("loaded\nrefused");
}

#[test]
fn a_program_without_the_cushion_loads_what_fits_beside_its_budget() {
    let scene = Scene::new();
    let libraries = [("libone.so", 300), ("libtwo.so", 100), ("libthree.so", 50)];
    let made = libraries.map(|(name, bytes)| library(&scene, name, bytes, 0, &[]));
    let start = ["env", "-u", "LD_PRELOAD", "python3"];
    load(
        &scene,
        "300MB",
        &start,
        &made.each_ref().map(PathBuf::as_path),
    )
    .exits(0)
    .prints("loaded\nrefused");
}

#[test]
fn a_library_loads_while_the_guard_does_not_run() {
    let scene = Scene::new();
    let library = library(&scene, "libdata.so", 1000, 0, &[]);
    let text = format!("{STOPPED}import ctypes, sys\nstopped(lambda: ctypes.CDLL(sys.argv[1]))\n");
    let script = scene.script("train.py", &text);
    let mut run = scene.run("300MB");
    run.arg("--").arg("python3").arg(script).arg(library);
    let ended = scene.finish(&mut run, LIMIT);
    ended.exits(0).prints("loaded");
}

#[test]
fn pytorch_is_imported_with_a_late_scout_and_a_guard_that_does_not_run() {
    let Some(python) = framework_python() else {
        return;
    };
    for budget in ["600MB", "1GB", "2GB"] {
        let scene = Scene::new();
        let script = scene.script(
            "train.py",
            &format!("{STOPPED}stopped(lambda: __import__('torch'))\n"),
        );
        let mut run = scene.run(budget);
        with_late_scout(&mut run).arg("--").arg(&python).arg(script);
        scene.finish(&mut run, LIMIT).exits(0).prints("loaded");
    }
}

#[test]
fn six_imports_of_pytorch_at_once_share_three_gigabytes() {
    let Some(python) = framework_python() else {
        return;
    };
    let scene = Scene::new();
    let text = "\
import subprocess, sys
code = \"import torch; print('loaded')\"
started = [subprocess.Popen([sys.executable, '-c', code]) for _ in range(6)]
sys.exit(sum(child.wait() != 0 for child in started))
";
    let script = scene.script("train.py", text);
    let mut run = scene.run("3GB");
    with_late_scout(&mut run).arg("--").arg(&python).arg(script);
    let ended = scene.finish(&mut run, LIMIT);
    ended.exits(0);
    assert_eq!(ended.stdout.matches("loaded").count(), 6, "{ended}");
}

#[test]
fn a_limit_of_the_users_own_that_keeps_a_library_out_is_told() {
    let scene = Scene::new();
    let made = [1, 2].map(|number| library(&scene, &format!("lib{number}.so"), 200, 0, &[]));
    let script = scene.script("train.py", LOADS);
    let mut shell = scene.command("sh");
    let antifreeze = env!("CARGO_BIN_EXE_antifreeze");
    shell.args([
        "-c",
        "ulimit -d 150000; exec \"$0\" \"$@\"",
        antifreeze,
        "run",
        "--json",
    ]);
    shell
        .arg(scene.path("verdict.json"))
        .args(["--", "python3"]);
    let ended = scene.finish(shell.arg(script).args(&made), LIMIT);
    ended
        .exits(1)
        .tells("failed to map segment from shared object");
    let verdict = scene.verdict();
    let cause = &verdict["causes"][0];
    assert_eq!(cause["code"], "library-not-mapped", "{verdict}");
    assert_eq!(
        cause["remedies"][0]["code"], "ulimit -d; ulimit -v",
        "{verdict}"
    );
}
