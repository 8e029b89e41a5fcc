//! Finding and ending the processes of one scene by the mark in their environment.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// The variable that marks a process as belonging to a scene.
pub const VARIABLE: &str = "SCENE_OF_AN_ANTIFREEZE_TEST";

/// How long ended processes may take to leave the process table.
const PATIENCE: Duration = Duration::from_secs(10);

/// The ids of all living processes that carry the mark (`VARIABLE=value`).
pub fn living(mark: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != std::process::id() && carries(pid, mark))
        .collect()
}

/// A zombie's environment is empty, so what has ended does not count.
fn carries(pid: u32, mark: &str) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
        environ
            .split(|&byte| byte == 0)
            .any(|entry| entry == mark.as_bytes())
    })
}

/// Ends every process that carries the mark, those born meanwhile too.
pub fn end(mark: &str) {
    let begun = Instant::now();
    loop {
        let left = living(mark);
        if left.is_empty() || begun.elapsed() > PATIENCE {
            return;
        }
        for pid in left {
            if let Some(pid) = i32::try_from(pid)
                .ok()
                .and_then(rustix::process::Pid::from_raw)
            {
                // It may be gone already, which is what we want.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}
