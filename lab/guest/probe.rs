//! Measures how long a user has to wait.
//!
//! Ten times a second the probe does what an interactive program does when its user acts: it
//! writes to its working set, starts a program, and writes and syncs a small file. Each line of
//! the output file is one beat: when it was due (CLOCK_MONOTONIC), the delay from then until it
//! was done, and the seconds that the working set, the program and the file took.
//!
//! Beats are due on a fixed schedule, and the delay of a late beat starts when it was due. Beats
//! that become due while an earlier one is not done end together with it, and have no parts:
//! executing them afterwards would only measure the queue.
//!
//! No memory is locked, because interactive programs do not lock theirs.
//!
//! probe --seconds N --out FILE [--pid-file FILE]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const PERIOD: f64 = 0.1;
const WORKING_SET: usize = 40 << 20;
const PAGE: usize = 4096;
const PROGRAM: &str = "/bin/true";
/// A folder on the root disk that every user can write to, in every image.
const DISK: &str = "/var/tmp";

static ENDED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match Options::from_arguments().and_then(|options| probe(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("probe: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    seconds: f64,
    out: PathBuf,
    pid_file: Option<PathBuf>,
}

impl Options {
    fn from_arguments() -> Result<Self, String> {
        let (mut seconds, mut out, mut pid_file) = (None, None, None);
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            match name.as_str() {
                "--seconds" => {
                    seconds = Some(
                        value
                            .parse()
                            .map_err(|_| format!("--seconds {value} is no number"))?,
                    )
                }
                "--out" => out = Some(value.into()),
                "--pid-file" => pid_file = Some(value.into()),
                _ => {
                    return Err(format!(
                        "no option {name}; there are --seconds, --out and --pid-file"
                    ));
                }
            }
        }
        Ok(Self {
            seconds: seconds.ok_or("--seconds is missing")?,
            out: out.ok_or("--out is missing")?,
            pid_file,
        })
    }
}

fn probe(options: &Options) -> Result<(), String> {
    let naming = |path: &Path| {
        let path = path.display().to_string();
        move |error: io::Error| format!("{path}: {error}")
    };
    let mut out = File::create(&options.out).map_err(naming(&options.out))?;
    end_on_sigterm();
    let mut set = random_bytes(WORKING_SET);
    let synced = Path::new(DISK).join(format!("lab-probe.{}", std::process::id()));
    if let Some(path) = &options.pid_file {
        fs::write(path, std::process::id().to_string()).map_err(naming(path))?;
    }

    let started = monotonic();
    let mut due = started;
    loop {
        thread::sleep(Duration::from_secs_f64((due - monotonic()).max(0.0)));
        let woken = monotonic();
        touch(&mut set);
        let touched = monotonic();
        start_program().map_err(naming(Path::new(PROGRAM)))?;
        let returned = monotonic();
        write_and_sync(&synced, &set[..PAGE]).map_err(naming(&synced))?;
        let done = monotonic();

        let parts = [touched - woken, returned - touched, done - returned];
        let mut lines = beat(due, done, parts);
        due += PERIOD;
        while due < done {
            lines.push_str(&beat(due, done, [0.0; 3]));
            due += PERIOD;
        }
        out.write_all(lines.as_bytes())
            .map_err(naming(&options.out))?;
        if due >= started + options.seconds || ENDED.load(Ordering::Relaxed) {
            break;
        }
    }
    fs::remove_file(&synced).map_err(naming(&synced))
}

fn beat(due: f64, done: f64, [set, program, file]: [f64; 3]) -> String {
    format!(
        "{due:.6} {:.6} {set:.6} {program:.6} {file:.6}\n",
        done - due
    )
}

fn touch(set: &mut [u8]) {
    for at in (0..set.len()).step_by(PAGE) {
        set[at] = set[at].wrapping_add(1);
    }
    std::hint::black_box(set);
}

fn start_program() -> io::Result<()> {
    let status = Command::new(PROGRAM).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::Error::other(status.to_string()))
    }
}

fn write_and_sync(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Xorshift: pages that zram cannot compress.
fn random_bytes(size: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15 ^ u64::from(std::process::id());
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

const CLOCK_MONOTONIC: i32 = 1;
const SIGTERM: i32 = 15;

unsafe extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
}

/// CLOCK_MONOTONIC in seconds, as in the trainer's log.
fn monotonic() -> f64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the kernel fills the structure, which has the layout of a timespec on 64-bit Linux.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    time.seconds as f64 + time.nanoseconds as f64 / 1e9
}

fn end_on_sigterm() {
    extern "C" fn ended(_number: i32) {
        ENDED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only stores to an atomic.
    unsafe { signal(SIGTERM, ended) };
}
