//! Reads the memory size of the largest GPU from its driver.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// The driver gets this long to answer; it may have to wake the GPU first.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(5);
/// A smaller AMD GPU is integrated, borrows main memory, and is not used for training.
const MIN_AMD_BYTES: u64 = 2 << 30;

/// The memory in bytes of the largest GPU that can train; None if there is none, or if its driver does not
/// answer.
pub fn read_largest() -> Option<u64> {
    read_nvidia().max(read_amd())
}

fn read_nvidia() -> Option<u64> {
    // In a process of its own, because a driver may hang.
    let child = Command::new("nvidia-smi")
        .args(["--query-gpu=memory.total", "--format=csv,noheader,nounits"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    parse_largest(&read_output_within(child, DRIVER_TIMEOUT)?)
}

/// The output of a process until it ends. After the timeout it is killed, but it may ignore even that: it
/// is not waited for.
fn read_output_within(child: Child, timeout: Duration) -> Option<String> {
    let pid = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(child.wait_with_output());
    });
    match receiver.recv_timeout(timeout) {
        Ok(output) => String::from_utf8(output.ok()?.stdout).ok(),
        Err(_) => {
            let _ = kill_process(pid, Signal::KILL);
            None
        }
    }
}

/// The largest of several lines with a number of MiB each. GPUs that share main memory report `[N/A]`.
fn parse_largest(output: &str) -> Option<u64> {
    let sizes = output.lines().filter_map(|line| line.trim().parse().ok());
    sizes.max().and_then(|mib: u64| mib.checked_mul(1 << 20))
}

fn read_amd() -> Option<u64> {
    // Without it the GPU cannot compute, only display.
    if !Path::new("/dev/kfd").exists() {
        return None;
    }
    let devices = fs::read_dir("/sys/class/drm").ok()?.flatten();
    let sizes = devices.filter_map(|device| {
        let file = device.path().join("device/mem_info_vram_total");
        fs::read_to_string(file).ok()?.trim().parse().ok()
    });
    sizes.max().filter(|bytes| *bytes >= MIN_AMD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_card_counts_and_what_is_no_number_does_not() {
        assert_eq!(parse_largest("8192\n 24576\n"), Some(24 << 30));
        for none in [
            "",
            "[N/A]\n",
            "No devices were found\n",
            "99999999999999999999\n",
        ] {
            assert_eq!(parse_largest(none), None, "{none}");
        }
    }

    #[test]
    fn a_driver_that_hangs_is_given_up_also_when_it_has_answered() {
        for script in ["sleep 60", "echo 8192; exec >&-; sleep 60"] {
            let child = Command::new("sh")
                .args(["-c", script])
                .stdout(Stdio::piped())
                .spawn()
                .expect("a shell");
            let timeout = Duration::from_millis(200);
            assert_eq!(read_output_within(child, timeout), None, "{script}");
        }
    }
}
