//! `antifreeze attach` with real processes: what it refuses, and what it says at the end.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use support::{Ended, Scene};

const LIMIT: Duration = Duration::from_secs(90);

fn pid(child: &Child) -> String {
    child.id().to_string()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn attach(scene: &Scene, words: &[&str]) -> Ended {
    let mut command = scene.antifreeze();
    command.arg("attach").args(words);
    scene.finish(&mut command, LIMIT)
}

/// Starts an attach and waits until it guards.
fn guarding(scene: &Scene, words: &[&str]) -> Child {
    let mut command = scene.antifreeze();
    command.arg("attach").args(words);
    let child = scene.start(&mut command);
    scene.until("the opening line", LIMIT, || {
        fs::read_to_string(scene.path("stderr")).is_ok_and(|text| text.contains("guarding"))
    });
    child
}

fn wait(scene: &Scene, mut attach: Child) -> Ended {
    scene.until("the end of attach", LIMIT, || {
        attach.try_wait().unwrap().is_some()
    });
    scene.ended(attach.wait().unwrap())
}

/// As `ulimit -S -d` in the shell that started it.
fn set_soft_limit(child: &Child, bytes: u64) {
    let status = Command::new("prlimit")
        .arg(format!("--pid={}", child.id()))
        .arg(format!("--data={bytes}:"))
        .status();
    assert!(status.unwrap().success());
}

/// The lines of /proc/PID/limits and oom_score_adj that attach changes.
fn limits(child: &Child) -> (String, String) {
    let read = |name| fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap();
    let data = read("limits")
        .lines()
        .find(|line| line.starts_with("Max data size"))
        .unwrap()
        .to_owned();
    (data, read("oom_score_adj"))
}

/// The verdict as `runs show --json` has it, and the words of `explain`.
fn told(scene: &Scene) -> (serde_json::Value, String) {
    let say = |words: &[&str]| {
        let output = scene.antifreeze().args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let json = serde_json::from_str(&say(&["runs", "show", "--json"])).unwrap();
    (json, say(&["explain"]))
}

fn sleeper(scene: &Scene) -> Child {
    scene.command("sleep").arg("600").spawn().unwrap()
}

#[test]
fn the_first_process_is_refused_and_not_touched() {
    let scene = Scene::new();
    let limit = || fs::read_to_string("/proc/1/limits").unwrap_or_default();
    let before = limit();
    attach(&scene, &["1"])
        .exits(2)
        .tells("not attached: process 1 (")
        .tells("first process");
    attach(&scene, &["--yes", "--user", "root", "1"])
        .exits(2)
        .tells("first process");
    assert_eq!(limit(), before);
}

#[test]
fn a_kernel_thread_is_refused() {
    // The kernel's own are not seen in a container.
    let is_seen = fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
    if !is_seen {
        return eprintln!("skipped: no kernel thread is seen here");
    }
    attach(&Scene::new(), &["--user", "root", "--yes", "2"])
        .exits(2)
        .tells("is a kernel thread");
}

#[test]
fn what_started_the_command_is_refused() {
    let scene = Scene::new();
    let binary = env!("CARGO_BIN_EXE_antifreeze");
    // A shell that stays: an exec would make it the attach itself.
    let mut shell = scene.command("sh");
    shell.args(["-c", &format!("{binary} attach $$; exit $?")]);
    scene
        .finish(&mut shell, LIMIT)
        .exits(2)
        .tells("has started this command")
        .tells("antifreeze.guard()");
    attach(&scene, &[&std::process::id().to_string()])
        .exits(2)
        .tells("has started this command");
}

#[test]
fn a_number_without_a_process_is_said() {
    let scene = Scene::new();
    attach(&scene, &["4194300"])
        .exits(2)
        .tells("there is no process 4194300");
    let mut ended = scene.command("true").spawn().unwrap();
    scene.until("its end", LIMIT, || {
        fs::read_to_string(format!("/proc/{}/stat", ended.id()))
            .is_ok_and(|stat| stat.contains(") Z "))
    });
    attach(&scene, &[&pid(&ended)])
        .exits(2)
        .tells("has ended already");
    ended.wait().unwrap();
}

#[test]
fn a_shell_at_a_terminal_is_refused_and_the_script_of_one_is_not() {
    let scene = Scene::new();
    // `script` gives its child a terminal and a session of its own.
    if Command::new("script").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no `script`");
    }
    let mut terminal = scene.command("script");
    terminal.args(["-qfec", "exec bash --norc -i", "/dev/null"]);
    terminal.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut terminal = terminal.spawn().unwrap();
    let mut shell = None;
    scene.until("the shell", LIMIT, || {
        shell = child_named(terminal.id(), "bash");
        shell.is_some()
    });
    let shell = shell.unwrap().to_string();
    attach(&scene, &["--yes", &shell])
        .exits(2)
        .tells("is a shell at a terminal");
    attach(&scene, &[&pid(&terminal)])
        .exits(2)
        .tells("has a session below it that a person may be using");
    drop(terminal.stdin.take());
    terminal.kill().unwrap();
    terminal.wait().unwrap();
}

fn child_named(parent: u32, name: &str) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children
        .split_whitespace()
        .filter_map(|child| child.parse().ok())
        .find(|child| {
            fs::read_to_string(format!("/proc/{child}/comm"))
                .is_ok_and(|found| found.trim() == name)
        })
}

#[test]
fn session_and_login_managers_are_refused_by_the_name_of_their_program() {
    let scene = Scene::new();
    for name in [
        "systemd",
        "systemd-logind",
        "sshd",
        "login",
        "gdm-session-worker",
        "sddm",
        "Xorg",
        "gnome-shell",
        "screen-4.9.1",
        "dockerd",
    ] {
        fs::copy("/bin/sleep", scene.path(name)).unwrap();
        let mut manager = Command::new(scene.path(name)).arg("600").spawn().unwrap();
        scene.until("its exec", LIMIT, || {
            fs::read_link(format!("/proc/{}/exe", manager.id()))
                .is_ok_and(|exe| exe.ends_with(name))
        });
        let before = limits(&manager);
        attach(&scene, &["--yes", "--user", "root", &pid(&manager)])
            .exits(2)
            .tells(&format!(
                "({name}) runs sessions, logins, services or containers"
            ))
            .tells("Attach to the training itself");
        assert_eq!(limits(&manager), before);
        manager.kill().unwrap();
        manager.wait().unwrap();
    }
}

#[test]
fn in_a_container_the_first_process_is_refused_and_a_training_is_not() {
    let scene = Scene::new();
    let mut inside = scene.command("unshare");
    inside.args(["--pid", "--fork", "--mount-proc", "true"]);
    if !inside.output().is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: no PID namespace can be made here");
    }
    let binary = env!("CARGO_BIN_EXE_antifreeze");
    // The shell is the container's first process; `wait` has it collect the training.
    let script = format!(
        "{binary} attach --yes 1; echo first $?\n\
         {binary} attach 2; echo itself $?\n\
         sh -c 'while [ ! -e guarded ]; do sleep 0.05; done; exit 3' & training=$!\n\
         {binary} attach --budget 500MB $training & attach=$!\n\
         while ! grep -q guarding stderr; do sleep 0.05; done; touch guarded\n\
         wait $training; echo training $?; wait $attach; echo attach $?"
    );
    let mut inside = scene.command("unshare");
    inside.args(["--pid", "--fork", "--mount-proc", "sh", "-c", &script]);
    let ended = scene.finish(&mut inside, LIMIT);
    ended
        .exits(0)
        .tells("process 1 (")
        .tells("is the first process of this machine or container");
    assert!(
        ended.stdout.contains("first 2\n") && ended.stdout.contains("training 3\nattach 0\n"),
        "{ended}"
    );
    let (verdict, _) = told(&scene);
    // The shell may have collected it before its status was read, where the kernel keeps none.
    let kind = verdict["end"]["kind"].as_str().unwrap();
    assert!(["failed", "exited"].contains(&kind), "{verdict}");
}

#[test]
fn what_is_guarded_already_is_refused() {
    let scene = Scene::new();
    let mut theirs = sleeper(&scene);
    let before = limits(&theirs);
    let guard = guarding(&scene, &["--budget", "500MB", &pid(&theirs)]);
    let other = Scene::new();
    attach(&other, &["--yes", "--budget", "600MB", &pid(&theirs)])
        .exits(2)
        .tells("is guarded already by run")
        .tells("antifreeze runs show");
    // Whatever the first one leaves, is what was there before.
    signal(&guard, Signal::INT);
    wait(&scene, guard).exits(0);
    assert_eq!(limits(&theirs), before);
    // Nothing guards it any more.
    let guard = guarding(&other, &["--budget", "600MB", &pid(&theirs)]);
    signal(&guard, Signal::INT);
    wait(&other, guard).exits(0);
    assert_eq!(limits(&theirs), before);
    theirs.kill().unwrap();
    theirs.wait().unwrap();
}

#[test]
fn what_a_run_has_started_is_refused() {
    let scene = Scene::new();
    let mut command = scene.antifreeze();
    command.args(["run", "sh", "-c", "echo $$ > trainer; exec sleep 600"]);
    let mut run = scene.start(&mut command);
    scene.until("the trainer", LIMIT, || {
        fs::read_to_string(scene.path("trainer")).is_ok_and(|text| text.ends_with('\n'))
    });
    let trainer = fs::read_to_string(scene.path("trainer")).unwrap();
    attach(&Scene::new(), &[trainer.trim()])
        .exits(2)
        .tells("is guarded already by run");
    attach(&Scene::new(), &[&pid(&run)])
        .exits(2)
        .tells("is a part of antifreeze itself");
    signal(&run, Signal::TERM);
    run.wait().unwrap();
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}

#[test]
fn a_terminal_multiplexer_is_refused() {
    let scene = Scene::new();
    if Command::new("tmux").arg("-V").output().is_err() {
        return eprintln!("skipped: there is no tmux");
    }
    let socket = scene.path("tmux");
    let tmux = |words: &[&str]| {
        let mut tmux = scene.command("tmux");
        tmux.arg("-S").arg(&socket).args(words).output().unwrap()
    };
    tmux(&["new-session", "-d", "sleep 600"]);
    let server = tmux(&["display-message", "-p", "#{pid}"]);
    let server = String::from_utf8_lossy(&server.stdout).trim().to_owned();
    attach(&scene, &["--yes", &server])
        .exits(2)
        .tells("(tmux) runs sessions");
    tmux(&["kill-server"]);
}

#[test]
fn a_process_of_another_user_is_guarded_only_when_asked_for() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can start a process of another user");
    }
    let scene = Scene::new();
    let mut theirs = scene.command("setpriv");
    theirs.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "sleep",
        "600",
    ]);
    let mut theirs = theirs.spawn().unwrap();
    let own = |name| fs::read_to_string(format!("/proc/{}/{name}", theirs.id()));
    scene.until("its exec", LIMIT, || {
        own("comm").is_ok_and(|name| name == "sleep\n")
    });
    let before = limits(&theirs);
    attach(&scene, &[&pid(&theirs)])
        .exits(2)
        .tells("belongs to the user")
        .tells("antifreeze attach --user");
    // Another name than the owner's opens nothing.
    attach(&scene, &["--user", "4242", &pid(&theirs)])
        .exits(2)
        .tells("belongs to the user");
    assert_eq!(limits(&theirs), before);
    // Root in a container may not limit others.
    const SYS_RESOURCE: u32 = 24;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mine = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mine = u64::from_str_radix(mine.unwrap().trim(), 16).unwrap();
    let number = pid(&theirs);
    let words = ["--user", "65534", "--budget", "500MB", &number];
    if mine & (1 << SYS_RESOURCE) == 0 {
        attach(&scene, &words).exits(2).tells("CAP_SYS_RESOURCE");
    } else {
        let guard = guarding(&scene, &words);
        signal(&guard, Signal::INT);
        wait(&scene, guard).exits(0).tells("detached after");
    }
    assert_eq!(limits(&theirs), before);
    theirs.kill().unwrap();
    theirs.wait().unwrap();
}

#[test]
fn a_large_tree_needs_a_yes() {
    let scene = Scene::new();
    let script = "i=0; while [ $i -lt 205 ]; do sleep 600 & i=$((i+1)); done; touch begun; wait";
    let mut tree = scene.command("sh").args(["-c", script]).spawn().unwrap();
    scene.until("the tree", LIMIT, || scene.path("begun").exists());
    attach(&scene, &[&pid(&tree)])
        .exits(2)
        .tells("is a tree of 206 processes")
        .tells("antifreeze attach --yes");
    let guard = guarding(&scene, &["--yes", "--budget", "1GB", &pid(&tree)]);
    signal(&guard, Signal::INT);
    wait(&scene, guard).exits(0);
    tree.kill().unwrap();
    tree.wait().unwrap();
}

#[test]
fn ctrl_c_leaves_the_process_alive_with_its_limits() {
    let scene = Scene::new();
    for stop in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut theirs = sleeper(&scene);
        set_soft_limit(&theirs, 5_000_000_000);
        let before = limits(&theirs);
        let guard = guarding(&scene, &["--budget", "500MB", &pid(&theirs)]);
        scene.until("the limit", LIMIT, || limits(&theirs).0 != before.0);
        match stop {
            // The terminal sends it to the front and the guard alike.
            Signal::INT => kill_process_group(Pid::from_child(&guard), stop).unwrap(),
            _ => signal(&guard, stop),
        }
        wait(&scene, guard)
            .exits(0)
            .tells("detached after")
            .tells("continues unguarded")
            .never_tells("the guard was gone")
            .never_tells("finished");
        assert_eq!(limits(&theirs), before, "{stop:?}");
        assert!(theirs.try_wait().unwrap().is_none());
        let (verdict, explained) = told(&scene);
        assert_eq!(verdict["end"]["kind"], "detached", "{verdict}");
        assert!(verdict["end"]["exit_code"].is_null());
        assert!(explained.contains("the process continued"), "{explained}");
        theirs.kill().unwrap();
        theirs.wait().unwrap();
    }
}

/// Attaches to a process that the test collects only after the attach has ended, so that the kernel shows its status.
fn ends_with(scene: &Scene, script: &str) -> (Ended, serde_json::Value, String) {
    let mut theirs = scene.command("sh");
    let waiting = format!("while [ ! -e go ]; do sleep 0.05; done; {script}");
    let mut theirs = theirs.args(["-c", &waiting]).spawn().unwrap();
    let guard = guarding(scene, &["--budget", "500MB", &pid(&theirs)]);
    fs::write(scene.path("go"), "").unwrap();
    let ended = wait(scene, guard);
    theirs.wait().unwrap();
    fs::remove_file(scene.path("go")).unwrap();
    let (verdict, explained) = told(scene);
    (ended, verdict, explained)
}

#[test]
fn the_status_that_the_kernel_shows_is_told() {
    let scene = Scene::new();
    for (script, kind, words) in [
        ("exit 0", "finished", "finished in"),
        ("exit 3", "failed", "ended with exit code 3 after"),
        ("kill -KILL $$", "killed", "by SIGKILL from outside after"),
        ("kill -SEGV $$", "crashed", "by a crash (SIGSEGV) after"),
    ] {
        let (ended, verdict, explained) = ends_with(&scene, script);
        ended
            .exits(0)
            .tells(words)
            .never_tells("the guard was gone");
        assert_eq!(verdict["end"]["kind"], kind, "{script}\n{ended}");
        let detail = verdict["end"]["detail"].as_str().unwrap();
        assert!(explained.contains(detail), "{explained}");
        let is_unknown = explained.contains("the output of an attached process is not recorded");
        assert_eq!(is_unknown, kind == "failed", "{explained}");
        assert!(scene.shown().contains(detail), "{}", scene.shown());
    }
}

/// A parent that collects at once, as a shell does.
#[test]
fn a_status_that_the_parent_was_faster_to_take_is_true_or_not_told() {
    let scene = Scene::new();
    for (script, kind, code) in [("exit 0", "finished", 0), ("exit 7", "failed", 7)] {
        let waiting = format!("while [ ! -e go ]; do sleep 0.05; done; {script}");
        let mut shell = scene.command("sh");
        shell.args(["-c", "sh -c \"$0\" & echo $! > child; wait", &waiting]);
        let mut shell = shell.spawn().unwrap();
        scene.until("its child", LIMIT, || {
            fs::read_to_string(scene.path("child")).is_ok_and(|text| text.ends_with('\n'))
        });
        let child = fs::read_to_string(scene.path("child")).unwrap();
        let guard = guarding(&scene, &["--budget", "500MB", child.trim()]);
        fs::write(scene.path("go"), "").unwrap();
        wait(&scene, guard)
            .exits(0)
            .never_tells("the guard was gone");
        shell.wait().unwrap();
        fs::remove_file(scene.path("go")).unwrap();
        fs::remove_file(scene.path("child")).unwrap();
        let (verdict, _) = told(&scene);
        let end = &verdict["end"];
        let is_seen = end["kind"] == kind && end["exit_code"] == code;
        let is_unseen = end["kind"] == "exited" && end["exit_code"].is_null();
        assert!(is_seen || is_unseen, "{verdict}");
    }
}

#[test]
fn without_a_front_the_end_is_told_and_the_status_is_not_made_up() {
    let scene = Scene::new();
    let mut theirs = sleeper(&scene);
    let mut guard = guarding(&scene, &["--budget", "500MB", &pid(&theirs)]);
    guard.kill().unwrap();
    guard.wait().unwrap();
    theirs.kill().unwrap();
    theirs.wait().unwrap();
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
    let (verdict, explained) = told(&scene);
    assert_eq!(verdict["end"]["kind"], "exited", "{verdict}");
    assert!(verdict["end"]["exit_code"].is_null() && verdict["end"]["signal"].is_null());
    assert!(
        explained.contains("the exit status is known only to the program that started"),
        "{explained}"
    );
}

#[test]
fn a_process_that_dies_at_the_wall_is_told_as_that() {
    let scene = Scene::new();
    let script = scene.script(
        "grow.py",
        "import os, time\n\
         while not os.path.exists('go'): time.sleep(0.02)\n\
         kept = []\n\
         while True:\n    kept.append(bytearray(5_000_000))\n    time.sleep(0.05)\n",
    );
    let mut theirs = scene.command("python3");
    let mut theirs = theirs.arg(&script).stderr(Stdio::null()).spawn().unwrap();
    let guard = guarding(&scene, &["--budget", "300MB", &pid(&theirs)]);
    fs::write(scene.path("go"), "").unwrap();
    let ended = wait(&scene, guard);
    ended
        .exits(0)
        .tells("by reaching its budget of 300 MB after")
        .tells("exit code 1")
        .never_tells("interrupted");
    assert_eq!(theirs.wait().unwrap().code(), Some(1));
    let (verdict, explained) = told(&scene);
    assert_eq!(verdict["end"]["kind"], "walled", "{verdict}");
    assert_eq!(verdict["end"]["exit_code"], 1);
    assert!(explained.contains("by reaching its budget"), "{explained}");
}

#[test]
fn what_the_process_started_is_guarded_until_it_ends() {
    let scene = Scene::new();
    let script = "sleep 600 & echo $! > child; while [ ! -e go ]; do sleep 0.05; done";
    let mut theirs = scene.command("sh").args(["-c", script]).spawn().unwrap();
    scene.until("its child", LIMIT, || {
        fs::read_to_string(scene.path("child")).is_ok_and(|text| text.ends_with('\n'))
    });
    let guard = guarding(&scene, &["--budget", "500MB", &pid(&theirs)]);
    fs::write(scene.path("go"), "").unwrap();
    theirs.wait().unwrap();
    wait(&scene, guard)
        .exits(0)
        .tells("some processes of the command are still running; the guard stays with them");
    let child = fs::read_to_string(scene.path("child")).unwrap();
    let child = child.trim().parse().unwrap();
    assert!(Path::new(&format!("/proc/{child}")).exists());
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}
