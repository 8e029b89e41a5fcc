//! Records where the threads of an idle run are, once the guard has noticed that it makes no progress: what the main
//! threads of its processes wait for, how often its threads wake, and the Python stacks that no shim reports.
//!
//! The front may read them where the kernel allows it only to an ancestor (Yama), because the command is a child of
//! its guard. No process is stopped for it.

use super::signals::spawn_thread;
use antifreeze_diagnose::run::wait_states::{self, MainThread, WaitSnapshot, WaitingOn};
use antifreeze_sense::Stamp;
use py_spy::config::LockingStrategy;
use py_spy::{Config, PythonSpy, StackTrace};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SNAPSHOT_DELAY: Duration = Duration::from_millis(500);
/// At most this many processes of a run are read.
const MAX_PROCESSES: usize = 256;
/// The stacks of at most this many processes are read from outside.
const MAX_STACKS: usize = 64;
/// A stack file that was written within this time holds the current stacks of its process.
const MAX_STACK_FILE_AGE: Duration = Duration::from_secs(10);

/// Records a snapshot in a thread of its own, because it may take a while. What cannot be read is left out. Stacks
/// of processes that do not write them themselves, such as the workers of a loader, are read from outside.
pub fn record_in_background(root: u32, folder: PathBuf) {
    let record = move || {
        // Processes that were asked for their stacks have written them by then.
        std::thread::sleep(SNAPSHOT_DELAY);
        let pids = tree(root);
        let _ = append(
            &folder.join(wait_states::FILE),
            &format!("{}\n", line(&pids)),
        );
        write_stacks(&pids, &folder);
    };
    let _ = spawn_thread("hang-snapshot", record);
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::options().append(true).create(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// A process and its descendants.
fn tree(root: u32) -> Vec<u32> {
    let mut pids = vec![root];
    let mut next = 0;
    while let Some(pid) = pids.get(next).copied() {
        for thread in threads(pid) {
            let children = fs::read_to_string(thread.join("children")).unwrap_or_default();
            let left = MAX_PROCESSES.saturating_sub(pids.len());
            pids.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok())
                    .take(left),
            );
        }
        next += 1;
    }
    pids
}

fn threads(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    entries
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

fn line(pids: &[u32]) -> String {
    let snapshot = WaitSnapshot {
        at: Stamp::now().monotonic_ns,
        switches: pids
            .iter()
            .flat_map(|pid| threads(*pid))
            .map(|thread| switches(&thread))
            .sum(),
        mains: pids
            .iter()
            .map(|pid| MainThread {
                pid: *pid,
                waits: waits_for(*pid),
            })
            .collect(),
    };
    serde_json::to_string(&snapshot).unwrap_or_default()
}

fn switches(thread: &Path) -> u64 {
    let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
    let lines = status
        .lines()
        .filter_map(|line| line.split_once("_ctxt_switches:"));
    lines
        .filter_map(|(_, number)| number.trim().parse::<u64>().ok())
        .sum()
}

/// The call that the main thread of a process is in, and what it is for.
fn waits_for(pid: u32) -> WaitingOn {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let mut words = call.split_whitespace();
    let Some(number) = words.next().and_then(|word| word.parse().ok()) else {
        return WaitingOn::Nothing;
    };
    let first = words
        .next()
        .and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    kind_of(number, first, |descriptor| {
        let path = fs::read_link(format!("/proc/{pid}/fd/{descriptor}"));
        path.map(|path| path.to_string_lossy().into_owned())
            .unwrap_or_default()
    })
}

/// By the number of a call, its first argument, and what a descriptor leads to.
fn kind_of(number: i64, first: Option<u64>, leads_to: impl Fn(u64) -> String) -> WaitingOn {
    let of_descriptor = |descriptor: Option<u64>| match descriptor {
        Some(0) => WaitingOn::Input,
        Some(descriptor) if leads_to(descriptor).starts_with("socket:") => WaitingOn::Network,
        Some(descriptor) if leads_to(descriptor).starts_with("pipe:") => WaitingOn::Pipe,
        _ => WaitingOn::Other,
    };
    match number {
        libc::SYS_futex => WaitingOn::Lock,
        libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom | libc::SYS_recvmsg => {
            of_descriptor(first)
        }
        libc::SYS_wait4 | libc::SYS_waitid => WaitingOn::Child,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => WaitingOn::Time,
        libc::SYS_pselect6 => select(first),
        libc::SYS_ppoll | libc::SYS_epoll_pwait => WaitingOn::Poll,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => select(first),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll | libc::SYS_epoll_wait => WaitingOn::Poll,
        _ => WaitingOn::Other,
    }
}

/// By how many descriptors it looks at: none but the first is what is typed, none at all is the clock.
fn select(descriptors: Option<u64>) -> WaitingOn {
    match descriptors {
        Some(0) => WaitingOn::Time,
        Some(1) => WaitingOn::Input,
        _ => WaitingOn::Poll,
    }
}

/// Into the same files, and in the same way, as the shim has them written.
fn write_stacks(pids: &[u32], folder: &Path) {
    let python = pids
        .iter()
        .filter(|pid| is_python(**pid) && !has_answered(**pid, folder))
        .take(MAX_STACKS);
    for pid in python {
        // A process that changes while it is read may be read wrong; then it is no evidence either.
        let read = std::panic::catch_unwind(|| stacks_of(*pid));
        if let Ok(Some(text)) = read {
            let _ = append(&folder.join(format!("stacks-{pid}")), &text);
        }
    }
}

/// The interpreter has just written its stacks itself.
fn has_answered(pid: u32, folder: &Path) -> bool {
    let written = fs::metadata(folder.join(format!("stacks-{pid}")));
    let since = written
        .and_then(|file| file.modified())
        .ok()
        .and_then(|at| at.elapsed().ok());
    since.is_some_and(|since| since < MAX_STACK_FILE_AGE)
}

fn is_python(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("python"))
}

fn stacks_of(pid: u32) -> Option<String> {
    let config = Config {
        blocking: LockingStrategy::NonBlocking,
        ..Config::default()
    };
    let mut spy = PythonSpy::new(pid as py_spy::Pid, &config).ok()?;
    let traces = spy.get_stack_traces().ok()?;
    Some(dump(pid, &traces))
}

/// As `faulthandler` has them, the main thread last.
fn dump(pid: u32, traces: &[StackTrace]) -> String {
    let by_name = traces
        .iter()
        .position(|trace| trace.os_thread_id == Some(pid.into()));
    // Without names the one that was there first is the last of the list.
    let main = by_name.unwrap_or(traces.len().saturating_sub(1));
    let others = (0..traces.len()).filter(|index| *index != main);
    let mut text = String::new();
    for index in others.chain([main]) {
        let Some(trace) = traces.get(index) else {
            continue;
        };
        let title = if index == main {
            "Current thread"
        } else {
            "Thread"
        };
        let _ = writeln!(
            text,
            "{title} 0x{:016x} (most recent call first):",
            trace.thread_id
        );
        for frame in &trace.frames {
            let _ = writeln!(
                text,
                "  File \"{}\", line {} in {}",
                frame.filename, frame.line, frame.name
            );
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    #[test]
    fn a_call_tells_what_is_waited_for() {
        let leads_to = |descriptor| match descriptor {
            3 => "socket:[77]".to_owned(),
            4 => "pipe:[78]".to_owned(),
            _ => "/home/a/data.bin".to_owned(),
        };
        let kind = |number, first| kind_of(number, Some(first), leads_to);
        assert_eq!(kind(libc::SYS_futex, 0x7f00), WaitingOn::Lock);
        assert_eq!(kind(libc::SYS_read, 0), WaitingOn::Input);
        assert_eq!(kind(libc::SYS_read, 3), WaitingOn::Network);
        assert_eq!(kind(libc::SYS_read, 4), WaitingOn::Pipe);
        assert_eq!(kind(libc::SYS_read, 5), WaitingOn::Other);
        assert_eq!(kind(libc::SYS_pselect6, 0), WaitingOn::Time);
        assert_eq!(kind(libc::SYS_pselect6, 1), WaitingOn::Input);
        assert_eq!(kind(libc::SYS_pselect6, 9), WaitingOn::Poll);
    }

    /// A child that waits is seen with what it waits for, and its threads hardly wake.
    #[test]
    fn a_real_process_is_seen() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        while waits_for(child.id()) != WaitingOn::Input && began.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        let snapshot: WaitSnapshot = serde_json::from_str(&line(&tree(child.id()))).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(
            snapshot.mains,
            [MainThread {
                pid: child.id(),
                waits: WaitingOn::Input
            }]
        );
        assert!(snapshot.switches > 0 && snapshot.at > 0);
    }

    /// Of a Python without the shim, in the words that `faulthandler` would use.
    #[test]
    fn the_stacks_of_a_real_python_are_read_from_outside() {
        let script = "import threading
def waits_for_ever():
    threading.Lock().acquire() and threading.Event().wait()
threading.Thread(target=waits_for_ever, daemon=True).start()
print('ready', flush=True)
waits_for_ever()";
        let mut child = Command::new("python3")
            .args(["-I", "-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 5];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let began = Instant::now();
        let mut text = String::new();
        while text.matches("in waits_for_ever").count() < 2
            && began.elapsed() < Duration::from_secs(30)
        {
            text = stacks_of(child.id()).unwrap_or_default();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let (other, main) = text.split_once("\n\n").unwrap();
        assert!(
            other.starts_with("Thread 0x") && main.starts_with("Current thread 0x"),
            "{text}"
        );
        assert!(
            main.contains("File \"<string>\", line 3 in waits_for_ever"),
            "{text}"
        );
        assert!(
            main.contains("File \"<string>\", line 6 in <module>"),
            "{text}"
        );
    }
}
