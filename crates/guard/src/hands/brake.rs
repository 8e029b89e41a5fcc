//! The brake: the trainer is slowed before it is stopped.
//!
//! Where it has a cgroup of its own, memory.high makes it wait for each page beyond what
//! it has, and a lower weight gives the processor to the person first. Elsewhere I/O priority
//! does what it can, and nice where it can be taken back.

use super::cgroup::Home;
use crate::mark::Mark;
use antifreeze_sense::Pid;
use antifreeze_sense::tree::{Tracked, Tree};
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

    /// A brake that an earlier guard may have left on.
    pub fn inherited() -> Brake {
        Brake { on: true, high: 0 }
    }

    /// Puts the brake on, or moves memory.high. `high` must not be below what the cgroup
    /// holds now: lowering it under the present would make us wait for the reclaim.
    pub fn put_on(&mut self, home: Option<&mut Home>, high: u64, tree: &mut Tree<Mark>) {
        if let Some(file) = home.as_ref().and_then(|home| home.high.as_ref())
            && write_number(file, Some(high))
        {
            self.high = high;
        }
        if !self.on {
            match home.and_then(|home| home.cpu.as_mut()) {
                Some((file, [_, braked])) => write(file, braked.as_bytes()),
                None => tree.processes_mut().for_each(lower),
            }
        }
        self.on = true;
    }

    /// Lets go.
    pub fn release(&mut self, home: Option<&mut Home>, tree: &mut Tree<Mark>) {
        if !self.on {
            return;
        }
        if let Some(file) = home.as_ref().and_then(|home| home.high.as_ref()) {
            write_number(file, None);
        }
        match home.and_then(|home| home.cpu.as_mut()) {
            Some((file, [ordinary, _])) => write(file, ordinary.as_bytes()),
            None => tree.processes_mut().for_each(restore),
        }
        *self = Brake::default();
    }
}

/// Lowers what can be raised again. What could not be undone would be no brake: an ordinary
/// user may not take a nice value back on most systems, so only root's trainers get one.
fn lower(tracked: &mut Tracked<Mark>) {
    let pid = rustix::process::Pid::from_raw(tracked.process.pid.0 as i32);
    if rustix::process::geteuid().is_root()
        && let Ok(before) = getpriority_process(pid)
        && before < NICE
        && setpriority_process(pid, NICE).is_ok()
    {
        tracked.state.nice = Some(before);
    }
    set_io_priority(tracked.process.pid, IOPRIO_LOW);
}

fn restore(tracked: &mut Tracked<Mark>) {
    if let Some(before) = tracked.state.nice.take() {
        let pid = rustix::process::Pid::from_raw(tracked.process.pid.0 as i32);
        let _ = setpriority_process(pid, before);
    }
    set_io_priority(tracked.process.pid, IOPRIO_NORMAL);
}

fn set_io_priority(pid: Pid, priority: i32) {
    // SAFETY: a system call on numbers.
    unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid.0, priority) };
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
