//! Trainers in plain Python under a budget: real processes, the real wall, the real ladder.
//!
//! Whatever eats memory here ends by itself far below what a machine has, so that a broken
//! guard fails a test and harms nobody.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::Duration;
use support::{Scene, example, line_of, pythons};

/// Generous: it only bounds what a failing test may cost.
const LIMIT: Duration = Duration::from_secs(120);
const MB: u64 = 1_000_000;

const LEAK: &str = "\
import time
history = []
for step in range(200):
    history.append(bytearray(4 << 20))  # the leak
    time.sleep(0.1)
print('met no wall')
";

const LEAK_CAUGHT: &str = "\
import time
history = []
for step in range(100):
    try:
        history.append(bytearray(4 << 20))  # the leak
    except MemoryError:
        import traceback
        print(traceback.format_exc())
        print('caught with', len(history), 'steps kept')
        history.clear()
    time.sleep(0.02)
print('finished step', step)
";

#[test]
fn a_leak_is_caught_at_its_line_and_the_run_finishes() {
    let scene = Scene::new();
    let script = scene.script("train.py", LEAK_CAUGHT);
    let mut run = scene.run("200MB");
    let ended = scene.finish(run.args(["--", "python3"]).arg(&script), LIMIT);
    let line = line_of(&script, "# the leak");
    ended
        .exits(0)
        .prints(&format!("line {line}, in <module>"))
        .prints("caught with")
        .prints("finished step 99")
        .tells("antifreeze: refused 4.2 MB to python3");
    assert_eq!(scene.verdict()["end"]["kind"], "finished", "{ended}");
    assert!(peak(&scene) <= 200 * MB, "{}", scene.verdict());
}

#[test]
fn an_uncaught_leak_ends_with_a_traceback_and_is_called_walled() {
    let scene = Scene::new();
    let script = scene.script("train.py", LEAK);
    let mut run = scene.run("200MB");
    let ended = scene.finish(run.args(["--", "python3"]).arg(&script), LIMIT);
    let line = line_of(&script, "# the leak");
    ended
        .exits(1)
        .tells(&format!("train.py\", line {line}, in <module>"))
        .tells("\nMemoryError\n");
    let verdict = scene.verdict();
    assert_eq!(verdict["end"]["kind"], "walled", "{verdict}");
    assert_eq!(verdict["end"]["exit_code"], 1, "{verdict}");
    assert_eq!(verdict["causes"][0]["code"], "memory-leak", "{verdict}");
    assert_eq!(verdict["causes"][0]["location"]["line"], line, "{verdict}");
}

#[test]
fn one_large_request_is_refused_and_a_smaller_one_fits() {
    let scene = Scene::new();
    let script = scene.script(
        "train.py",
        "\
import time
try:
    batch = bytearray(900 << 20)
except MemoryError:
    batch = bytearray(90 << 20)
    print('smaller batch:', len(batch) >> 20)
# Until the guard has looked who it was.
time.sleep(2)
",
    );
    let mut run = scene.run("200MB");
    let ended = scene.finish(run.args(["--", "python3"]).arg(script), LIMIT);
    ended
        .exits(0)
        .prints("smaller batch: 90")
        .tells("antifreeze: refused 944 MB to python3");
    assert!(peak(&scene) <= 200 * MB, "{}", scene.verdict());
}

/// As `torch.load(mmap=True)` and `numpy.memmap(mode="c")` map a file: it takes no memory until it is written to.
#[test]
fn a_file_far_larger_than_the_budget_may_be_mapped_and_memory_is_as_limited_as_before() {
    let scene = Scene::new();
    let script = scene.script("train.py", MAPPED_FILE);
    let mut run = scene.run("300MB");
    let ended = scene.finish(run.args(["--", "python3"]).arg(&script), LIMIT);
    ended
        .exits(0)
        .prints("mapped 4 times 1000 MB")
        .prints("took 100 MB");
    let held = ended
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("refused with "));
    let held: u64 = held.unwrap_or_else(|| panic!("{ended}")).parse().unwrap();
    assert!((150..=300).contains(&held), "{ended}");
    assert!(peak(&scene) <= 300 * MB, "{}", scene.verdict());
}

const MAPPED_FILE: &str = "\
import mmap, time
size = 1_000_000_000
with open('weights.bin', 'wb') as file:
    file.truncate(size)
maps = []
with open('weights.bin', 'r+b') as file:
    for _ in range(4):
        maps.append(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY))
print('mapped', len(maps), 'times', size // 1_000_000, 'MB')
# At once: nobody outside had time to count anything.
data = bytearray(100_000_000)
print('took', len(data) // 1_000_000, 'MB')
assert sum(each[::50_000_000] != bytes(20) for each in maps) == 0
maps[0][size // 2] = 7
history = [data]
try:
    for step in range(100):
        history.append(bytearray(4_000_000))
        time.sleep(0.02)
except MemoryError:
    held = sum(map(len, history)) // 1_000_000
    del history
    print('refused with', held)
";

#[test]
fn every_leaking_worker_gets_an_error_of_its_own_and_the_pool_lives() {
    let scene = Scene::new();
    let mut run = scene.run("400MB");
    run.args(["--", "python3"]).arg(example("workers.py"));
    let ended = scene.finish(&mut run, LIMIT);
    ended.exits(0).prints("all workers live").tells("refused");
    assert!(!ended.stdout.contains("\n0 of 4"), "{ended}");
    assert!(peak(&scene) <= 400 * MB, "{}", scene.verdict());
}

#[test]
fn children_forked_at_once_share_the_room_instead_of_each_taking_it() {
    // Once is luck: what goes wrong here goes wrong in some of many runs.
    for _ in 0..3 {
        let scene = Scene::new();
        let script = scene.script("train.py", SIX_AT_ONCE);
        let mut run = scene.run("400MB");
        let ended = scene.finish(run.args(["--", "python3"]).arg(script), LIMIT);
        ended.exits(0);
        let held: u64 = ended.stdout.trim().parse().expect("a count");
        assert!((1..=2).contains(&held), "{ended}");
        assert!(peak(&scene) <= 400 * MB, "{}", scene.verdict());
    }
}

/// Six children take 130 MB each in the same moment, and hold it until all have tried.
const SIX_AT_ONCE: &str = "\
import os
answers, tell = os.pipe()
wait, go = os.pipe()
for child in range(6):
    if os.fork() == 0:
        os.close(go)
        try:
            held = b'x' * 130_000_000
            os.write(tell, b'1')
        except MemoryError:
            os.write(tell, b'0')
        os.read(wait, 1)
        os._exit(0)
print(sum(int(os.read(answers, 1)) for child in range(6)))
os.close(go)
for child in range(6):
    os.wait()
";

#[test]
fn a_daemonised_grandchild_is_still_limited() {
    let scene = Scene::new();
    let script = scene.script("train.py", DAEMON);
    let mut run = scene.run("200MB");
    let ended = scene.finish(run.args(["--", "python3"]).arg(script), LIMIT);
    ended.exits(0);
    let answer = scene.path("answer");
    scene.until("the daemon's answer", LIMIT, || answer.exists());
    let answer = fs::read_to_string(answer).expect("the answer");
    assert_eq!(answer, "refused", "{ended}");
    scene.until("the guard has left too", LIMIT, || {
        scene.living().is_empty()
    });
}

/// Leaves its session and its parent, waits until the parent is gone, and leaks.
const DAEMON: &str = "\
import os, time
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    while os.path.exists('/proc/%d' % parent):
        time.sleep(0.01)
    held, answer = [], 'met no wall'
    try:
        while len(held) < 200:
            held.append(bytearray(4 << 20))
            time.sleep(0.01)
    except MemoryError:
        held.clear()
        answer = 'refused'
    with open('answer.new', 'w') as file:
        file.write(answer)
    os.rename('answer.new', 'answer')
    os._exit(0)
";

#[test]
fn shared_memory_over_the_budget_is_stopped_in_good_order() {
    let scene = Scene::new();
    let before = shared_files();
    let mut most = 0;
    let mut run = scene.run("200MB");
    // Slowly: how far it gets depends on how soon the guard looks.
    run.args(["--", "python3"])
        .arg(example("shared_memory.py"))
        .arg("0.25");
    let ended = scene.finish_watched(&mut run, LIMIT, |_| most = most.max(shared_bytes(&before)));
    ended
        .exits(75)
        .tells("asked to end: giving the shared memory back")
        .tells("asked the run to stop (SIGTERM");
    assert_eq!(scene.verdict()["end"]["kind"], "stopped", "{ended}");
    assert!(peak(&scene) > 180 * MB, "{}", scene.verdict());
    assert!(most < 240 * MB, "it had {most} bytes\n{ended}");
    assert_eq!(shared_bytes(&before), 0, "shared memory was left\n{ended}");
}

/// The segments that Python's shared_memory has made so far, whoever uses them.
fn shared_files() -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir("/dev/shm").expect("listing /dev/shm");
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter(|name| name.as_encoded_bytes().starts_with(b"psm_"))
        .collect()
}

/// What the segments hold that are not in this list.
fn shared_bytes(except: &[std::ffi::OsString]) -> u64 {
    let new = shared_files()
        .into_iter()
        .filter(|name| !except.contains(name));
    new.filter_map(|name| fs::metadata(std::path::Path::new("/dev/shm").join(name)).ok())
        .map(|file| file.blocks() * 512)
        .sum()
}

#[test]
fn a_checkpoint_is_saved_before_the_wall_is_met() {
    let scene = Scene::new();
    let mut run = scene.run("300MB");
    run.args(["--checkpoint-signal", "USR1", "--", "python3"])
        .arg(example("checkpoint_on_signal.py"));
    let ended = scene.finish(&mut run, LIMIT);
    ended
        .exits(1)
        .prints("saved step")
        .tells("antifreeze: asked for a checkpoint (SIGUSR1)")
        .tells("antifreeze: checkpoint saved in")
        .tells("(checkpoint.json, ")
        // What it prints goes to a file as well, and is no checkpoint.
        .never_tells("(stdout, ");
    assert_eq!(scene.verdict()["end"]["kind"], "walled", "{ended}");
    let saved = fs::read_to_string(scene.path("checkpoint.json")).expect("a checkpoint");
    let saved: serde_json::Value = serde_json::from_str(&saved).expect("a whole checkpoint");
    assert!(saved["step"].as_u64() > Some(0), "{saved}");
    let shown = scene.shown();
    let at = |words: &str| {
        shown
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {shown}"))
    };
    assert!(at("checkpoint saved in") < at("refused 4.2 MB"), "{shown}");
}

#[test]
fn a_steady_trainer_is_not_failed_while_a_neighbour_grows_and_lets_go() {
    let scene = Scene::new();
    let script = scene.script("neighbour.py", NEIGHBOUR);
    let mut neighbour = scene.command("python3");
    neighbour
        .arg(script)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut neighbour = neighbour.spawn().expect("starting the neighbour");
    let rounds = scene.path("rounds");
    let done = || fs::read(&rounds).map_or(0, |rounds| rounds.len());
    scene.until("the neighbour's first round", LIMIT, || done() > 0);

    let before = done();
    let mut run = scene.run("200MB");
    run.args(["--", "python3"]).arg(example("steady.py"));
    let ended = scene.finish(run.arg("150"), LIMIT);
    let during = done() - before;

    ended
        .exits(0)
        .prints("\ndone\n")
        .never_tells("antifreeze: refused")
        .never_tells("antifreeze: paused")
        .never_tells("antifreeze: asked the run to stop");
    let verdict = scene.verdict();
    assert_eq!(verdict["end"]["kind"], "finished", "{verdict}");
    assert!(during > 0, "the neighbour made no whole round meanwhile");
    neighbour.kill().expect("ending the neighbour");
    neighbour.wait().expect("the neighbour's end");
}

/// Grows by 300 MB, lets go, notes the round, and begins again.
const NEIGHBOUR: &str = "\
import resource, time
resource.setrlimit(resource.RLIMIT_DATA, (600 << 20, 600 << 20))
for round in range(60):
    held = []
    for piece in range(30):
        held.append(b'x' * 10_000_000)
        time.sleep(0.02)
    del held
    with open('rounds', 'a') as file:
        file.write('.')
";

#[test]
fn a_leak_in_small_pieces_leaves_room_for_its_handler_in_every_python() {
    for python in pythons() {
        let scene = Scene::new();
        let script = scene.script("train.py", SMALL_PIECES);
        let mut run = scene.run("200MB");
        let ended = scene.finish(run.arg("--").arg(&python).arg(&script), LIMIT);
        let line = line_of(&script, "# the leak");
        ended
            .exits(0)
            .prints(&format!("line {line}, in <module>"))
            .prints("going on");
    }
}

/// The handler needs a module that is not loaded yet, when there is no room for anything.
const SMALL_PIECES: &str = "\
history = []
try:
    while len(history) < 1500000:
        history.append(bytes(300))  # the leak
except MemoryError:
    import traceback
    text = traceback.format_exc()
    history.clear()
    print(text)
    print('going on')
";

#[test]
fn fifty_megabytes_are_saved_at_the_wall_in_every_python() {
    for python in pythons() {
        for leak in ["bytes(300)", "bytearray(1_000_000)"] {
            let scene = Scene::new();
            let script = scene.script("train.py", &SAVES_AT_THE_WALL.replace("LEAK", leak));
            let mut run = scene.run("300MB");
            scene
                .finish(run.arg("--").arg(&python).arg(&script), LIMIT)
                .exits(0)
                .prints("50000000 of it again");
        }
    }
}

/// Saves while it still holds everything that brought it to the wall.
const SAVES_AT_THE_WALL: &str = "\
import os
weights = [os.urandom(1000000) for _ in range(50)]
history = []
try:
    while len(history) < 1500000:
        history.append(LEAK)
except MemoryError:
    import pickle
    with open('model.pkl', 'wb') as file:
        pickle.dump(weights, file)
    history.clear()
    with open('model.pkl', 'rb') as file:
        again = pickle.load(file)
    assert again == weights
    print(sum(map(len, again)), 'of it again')
";

fn peak(scene: &Scene) -> u64 {
    let verdict = scene.verdict();
    verdict["peak"]["tree_bytes"]
        .as_u64()
        .unwrap_or_else(|| panic!("no peak: {verdict}"))
}

#[test]
fn the_command_has_a_niceness_of_10_unless_told_otherwise() {
    let scene = Scene::new();
    let nice = |ended: support::Ended| ended.exits(0).stdout.trim().parse::<i32>().unwrap();
    let ours = nice(scene.finish(&mut std::process::Command::new("nice"), LIMIT));
    for (flags, more) in [(&[][..], 10), (&["--nice", "3"], 3), (&["--nice", "0"], 0)] {
        let mut run = scene.run("200MB");
        run.env_remove("ANTIFREEZE_NICE");
        let ended = scene.finish(run.args(flags).args(["--", "nice"]), LIMIT);
        assert_eq!(nice(ended), (ours + more).min(19));
    }
}
