//! The command's output behaves as it would without antifreeze: what cannot be written shows, a reader that goes away or
//! does not read is met as it would be, and nobody holds a pipe that the command has let go.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Scene;

const LIMIT: Duration = Duration::from_secs(90);

/// `antifreeze run -- SCRIPT` for a shell's script.
fn run(scene: &Scene, script: &str) -> Command {
    let mut run = scene.antifreeze();
    run.args(["run", "--", "sh", "-c", script]);
    run
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// The exit status as a shell gives it.
fn ends(scene: &Scene, child: &mut Child) -> Option<i32> {
    let mut status = None;
    scene.until("the end of the run", LIMIT, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    let status = status.unwrap();
    status.code().or(status.signal().map(|signal| 128 + signal))
}

#[test]
fn output_that_is_lost_shows_in_the_exit_status() {
    for (script, status) in [("echo lost", 74), ("echo lost; exit 3", 3), ("exit 0", 0)] {
        let scene = Scene::new();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let errors = File::create(scene.path("errors")).unwrap();
        let mut child = run(&scene, script)
            .stdout(full)
            .stderr(errors)
            .spawn()
            .unwrap();
        assert_eq!(ends(&scene, &mut child), Some(status), "{script}");
        let said = std::fs::read_to_string(scene.path("errors")).unwrap();
        let names_it = said.contains("output was lost: writing to standard output: No space left");
        assert_eq!(names_it, script.contains("echo"), "{said}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_command_even_where_it_had_printed_everything() {
    for script in ["seq 1000000", "yes"] {
        let scene = Scene::new();
        let mut child = run(&scene, script).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = [0; 2];
        child.stdout.take().unwrap().read_exact(&mut line).unwrap();
        assert_eq!(ends(&scene, &mut child), Some(128 + 13), "{script}");
    }
}

/// As `tail -f` does: it prints nothing more, and asks whether it is read.
#[test]
fn a_command_sees_its_reader_go() {
    let scene = Scene::new();
    let script = scene.script(
        "watches.py",
        "
import select, sys
print('one', flush=True)
watch = select.poll()
watch.register(1, 0)
sys.exit(5 if watch.poll(60_000) else 6)
",
    );
    let mut run = scene.antifreeze();
    run.args(["run", "--", "python3"]).arg(script);
    let mut child = run.stdout(Stdio::piped()).spawn().unwrap();
    child
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut [0; 4])
        .unwrap();
    assert_eq!(ends(&scene, &mut child), Some(5));
}

#[test]
fn each_stream_can_be_read_to_its_end_before_the_other() {
    const BYTES: usize = 3_000_000;
    for (first, second) in [("1", "2"), ("2", "1")] {
        let scene = Scene::new();
        let much = format!("head -c {BYTES} /dev/zero");
        let script = format!("{much} >&{second} & {much} >&{first}; exec {first}>&-; wait");
        let mut child = run(&scene, &script)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output: Box<dyn Read> = Box::new(child.stdout.take().unwrap());
        let mut errors: Box<dyn Read> = Box::new(child.stderr.take().unwrap());
        if first == "2" {
            std::mem::swap(&mut output, &mut errors);
        }
        let mut bytes = vec![0; BYTES];
        output.read_exact(&mut bytes).unwrap();
        errors.read_exact(&mut bytes).unwrap();
        drop((output, errors));
        assert_eq!(ends(&scene, &mut child), Some(0));
    }
}

/// Without us the command would wait there itself, and the signal would end it.
#[test]
fn a_signal_ends_the_run_while_nobody_reads_what_the_command_left() {
    let scene = Scene::new();
    let mut child = run(&scene, "seq 200000; touch printed")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    scene.until("all is printed", LIMIT, || scene.path("printed").exists());
    // The front has to see the end of the command before the signal comes, or the command gets the signal.
    scene.until("the end of the command", LIMIT, || {
        !scene.living().iter().any(|pid| is_named(*pid, "sh"))
    });
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::TERM);
    assert_eq!(ends(&scene, &mut child), Some(128 + 15));
    scene.until("nothing is left", LIMIT, || scene.living().is_empty());
}

#[test]
fn a_signal_ends_a_command_that_waits_for_a_reader() {
    let scene = Scene::new();
    let mut child = run(&scene, "exec yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let unread = child.stdout.take().unwrap();
    let capacity = rustix::pipe::fcntl_getpipe_size(&unread).unwrap() as u64;
    scene.until("more than the reader's pipe takes", LIMIT, || {
        let living = scene.living();
        let mut prints = living.iter().filter(|pid| is_named(**pid, "yes"));
        prints.any(|pid| bytes_written(*pid) > 2 * capacity)
    });
    signal(&child, Signal::TERM);
    assert_eq!(ends(&scene, &mut child), Some(128 + 15));
    scene.until("nothing is left", LIMIT, || scene.living().is_empty());
}

fn bytes_written(pid: u32) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let written = counts.lines().find_map(|line| line.strip_prefix("wchar: "));
    written.map_or(0, |bytes| bytes.parse().unwrap())
}

fn is_named(pid: u32, name: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
}

/// The reader of standard error reads nothing from the start on, not even our first line.
#[test]
fn a_full_standard_error_delays_neither_signals_nor_standard_output() {
    let scene = Scene::new();
    let (unread, mut full) = std::io::pipe().unwrap();
    let size = rustix::pipe::fcntl_getpipe_size(&full).unwrap();
    full.write_all(&vec![b'x'; size]).unwrap();
    let script = "trap 'exit 7' TERM; echo started; while :; do sleep 0.05; done";
    let mut child = run(&scene, script)
        .stdout(Stdio::piped())
        .stderr(full)
        .spawn()
        .unwrap();
    let mut started = [0; 8];
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut started).unwrap();
    assert_eq!(&started, b"started\n");
    signal(&child, Signal::TERM);
    // The command has ended; what is left are our own lines, which nobody reads.
    assert_eq!(output.read(&mut started).unwrap(), 0);
    std::thread::sleep(Duration::from_millis(300));
    signal(&child, Signal::TERM);
    assert_eq!(ends(&scene, &mut child), Some(7));
    drop(unread);
}

/// As in `x=$(antifreeze run -- …)`: the daemon holds nothing, so neither may guard and keeper.
#[test]
fn the_guard_of_a_daemon_holds_nothing_of_the_callers() {
    let scene = Scene::new();
    let (mut ninth, for_it) = std::io::pipe().unwrap();
    let (from_input, mut input) = std::io::pipe().unwrap();
    let script = "echo ok; setsid sleep 300 </dev/null >/dev/null 2>&1 9>&- & exit 4";
    let mut shell = scene.command("sh");
    shell.args([
        "-c",
        &format!(
            "exec {} run -q -- sh -c \"$1\" 9>&8 8>&-",
            env!("CARGO_BIN_EXE_antifreeze")
        ),
        "sh",
        script,
    ]);
    let eighth = std::os::fd::AsRawFd::as_raw_fd(&for_it);
    // SAFETY: dup2 may be called between fork and exec.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut shell, move || {
            match libc::dup2(eighth, 8) {
                8 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let mut child = shell
        .stdin(from_input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((for_it, shell));
    let (mut output, mut errors, mut rest) = (String::new(), String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    ninth.read_to_string(&mut rest).unwrap();
    assert_eq!(ends(&scene, &mut child), Some(4), "{errors}");
    assert_eq!(output, "ok\n");
    // Nobody reads our input any more.
    assert!(input.write_all(&[0]).is_err());
    let is_there = |name| scene.living().iter().any(|pid| is_named(*pid, name));
    assert!(is_there("sleep") && is_there("af-keeper"));
}

/// Where the front is killed makes no difference for the output: no byte is missing, and none comes twice.
#[test]
fn the_output_is_whole_wherever_the_front_is_killed() {
    let expected: String = (1..=60_000).map(|number| format!("{number}\n")).collect();
    for kill_after in [2_000, 70_000, 150_000, 250_000, 330_000] {
        let scene = Scene::new();
        let mut child = run(&scene, "seq 60000")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let mut text = Vec::new();
        let mut piece = [0; 5000];
        let mut is_killed = false;
        loop {
            let read = output.read(&mut piece).unwrap();
            if read == 0 {
                break;
            }
            text.extend_from_slice(&piece[..read]);
            // Slower than the command, so that the front is in the middle of a write.
            std::thread::sleep(Duration::from_millis(1));
            if text.len() > kill_after && !is_killed {
                is_killed = true;
                signal(&child, Signal::KILL);
            }
        }
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let same = text
            .iter()
            .zip(expected.as_bytes())
            .take_while(|(a, b)| a == b);
        let same = same.count();
        assert_eq!(
            (text.len(), same),
            (expected.len(), expected.len()),
            "{kill_after}"
        );
        let began = Instant::now();
        while !scene.living().is_empty() && began.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(scene.living().is_empty(), "what guards it ends with it");
    }
}
