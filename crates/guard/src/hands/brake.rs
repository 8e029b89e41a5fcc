//! The brake: the trainer is slowed before it is stopped.
//!
//! Where it has a cgroup of its own, memory.high makes it wait for each page beyond what
//! it has, and a lower weight gives the processor to the person first. Elsewhere nice and
//! I/O priority do what they can.

use super::cgroup::Home;
use antifreeze_sense::Pid;
use rustix::process::{getpriority_process, setpriority_process};
use std::io::{Seek, Write};

const NICE: i32 = 10;
const IOPRIO_WHO_PROCESS: i32 = 1;
/// Best effort, lowest level; and best effort by nice, the kernel's default.
const IOPRIO_LOW: i32 = (2 << 13) | 7;
const IOPRIO_NORMAL: i32 = 0;

/// What the brake holds at the moment.
#[derive(Default)]
pub struct Brake {
    /// memory.high as set; 0 when it is not.
    pub high: u64,
    on: bool,
}

impl Brake {
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Puts the brake on, or moves memory.high. `high` must not be below what the cgroup
    /// holds now: lowering it under the present would make us wait for the reclaim.
    pub fn put_on(&mut self, home: Option<&mut Home>, high: u64, tree: impl Iterator<Item = Pid>) {
        if let Some(file) = home.as_ref().and_then(|home| home.high.as_ref())
            && write_number(file, Some(high))
        {
            self.high = high;
        }
        if !self.on {
            match home.and_then(|home| home.cpu.as_mut()) {
                Some((file, [_, braked])) => write(file, braked.as_bytes()),
                None => tree.for_each(|pid| set_priority(pid, NICE, IOPRIO_LOW)),
            }
        }
        self.on = true;
    }

    /// Lets go. An ordinary user's nice value cannot be taken back on most systems: it
    /// then stays, which costs the trainer only where somebody else wants the processor.
    pub fn release(&mut self, home: Option<&mut Home>, tree: impl Iterator<Item = Pid>) {
        if !self.on {
            return;
        }
        if let Some(file) = home.as_ref().and_then(|home| home.high.as_ref()) {
            write_number(file, None);
        }
        match home.and_then(|home| home.cpu.as_mut()) {
            Some((file, [ordinary, _])) => write(file, ordinary.as_bytes()),
            None => tree.for_each(|pid| set_priority(pid, 0, IOPRIO_NORMAL)),
        }
        *self = Brake::default();
    }
}

fn set_priority(pid: Pid, nice: i32, io: i32) {
    let raw = rustix::process::Pid::from_raw(pid.0 as i32);
    // A trainer that was started nicer than this stays so.
    if getpriority_process(raw).is_ok_and(|now| nice == 0 || now < nice) {
        let _ = setpriority_process(raw, nice);
    }
    // SAFETY: a system call on numbers.
    unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid.0, io) };
}

/// Writes a number of bytes, or `max`, without allocating.
fn write_number(mut file: &std::fs::File, number: Option<u64>) -> bool {
    let mut text = [0u8; 20];
    let mut rest = number.unwrap_or(0);
    let mut start = text.len();
    loop {
        start -= 1;
        text[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 || start == 0 {
            break;
        }
    }
    let bytes = if number.is_some() {
        &text[start..]
    } else {
        b"max"
    };
    file.rewind().is_ok() && file.write_all(bytes).is_ok()
}

fn write(file: &mut std::fs::File, bytes: &[u8]) {
    let _ = file.rewind();
    let _ = file.write_all(bytes);
}
