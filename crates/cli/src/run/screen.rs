//! One mouth for the terminal: the trainer's output and our own lines must not cut into
//! each other.

use antifreeze_cushion::page::Output;
use antifreeze_guard::relay;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io::Write;
use std::sync::{Mutex, MutexGuard};

/// Where the trainer's cursor stands, as far as its bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    /// At the start of a line: ours to write on.
    Start,
    /// In the middle of a line of text.
    Middle,
    /// In a line that is redrawn with carriage returns: a progress bar, which may be
    /// wiped since it comes back by itself.
    Bar,
}

struct State {
    cursor: Cursor,
    /// The status line is on the screen, below what the trainer wrote.
    status: bool,
}

pub struct Screen {
    state: Mutex<State>,
    /// Standard error is a terminal.
    pub terminal: bool,
}

impl Screen {
    pub fn new() -> Screen {
        Screen {
            state: Mutex::new(State {
                cursor: Cursor::Start,
                status: false,
            }),
            terminal: rustix::termios::isatty(rustix::stdio::stderr()),
        }
    }

    /// Passes the trainer's output on, with our status line out of its way.
    pub fn pass_on(
        &self,
        output: &Output,
        to: BorrowedFd<'_>,
        on_screen: bool,
    ) -> Result<(), Errno> {
        let mut state = self.lock();
        if on_screen {
            self.wipe(&mut state);
            state.cursor = cursor_after(state.cursor, output);
        }
        relay::pass_on(output, Some(to))
    }

    /// Says one line, or several, each with our name before it.
    pub fn say(&self, text: &str) {
        self.write(&format!("antifreeze: {text}\n"));
    }

    /// Writes text of our own, beginning on a line of its own.
    pub fn write(&self, text: &str) {
        let mut state = self.lock();
        self.wipe(&mut state);
        let before = match state.cursor {
            Cursor::Start => "",
            Cursor::Bar if self.terminal => "\r\x1b[K",
            Cursor::Middle | Cursor::Bar => "\n",
        };
        state.cursor = Cursor::Start;
        let _ = write!(std::io::stderr().lock(), "{before}{text}");
    }

    /// Shows a line that stays below the output until something else is written.
    pub fn show_status(&self, line: &str) {
        let mut state = self.lock();
        if state.cursor == Cursor::Start && self.terminal {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
            state.status = true;
        }
    }

    pub fn clear_status(&self) {
        self.wipe(&mut self.lock());
    }

    fn wipe(&self, state: &mut State) {
        if state.status {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
            state.status = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn cursor_after(before: Cursor, output: &Output) -> Cursor {
    use antifreeze_guard::shared::OutputRing;
    use std::sync::atomic::Ordering::Relaxed;
    // Only the last line matters, and a piece that wraps around is looked at in its first
    // part only: a wrong guess costs a line break, nothing more.
    let pending = output.pending();
    let tail = &pending[pending.len().saturating_sub(4096)..];
    let mut cursor = before;
    for byte in tail {
        cursor = match (byte.load(Relaxed), cursor) {
            (b'\n', _) => Cursor::Start,
            (b'\r', _) | (_, Cursor::Bar) => Cursor::Bar,
            _ => Cursor::Middle,
        };
    }
    cursor
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_guard::shared::Shared;
    use std::sync::atomic::Ordering::Relaxed;

    fn after(before: Cursor, text: &[u8]) -> Cursor {
        let (shared, _fd) = Shared::create().unwrap();
        let output = shared.output(0);
        for (cell, byte) in output.ring.iter().zip(text) {
            cell.store(*byte, Relaxed);
        }
        output.filled.store(text.len() as u64, Relaxed);
        cursor_after(before, output)
    }

    #[test]
    fn the_cursor_is_followed_through_lines_and_bars() {
        assert_eq!(after(Cursor::Start, b"loss 0.3\n"), Cursor::Start);
        assert_eq!(after(Cursor::Start, b"loss 0.3"), Cursor::Middle);
        assert_eq!(after(Cursor::Start, b"\r 10%|#"), Cursor::Bar);
        assert_eq!(after(Cursor::Bar, b"more of the bar"), Cursor::Bar);
        assert_eq!(after(Cursor::Bar, b"done\nnext"), Cursor::Middle);
    }
}
