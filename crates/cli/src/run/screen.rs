//! Writes the command's output and our own lines to the same place, so that neither cuts into the other.
//!
//! A line of ours is queued and never written by the thread that has it to say: a thread of the screen's own writes it
//! when the output stands at the start of a line and outside of a traceback, or after a short wait
//! ([`LineTracker`]). So a reader that does not read, such as a pager, blocks the threads that write, and nothing
//! else of the front.

use super::signals::spawn_thread;
use antifreeze_ipc::relay::{Way, copy_tail};
use antifreeze_ipc::state::Output;
use antifreeze_text::sanitize;
use antifreeze_view::{Cursor, LineTracker};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// At most this many messages are queued. Beyond it the oldest are dropped, and their number is printed.
const MAX_QUEUED_LINES: usize = 256;
/// Output is examined in pieces of this size.
const PIECE_BYTES: usize = 4096;
/// The wait if nothing is queued; another thread ends it.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

/// What is to be written, and where the output stands. Locked for moments only, never while something is written.
#[derive(Default)]
struct State {
    queue: VecDeque<String>,
    /// What is said before the command's output was said.
    is_open: bool,
    dropped: u64,
    /// Since when the first text of the queue waits.
    waits_since: Option<Instant>,
    /// The newest status line, until it is drawn.
    status: Option<String>,
    /// The status line is on the screen, below the output.
    is_status_shown: bool,
    /// Standard output and standard error of the command.
    streams: [LineTracker; 2],
    /// The stream that was written to last: its cursor is where the next byte goes.
    last: usize,
    last_byte: Option<Instant>,
    /// No output follows, so nothing is waited for.
    is_over: bool,
    /// A text was taken from the queue and is being written.
    is_writing: bool,
}

impl State {
    /// How long the first text has to wait, as things stand.
    fn wait(&self, now: Instant) -> Duration {
        if self.is_over || self.queue.len() >= MAX_QUEUED_LINES {
            return Duration::ZERO;
        }
        let since = |moment: Option<Instant>| {
            moment.map_or(Duration::MAX, |moment| {
                now.saturating_duration_since(moment)
            })
        };
        let silent = since(self.last_byte);
        let waited = since(self.waits_since.or(Some(now)));
        let waits = self
            .streams
            .iter()
            .map(|tracker| tracker.wait(silent, waited));
        waits.max().unwrap_or_default()
    }

    fn is_free(&self) -> bool {
        self.streams.iter().all(LineTracker::is_free)
    }

    fn cursor(&self) -> Cursor {
        self.streams
            .get(self.last)
            .map_or(Cursor::Start, LineTracker::cursor)
    }

    /// All that is queued, with what has to come before it where the cursor stands.
    fn take_queued(&mut self, terminal: bool) -> String {
        let mut text = String::new();
        if std::mem::take(&mut self.is_status_shown) {
            text.push_str("\r\x1b[K");
        }
        match self.cursor() {
            Cursor::Start => {}
            Cursor::Bar if terminal => text.push_str("\r\x1b[K"),
            Cursor::Middle | Cursor::Bar => text.push('\n'),
        }
        if let Some(tracker) = self.streams.get_mut(self.last) {
            tracker.interrupted();
        }
        match std::mem::take(&mut self.dropped) {
            0 => {}
            number => text.push_str(&format!(
                "antifreeze: {number} earlier messages were left out: the output was not read\n"
            )),
        }
        text.extend(self.queue.drain(..));
        self.waits_since = None;
        text
    }
}

pub struct Screen {
    state: Mutex<State>,
    changed: Condvar,
    /// Held by the thread that writes.
    pen: Mutex<()>,
    /// Standard error is a terminal.
    pub terminal: bool,
}

impl Screen {
    /// Starts the thread that writes our lines. It ends with the process.
    pub fn start() -> std::io::Result<Arc<Screen>> {
        let screen = Arc::new(Screen {
            state: Mutex::default(),
            changed: Condvar::new(),
            pen: Mutex::new(()),
            terminal: rustix::termios::isatty(rustix::stdio::stderr()),
        });
        let writer = Arc::clone(&screen);
        spawn_thread("screen", move || writer.write_for_ever())?;
        Ok(screen)
    }

    /// Lets the command's output through.
    pub fn open(&self) {
        self.lock().is_open = true;
        self.changed.notify_all();
    }

    fn wait_until_open(&self) {
        let state = self.lock();
        drop(self.changed.wait_while(state, |state| !state.is_open));
    }

    /// Passes the command's output on: the stream `index`, of the two that a process has. What is not `on_screen`
    /// goes somewhere else than our own lines.
    pub fn pass_on(
        &self,
        output: &Output,
        index: usize,
        way: &mut Way<'_>,
        on_screen: bool,
    ) -> Result<(), Errno> {
        self.wait_until_open();
        if !on_screen {
            return way.pass_on(output);
        }
        let goal = output.filled.load(Acquire);
        let mut result = Ok(());
        while output.passed.load(Relaxed) < goal {
            let _pen = lock(&self.pen);
            // What was said before the command printed this stands before it.
            self.write_if_due();
            let (until, status) = self.advance(output, index, goal);
            if status {
                write_own("\r\x1b[K");
            }
            result = result.and(way.pass_on_until(output, until));
            self.write_if_due();
        }
        // A line that waits may have to wait longer now, or no more.
        self.changed.notify_all();
        result
    }

    /// Writes what is queued, if the output stands at a place for it. The pen is held.
    fn write_if_due(&self) {
        let text = {
            let mut state = self.lock();
            let is_due = !state.queue.is_empty() && state.is_free();
            is_due.then(|| state.take_queued(self.terminal))
        };
        if let Some(text) = text {
            write_own(&text);
        }
    }

    /// Follows the output up to `goal`, or to the first place at which something that is queued can be written.
    /// Says how far that is, and whether a status line has to be erased first.
    fn advance(&self, output: &Output, index: usize, goal: u64) -> (u64, bool) {
        let mut state = self.lock();
        let status = std::mem::take(&mut state.is_status_shown);
        let is_queued = !state.queue.is_empty();
        let others_free = state
            .streams
            .iter()
            .enumerate()
            .all(|(other, tracker)| other == index || tracker.is_free());
        state.last = index;
        state.last_byte = Some(Instant::now());
        let Some(tracker) = state.streams.get_mut(index) else {
            return (goal, status);
        };
        let mut at = output.passed.load(Relaxed);
        let mut piece = [0; PIECE_BYTES];
        while at < goal {
            let length = (goal - at).min(PIECE_BYTES as u64) as usize;
            let piece = &mut piece[..length];
            copy_tail(output, at, piece);
            if is_queued && others_free {
                if let Some(taken) = tracker.feed_until_free(piece) {
                    return (at + taken as u64, status);
                }
            } else {
                tracker.feed(piece);
            }
            at += length as u64;
        }
        (goal, status)
    }

    /// Prints one or more lines with our name before them. They may contain untrusted names of files and variables: no escape
    /// sequence in them reaches the terminal.
    pub fn say(&self, text: &str) {
        let lines: Vec<String> = sanitize::code_lines(text).collect();
        self.write(&format!("antifreeze: {}\n", lines.join("\n")));
    }

    /// Writes whole lines of our own, as soon as there is a place for them.
    pub fn write(&self, text: &str) {
        let mut state = self.lock();
        if state.queue.len() >= MAX_QUEUED_LINES {
            state.queue.pop_front();
            state.dropped += 1;
        }
        state.queue.push_back(text.to_owned());
        state.waits_since.get_or_insert_with(Instant::now);
        drop(state);
        self.changed.notify_all();
    }

    /// Shows a status line below the output until something else is written.
    pub fn show_status(&self, line: &str) {
        if self.terminal {
            self.lock().status = Some(line.to_owned());
            self.changed.notify_all();
        }
    }

    /// Notes that no more output comes, so that queued messages need not wait.
    pub fn output_is_over(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Waits until all that was said is written, and erases the status line. False when a reader that does not read
    /// keeps it from being written in time.
    pub fn finish(&self, patience: Duration) -> bool {
        let began = Instant::now();
        let mut state = self.lock();
        state.status = None;
        while !state.queue.is_empty() || state.is_writing {
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return false;
            }
            self.changed.notify_all();
            state = self
                .changed
                .wait_timeout(state, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        let is_shown = std::mem::take(&mut state.is_status_shown);
        drop(state);
        if is_shown {
            write_own("\r\x1b[K");
        }
        true
    }

    fn write_for_ever(&self) {
        loop {
            self.wait_until_due();
            // Now that it is our turn, things may stand otherwise again.
            let pen = lock(&self.pen);
            let mut state = self.lock();
            let is_due = !state.queue.is_empty() && state.wait(Instant::now()).is_zero();
            let text = if is_due {
                state.take_queued(self.terminal)
            } else {
                let status = state.status.take().filter(|_| state.is_free());
                state.is_status_shown |= status.is_some();
                status.map_or_else(String::new, |line| format!("\r\x1b[K{line}"))
            };
            state.is_writing = true;
            drop(state);
            if !text.is_empty() {
                write_own(&text);
            }
            drop(pen);
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }

    fn wait_until_due(&self) {
        let mut state = self.lock();
        loop {
            let wait = match state.queue.is_empty() {
                true if state.status.is_some() => Duration::ZERO,
                true => IDLE_WAIT,
                false => state.wait(Instant::now()),
            };
            if wait.is_zero() {
                return;
            }
            state = self
                .changed
                .wait_timeout(state, wait)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Writes to standard error. A closed one is ignored.
fn write_own(text: &str) {
    let mut error = std::io::stderr().lock();
    let _ = error.write_all(text.as_bytes());
    let _ = error.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(printed: &str) -> State {
        let mut state = State::default();
        state.streams[0].feed(printed.as_bytes());
        state.queue.push_back("antifreeze: ours\n".to_owned());
        state
    }

    #[test]
    fn a_line_of_ours_begins_on_a_line_of_its_own() {
        for (printed, terminal, written) in [
            ("loss\n", false, "antifreeze: ours\n"),
            ("loss", false, "\nantifreeze: ours\n"),
            ("\r 10%|#", false, "\nantifreeze: ours\n"),
            ("\r 10%|#", true, "\r\x1b[Kantifreeze: ours\n"),
        ] {
            let mut state = state(printed);
            assert_eq!(state.take_queued(terminal), written, "{printed:?}");
            assert!(state.queue.is_empty() && state.waits_since.is_none());
        }
    }

    #[test]
    fn a_full_queue_and_the_end_of_the_output_wait_for_nothing() {
        let now = Instant::now();
        let mut waiting = state("half a li");
        waiting.last_byte = Some(now);
        waiting.waits_since = Some(now);
        assert!(!waiting.wait(now).is_zero());
        waiting.is_over = true;
        assert!(waiting.wait(now).is_zero());
        waiting.is_over = false;
        waiting
            .queue
            .extend((1..MAX_QUEUED_LINES).map(|_| String::new()));
        assert!(waiting.wait(now).is_zero());
    }
}
