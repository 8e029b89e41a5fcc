//! Asks the trainer to save, by the signal that the user named.
//!
//! Only a process that catches the signal gets it: the default action of most signals is to end the process. Forked
//! workers inherit the handler and must not all save, so the topmost process that catches it is asked and none below
//! it; ranks side by side are all asked.

use crate::process_state::ProcessState;
use antifreeze_sense::tree::ProcessTree;
use antifreeze_sense::{Pid, file::ProcFile};
use rustix::process::Signal;

const MAX_DEPTH: usize = 16;

/// Sends the signal. Returns the first process that was asked, or None if none catches it.
pub fn ask(tree: &ProcessTree<ProcessState>, root: Pid, signal: u32) -> Option<Pid> {
    let signal = Signal::from_named_raw(signal as i32)?;
    match tree.get(root) {
        Some(_) => ask_from(tree, root, signal, MAX_DEPTH),
        None => tree
            .processes()
            .filter_map(|p| ask_from(tree, p.process.pid, signal, 0))
            .next(),
    }
}

fn ask_from(
    tree: &ProcessTree<ProcessState>,
    pid: Pid,
    signal: Signal,
    depth: usize,
) -> Option<Pid> {
    if catches(pid, signal) {
        return tree.send_signal(pid, signal).ok().map(|()| pid);
    }
    if depth == 0 {
        return None;
    }
    let mut first = None;
    for child in tree.processes().filter(|p| p.process.parent == pid) {
        first = first.or(ask_from(tree, child.process.pid, signal, depth - 1));
    }
    first
}

/// Whether the process has a handler for the signal, according to the kernel.
pub fn catches(pid: Pid, signal: Signal) -> bool {
    let mut path = [0u8; 32];
    let mut buffer = [0u8; 4096];
    let Some(path) = status_path(pid, &mut path) else {
        return false;
    };
    let Ok(file) = ProcFile::open(path) else {
        return false;
    };
    file.read(&mut buffer)
        .is_ok_and(|status| caught(status, signal.as_raw() as u32))
}

fn status_path(pid: Pid, buffer: &mut [u8; 32]) -> Option<&str> {
    use std::io::Write;
    let mut rest = &mut buffer[..];
    write!(rest, "/proc/{}/status", pid.0).ok()?;
    let written = 32 - rest.len();
    std::str::from_utf8(&buffer[..written]).ok()
}

/// Whether the mask of caught signals in a status file holds this one.
fn caught(status: &[u8], signal: u32) -> bool {
    status
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(b"SigCgt:"))
        .and_then(|mask| std::str::from_utf8(mask.trim_ascii()).ok())
        .and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .is_some_and(|mask| signal >= 1 && mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_caught_signals_is_understood() {
        let status = b"Name:\tpython\nSigIgn:\t0000000001001000\nSigCgt:\t0000000000000200\n";
        assert!(caught(status, 10));
        assert!(!caught(status, 12));
        assert!(!caught(status, 0));
        assert!(!caught(b"SigCgt:\tnonsense\n", 10));
        assert!(!caught(b"", 10));
    }
}
