//! Things that go wrong: bad commands, signals, dead guards and fronts, odd surroundings.
//! Whatever happens, the command's own output and exit status come through.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use support::Scene;

const LIMIT: Duration = Duration::from_secs(60);

/// Prints a number every 50 ms, slowly enough to be interrupted anywhere, and ends when it is told to.
const COUNT: &str = "
import os, sys, time
for number in range(int(sys.argv[1])):
    print(number, flush=True)
    time.sleep(0.05)
while not os.path.exists('over'):
    time.sleep(0.05)
sys.exit(7)
";

fn python(scene: &Scene, script: &str, arguments: &[&str]) -> Command {
    let path = scene.script("script.py", script);
    let mut command = scene.antifreeze();
    command
        .args(["run", "--", "python3"])
        .arg(path)
        .args(arguments);
    command
}

fn numbers(scene: &Scene) -> Vec<u32> {
    let text = fs::read_to_string(scene.path("stdout")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The guard's own word about itself in the only run's folder.
fn guard_pid(scene: &Scene) -> Option<u32> {
    let run = fs::read_dir(scene.path("home/runs"))
        .ok()?
        .flatten()
        .next()?;
    let text = fs::read_to_string(run.path().join("guard")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("a process number");
    rustix::process::kill_process(pid, signal).expect("it is ours");
}

fn started(scene: &Scene, command: &mut Command) -> (Child, u32) {
    let child = scene.start(command);
    scene.until("the first numbers", LIMIT, || numbers(scene).len() > 5);
    let guard = guard_pid(scene).expect("the guard said who it is");
    (child, guard)
}

/// Lets the command end.
fn over(scene: &Scene) {
    fs::write(scene.path("over"), "").unwrap();
}

/// What `wait` gives for the front, and all that the command printed by its end.
fn wait_for_count(scene: &Scene, count: u32) {
    scene.until("the last number", LIMIT, || {
        numbers(scene).last() == Some(&(count - 1))
    });
    assert_eq!(
        numbers(scene),
        (0..count).collect::<Vec<_>>(),
        "nothing lost, nothing twice"
    );
}

#[test]
fn a_command_that_is_not_there_is_named_and_gives_127() {
    let scene = Scene::new();
    let ended = scene.finish(
        scene.antifreeze().args(["run", "--", "no-such-command"]),
        LIMIT,
    );
    ended
        .exits(127)
        .tells("antifreeze: no-such-command: command not found");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended}");
}

#[test]
fn a_command_that_cannot_be_run_gives_126() {
    let scene = Scene::new();
    let path = scene.script("plain.txt", "no program");
    scene
        .finish(scene.antifreeze().args(["run", "--"]).arg(path), LIMIT)
        .exits(126);
}

#[test]
fn a_mistake_in_the_arguments_gives_2() {
    let scene = Scene::new();
    for wrong in [
        &["run"][..],
        &["run", "--budget", "lots", "--", "true"],
        &["dance"],
    ] {
        scene.finish(scene.antifreeze().args(wrong), LIMIT).exits(2);
    }
    let all = ["run", "--reserve", "100%", "--", "true"];
    scene.finish(scene.antifreeze().args(all), LIMIT).exits(2);
}

#[test]
fn exit_status_and_signals_come_through() {
    let scene = Scene::new();
    let shell = |text| {
        let mut command = scene.antifreeze();
        command.args(["run", "-q", "--", "sh", "-c", text]);
        scene.finish(&mut command, LIMIT)
    };
    shell("exit 0").exits(0);
    shell("exit 41").exits(41);
    shell("kill -TERM $$").is_ended_by(15);
    shell("kill -SEGV $$").is_ended_by(11);
}

#[test]
fn a_signal_sent_to_the_front_reaches_the_command() {
    let scene = Scene::new();
    let script = "
import signal, sys, time
def end(number, frame):
    print('got', number, flush=True)
    sys.exit(9)
signal.signal(signal.SIGTERM, end)
print('ready', flush=True)
time.sleep(60)
";
    let mut child = scene.start(&mut python(&scene, script, &[]));
    let ready =
        || fs::read_to_string(scene.path("stdout")).is_ok_and(|text| text.contains("ready"));
    scene.until("the handler", LIMIT, ready);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = scene.ended(child.wait().unwrap());
    ended.exits(9).prints("got 15");
}

#[test]
fn a_killed_guard_is_replaced_and_the_command_notices_nothing() {
    let scene = Scene::new();
    let (mut child, guard) = started(&scene, &mut python(&scene, COUNT, &["60"]));
    kill(guard);
    scene.until("another guard", LIMIT, || {
        guard_pid(&scene).is_some_and(|pid| pid != guard)
    });
    over(&scene);
    let ended = scene.ended(child.wait().unwrap());
    ended.exits(7).tells("replaced");
    wait_for_count(&scene, 60);
    assert!(scene.shown().contains("exit code 7"), "{}", scene.shown());
}

/// A guard that is killed before it has forked the command leaves the command without a guard; later it is replaced.
/// Which of the two happened is reported, and the command runs once in both cases.
#[test]
fn a_guard_that_is_killed_while_it_starts_is_replaced_or_the_command_runs_without_one() {
    for delay in 0..12 {
        let scene = Scene::new();
        let script = "echo begun >> begun; while [ ! -e over ]; do sleep 0.02; done; exit 6";
        let mut run = scene.antifreeze();
        let mut child = scene.start(run.args(["run", "--", "sh", "-c", script]));
        let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm"));
        let is_guard = |pid: &u32| name(*pid).is_ok_and(|name| name == "antifreeze-guar\n");
        // Without a rest: its start takes a few milliseconds.
        let guard = loop {
            if let Some(guard) = scene.living().into_iter().find(is_guard) {
                break guard;
            }
            assert!(child.try_wait().unwrap().is_none(), "no guard was started");
        };
        std::thread::sleep(Duration::from_millis(delay));
        kill(guard);
        let said = || fs::read_to_string(scene.path("stderr")).unwrap_or_default();
        scene.until("a word about it", LIMIT, || {
            said().contains("runs without a guard") || said().contains("replaced")
        });
        over(&scene);
        let ended = scene.ended(child.wait().unwrap());
        ended.exits(6).never_tells("could not be replaced");
        let begun = fs::read_to_string(scene.path("begun")).unwrap();
        assert_eq!(begun, "begun\n");
        if said().contains("replaced") {
            assert!(scene.shown().contains("exit code 6"), "{}", scene.shown());
        }
    }
}

#[test]
fn a_killed_front_loses_none_of_the_output() {
    let scene = Scene::new();
    let (mut child, _) = started(&scene, &mut python(&scene, COUNT, &["60"]));
    child.kill().unwrap();
    child.wait().unwrap();
    over(&scene);
    wait_for_count(&scene, 60);
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
    assert!(scene.shown().contains("exit code 7"), "{}", scene.shown());
}

#[test]
fn what_is_printed_last_is_explained_although_the_front_comes_to_it_late() {
    let scene = Scene::new();
    let last = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    let script = format!("while [ ! -e go ]; do sleep 0.05; done; echo '{last}'; exit 1");
    let mut command = scene.antifreeze();
    let mut front = scene.start(command.args(["run", "--", "sh", "-c", &script]));
    scene.until("the guard", LIMIT, || guard_pid(&scene).is_some());
    signal(front.id(), rustix::process::Signal::STOP);
    fs::write(scene.path("go"), "").unwrap();
    let guard = guard_pid(&scene).unwrap();
    scene.until("the end of the command", LIMIT, || {
        !scene.living().iter().any(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sh\n")
        })
    });
    // The guard itself stays, because the front may still be killed before it has passed the output on.
    scene.until("the end of the record", LIMIT, || {
        let threads = fs::read_dir(format!("/proc/{guard}/task")).unwrap();
        let mut names = threads.flatten().map(|thread| thread.path().join("comm"));
        !names.any(|name| fs::read_to_string(name).is_ok_and(|name| name == "writer\n"))
    });
    signal(front.id(), rustix::process::Signal::CONT);
    let ended = scene.ended(front.wait().unwrap());
    ended
        .exits(1)
        .prints(last)
        .tells("why      out of GPU memory");
}

#[test]
fn with_front_and_guard_killed_the_command_goes_on_to_its_end() {
    let scene = Scene::new();
    let (mut child, guard) = started(&scene, &mut python(&scene, COUNT, &["80"]));
    // The front first: it would start another guard.
    child.kill().unwrap();
    kill(guard);
    child.wait().unwrap();
    over(&scene);
    wait_for_count(&scene, 80);
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}

/// The command waits on a pipe until it is let go. If the keeper held it too, a guard that dies before that would
/// leave the command waiting for ever.
#[test]
fn the_keeper_holds_no_pipe_alone() {
    let scene = Scene::new();
    let (mut child, _) = started(&scene, &mut python(&scene, COUNT, &["20"]));
    let pipes = |pid: u32| -> Vec<String> {
        let open = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let links = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        let names = links.map(|link| link.to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("pipe:")).collect()
    };
    let is_keeper = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "af-keeper\n")
    };
    let (keepers, others): (Vec<u32>, Vec<u32>) = scene.living().into_iter().partition(is_keeper);
    let shared: Vec<String> = others.into_iter().flat_map(pipes).collect();
    let [keeper] = keepers[..] else {
        panic!("one keeper: {keepers:?}")
    };
    assert!(!pipes(keeper).is_empty());
    for pipe in pipes(keeper) {
        assert!(shared.contains(&pipe), "{pipe}");
    }
    over(&scene);
    child.wait().unwrap();
}

#[test]
fn with_nobody_on_guard_the_cushion_lifts_the_wall_by_itself() {
    let scene = Scene::new();
    let script = "
import os, time
for number in range(6):
    print(number, flush=True)
    time.sleep(0.05)
try:
    bytearray(400_000_000)
    print('no wall', flush=True)
except MemoryError:
    print('walled', flush=True)
while not os.path.exists('over'):
    time.sleep(0.05)
for _ in range(600):
    try:
        print(len(bytearray(400_000_000)), flush=True)
        break
    except MemoryError:
        time.sleep(0.1)
";
    let path = scene.script("script.py", script);
    let mut command = scene.run("200MB");
    let (mut child, guard) = started(&scene, command.args(["--", "python3"]).arg(path));
    let stdout = || fs::read_to_string(scene.path("stdout")).unwrap_or_default();
    scene.until("the wall", LIMIT, || stdout().contains("wall"));
    child.kill().unwrap();
    kill(guard);
    child.wait().unwrap();
    over(&scene);
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
    assert!(
        stdout().contains("walled") && stdout().contains("400000000"),
        "{}",
        stdout()
    );
}

#[test]
fn without_a_place_for_the_record_the_command_is_guarded_all_the_same() {
    let scene = Scene::new();
    let file = scene.script("not-a-folder", "");
    let mut command = scene.antifreeze();
    command
        .env("ANTIFREEZE_HOME", file.join("home"))
        .args(["run", "--", "sh", "-c", "exit 5"]);
    scene
        .finish(&mut command, LIMIT)
        .exits(5)
        .tells("no record of this run");
}

#[test]
fn an_ordinary_user_is_guarded_too() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can become somebody else");
    }
    let scene = Scene::new();
    let folder = scene.path("");
    let nobody = 65534;
    std::os::unix::fs::chown(&folder, Some(nobody), Some(nobody)).unwrap();
    let binary = scene.path("antifreeze");
    fs::copy(env!("CARGO_BIN_EXE_antifreeze"), &binary).unwrap();
    let mut command = scene.command(&binary);
    command
        .uid(nobody)
        .gid(nobody)
        .args(["run", "--budget", "300MB", "--", "python3", "-c"]);
    command.arg(
        "
try:
    bytearray(500_000_000)
except MemoryError:
    print('caught')
",
    );
    scene.finish(&mut command, LIMIT).exits(0).prints("caught");
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let scene = Scene::new();
    let mut command = scene.command("sh");
    command.args([
        "-c",
        "trap '' HUP; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_antifreeze"),
    ]);
    command.args(["run", "-q", "--", "python3", "-c"]);
    command.arg("import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)");
    scene.finish(&mut command, LIMIT).exits(0).prints("True");
}

#[test]
fn a_closed_output_is_closed_for_the_command_too() {
    let scene = Scene::new();
    let mut command = scene.command("sh");
    command.args([
        "-c",
        "exec \"$@\" >&-",
        "sh",
        env!("CARGO_BIN_EXE_antifreeze"),
    ]);
    command.args(["run", "-q", "--", "sh", "-c", "echo lost; exit 3"]);
    scene.finish(&mut command, LIMIT).exits(3);
}

#[test]
fn a_reader_that_goes_away_ends_the_writer() {
    let scene = Scene::new();
    let mut command = scene.command("sh");
    command.args([
        "-c",
        "\"$@\" | head -n 1",
        "sh",
        env!("CARGO_BIN_EXE_antifreeze"),
    ]);
    command.args(["run", "-q", "--", "yes"]);
    scene.finish(&mut command, LIMIT).exits(0).prints("y");
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}

#[test]
fn much_output_comes_through_unchanged() {
    let scene = Scene::new();
    let script = "
import sys
for number in range(2_000_000):
    sys.stdout.write('%d\\n' % number)
";
    scene
        .finish(&mut python(&scene, script, &[]), LIMIT)
        .exits(0);
    let text = fs::read_to_string(scene.path("stdout")).unwrap();
    assert!(
        text.lines()
            .eq((0..2_000_000).map(|number| number.to_string()))
    );
}

#[test]
fn a_crowd_of_processes_is_guarded_and_ends() {
    let scene = Scene::new();
    let script = "
import os, time
wait, go = os.pipe()
children = []
for _ in range(700):
    pid = os.fork()
    if pid == 0:
        os.close(go)
        os.read(wait, 1)
        os._exit(0)
    children.append(pid)
time.sleep(10)
os.close(go)
for pid in children:
    os.waitpid(pid, 0)
print('all', len(children))
";
    let ended = scene.finish(&mut python(&scene, script, &[]), LIMIT);
    ended.exits(0).prints("all 700");
    let shown = scene.shown();
    assert!(shown.contains("more than the guard tracks"), "{shown}");
}

#[test]
fn a_hostile_process_name_is_shown_harmlessly() {
    let scene = Scene::new();
    let script = "
open('/proc/self/comm', 'wb').write(b'\\x1b[2J) R 1 (\\n')
try:
    bytearray(900_000_000)
except MemoryError:
    print('caught')
";
    let path = scene.script("script.py", script);
    let mut command = scene.run("300MB");
    let ended = scene.finish(command.args(["--", "python3"]).arg(path), LIMIT);
    ended.exits(0).prints("caught").tells("refused");
    assert!(!ended.stderr.contains('\x1b'), "{ended}");
}

#[test]
fn a_grandchild_that_outlives_the_command_is_still_guarded() {
    let scene = Scene::new();
    let script = "
import os, sys, time
if os.fork():
    sys.exit(4)
os.setsid()
if os.fork():
    os._exit(0)
time.sleep(2)
try:
    bytearray(900_000_000)
    print('free')
except MemoryError:
    print('walled')
";
    let path = scene.script("script.py", script);
    let mut command = scene.run("300MB");
    scene
        .finish(command.args(["--", "python3"]).arg(path), LIMIT)
        .exits(4);
    let stdout = || fs::read_to_string(scene.path("stdout")).unwrap_or_default();
    scene.until("its words", LIMIT, || stdout().ends_with('\n'));
    assert_eq!(stdout(), "walled\n");
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}

#[test]
fn old_runs_are_listed_shown_and_pruned() {
    let scene = Scene::new();
    for code in ["0", "3"] {
        let exit = format!("exit {code}");
        scene.finish(
            scene
                .antifreeze()
                .args(["run", "-q", "--", "sh", "-c", &exit]),
            LIMIT,
        );
    }
    let list = scene.finish(scene.antifreeze().arg("runs"), LIMIT);
    list.exits(0).prints("finished").prints("failed");
    let rows = scene.finish(scene.antifreeze().args(["runs", "--json"]), LIMIT);
    let newest: serde_json::Value =
        serde_json::from_str(rows.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(newest["end"], "failed", "the newest first");
    let show = scene.finish(scene.antifreeze().args(["runs", "show", "--json"]), LIMIT);
    let verdict: serde_json::Value = serde_json::from_str(&show.stdout).unwrap();
    assert_eq!(
        (&verdict["schema"], &verdict["end"]["exit_code"]),
        (&1.into(), &3.into())
    );
    scene
        .finish(
            scene.antifreeze().args(["runs", "prune", "--keep", "1"]),
            LIMIT,
        )
        .prints("removed 1");
    assert_eq!(fs::read_dir(scene.path("home/runs")).unwrap().count(), 1);
    scene
        .finish(scene.antifreeze().args(["runs", "show", "nonsense"]), LIMIT)
        .exits(2)
        .tells("no run");
}

#[test]
fn nothing_is_left_of_a_run_but_its_folder() {
    let scene = Scene::new();
    scene
        .finish(scene.antifreeze().args(["run", "-q", "--", "true"]), LIMIT)
        .exits(0);
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
    let left: Vec<_> = fs::read_dir(scene.path("home"))
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(
        left.iter().all(|name| ["runs", "lib"]
            .iter()
            .any(|known| Path::new(known) == Path::new(name))),
        "{left:?}"
    );
}

#[test]
fn a_process_of_another_user_has_no_wall_and_that_is_said_once() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can make a setuid program");
    }
    let scene = Scene::new();
    std::os::unix::fs::chown(scene.path(""), Some(65534), Some(65534)).unwrap();
    fs::set_permissions(scene.path(""), Permissions::from_mode(0o755)).unwrap();
    for (from, to) in [
        ("/bin/cat", "cat"),
        (env!("CARGO_BIN_EXE_antifreeze"), "antifreeze"),
    ] {
        fs::copy(from, scene.path(to)).unwrap();
    }
    fs::set_permissions(scene.path("cat"), Permissions::from_mode(0o4755)).unwrap();
    let mut command = scene.command(scene.path("antifreeze"));
    command
        .uid(65534)
        .gid(65534)
        .args(["run", "--"])
        .arg(scene.path("cat"))
        .stdin(std::process::Stdio::piped());
    let mut child = scene.start(&mut command);
    let input = child.stdin.take();
    let said = || fs::read_to_string(scene.path("stderr")).unwrap_or_default();
    scene.until("the word about it", LIMIT, || {
        said().contains("no wall for a process of another user")
    });
    drop(input);
    let ended = scene.ended(child.wait().unwrap());
    ended.exits(0);
    assert_eq!(ended.stderr.matches("no wall").count(), 1, "{ended}");
}

#[test]
fn the_desktop_is_told_when_a_run_is_stopped() {
    let scene = Scene::new();
    let tool = scene.script(
        "notify-send",
        "#!/bin/sh\necho \"$@\" >> \"$(dirname \"$0\")/told\"\n",
    );
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        scene.path("").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = scene.run("200MB");
    command
        .env("PATH", path)
        .env("DISPLAY", ":9")
        .env("DBUS_SESSION_BUS_ADDRESS", "none");
    command
        .args(["--", "python3"])
        .arg(support::example("shared_memory.py"));
    scene.finish(&mut command, LIMIT).exits(75);
    let told = || fs::read_to_string(scene.path("told")).unwrap_or_default();
    scene.until("the word on the desktop", LIMIT, || {
        told().contains("asked the run to stop")
    });
}

#[test]
fn as_the_first_process_of_a_container_it_passes_signals_on_and_ends() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can make a process namespace here");
    }
    let scene = Scene::new();
    let mut command = scene.command("unshare");
    command.args([
        "--pid",
        "--fork",
        "--mount-proc",
        env!("CARGO_BIN_EXE_antifreeze"),
    ]);
    command.args(["run", "-q", "--", "sh", "-c", "kill -TERM 1; sleep 30"]);
    // The kernel keeps the first process of a container from ending itself by a signal.
    scene.finish(&mut command, LIMIT).exits(128 + 15);
}
