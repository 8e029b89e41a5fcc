//! Follows the bytes that a command prints and says when a line of ours can be written between them: at the start of
//! a line, not inside a traceback, and not on a screen that the command draws.

use std::time::Duration;

/// Bytes of a line that are kept to recognise what it is.
const LINE_BYTES: usize = 160;
/// Lines after the last line of a traceback that may belong to a message of several lines.
const MESSAGE_LINES: u8 = 6;
/// A traceback whose last line was printed is complete after this much silence: a chained one follows at once.
const SETTLED_AFTER: Duration = Duration::from_millis(100);
/// An unfinished line is taken for a prompt or a progress bar after this much silence.
const LINE_ABANDONED_AFTER: Duration = Duration::from_millis(200);
/// An unfinished traceback is abandoned after this much silence. Python reads source files while it prints one.
const TRACEBACK_ABANDONED_AFTER: Duration = Duration::from_secs(2);
/// A line of ours waits this long for the end of a line that is printed in pieces,
const LINE_WAIT: Duration = Duration::from_secs(1);
/// and this long for the end of a traceback.
const TRACEBACK_WAIT: Duration = Duration::from_secs(5);
/// It would spoil a screen that a program draws, such as an editor's or a pager's, and waits this long for its end.
const SCREEN_WAIT: Duration = Duration::from_secs(60);

const TRACEBACK: &[u8] = b"Traceback (most recent call last)";
const CHAINED: [&[u8]; 2] = [
    b"During handling of the above exception, another exception occurred:",
    b"The above exception was the direct cause of the following exception:",
];
/// The first words of what `faulthandler` prints.
const DUMPS: [&[u8]; 3] = [b"Fatal Python error:", b"Thread 0x", b"Current thread 0x"];

/// The place of the cursor in the current line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cursor {
    /// At the start of a line.
    #[default]
    Start,
    /// After text of a line that is not finished.
    Middle,
    /// In a line that is redrawn with carriage returns: a progress bar. A terminal may erase it, because the command
    /// draws it again.
    Bar,
}

/// The place in a traceback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    #[default]
    Outside,
    /// Between its first and its last line.
    Inside,
    /// After its last line. Up to this many more lines may belong to its message.
    After(u8),
}

/// How far the escape sequence has come that switches to the alternate screen of the terminal or back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// After `ESC [`.
    Control,
    /// After `ESC [ ?`, with the number that follows.
    Private(u16),
}

/// Follows one stream of output.
#[derive(Clone, Debug, Default)]
pub struct LineTracker {
    cursor: Cursor,
    block: Block,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// The last byte was a carriage return: what follows overwrites the line, unless it is a line feed.
    is_returned: bool,
    /// What every line of the current traceback begins with, such as "[rank0]: ".
    prefix: Vec<u8>,
    escape: Escape,
    /// The program draws on the alternate screen.
    draws: bool,
}

impl LineTracker {
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Whether a line of ours can be written now.
    pub fn is_free(&self) -> bool {
        self.cursor == Cursor::Start && self.block == Block::Outside && !self.draws
    }

    /// Takes all of the bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.push(*byte));
    }

    /// Takes bytes until a line of ours can be written, and says how many that were; None where it took all of them
    /// and there was no such place.
    pub fn feed_until_free(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().enumerate() {
            self.push(*byte);
            if self.is_free() {
                return Some(index + 1);
            }
        }
        None
    }

    /// A line of ours was written at this place, on a line of its own.
    pub fn interrupted(&mut self) {
        self.cursor = Cursor::Start;
        self.is_returned = false;
        self.line.clear();
    }

    /// How long a line of ours still has to wait, if nothing more is printed: zero when it can be written now.
    /// `silent` is the time since the last byte, `waited` the time since there is a line to write.
    pub fn wait(&self, silent: Duration, waited: Duration) -> Duration {
        let (abandoned, limit) = match (self.block, self.cursor) {
            _ if self.draws => (SCREEN_WAIT, SCREEN_WAIT),
            (Block::Outside, Cursor::Start) => return Duration::ZERO,
            (Block::Inside, _) => (TRACEBACK_ABANDONED_AFTER, TRACEBACK_WAIT),
            (Block::After(_), Cursor::Start) => (SETTLED_AFTER, TRACEBACK_WAIT),
            (Block::After(_), _) => (LINE_ABANDONED_AFTER, TRACEBACK_WAIT),
            (Block::Outside, _) => (LINE_ABANDONED_AFTER, LINE_WAIT),
        };
        let silence = abandoned.saturating_sub(silent);
        silence.min(limit.saturating_sub(waited))
    }

    fn push(&mut self, byte: u8) {
        self.follow_escape(byte);
        match byte {
            b'\n' => {
                self.end_line();
                self.interrupted();
            }
            b'\r' => {
                self.cursor = Cursor::Bar;
                self.is_returned = true;
            }
            _ => {
                if std::mem::take(&mut self.is_returned) {
                    self.line.clear();
                }
                if self.cursor == Cursor::Start {
                    self.cursor = Cursor::Middle;
                }
                if self.line.len() < LINE_BYTES {
                    self.line.push(byte);
                }
            }
        }
    }

    /// As xterm has it, and everything after it: 1049, and 47 and 1047 before.
    fn follow_escape(&mut self, byte: u8) {
        self.escape = match (self.escape, byte) {
            (_, 0x1b) => Escape::Begun,
            (Escape::Begun, b'[') => Escape::Control,
            (Escape::Control, b'?') => Escape::Private(0),
            (Escape::Private(number), b'0'..=b'9') => Escape::Private(
                number
                    .saturating_mul(10)
                    .saturating_add(u16::from(byte - b'0')),
            ),
            (Escape::Private(47 | 1047 | 1049), b'h' | b'l') => {
                self.draws = byte == b'h';
                Escape::None
            }
            _ => Escape::None,
        };
    }

    fn end_line(&mut self) {
        let line = self.line.as_slice();
        if let Some(prefix) = first_line_prefix(line) {
            self.prefix = prefix.to_vec();
            self.block = Block::Inside;
            return;
        }
        let line = line.strip_prefix(self.prefix.as_slice()).unwrap_or(line);
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        let is_indented = line.first().is_some_and(u8::is_ascii_whitespace);
        self.block = match self.block {
            Block::Outside => Block::Outside,
            // A dump of threads has blank lines between them, a group of exceptions ends with a rule.
            Block::Inside if is_blank || is_rule(line) => Block::After(MESSAGE_LINES),
            Block::Inside if is_indented => Block::Inside,
            Block::Inside => Block::After(MESSAGE_LINES),
            Block::After(_) if CHAINED.contains(&line) => Block::Inside,
            after @ Block::After(_) if is_blank => after,
            Block::After(0 | 1) => Block::Outside,
            Block::After(left) => Block::After(left - 1),
        };
        if self.block == Block::Outside {
            self.prefix.clear();
        }
    }
}

/// What stands before a traceback in its first line, and so in all of its lines; None of any other line.
fn first_line_prefix(line: &[u8]) -> Option<&[u8]> {
    if line.starts_with(b"  File \"") || DUMPS.iter().any(|dump| line.starts_with(dump)) {
        return Some(b"");
    }
    let at = line
        .windows(TRACEBACK.len())
        .position(|window| window == TRACEBACK)?;
    let before = line.get(..at)?;
    // The lines of a group of exceptions have a margin of their own, which is indented.
    Some(if before.ends_with(b"Exception Group ") {
        b""
    } else {
        before
    })
}

/// The last line of a group of exceptions, "    +------------------------------------".
fn is_rule(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.len() > 20 && line.first() == Some(&b'+') && line.iter().skip(1).all(|byte| *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_secs(60);

    fn after(text: &str) -> LineTracker {
        let mut tracker = LineTracker::default();
        tracker.feed(text.as_bytes());
        tracker
    }

    /// The places at which a line of ours could be written at once, as the text before each.
    fn free_places(text: &str) -> Vec<&str> {
        let mut tracker = LineTracker::default();
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(taken) = tracker.feed_until_free(&text.as_bytes()[from..]) {
            from += taken;
            places.push(&text[..from]);
        }
        places
    }

    const ERROR: &str = "Traceback (most recent call last):
  File \"train.py\", line 49, in main
    activations = array.array(\"d\", bytes(8 * batch))
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
MemoryError
";

    #[test]
    fn the_cursor_is_followed_through_lines_and_bars() {
        assert_eq!(after("loss 0.3\n").cursor(), Cursor::Start);
        assert_eq!(after("loss 0.3").cursor(), Cursor::Middle);
        assert_eq!(after("\r 10%|#").cursor(), Cursor::Bar);
        assert_eq!(after("\r 10%|#more of the bar").cursor(), Cursor::Bar);
        assert_eq!(after("\r 10%|#done\nnext").cursor(), Cursor::Middle);
        assert!(after("one\r\n").is_free());
        assert!(free_places(&ERROR.replace('\n', "\r\n")).is_empty());
    }

    #[test]
    fn no_place_inside_a_traceback_is_free() {
        let text = format!("before\n{ERROR}");
        assert_eq!(free_places(&text), ["before\n"]);
        for end in "before\n".len()..text.len() {
            let tracker = after(&text[..end]);
            let waits = !tracker.wait(Duration::ZERO, Duration::ZERO).is_zero();
            assert!(waits || end == "before\n".len(), "{:?}", &text[..end]);
        }
        // Once all of it was printed and nothing follows.
        assert!(after(&text).wait(SETTLED_AFTER, SETTLED_AFTER).is_zero());
    }

    #[test]
    fn chained_tracebacks_are_one_block() {
        for sentence in CHAINED {
            let sentence = String::from_utf8_lossy(sentence);
            let text = format!("{ERROR}\n{sentence}\n\n{ERROR}");
            assert!(free_places(&text).is_empty());
        }
    }

    #[test]
    fn a_prefix_before_every_line_is_no_end_of_it() {
        let text: String = ERROR
            .lines()
            .map(|line| format!("[rank0]: {line}\n"))
            .collect();
        assert!(free_places(&text).is_empty());
        assert!(after(&text).wait(SETTLED_AFTER, SETTLED_AFTER).is_zero());
    }

    #[test]
    fn groups_of_exceptions_and_dumps_of_threads_are_blocks() {
        let group = "  + Exception Group Traceback (most recent call last):
  |   File \"a.py\", line 1, in <module>
  | ExceptionGroup: two (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | ValueError: one
    +---------------- 2 ----------------
    | ValueError: two
    +------------------------------------
";
        assert!(free_places(group).is_empty());
        assert!(after(group).wait(SETTLED_AFTER, SETTLED_AFTER).is_zero());
        let dump = "Fatal Python error: Segmentation fault

Thread 0x00007f01 (most recent call first):
  File \"a.py\", line 3 in run

Current thread 0x00007f02 (most recent call first):
  File \"a.py\", line 9 in <module>
";
        assert!(free_places(dump).is_empty());
    }

    #[test]
    fn a_caught_error_does_not_silence_us_for_the_rest_of_the_run() {
        let lines: String = (0..20).map(|step| format!("step {step}\n")).collect();
        let text = format!("{ERROR}{lines}");
        assert_eq!(free_places(&text).len(), 21 - usize::from(MESSAGE_LINES));
    }

    #[test]
    fn a_screen_that_is_drawn_is_left_alone() {
        for (on, off) in [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?47h", "\x1b[?47l")] {
            let drawn = format!("before\n{on}\x1b[2J\x1b[1;1Hone\r\ntwo\r\n");
            assert_eq!(free_places(&drawn), ["before\n"]);
            assert!(!after(&drawn).wait(TRACEBACK_WAIT, TRACEBACK_WAIT).is_zero());
            assert!(after(&drawn).wait(Duration::ZERO, SCREEN_WAIT).is_zero());
            assert!(after(&format!("{drawn}{off}\n")).is_free());
        }
        assert!(after("\x1b[?25h\x1b[31mred\x1b[0m\n").is_free());
    }

    proptest! {
        /// Whatever is printed, a line of ours is written in the end, and earlier if it has waited longer.
        #[test]
        fn no_output_holds_a_line_back_for_ever(bytes: Vec<u8>) {
            let mut tracker = LineTracker::default();
            tracker.feed(&bytes);
            prop_assert!(tracker.wait(Duration::ZERO, LONG).is_zero());
            prop_assert!(tracker.wait(LONG, Duration::ZERO).is_zero());
            prop_assert!(tracker.wait(Duration::ZERO, Duration::ZERO) <= SCREEN_WAIT);
        }

        /// Output is read in pieces; where they are cut makes no difference.
        #[test]
        fn pieces_are_as_good_as_the_whole(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just(ERROR.to_owned()), "[ -~]{0,12}\n", "\r[ -~]{0,12}", "[a-z]{0,5}", Just("\n".to_owned()),
                ],
                0..8,
            ),
            cuts in proptest::collection::vec(1usize..9, 1..40),
        ) {
            let text = lines.concat();
            let whole = after(&text);
            let mut pieces = LineTracker::default();
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (piece, left) = rest.split_at(cut.min(rest.len()));
                pieces.feed(piece);
                rest = left;
            }
            pieces.feed(rest);
            prop_assert_eq!((whole.cursor, whole.block, whole.line), (pieces.cursor, pieces.block, pieces.line));
        }

        /// A line of ours stands at the start of a line, and not between the lines of a traceback, however the
        /// output around it looks.
        #[test]
        fn a_free_place_is_the_start_of_a_line_outside_of_tracebacks(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just(ERROR.to_owned()), "[ -~]{0,12}\n", "\r[ -~]{0,12}", "[a-z]{0,5}", Just("\n".to_owned()),
                ],
                0..12,
            ),
        ) {
            let text = lines.concat();
            for place in free_places(&text) {
                prop_assert!(place.ends_with('\n'));
                let rest = &text[place.len()..];
                // The lines of the known traceback, from its second on, never follow.
                prop_assert!(!ERROR.lines().skip(1).take(3).any(|line| rest.starts_with(line)), "{place:?}");
            }
        }
    }
}
