//! All tracebacks of an output, in one pass over its lines. Each stream is followed by itself, so that ranks that fail
//! at the same time do not cut each other short. Of one whose beginning was cut off the frames are known by their shape.

use super::{Frame, Traceback, forms};
use crate::output::lines::{Line, Lines};
use std::collections::{HashMap, VecDeque};

/// Python writes a colon after it; notebooks and Rich do not.
const HEADING: &str = "Traceback (most recent call last)";
const DRAWN: [char; 3] = ['╭', '┌', '─'];
/// Of more than this, the last.
const MOST: usize = 2048;
/// Of a drawn one a page of code stands in between; further on it is somebody else's text.
const MOST_DRAWN: usize = 400;
/// A message may be pages long; its beginning tells what it is.
const LONGEST_MESSAGE: usize = 4096;
const MOST_OF_MESSAGE: usize = 40;
const LONGEST_CODE: usize = 400;

/// How an error came from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// It was raised from it on purpose.
    Cause,
    /// It arose while that one was handled.
    Handling,
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub traceback: Traceback,
    /// The line of its heading, and its last.
    pub first: usize,
    pub last: usize,
    pub stream: u64,
    /// Raised where nobody can catch it: it ended nothing.
    pub is_ignored: bool,
    /// The one before it in its chain, by the line of its heading.
    before: Option<(Link, usize)>,
}

pub(crate) struct Tracebacks {
    /// Oldest first.
    seen: VecDeque<Seen>,
}

enum Form {
    Plain,
    Notebook(String),
    Box { is_open: bool },
}

struct Open {
    seen: Seen,
    form: Form,
    /// What stood before the heading.
    prefix: String,
    /// Something of that width, and another in each line, stands before all.
    is_by_width: bool,
    is_timed: bool,
    /// It begins with a frame.
    is_cut: bool,
    /// The last frame is the user's.
    is_users: bool,
    /// Lines of it, and of its message, so far.
    lines: usize,
    in_message: usize,
}

/// What is known of a stream besides the traceback that it is in.
#[derive(Default)]
struct Stream {
    open: Option<Open>,
    last: Option<usize>,
    link: Option<Link>,
    is_ignored: bool,
}

impl Tracebacks {
    /// `ends` where a line is none of a message.
    pub fn read(lines: &Lines, ends: impl Fn(&str) -> bool) -> Tracebacks {
        let mut found = Tracebacks {
            seen: VecDeque::new(),
        };
        let mut streams: HashMap<u64, Stream> = HashMap::new();
        for (number, line) in lines.since(0).enumerate() {
            let at = heading(line.text);
            let is_frame = begins_inside(line.text);
            // Most lines are of no traceback, and of a stream that had none.
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
                        Some(open) => !open.takes(line, number, &ends),
                        None => false,
                    };
                    if is_over {
                        found.close(stream);
                    }
                    if stream.open.is_none() && is_frame {
                        let before = stream.link.take().zip(stream.last);
                        let mut open = Open::at(line, number, 0, before, false);
                        open.is_cut = true;
                        open.takes(line, number, &ends);
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
        // Frames alone are those of a warning, or of somebody who looks where he is.
        if open.is_cut && open.seen.traceback.error.is_empty() {
            return;
        }
        stream.last = Some(open.seen.first);
        if self.seen.len() == MOST {
            self.seen.pop_front();
        }
        self.seen.push_back(open.seen);
    }

    /// The last one since a line that tells why: not what only says that another process had an error, where that
    /// one's own is there.
    pub fn telling(&self, since: usize) -> Option<&Seen> {
        let mut those = self.since(since).rev();
        let own = those.find(|seen| !seen.traceback.blames_another());
        own.or_else(|| self.since(since).next_back())
    }

    /// Those that Python could raise.
    pub fn since(&self, line: usize) -> impl DoubleEndedIterator<Item = &Seen> {
        let is_it = move |seen: &&Seen| seen.first >= line && !seen.is_ignored;
        self.seen.iter().filter(is_it)
    }

    /// The first of the chain that ends with this one, and how the next came from it.
    pub fn root(&self, seen: &Seen) -> Option<(Link, &Seen)> {
        let mut root = None;
        let mut before = seen.before;
        while let Some((link, line)) = before {
            // They only lead back: each is above the one that names it.
            let Some(found) = self.at(line) else { break };
            before = found.before;
            root = Some((link, found));
        }
        root
    }

    fn at(&self, line: usize) -> Option<&Seen> {
        let index = self.seen.binary_search_by_key(&line, |seen| seen.first);
        self.seen.get(index.ok()?)
    }
}

/// Where a line has the heading of a traceback. It ends the line, but for what is drawn there; in a sentence it is none.
fn heading(line: &str) -> Option<usize> {
    let at = line.find(HEADING)?;
    let (before, rest) = line.split_at(at);
    let rest = rest.get(HEADING.len()..)?.trim();
    let is_name = |next: char| next.is_alphanumeric() || "._".contains(next);
    let is_notebook = || rest.is_empty() && before.trim().chars().all(is_name);
    (rest == ":" || before.contains(DRAWN) || is_notebook()).then_some(at)
}

/// `  File "net.py", line 7, in forward`, as the interpreter writes it.
fn begins_inside(line: &str) -> bool {
    let frame = line.strip_prefix("  File \"");
    let place = frame.and_then(|rest| rest.split_once("\", line "));
    let function = place.and_then(|(_, place)| place.split_once(", in "));
    function.is_some_and(|(number, _)| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `Exception ignored in: <function …>`.
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
            seen: Seen {
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

    /// False where the line is not of it any more.
    fn takes(&mut self, line: Line<'_>, number: usize, ends: impl Fn(&str) -> bool) -> bool {
        self.lines += 1;
        let is_error = !self.seen.traceback.error.is_empty();
        if is_error {
            let text = self.without_prefix(line.text);
            let is_more = matches!(self.form, Form::Plain)
                && !line.is_after_blank
                && self.in_message < MOST_OF_MESSAGE
                && self.is_timed == line.is_timed
                && link(text).is_none()
                && !ends(text);
            if is_more {
                self.seen.last = number;
                self.in_message += 1;
                self.seen.traceback.goes_on(text, LONGEST_MESSAGE);
            }
            return is_more;
        }
        // Where it is not known when it broke off, it is not followed for ever.
        if !matches!(self.form, Form::Plain) && self.lines > MOST_DRAWN {
            return false;
        }
        self.seen.last = number;
        match &mut self.form {
            Form::Plain => return self.reads(line, ends),
            Form::Notebook(kind) => {
                let is_named = !kind.is_empty() && line.text.starts_with(kind.as_str());
                self.draws(line.text, is_named);
            }
            Form::Box { is_open } => {
                let was_open = *is_open;
                *is_open = was_open && !line.text.contains(['╰', '└']);
                self.draws(line.text, !was_open);
            }
        }
        true
    }

    /// A line that the interpreter wrote, or that came in between.
    fn reads(&mut self, line: Line<'_>, ends: impl Fn(&str) -> bool) -> bool {
        // Heading and frames may have something before them whose shape nobody knows.
        let width = self.prefix.len();
        if width > 0 && !line.text.starts_with(&self.prefix) && !self.is_by_width {
            let inner = line.text.get(width..).unwrap_or_default();
            self.is_by_width =
                inner.starts_with("  File \"") && Frame::parse(inner.as_bytes()).is_some();
        }
        if !self.is_timed && line.is_timed {
            // Only its heading may be a line of a logger's, never what follows.
            return true;
        }
        let text = self.without_prefix(line.text);
        // Loguru marks the frame that caught it.
        let bare = text.strip_prefix("> ").unwrap_or(text);
        if let Some(frame) = Frame::parse(bare.as_bytes()) {
            self.seen.traceback.is_raised = false;
            self.is_users = frame.is_users();
            self.seen.traceback.goes_through(frame);
        } else if text.starts_with(|first: char| !first.is_whitespace()) {
            // What is not called an error may be anything.
            if self.is_cut && !is_error(text, |_| true) && text != "KeyboardInterrupt" {
                return false;
            }
            if is_error(text, ends) {
                self.seen.traceback.error = short(text, LONGEST_MESSAGE).to_owned();
                self.is_timed = line.is_timed;
            }
        } else if !text.trim().trim_matches(['^', '~', ' ']).is_empty() {
            // The line of code below a frame.
            let traceback = &mut self.seen.traceback;
            traceback.is_raised = text.trim_start().starts_with("raise ");
            if self.is_users && traceback.code.is_empty() {
                traceback.code = short(text.trim(), LONGEST_CODE).to_owned();
            }
        }
        true
    }

    fn draws(&mut self, text: &str, is_error: bool) {
        if is_error {
            self.seen.traceback.error = short(text.trim_end(), LONGEST_MESSAGE).to_owned();
        } else if let Some(frame) = forms::frame(text) {
            self.seen.traceback.goes_through(frame);
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

/// `KeyError`, `torch.cuda.OutOfMemoryError: …`, `main.<locals>.Bad: …`: what else stands there another process printed.
fn is_error(text: &str, ends: impl Fn(&str) -> bool) -> bool {
    let kind = text.split(':').next().unwrap_or_default().trim_end();
    let is_name = |next: char| next.is_alphanumeric() || "._<>".contains(next);
    let is_class = kind.contains(|next: char| next.is_uppercase() || next == '.');
    let is_plain = ["Error", "Exception"]
        .iter()
        .any(|word| kind.contains(word));
    is_class && kind.chars().all(is_name) && (is_plain || !ends(text))
}

/// So many bytes of a text, whole characters.
pub(super) fn short(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}
