//! Signals under `run`: sent to the front or to the process group, each reaches the command as often as it would without
//! antifreeze, also while the run starts.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;
use support::{Ended, Scene};

const LIMIT: Duration = Duration::from_secs(60);

fn run(scene: &Scene, words: &[&str]) -> Command {
    let mut command = scene.antifreeze();
    command.args(["run", "-q", "--"]).args(words);
    command
}

/// By number, because not all of them have a name.
fn send(pid: i32, signal: i32) {
    // SAFETY: plain numbers.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "{signal} to {pid}");
}

fn is_ready(scene: &Scene) -> bool {
    fs::read_to_string(scene.path("stdout")).is_ok_and(|text| text.contains("ready"))
}

fn ends(scene: &Scene, child: &mut Child) -> Ended {
    let mut status = None;
    scene.until("the end of the run", LIMIT, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    scene.ended(status.unwrap())
}

fn start(scene: &Scene, command: &mut Command) -> Child {
    let child = scene.start(command);
    scene.until("the command", LIMIT, || is_ready(scene));
    child
}

/// The moment at which the signal comes differs from run to run by more than these delays do; all of them together cover
/// the start many times.
#[test]
fn a_signal_to_the_group_while_the_run_starts_ends_the_command() {
    for delay in 0..40 {
        let scene = Scene::new();
        let mut child = scene.start(&mut run(&scene, &["sleep", "600"]));
        std::thread::sleep(Duration::from_millis(delay));
        send(-(child.id() as i32), libc::SIGTERM);
        ends(&scene, &mut child).is_ended_by(libc::SIGTERM);
    }
}

/// Receives signals one by one, and counts them until another ends it.
const COUNT: &str = "
import signal, sys
counted, last = (signal.SIGRTMIN + int(number) for number in sys.argv[1:])
signal.pthread_sigmask(signal.SIG_BLOCK, [counted, last])
print('ready', flush=True)
count = 0
while signal.sigwait([counted, last]) == counted:
    count += 1
print('counted', count)
";

#[test]
fn real_time_signals_to_the_group_are_received_as_often_as_they_are_sent() {
    let scene = Scene::new();
    let script = scene.script("count.py", COUNT);
    let words = ["python3", script.to_str().unwrap(), "3", "5"];
    let mut child = start(&scene, &mut run(&scene, &words));
    let front = child.id() as i32;
    for _ in 0..20 {
        send(-front, libc::SIGRTMIN() + 3);
    }
    for _ in 0..3 {
        send(front, libc::SIGRTMIN() + 3);
    }
    // Received after all with lower numbers.
    send(front, libc::SIGRTMIN() + 5);
    let ended = ends(&scene, &mut child);
    ended.exits(0).prints("counted 23\n");
}

/// 32 and 33 are those that the C library keeps for itself.
#[test]
fn a_signal_without_a_name_ends_the_command_and_the_front_by_it() {
    for signal in [32, 33, libc::SIGRTMAX()] {
        let scene = Scene::new();
        let script = "echo $$ > pid; echo ready; exec sleep 600";
        let mut command = run(&scene, &["sh", "-c", script]);
        // What runs the tests may ignore it.
        // SAFETY: a system call on numbers that live here; zeroes are the default action.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(&mut command, move || {
                let default = [0u64; 8];
                let none = std::ptr::null_mut::<u64>();
                libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, 8);
                Ok(())
            });
        }
        let mut child = start(&scene, &mut command);
        send(child.id() as i32, signal);
        ends(&scene, &mut child).is_ended_by(signal);
        let pid = fs::read_to_string(scene.path("pid")).unwrap();
        let state = fs::metadata(format!("/proc/{}", pid.trim()));
        assert!(state.is_err(), "the command still runs after {signal}");
    }
}

/// Without a shell with job control the kernel does not stop a process group for these.
#[test]
fn signals_of_job_control_stop_nothing_where_nobody_could_continue_it() {
    for signal in [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU] {
        let scene = Scene::new();
        let script = "sleep 600 & echo $! > child; echo ready; wait; echo over";
        let mut command = scene.command("setsid");
        command.args(["-w", "sh", "-c", "echo $$ > front; exec \"$@\"", "sh"]);
        command.args([env!("CARGO_BIN_EXE_antifreeze"), "run", "-q", "--"]);
        let mut waiting = start(&scene, command.args(["sh", "-c", script]));
        let number = |name: &str| -> i32 {
            let text = fs::read_to_string(scene.path(name)).unwrap();
            text.trim().parse().unwrap()
        };
        send(-number("front"), signal);
        // Neither may stay stopped: the child is ended, and the command sees that.
        send(number("child"), libc::SIGTERM);
        ends(&scene, &mut waiting).exits(0).prints("over\n");
    }
}
