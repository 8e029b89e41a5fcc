//! The terminal behaves as if antifreeze were not there: Ctrl-C, Ctrl-Z, `fg`, its size.
//! A real shell with job control in a real pseudo-terminal.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::OpenOptions;
use std::process::Child;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use support::Scene;

const LIMIT: Duration = Duration::from_secs(90);

/// A shell in a terminal of its own. The scene ends it if the test does not.
struct Terminal {
    master: OwnedFd,
    shell: Child,
    screen: Arc<Mutex<String>>,
    forgotten: Mutex<String>,
    closing: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl Terminal {
    fn open(scene: &Scene) -> Terminal {
        Terminal::open_with(scene, &["bash", "--norc", "--noprofile", "-i"])
    }

    /// A terminal whose session leader is this program.
    fn open_with(scene: &Scene, program: &[&str]) -> Terminal {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&name)
            .unwrap();
        let mut command = scene.command("setsid");
        command.args(["--ctty", "--wait"]).args(program);
        command.env("PS1", "").env("TERM", "xterm");
        command.stdin(slave.try_clone().unwrap());
        command.stdout(slave.try_clone().unwrap()).stderr(slave);
        let shell = command.spawn().expect("starting bash");
        let screen = Arc::new(Mutex::new(String::new()));
        let closing = Arc::new(AtomicBool::new(false));
        let (input, shown) = (master.try_clone().unwrap(), Arc::clone(&screen));
        let over = Arc::clone(&closing);
        let reader = std::thread::spawn(move || {
            let soon = rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            let mut buffer = [0; 4096];
            while !over.load(Relaxed) {
                let mut ready = [PollFd::new(&input, PollFlags::IN)];
                if !matches!(poll(&mut ready, Some(&soon)), Ok(1..)) {
                    continue;
                }
                let Ok(read @ 1..) = rustix::io::read(&input, &mut buffer) else {
                    return;
                };
                let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                shown.lock().unwrap().push_str(&text);
            }
        });
        Terminal {
            master,
            shell,
            screen,
            forgotten: Mutex::default(),
            closing,
            reader,
        }
    }

    fn types(&self, keys: &str) {
        rustix::io::write(&self.master, keys.as_bytes()).unwrap();
    }

    /// Waits for a text that was not shown before; what came before it is forgotten.
    #[track_caller]
    fn shows(&self, text: &str) {
        let started = Instant::now();
        loop {
            let mut screen = self.screen.lock().unwrap();
            if let Some(place) = screen.find(text) {
                let shown = screen.drain(..place + text.len());
                self.forgotten.lock().unwrap().extend(shown);
                return;
            }
            assert!(
                started.elapsed() < LIMIT,
                "no {text:?} on the screen:\n{screen}"
            );
            drop(screen);
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// All that was shown and waited for.
    fn forgotten(&self) -> String {
        self.forgotten.lock().unwrap().clone()
    }

    fn resize(&self, columns: u16) {
        let size = rustix::termios::Winsize {
            ws_row: 24,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(self.master.as_fd(), size).unwrap();
    }

    /// Closes the terminal and waits for the shell to notice.
    fn close(self) {
        let Terminal {
            master,
            mut shell,
            closing,
            reader,
            ..
        } = self;
        closing.store(true, Relaxed);
        reader.join().unwrap();
        drop(master);
        shell.wait().unwrap();
    }
}

const TICKER: &str = "
import os, signal, sys, time
signal.signal(signal.SIGWINCH, lambda *_: print('columns', os.get_terminal_size().columns, flush=True))
print('terminals', sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty(), flush=True)
try:
    for number in range(2000):
        print('tick', number, flush=True)
        time.sleep(0.05)
except KeyboardInterrupt:
    print('interrupted', flush=True)
    time.sleep(0.3)
    print('cleaned up', flush=True)
    sys.exit(7)
";

fn started(scene: &Scene) -> Terminal {
    let script = scene.script("ticker.py", TICKER);
    let terminal = Terminal::open(scene);
    let line = format!(
        "{} run -- python3 {}; echo status=$?\n",
        env!("CARGO_BIN_EXE_antifreeze"),
        script.display()
    );
    terminal.types(&line);
    terminal.shows("terminals True True True");
    terminal.shows("tick 3");
    terminal
}

#[test]
fn the_keyboard_interrupts_once_and_the_status_comes_through() {
    let scene = Scene::new();
    let terminal = started(&scene);
    terminal.types("\x03");
    terminal.shows("interrupted");
    terminal.shows("cleaned up");
    terminal.shows("status=7");
}

#[test]
fn the_job_stops_and_comes_back() {
    let scene = Scene::new();
    let terminal = started(&scene);
    terminal.types("\x1a");
    terminal.shows("Stopped");
    let before = terminal.screen.lock().unwrap().len();
    std::thread::sleep(Duration::from_millis(500));
    let after = terminal.screen.lock().unwrap().clone();
    assert!(
        !after[before.min(after.len())..].contains("tick"),
        "it goes on while stopped: {after}"
    );
    terminal.types("fg; echo status=$?\n");
    terminal.shows("tick");
    terminal.shows("tick");
    terminal.types("\x03");
    terminal.shows("status=7");
}

/// Its keyboard is the terminal behind standard error, and its modes are set by standard output.
#[test]
fn a_program_finds_the_keyboard_and_the_modes_of_the_real_terminal() {
    let scene = Scene::new();
    let script = scene.script(
        "keys.py",
        "
import os, sys, termios, tty
before = termios.tcgetattr(1)
tty.setraw(1)
keyboard = os.open(os.ttyname(2), os.O_RDWR)
os.write(1, b'press a key')
key = os.read(keyboard, 1)
termios.tcsetattr(1, termios.TCSADRAIN, before)
print('got', key, os.ttyname(0) == os.ttyname(1), os.tcgetpgrp(2) == os.getpgrp(), flush=True)
",
    );
    let terminal = Terminal::open(&scene);
    let antifreeze = env!("CARGO_BIN_EXE_antifreeze");
    terminal.types(&format!(
        "{antifreeze} run -q -- python3 {}\n",
        script.display()
    ));
    terminal.shows("press a key");
    terminal.types("x");
    terminal.shows("got b'x' True True");
}

/// A program that draws puts the screen back before it stops, and the shell draws afterwards.
#[test]
fn what_is_printed_before_a_stop_is_shown_before_the_shell_continues() {
    let scene = Scene::new();
    let script = scene.script(
        "draws.py",
        "
import os, signal
def stop(*_):
    os.write(1, b'.' * 50_000 + b'put back')
    signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(0, signal.SIGTSTP)
signal.signal(signal.SIGTSTP, stop)
print('ready', flush=True)
while True:
    signal.pause()
",
    );
    let terminal = Terminal::open(&scene);
    let antifreeze = env!("CARGO_BIN_EXE_antifreeze");
    terminal.types(&format!(
        "{antifreeze} run -- python3 {}\n",
        script.display()
    ));
    terminal.shows("ready");
    terminal.types("\x1a");
    terminal.shows("put back");
    terminal.shows("Stopped");
    terminal.types("kill -TERM %1; fg; echo status=$?\n");
    terminal.shows("status=143");
}

/// The guard is the command's parent and learns that it was stopped; when the guard is dead, the front is.
#[test]
fn the_job_stops_and_comes_back_after_the_guard_was_replaced() {
    let scene = Scene::new();
    let terminal = started(&scene);
    let guard = scene
        .living()
        .into_iter()
        .find(|pid| {
            std::fs::read(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name == b"antifreeze-guar\n")
        })
        .expect("a guard");
    let guard = rustix::process::Pid::from_raw(guard as i32).unwrap();
    rustix::process::kill_process(guard, rustix::process::Signal::KILL).unwrap();
    terminal.shows("guard");
    terminal.types("\x1a");
    terminal.shows("Stopped");
    terminal.types("fg; echo status=$?\n");
    terminal.shows("\r\ntick ");
    terminal.types("\x03");
    terminal.shows("status=7");
}

/// When a terminal goes, the kernel sends SIGHUP to the session leader alone. A terminal emulator and ssh make the
/// program that they start one.
#[test]
fn a_hang_up_of_the_session_leader_reaches_the_command() {
    let scene = Scene::new();
    let script = scene.script(
        "saves.py",
        "
import signal, sys
signal.signal(signal.SIGHUP, lambda *_: (open('saved', 'w').close(), sys.exit(0)))
print('ready', flush=True)
while True:
    signal.pause()
",
    );
    let antifreeze = env!("CARGO_BIN_EXE_antifreeze");
    let script = script.display().to_string();
    let terminal = Terminal::open_with(&scene, &[antifreeze, "run", "--", "python3", &script]);
    terminal.shows("ready");
    terminal.close();
    scene.until("the save", LIMIT, || scene.path("saved").exists());
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}

#[test]
fn the_size_of_the_window_is_passed_on() {
    let scene = Scene::new();
    let terminal = started(&scene);
    for columns in [91, 47] {
        terminal.resize(columns);
        terminal.shows("columns ");
        // It is right at the first signal, however late the front is.
        terminal.shows("\r\n");
        assert!(
            terminal
                .forgotten()
                .ends_with(&format!("columns {columns}\r\n")),
            "{}",
            terminal.forgotten()
        );
    }
    terminal.types("\x03");
    terminal.shows("status=7");
}

#[test]
fn our_lines_begin_on_a_line_of_their_own() {
    let scene = Scene::new();
    let script = scene.script(
        "bar.py",
        "
import sys, time
sys.stdout.write('no line end')
sys.stdout.flush()
time.sleep(0.3)
",
    );
    let terminal = Terminal::open(&scene);
    terminal.types(&format!(
        "{} run -- python3 {}\n",
        env!("CARGO_BIN_EXE_antifreeze"),
        script.display()
    ));
    terminal.shows("no line end\r\nantifreeze: finished");
}

/// A request is refused while a traceback is printed: our line comes after it.
#[test]
fn our_lines_do_not_stand_inside_a_traceback() {
    let scene = Scene::new();
    let script = scene.script(
        "train.py",
        "
import sys, time
sys.stderr.write('Traceback (most recent call last):\\n  File \"a.py\", line 1, in f\\n')
sys.stderr.flush()
try:
    bytearray(4_000_000_000)
except MemoryError:
    pass
time.sleep(0.5)
sys.stderr.write('ValueError: the last line\\n')
",
    );
    let terminal = Terminal::open(&scene);
    terminal.types(&format!(
        "{} run --budget 300MB -- python3 {}\n",
        env!("CARGO_BIN_EXE_antifreeze"),
        script.display()
    ));
    terminal.shows("line 1, in f\r\nValueError: the last line\r\n");
    terminal.shows("antifreeze: refused ");
}

#[test]
fn a_closed_terminal_ends_the_job_as_it_would_without_us() {
    let scene = Scene::new();
    let terminal = started(&scene);
    terminal.close();
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}
