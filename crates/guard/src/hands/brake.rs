//! The brake: the trainer is slowed before it is stopped.
//!
//! Where it has a cgroup of its own, memory.high makes it wait for each page beyond what it
//! has. The processor needs no brake: the trainer was given its low priority at the start.

use super::cgroup::Home;
use std::io::{Seek, Write};

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
    pub fn put_on(&mut self, home: Option<&Home>, high: u64) {
        if let Some(file) = home.and_then(|home| home.high.as_ref())
            && write_number(file, Some(high))
        {
            self.high = high;
        }
        self.on = true;
    }

    /// Lets go.
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
