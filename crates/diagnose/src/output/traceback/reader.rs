//! Reads all tracebacks of the output in one pass over its lines. Each stream is read separately, so that ranks that fail
//! at the same time do not mix. The frames of a traceback without its beginning are recognized by their form.

use super::{Frame, Traceback, forms};
use crate::output::lines::{Line, Lines};
use std::collections::{HashMap, VecDeque};

/// Python writes a colon after it; notebooks and Rich do not.
const HEADING: &str = "Traceback (most recent call last)";
const DRAWN: [char; 3] = ['╭', '┌', '─'];
/// So many tracebacks are kept, the last ones.
const MAX_TRACEBACKS: usize = 2048;
/// A traceback in a box or notebook has at most so many lines.
const MAX_DRAWN_LINES: usize = 400;
/// So many bytes of a message are kept,
const MAX_MESSAGE_BYTES: usize = 4096;
/// of at most so many lines.
const MAX_MESSAGE_LINES: usize = 40;
/// So many bytes of a line of code are kept.
const MAX_CODE_BYTES: usize = 400;

/// How an error came from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It was raised from the other one on purpose.
    Cause,
    /// It was raised while the other one was handled.
    Handling,
}

/// A traceback with its position in the output.
#[derive(Clone, Debug)]
pub(crate) struct LocatedTraceback {
    pub traceback: Traceback,
    /// The line of its heading, and its last.
    pub first: usize,
    pub last: usize,
    pub stream: u64,
    /// Python ignored the exception.
    pub is_ignored: bool,
    /// The previous one in its chain, by the line of its heading.
    before: Option<(Link, usize)>,
}

pub(crate) struct Tracebacks {
    /// Oldest first.
    seen: VecDeque<LocatedTraceback>,
}

enum Form {
    Plain,
    Notebook(String),
    Box { is_open: bool },
}

struct Open {
    seen: LocatedTraceback,
    form: Form,
    /// The text before the heading.
    prefix: String,
    /// All lines have a prefix of that width, with different text.
    is_by_width: bool,
    is_timed: bool,
    /// Its beginning was cut off.
    is_cut: bool,
    /// The last frame is in the user's code.
    is_users: bool,
    /// Lines of it, and of its message, so far.
    lines: usize,
    in_message: usize,
}

/// The state of a stream.
#[derive(Default)]
struct Stream {
    open: Option<Open>,
    last: Option<usize>,
    link: Option<Link>,
    is_ignored: bool,
}

impl Tracebacks {
    /// Reads all tracebacks. `ends` decides whether a line ends a message.
    pub fn read(lines: &Lines, ends: impl Fn(&str) -> bool) -> Tracebacks {
        let mut found = Tracebacks {
            seen: VecDeque::new(),
        };
        let mut streams: HashMap<u64, Stream> = HashMap::new();
        for (number, line) in lines.since(0).enumerate() {
            let at = heading(line.text);
            let is_frame = begins_inside(line.text);
            // Most lines are not in a traceback.
            if at.is_none() && streams.is_empty() && !is_frame && !begins_ignored(line.text) {
                continue;
            }
            let stream = streams.entry(line.stream).or_default();
            match at {
                Some(at) => {
                    found.close(stream);
                    let before = stream.link.take().zip(stream.last);
                    stream.open = Some(Open::at(line, number, at, before, stream.is_ignored));
                }
                None => {
                    let is_over = match &mut stream.open {
                        Some(open) => !open.add_line(line, number, &ends),
                        None => false,
                    };
                    if is_over {
                        found.close(stream);
                    }
                    if stream.open.is_none() && is_frame {
                        let before = stream.link.take().zip(stream.last);
                        let mut open = Open::at(line, number, 0, before, false);
                        open.is_cut = true;
                        open.add_line(line, number, &ends);
                        stream.open = Some(open);
                    } else if stream.open.is_none() {
                        stream.link = link(line.text).or(stream.link);
                    }
                }
            }
            stream.is_ignored = begins_ignored(line.text);
        }
        for stream in streams.values_mut() {
            found.close(stream);
        }
        let seen = found.seen.make_contiguous();
        seen.sort_by_key(|seen| seen.first);
        found
    }

    fn close(&mut self, stream: &mut Stream) {
        let Some(open) = stream.open.take() else {
            return;
        };
        // Frames without an error are of a warning or a printed stack.
        if open.is_cut && open.seen.traceback.error.is_empty() {
            return;
        }
        stream.last = Some(open.seen.first);
        if self.seen.len() == MAX_TRACEBACKS {
            self.seen.pop_front();
        }
        self.seen.push_back(open.seen);
    }

    /// The last traceback since a line that explains the end: not one that only reports the error of another process whose
    /// own traceback is present.
    pub fn telling(&self, since: usize) -> Option<&LocatedTraceback> {
        let mut those = self.since(since).rev();
        let own = those.find(|seen| !seen.traceback.blames_another());
        own.or_else(|| self.since(since).next_back())
    }

    /// The tracebacks since a line, without ignored exceptions.
    pub fn since(&self, line: usize) -> impl DoubleEndedIterator<Item = &LocatedTraceback> {
        let is_it = move |seen: &&LocatedTraceback| seen.first >= line && !seen.is_ignored;
        self.seen.iter().filter(is_it)
    }

    /// The first traceback of a chain, and how the next one came from it.
    pub fn root(&self, seen: &LocatedTraceback) -> Option<(Link, &LocatedTraceback)> {
        let mut root = None;
        let mut before = seen.before;
        while let Some((link, line)) = before {
            // Each one is above the one that refers to it, so this ends.
            let Some(found) = self.at(line) else { break };
            before = found.before;
            root = Some((link, found));
        }
        root
    }

    fn at(&self, line: usize) -> Option<&LocatedTraceback> {
        let index = self.seen.binary_search_by_key(&line, |seen| seen.first);
        self.seen.get(index.ok()?)
    }
}

/// The position of the heading in a line. It ends the line except for box characters; in a sentence it does not count.
fn heading(line: &str) -> Option<usize> {
    let at = line.find(HEADING)?;
    let (before, rest) = line.split_at(at);
    let rest = rest.get(HEADING.len()..)?.trim();
    let is_name = |next: char| next.is_alphanumeric() || "._".contains(next);
    let is_notebook = || rest.is_empty() && before.trim().chars().all(is_name);
    (rest == ":" || before.contains(DRAWN) || is_notebook()).then_some(at)
}

/// Whether a line is a frame: `  File "net.py", line 7, in forward`.
fn begins_inside(line: &str) -> bool {
    let frame = line.strip_prefix("  File \"");
    let place = frame.and_then(|rest| rest.split_once("\", line "));
    let function = place.and_then(|(_, place)| place.split_once(", in "));
    function.is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a line begins an ignored exception: `Exception ignored in: <function …>`.
fn begins_ignored(line: &str) -> bool {
    line.contains("Exception ignored ")
}

fn link(line: &str) -> Option<Link> {
    let has = |words: &str| line.contains(words);
    if has("The above exception was the direct cause") {
        return Some(Link::Cause);
    }
    has("During handling of the above exception").then_some(Link::Handling)
}

impl Open {
    fn at(
        line: Line<'_>,
        number: usize,
        at: usize,
        before: Option<(Link, usize)>,
        is_ignored: bool,
    ) -> Open {
        let (prefix, rest) = line.text.split_at(at);
        let form = match rest.strip_prefix(HEADING) {
            Some(rest) if prefix.contains(DRAWN) && !rest.starts_with(':') => {
                Form::Box { is_open: true }
            }
            Some(rest) if !rest.starts_with(':') => Form::Notebook(prefix.trim().to_owned()),
            _ => Form::Plain,
        };
        Open {
            seen: LocatedTraceback {
                traceback: Traceback::default(),
                first: number,
                last: number,
                stream: line.stream,
                is_ignored,
                before,
            },
            form,
            prefix: prefix.to_owned(),
            is_by_width: false,
            is_timed: line.is_timed,
            is_cut: false,
            is_users: false,
            lines: 0,
            in_message: 0,
        }
    }

    /// Adds a line; false where the line does not belong to it.
    fn add_line(&mut self, line: Line<'_>, number: usize, ends: impl Fn(&str) -> bool) -> bool {
        self.lines += 1;
        let is_error = !self.seen.traceback.error.is_empty();
        if is_error {
            let text = self.without_prefix(line.text);
            let is_more = matches!(self.form, Form::Plain)
                && !line.is_after_blank
                && self.in_message < MAX_MESSAGE_LINES
                && self.is_timed == line.is_timed
                && link(text).is_none()
                && !ends(text);
            if is_more {
                self.seen.last = number;
                self.in_message += 1;
                self.seen
                    .traceback
                    .add_message_line(text, MAX_MESSAGE_BYTES);
            }
            return is_more;
        }
        // A box or notebook traceback that broke off has no recognizable end.
        if !matches!(self.form, Form::Plain) && self.lines > MAX_DRAWN_LINES {
            return false;
        }
        self.seen.last = number;
        match &mut self.form {
            Form::Plain => return self.add_plain_line(line, ends),
            Form::Notebook(kind) => {
                let is_named = !kind.is_empty() && line.text.starts_with(kind.as_str());
                self.add_drawn_line(line.text, is_named);
            }
            Form::Box { is_open } => {
                let was_open = *is_open;
                *is_open = was_open && !line.text.contains(['╰', '└']);
                self.add_drawn_line(line.text, !was_open);
            }
        }
        true
    }

    /// Adds a line of a plain traceback, or one in between.
    fn add_plain_line(&mut self, line: Line<'_>, ends: impl Fn(&str) -> bool) -> bool {
        // Heading and frames may have an unknown prefix.
        let width = self.prefix.len();
        if width > 0 && !line.text.starts_with(&self.prefix) && !self.is_by_width {
            let inner = line.text.get(width..).unwrap_or_default();
            self.is_by_width =
                inner.starts_with("  File \"") && Frame::parse(inner.as_bytes()).is_some();
        }
        if !self.is_timed && line.is_timed {
            // Only its heading may be a line of a logger, not what follows.
            return true;
        }
        let text = self.without_prefix(line.text);
        // Loguru marks the frame that caught the error.
        let bare = text.strip_prefix("> ").unwrap_or(text);
        if let Some(frame) = Frame::parse(bare.as_bytes()) {
            self.seen.traceback.is_raised = false;
            self.is_users = frame.is_users();
            self.seen.traceback.add_frame(frame);
        } else if text.starts_with(|first: char| !first.is_whitespace()) {
            // Without a heading, only a line with the name of an error counts.
            if self.is_cut && !is_error(text, |_| true) && text != "KeyboardInterrupt" {
                return false;
            }
            if is_error(text, ends) {
                self.seen.traceback.error = prefix(text, MAX_MESSAGE_BYTES).to_owned();
                self.is_timed = line.is_timed;
            }
        } else if !text.trim().trim_matches(['^', '~', ' ']).is_empty() {
            // The line of code below a frame.
            let traceback = &mut self.seen.traceback;
            traceback.is_raised = text.trim_start().starts_with("raise ");
            if self.is_users && traceback.code.is_empty() {
                traceback.code = prefix(text.trim(), MAX_CODE_BYTES).to_owned();
            }
        }
        true
    }

    /// Adds a line of a box or notebook traceback.
    fn add_drawn_line(&mut self, text: &str, is_error: bool) {
        if is_error {
            self.seen.traceback.error = prefix(text.trim_end(), MAX_MESSAGE_BYTES).to_owned();
        } else if let Some(frame) = forms::frame(text) {
            self.seen.traceback.add_frame(frame);
        }
    }

    fn without_prefix<'a>(&self, text: &'a str) -> &'a str {
        match text.strip_prefix(self.prefix.as_str()) {
            Some(rest) => rest,
            None if self.is_by_width => text.get(self.prefix.len()..).unwrap_or(text),
            None => text,
        }
    }
}

/// Whether a line is an error: `KeyError`, `torch.cuda.OutOfMemoryError: …`, `main.<locals>.Bad: …`.
fn is_error(text: &str, ends: impl Fn(&str) -> bool) -> bool {
    let kind = text.split(':').next().unwrap_or_default().trim_end();
    let is_name = |next: char| next.is_alphanumeric() || "._<>".contains(next);
    let is_class = kind.contains(|next: char| next.is_uppercase() || next == '.');
    let is_plain = ["Error", "Exception"]
        .iter()
        .any(|word| kind.contains(word));
    is_class && kind.chars().all(is_name) && (is_plain || !ends(text))
}

/// The beginning of a text of at most so many bytes, in whole characters.
pub(super) fn prefix(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
