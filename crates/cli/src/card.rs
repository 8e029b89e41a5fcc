//! The memory of the graphics card, as its driver tells it.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// What a driver that has to wake its card first may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// A card in a processor borrows main memory, and nobody trains on this little.
const LEAST_OF_AMD: u64 = 2 << 30;

/// Bytes of the largest card that can train; None where there is none, or its driver does not
/// answer.
pub fn memory() -> Option<u64> {
    nvidia().max(amd())
}

fn nvidia() -> Option<u64> {
    // In a process of its own: a driver that hangs must hang nobody else.
    let mut child = Command::new("nvidia-smi")
        .args(["--query-gpu=memory.total", "--format=csv,noheader,nounits"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut output = child.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut told = String::new();
        let _ = output.read_to_string(&mut told);
        let _ = sender.send(told);
    });
    let told = receiver.recv_timeout(PATIENCE);
    if told.is_err() {
        // It may be beyond ending; it is not waited for.
        let _ = child.kill();
        return None;
    }
    let _ = child.wait();
    largest_in(&told.ok()?)
}

/// Of lines with a number of MiB each. Cards that share main memory say `[N/A]`.
fn largest_in(told: &str) -> Option<u64> {
    let sizes = told.lines().filter_map(|line| line.trim().parse().ok());
    sizes.max().and_then(|mib: u64| mib.checked_mul(1 << 20))
}

fn amd() -> Option<u64> {
    // Without it nothing computes on the card, it only shows pictures.
    if !Path::new("/dev/kfd").exists() {
        return None;
    }
    let cards = fs::read_dir("/sys/class/drm").ok()?.flatten();
    let sizes = cards.filter_map(|card| {
        let file = card.path().join("device/mem_info_vram_total");
        fs::read_to_string(file).ok()?.trim().parse().ok()
    });
    sizes.max().filter(|bytes| *bytes >= LEAST_OF_AMD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_card_counts_and_what_is_no_number_does_not() {
        assert_eq!(largest_in("8192\n 24576\n"), Some(24 << 30));
        for none in [
            "",
            "[N/A]\n",
            "No devices were found\n",
            "99999999999999999999\n",
        ] {
            assert_eq!(largest_in(none), None, "{none}");
        }
    }
}
