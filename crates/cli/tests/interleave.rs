//! Our lines and the command's output in one place: a line of ours never stands inside a traceback or a line of the
//! command, and a reader that does not read blocks nothing but what is written to it.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;
use support::Scene;

const LIMIT: Duration = Duration::from_secs(90);

/// A request is refused while a traceback is printed, piece by piece.
const REFUSED_IN_A_TRACEBACK: &str = r#"
import sys, time
LINES = '''Traceback (most recent call last):
  File "train.py", line 49, in main
    step(batch)
  File "train.py", line 12, in step
    return model(batch)
ValueError: the first error

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 51, in main
    save()
OSError: the second error
'''.splitlines(keepends=True)
out = getattr(sys, sys.argv[1])
print("before", flush=True)
for number, line in enumerate(LINES):
    for piece in (line[:4], line[4:]):
        out.write(piece)
        out.flush()
        time.sleep(0.02)
    if number == 2:
        try:
            bytearray(4_000_000_000)
        except MemoryError:
            pass
        time.sleep(0.3)
for step in range(20):
    print("step", step, flush=True)
    time.sleep(0.02)
"#;

/// Our lines stand on lines of their own, none of them between the first and the last line of the traceback.
#[track_caller]
fn is_in_order(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let ours = lines.iter().filter(|line| line.contains("antifreeze: "));
    assert!(
        ours.clone().all(|line| line.starts_with("antifreeze: ")),
        "{text}"
    );
    assert!(
        ours.clone()
            .any(|line| line.starts_with("antifreeze: refused ")),
        "{text}"
    );
    let place = |what: &str| lines.iter().position(|line| *line == what).expect(text);
    let first = place("Traceback (most recent call last):");
    let last = place("OSError: the second error");
    assert_eq!(last - first, 12, "{text}");
    assert!(
        !lines[first..=last]
            .iter()
            .any(|line| line.contains("antifreeze")),
        "{text}"
    );
}

#[test]
fn a_line_of_ours_never_stands_inside_a_traceback() {
    for stream in ["stdout", "stderr"] {
        let scene = Scene::new();
        let script = scene.script("train.py", REFUSED_IN_A_TRACEBACK);
        // One pipe for both, as in `antifreeze run … 2>&1 | cat`.
        let mut shell = scene.command("sh");
        shell.arg("-c").arg(format!(
            "{} run --budget 300MB -- python3 {} {stream} 2>&1 | cat",
            env!("CARGO_BIN_EXE_antifreeze"),
            script.display()
        ));
        is_in_order(&scene.finish(&mut shell, LIMIT).stdout);
    }
}

#[test]
fn a_line_of_ours_never_stands_inside_a_traceback_on_a_stream_of_its_own() {
    let scene = Scene::new();
    let script = scene.script("train.py", REFUSED_IN_A_TRACEBACK);
    let mut run = scene.run("300MB");
    run.arg("--").arg("python3").arg(script).arg("stderr");
    is_in_order(&scene.finish(&mut run, LIMIT).stderr);
}

/// The reader of our standard error reads nothing until the command has caught a signal that goes through the front.
#[test]
fn a_reader_that_does_not_read_blocks_no_signal() {
    let scene = Scene::new();
    let script = scene.script(
        "train.py",
        "
import signal, sys, time
def caught(*_):
    open('caught', 'w').close()
    sys.exit(3)
signal.signal(signal.SIGTERM, caught)
# More than a pipe holds; our line about the refusal comes after it, and waits.
threading = __import__('threading')
threading.Thread(target=lambda: sys.stderr.write('x' * 79 + '\\n' + ('y' * 79 + '\\n') * 40_000), daemon=True).start()
time.sleep(0.5)
try:
    bytearray(4_000_000_000)
except MemoryError:
    pass
open('ready', 'w').close()
while True:
    time.sleep(0.05)
",
    );
    let mut run = scene.run("300MB");
    run.arg("--").arg("python3").arg(script);
    run.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = run.spawn().unwrap();
    scene.until("refused", LIMIT, || scene.path("ready").exists());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    scene.until("the signal", LIMIT, || scene.path("caught").exists());
    let mut text = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(
        child.wait().unwrap().code(),
        Some(3),
        "{}",
        &text[text.len().saturating_sub(2000)..]
    );
    assert!(text.contains("\nantifreeze: refused "));
}
