//! What is left of a run when those who guard it are killed: the trainer goes on, paused or not, without a limit that
//! nobody would lift, and no cgroup stays behind. And what an `attach` leaves in the processes that it guarded.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::Scene;

const LIMIT: Duration = Duration::from_secs(90);

/// Prints numbers until it is told to end, and starts a child in which no cushion is.
const COUNT: &str = "
import os, subprocess, sys, time
environment = {name: value for name, value in os.environ.items() if name != 'LD_PRELOAD'}
child = subprocess.Popen(['sleep', '600'], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
open('child', 'w').write('%d\\n' % child.pid)
open('pid', 'w').write('%d\\n' % os.getpid())
number = 0
while not os.path.exists('over'):
    print(number, flush=True)
    number += 1
    time.sleep(0.02)
child.kill()
child.wait()
open('finished', 'w').write(str(number))
sys.exit(7)
";

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid as i32).expect("a process number");
    // It may have ended by itself, being of no more use.
    let _ = kill_process(pid, Signal::KILL);
}

fn number_in(scene: &Scene, name: &str) -> Option<u32> {
    let text = fs::read_to_string(scene.path(name)).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

fn numbers(scene: &Scene) -> Vec<u32> {
    let text = fs::read_to_string(scene.path("stdout")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The processes of the scene with this short name.
fn named(scene: &Scene, name: &str) -> Vec<u32> {
    let is_it = |pid: &u32| {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    scene.living().into_iter().filter(is_it).collect()
}

fn the_one(scene: &Scene, name: &str) -> u32 {
    match named(scene, name)[..] {
        [pid] => pid,
        ref many => panic!("one {name}: {many:?}"),
    }
}

/// The front: of the processes of the program, the one with the guard below it.
fn front(scene: &Scene) -> u32 {
    the_one(scene, "antifreeze")
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// The soft limit on data as /proc shows it.
fn soft_limit(pid: u32) -> Option<String> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max data size"))?;
    line.split_whitespace().nth(3).map(str::to_owned)
}

fn own_soft_limit() -> String {
    match getrlimit(Resource::Data).current {
        Some(bytes) => bytes.to_string(),
        None => "unlimited".to_owned(),
    }
}

/// The cgroups that were made for runs of this scene.
fn cgroups(scene: &Scene) -> Vec<PathBuf> {
    let runs = fs::read_dir(scene.path("home/runs")).into_iter().flatten();
    let runs = runs.flatten().map(|run| run.file_name());
    let prefixes: Vec<String> = runs
        .map(|run| format!("antifreeze-{}-", run.to_string_lossy()))
        .collect();
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                found.push(entry.path());
            }
            folders.push(entry.path());
        }
    }
    found
}

/// Starts the trainer in a session of its own, as cron and CI do, and waits for its first lines. Returns the program that
/// waits for it.
fn started(scene: &Scene, words: &[&str], around: Option<&Cgroup>) -> Child {
    let script = scene.script("count.py", COUNT);
    let mut command = scene.command("sh");
    let enter = match around {
        Some(cgroup) => format!("echo $$ > {}/cgroup.procs; ", cgroup.0.display()),
        None => String::new(),
    };
    command.args(["-c", &format!("{enter}exec setsid -w \"$@\""), "sh"]);
    command.arg(env!("CARGO_BIN_EXE_antifreeze")).arg("run");
    command.args(words).args(["--", "python3"]).arg(script);
    let child = scene.start(&mut command);
    scene.until("the first numbers", LIMIT, || numbers(scene).len() > 5);
    child
}

/// Lets the trainer end, and looks at all that it has printed.
fn finish(scene: &Scene) {
    fs::write(scene.path("over"), "").unwrap();
    scene.until("the end of the trainer", LIMIT, || {
        fs::read_to_string(scene.path("finished")).is_ok_and(|text| !text.is_empty())
    });
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
    let count = fs::read_to_string(scene.path("finished")).unwrap();
    let count = count.parse().unwrap();
    assert_eq!(numbers(scene), (0..count).collect::<Vec<u32>>());
    scene.until("the cgroups are removed", LIMIT, || {
        cgroups(scene).is_empty()
    });
}

/// A cgroup with a limit of memory, in which others can grow.
struct Cgroup(PathBuf);

impl Cgroup {
    /// None where we may not make one.
    fn make(scene: &Scene) -> Option<Cgroup> {
        let old = Path::new("/sys/fs/cgroup/memory");
        let (root, name) = match old.is_dir() {
            true => (old, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let unique = scene.path("").file_name()?.to_string_lossy().into_owned();
        let folder = root.join(unique);
        fs::create_dir(&folder).ok()?;
        let cgroup = Cgroup(folder);
        fs::write(cgroup.0.join(name), "300M").ok()?;
        Some(cgroup)
    }

    /// Takes more and more of it, again and again, until its standard input ends; then it keeps what it has.
    fn fill(&self, scene: &Scene) -> Child {
        let script = "
import select, sys, time
held = []
while not select.select([sys.stdin], [], [], 0.1)[0]:
    held.append(b'x' * (3_000_000 if held else 150_000_000))
    if len(held) > 20:
        held.clear()
time.sleep(1000)
";
        let mut command = scene.command("sh");
        let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", self.0.display());
        command.args(["-c", &enter, "sh", "python3", "-c", script]);
        command.stdin(Stdio::piped()).spawn().unwrap()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A paused trainer in a session without a shell with job control, and the neighbour for which it was paused.
fn paused(scene: &Scene, cgroup: &Cgroup) -> (Child, Child, u32) {
    let front = started(scene, &["--reserve", "100MB"], Some(cgroup));
    let (neighbour, trainer) = pause(scene, cgroup);
    (front, neighbour, trainer)
}

/// A neighbour that takes the trainer's memory until it is paused.
fn pause(scene: &Scene, cgroup: &Cgroup) -> (Child, u32) {
    let mut neighbour = cgroup.fill(scene);
    let trainer = number_in(scene, "pid").unwrap();
    scene.until("the pause", LIMIT, || state(trainer) == Some('T'));
    drop(neighbour.stdin.take());
    (neighbour, trainer)
}

fn end(mut neighbour: Child) {
    neighbour.kill().unwrap();
    neighbour.wait().unwrap();
}

#[test]
fn a_paused_trainer_survives_whoever_is_killed() {
    for victims in [
        &["antifreeze-guar"][..],
        &["antifreeze-guar", "af-keeper"],
        &["antifreeze", "antifreeze-guar"],
        &["antifreeze-guar", "antifreeze"],
        &["antifreeze", "antifreeze-guar", "af-keeper"],
        &["af-keeper", "antifreeze-guar", "antifreeze"],
        &["antifreeze", "antifreeze-guar", "af-keeper-2"],
    ] {
        let scene = Scene::new();
        let Some(cgroup) = Cgroup::make(&scene) else {
            return eprintln!("skipped: only root can limit the memory of a cgroup");
        };
        let (mut waiting, neighbour, trainer) = paused(&scene, &cgroup);
        let pids: Vec<u32> = victims.iter().map(|name| named(&scene, name)[0]).collect();
        pids.iter().for_each(|pid| kill(*pid));
        let before = numbers(&scene).len();
        end(neighbour);
        scene.until("it goes on", LIMIT, || {
            assert!(state(trainer).is_some(), "it was ended: {victims:?}");
            numbers(&scene).len() > before + 5
        });
        finish(&scene);
        waiting.wait().unwrap();
    }
}

/// All at once could not be survived: for a moment nothing holds the process group together but the guard.
#[test]
fn a_paused_trainer_survives_its_guard_after_keeper_and_anchors_were_replaced() {
    let scene = Scene::new();
    let Some(cgroup) = Cgroup::make(&scene) else {
        return eprintln!("skipped: only root can limit the memory of a cgroup");
    };
    let (mut waiting, neighbour, trainer) = paused(&scene, &cgroup);
    let helpers = || [named(&scene, "af-anchor"), named(&scene, "af-keeper-2")].concat();
    let killed = helpers();
    killed.iter().for_each(|pid| kill(*pid));
    scene.until("their replacement", LIMIT, || {
        let there = helpers();
        there.len() == killed.len() && there.iter().all(|pid| !killed.contains(pid))
    });
    kill(the_one(&scene, "antifreeze-guar"));
    let before = numbers(&scene).len();
    end(neighbour);
    scene.until("it goes on", LIMIT, || {
        assert!(state(trainer).is_some(), "it was ended");
        numbers(&scene).len() > before + 5
    });
    finish(&scene);
    waiting.wait().unwrap();
}

/// The session leader is killed last, while nobody but the keepers is left.
#[test]
fn a_paused_trainer_survives_its_session_leader() {
    let scene = Scene::new();
    let Some(cgroup) = Cgroup::make(&scene) else {
        return eprintln!("skipped: only root can limit the memory of a cgroup");
    };
    let script = scene.script("count.py", COUNT);
    let mut command = scene.command("sh");
    command.args([
        "-c",
        &format!(
            "echo $$ > {}/cgroup.procs; exec setsid -w sh -c '\"$@\" & echo $$ > leader; wait' \"$@\"",
            cgroup.0.display()
        ),
        "sh",
        "sh",
        env!("CARGO_BIN_EXE_antifreeze"),
        "run",
        "--reserve",
        "100MB",
        "--",
        "python3",
    ]);
    let mut waiting = scene.start(command.arg(script));
    scene.until("the first numbers", LIMIT, || numbers(&scene).len() > 5);
    let (neighbour, _) = pause(&scene, &cgroup);
    let leader = number_in(&scene, "leader").unwrap();
    for pid in [the_one(&scene, "antifreeze-guar"), front(&scene), leader] {
        kill(pid);
    }
    end(neighbour);
    finish(&scene);
    waiting.wait().unwrap();
}

#[test]
fn with_front_and_guard_killed_every_process_has_its_own_limit_back() {
    let scene = Scene::new();
    let mut waiting = started(&scene, &["--budget", "300MB"], None);
    let child = number_in(&scene, "child").unwrap();
    let usual = own_soft_limit();
    scene.until("the limit", LIMIT, || {
        soft_limit(child) != Some(usual.clone())
    });
    kill(front(&scene));
    kill(the_one(&scene, "antifreeze-guar"));
    scene.until("the limits are gone", LIMIT, || {
        [child, number_in(&scene, "pid").unwrap()]
            .iter()
            .all(|pid| soft_limit(*pid) == Some(usual.clone()))
    });
    finish(&scene);
    waiting.wait().unwrap();
}

#[test]
fn after_six_deaths_of_the_guard_every_process_has_its_own_limit_back() {
    let scene = Scene::new();
    let mut waiting = started(&scene, &["--budget", "300MB"], None);
    let child = number_in(&scene, "child").unwrap();
    let usual = own_soft_limit();
    let mut before = 0;
    for _ in 0..6 {
        scene.until("a guard", LIMIT, || {
            let guards = named(&scene, "antifreeze-guar");
            matches!(guards[..], [guard] if guard != before && state(guard) == Some('S'))
                && soft_limit(child) != Some(usual.clone())
        });
        before = the_one(&scene, "antifreeze-guar");
        kill(before);
    }
    scene.until("the limits are gone", LIMIT, || {
        [child, number_in(&scene, "pid").unwrap()]
            .iter()
            .all(|pid| soft_limit(*pid) == Some(usual.clone()))
    });
    finish(&scene);
    let ended = scene.ended(waiting.wait().unwrap());
    ended.exits(7).tells("could not be replaced");
}

/// A keeper that is killed leaves nothing to the guard that it would wait for.
#[test]
fn a_keeper_that_is_killed_is_replaced_and_the_run_ends_as_ever() {
    for victim in ["af-keeper", "af-keeper-2", "af-anchor"] {
        let scene = Scene::new();
        let mut waiting = started(&scene, &["--budget", "300MB"], None);
        let roles = ["af-keeper", "af-keeper-2", "af-anchor"];
        let count = || roles.map(|name| named(&scene, name).len());
        scene.until("all of them", LIMIT, || count() == [1, 1, 2]);
        let killed = named(&scene, victim)[0];
        kill(killed);
        scene.until("another", LIMIT, || {
            !named(&scene, victim).contains(&killed) && count() == [1, 1, 2]
        });
        finish(&scene);
        let ended = scene.ended(waiting.wait().unwrap());
        ended.exits(7).never_tells("still run");
    }
}

/// The limit and the score of a process that is attached to.
fn marks(pid: u32) -> (Option<String>, String) {
    let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj"));
    (soft_limit(pid), score.unwrap_or_default())
}

/// A shell with a soft limit of its own that starts a child when it is told to, and an attach that guards it.
struct Attached {
    theirs: Child,
    before: (Option<String>, String),
    attach: Child,
}

impl Attached {
    fn start(scene: &Scene) -> Attached {
        let script = "sleep 600 & echo $! > early; while [ ! -e born ]; do sleep 0.05; done; \
                      sleep 600 & echo $! > late; wait";
        let mut theirs = scene.command("sh");
        let theirs = theirs.args(["-c", script]).spawn().unwrap();
        let limit = format!("--pid={}", theirs.id());
        let mut set = Command::new("prlimit");
        let status = set.args([&limit, "--data=5000000000:"]).status();
        assert!(status.unwrap().success());
        let before = marks(theirs.id());
        let mut attach = scene.antifreeze();
        attach.args(["attach", "--budget", "500MB", &theirs.id().to_string()]);
        let attach = scene.start(&mut attach);
        let attached = Attached {
            theirs,
            before,
            attach,
        };
        scene.until("the limit and the score", LIMIT, || {
            let now = marks(attached.theirs.id());
            now.0 != attached.before.0 && now.1 != attached.before.1
        });
        fs::write(scene.path("born"), "").unwrap();
        scene.until("a child", LIMIT, || {
            number_in(scene, "late").is_some_and(|late| marks(late).0 != attached.before.0)
        });
        attached
    }

    /// Waits until all is put back as it was, in what was there before and what was born meanwhile.
    fn put_back(mut self, scene: &Scene) {
        let late = number_in(scene, "late").unwrap();
        scene.until("all is put back", LIMIT, || {
            [self.theirs.id(), late]
                .iter()
                .all(|pid| marks(*pid) == self.before)
        });
        assert!(self.theirs.try_wait().unwrap().is_none());
        self.theirs.kill().unwrap();
        self.theirs.wait().unwrap();
        self.attach.wait().unwrap();
    }
}

#[test]
fn a_detach_puts_back_what_was_and_what_was_inherited_since() {
    let scene = Scene::new();
    let attached = Attached::start(&scene);
    kill_process(Pid::from_child(&attached.attach), Signal::TERM).unwrap();
    attached.put_back(&scene);
}

/// The room is much larger than what the process allows itself.
#[test]
fn an_attach_does_not_raise_a_limit_that_the_process_had() {
    let scene = Scene::new();
    let mut theirs = scene.command("sleep").arg("600").spawn().unwrap();
    let limit = format!("--pid={}", theirs.id());
    let mut set = Command::new("prlimit");
    let status = set.args([&limit, "--data=300000000:"]).status();
    assert!(status.unwrap().success());
    let before = soft_limit(theirs.id());
    let mut attach = scene.antifreeze();
    attach.args(["attach", "--budget", "2GB", &theirs.id().to_string()]);
    let mut attach = scene.start(&mut attach);
    // It is said once the first limits are set.
    scene.until("a guard", LIMIT, || {
        let stderr = fs::read_to_string(scene.path("stderr"));
        stderr.is_ok_and(|stderr| stderr.contains("guarding"))
    });
    assert_eq!(soft_limit(theirs.id()), before);
    kill_process(Pid::from_child(&attach), Signal::TERM).unwrap();
    attach.wait().unwrap();
    assert_eq!(soft_limit(theirs.id()), before);
    theirs.kill().unwrap();
    theirs.wait().unwrap();
}

#[test]
fn a_detach_after_the_guard_was_killed_puts_back_what_was_before_the_first_guard() {
    let scene = Scene::new();
    let attached = Attached::start(&scene);
    let guard = the_one(&scene, "antifreeze-guar");
    kill(guard);
    scene.until("another guard", LIMIT, || {
        let stderr = fs::read_to_string(scene.path("stderr")).unwrap_or_default();
        stderr.contains("replaced")
    });
    kill_process(Pid::from_child(&attached.attach), Signal::TERM).unwrap();
    attached.put_back(&scene);
}

#[test]
fn an_attach_that_is_killed_with_its_guard_leaves_nothing() {
    let scene = Scene::new();
    let attached = Attached::start(&scene);
    kill(attached.attach.id());
    kill(the_one(&scene, "antifreeze-guar"));
    attached.put_back(&scene);
}
