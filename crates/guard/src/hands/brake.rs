//! The brake: slows the trainer before it is stopped.
//!
//! In a cgroup of its own, memory.high makes it wait for each page beyond what it has. Its CPU time needs no brake: the
//! trainer has had low priority since its start.

use super::cgroup::Home;
use std::io::{Seek, Write};

/// The present state of the brake.
#[derive(Default)]
pub struct Brake {
    /// The memory.high that was set; 0 if none.
    pub high: u64,
    on: bool,
}

impl Brake {
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// A brake that an earlier guard may have set.
    pub fn inherited() -> Brake {
        Brake { on: true, high: 0 }
    }

    /// Sets or moves memory.high. `high` must not be below what the cgroup uses now: lowering it further would make us
    /// wait for the reclaim.
    pub fn put_on(&mut self, home: Option<&Home>, high: u64) {
        if let Some(file) = home.and_then(|home| home.high.as_ref())
            && write_number(file, Some(high))
        {
            self.high = high;
        }
        self.on = true;
    }

    /// Removes the brake.
    pub fn release(&mut self, home: Option<&Home>) {
        if !self.on {
            return;
        }
        if let Some(file) = home.and_then(|home| home.high.as_ref()) {
            write_number(file, None);
        }
        *self = Brake::default();
    }
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
