//! Splits output into lines as they are visible: without colours, without overwritten text, and without the prefix that
//! loggers and launchers add, such as a time or the name of a process. A prefix may change from line to line, so it is
//! recognized by its form; the name becomes the line's stream, which keeps processes apart. Any bytes are read, in one
//! pass.

use antifreeze_text::sanitize;
use regex::Regex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;

/// So many lines at the end of the output are kept.
const MAX_LINES: usize = 1 << 17;
/// An ambiguous prefix must be in more than half of so many lines.
const SAMPLED_LINES: usize = 500;
/// A line has at most so many prefixes: a container's time, a rank, a logger's time.
const MAX_PREFIXES: usize = 4;
/// A line counts as redrawn at most so often.
const MAX_REDRAWS: usize = 1000;
/// A prefix has at most so many characters.
const MAX_PREFIX: usize = 200;

#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    /// The text of all lines, in no particular order.
    text: String,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    from: usize,
    to: usize,
    stream: u64,
    is_after_blank: bool,
    is_timed: bool,
}

/// A line that is not empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    pub text: &'a str,
    /// The process that printed it, where the line names it; otherwise 0.
    pub stream: u64,
    pub is_after_blank: bool,
    /// It has a time as prefix.
    pub is_timed: bool,
}

impl Lines {
    /// Splits output. `watch` is called with each line as often as it was drawn, the last first, and its number from the
    /// end.
    pub fn read(output: &[u8], mut watch: impl FnMut(&str, usize)) -> Lines {
        let ambiguous = HasAmbiguousPrefix::detect(output);
        let mut lines = Lines::default();
        let mut is_blank = false;
        for raw in output.rsplit(|byte| *byte == b'\n') {
            let text = sanitize::visible_line(raw);
            let (prefix, rest) = Prefix::split(&text, &ambiguous);
            if rest.trim().is_empty() {
                is_blank = true;
                continue;
            }
            if lines.places.len() == MAX_LINES {
                break;
            }
            if is_blank && let Some(below) = lines.places.last_mut() {
                below.is_after_blank = true;
            }
            is_blank = false;
            let number = lines.places.len();
            watch(rest, number);
            let is_over = |byte: &u8| matches!(byte, b'\r' | 8);
            if raw.iter().any(is_over) {
                let earlier = raw.rsplit(is_over).filter(|piece| !piece.is_empty());
                for piece in earlier.skip(1).take(MAX_REDRAWS) {
                    watch(&String::from_utf8_lossy(piece), number);
                }
            }
            let from = lines.text.len();
            lines.text.push_str(rest);
            lines.places.push(Place {
                from,
                to: lines.text.len(),
                stream: prefix.stream,
                is_after_blank: false,
                is_timed: prefix.is_timed,
            });
        }
        lines.places.reverse();
        lines
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn since(
        &self,
        first: usize,
    ) -> impl DoubleEndedIterator<Item = Line<'_>> + ExactSizeIterator {
        let places = self.places.get(first..).unwrap_or_default();
        places.iter().map(|place| Line {
            text: self.text.get(place.from..place.to).unwrap_or_default(),
            stream: place.stream,
            is_after_blank: place.is_after_blank,
            is_timed: place.is_timed,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Prefix {
    stream: u64,
    is_timed: bool,
}

/// Forms of times, with a log level and a logger's name where present.
static TIME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let date = "[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ]";
    let clock = "[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?";
    let level = "(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|NOTICE)";
    let name = "[A-Za-z_][A-Za-z0-9_.]*";
    let after = r"(?: - | \| |: | |$)";
    // Forms of container logs, of Python's logging, and of Hydra.
    let more = format!(
        r"(?:(?:stdout|stderr) [FP] |(?:{name}(?: - | \| |: | ))?{level} *{after}|(?:\[{name}\])*\[{level}\] *{after})"
    );
    regex(&format!(
        r"^(?:\[?(?:{date})?{clock}\]?{after}?{more}?|{level}:{name}:)"
    ))
});

/// Forms of names: of a rank, a pod, a unit in the journal, a Ray task.
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let rank = r"\[(?:rank|Rank |default|worker|node)[0-9]+\]: ?";
    let open_mpi = r"\[[0-9]+,[0-9]+\]<(?:stdout|stderr)>: ?";
    let journal = r"[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [^ ]+ [^ \[]+\[[0-9]+\]: ";
    let ray = r"\((?:[A-Za-z0-9_.:-]+ )?pid=[0-9]+(?:, ip=[0-9.]+)?\) ";
    let pod = r"\[pod/[^\] ]+\] ";
    regex(&format!("^(?:{rank}|{open_mpi}|{journal}|{ray}|{pod})"))
});

/// The prefixes of `srun -l` and Docker Compose, which other programs may print as text.
static AMBIGUOUS: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"^(?: {0,4}[0-9]{1,5}: |[A-Za-z][A-Za-z0-9_.-]* +\| )"));

fn regex(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

fn length(shape: &LazyLock<Option<Regex>>, text: &str) -> Option<usize> {
    let end = text
        .char_indices()
        .nth(MAX_PREFIX)
        .map_or(text.len(), |(at, _)| at);
    let found = shape.as_ref()?.find(text.get(..end)?)?;
    Some(found.end()).filter(|length| *length > 0)
}

impl Prefix {
    fn split<'a>(text: &'a str, ambiguous: &HasAmbiguousPrefix) -> (Prefix, &'a str) {
        let mut prefix = Prefix::default();
        let mut rest = text;
        let mut hasher = DefaultHasher::new();
        for _ in 0..MAX_PREFIXES {
            let (length, is_name) = if let Some(length) = length(&TIME, rest) {
                prefix.is_timed = true;
                (length, false)
            } else if let Some(length) = length(&NAME, rest) {
                (length, true)
            } else if let Some(length) = ambiguous.0.then(|| length(&AMBIGUOUS, rest)).flatten() {
                (length, true)
            } else {
                break;
            };
            let (name, after) = rest.split_at(length);
            if is_name && is_of_system(name) {
                break;
            }
            if is_name {
                without_time(name).hash(&mut hasher);
                prefix.stream = hasher.finish().max(1);
            }
            rest = after;
        }
        (prefix, rest)
    }
}

/// Whether a name is of a system service and belongs to the message.
fn is_of_system(name: &str) -> bool {
    const WHO: [&str; 6] = ["oom", "nohang", "kernel", "systemd", "kubelet", "slurm"];
    name.ends_with("]: ") && WHO.iter().any(|who| name.contains(who))
}

/// The name without the time before it, as in the journal.
fn without_time(name: &str) -> &str {
    let is_journal = name.ends_with("]: ") && !name.starts_with('[');
    let rest = name.get("Nov 18 10:00:01 ".len()..);
    rest.filter(|_| is_journal).unwrap_or(name).trim()
}

/// Whether an ambiguous prefix is one in this output.
struct HasAmbiguousPrefix(bool);

impl HasAmbiguousPrefix {
    fn detect(output: &[u8]) -> HasAmbiguousPrefix {
        let mut names: HashMap<String, usize> = HashMap::new();
        let (mut lines, mut found) = (0, 0);
        for raw in output.rsplit(|byte| *byte == b'\n').take(4 * SAMPLED_LINES) {
            let start = raw.get(..MAX_PREFIX).unwrap_or(raw);
            let text = sanitize::visible_line(start);
            let (_, rest) = Prefix::split(&text, &HasAmbiguousPrefix(false));
            if rest.trim().is_empty() {
                continue;
            }
            lines += 1;
            if let Some(name) = length(&AMBIGUOUS, rest).and_then(|length| rest.get(..length)) {
                found += 1;
                *names.entry(name.to_owned()).or_default() += 1;
            }
            if lines == SAMPLED_LINES {
                break;
            }
        }
        // Numbers that are all different are a counter.
        HasAmbiguousPrefix(found * 2 > lines && names.len() * 2 <= found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts(output: &str) -> Vec<String> {
        let lines = Lines::read(output.as_bytes(), |_, _| {});
        lines.since(0).map(|line| line.text.to_owned()).collect()
    }

    #[test]
    fn a_prefix_is_recognized_by_its_form() {
        for (line, text) in [
            (
                "2024-05-01T10:00:01.007919Z   File \"t.py\"",
                "  File \"t.py\"",
            ),
            ("2024-05-01T10:00:01+02:00 Killed", "Killed"),
            ("2024-05-01T10:00:01.1Z stderr F Killed", "Killed"),
            ("2024-05-01 10:00:01,123 - INFO - epoch 1", "epoch 1"),
            (
                "2024-05-01 10:00:01,123 - my.name - ERROR -   File",
                "  File",
            ),
            ("[2024-01-01 10:00:00,123][ERROR] Traceback", "Traceback"),
            (
                "[2024-01-01 10:00:00,123][__main__][INFO] - step 1",
                "step 1",
            ),
            ("ERROR:root:could not send", "could not send"),
            ("Nov 18 10:00:01 host python[123]:   File", "  File"),
            ("[rank0]:   File", "  File"),
            ("[default1]:Traceback", "Traceback"),
            ("[1,0]<stderr>:Traceback", "Traceback"),
            ("(train pid=7, ip=10.0.0.1) step 2", "step 2"),
            ("[pod/trainer-0/main] step 2", "step 2"),
            ("2024-05-01T10:00:01Z [rank0]:   File", "  File"),
            ("12:30:01 step 2", "step 2"),
            ("[1/3] Killed", "[1/3] Killed"),
            (
                "Nov 18 10:00:01 box earlyoom[812]: low memory!",
                "Nov 18 10:00:01 box earlyoom[812]: low memory!",
            ),
            ("[1]+  Killed   python", "[1]+  Killed   python"),
            ("12: loss 0.2", "12: loss 0.2"),
            ("epoch | loss", "epoch | loss"),
            ("ERROR: no such file", "ERROR: no such file"),
        ] {
            assert_eq!(texts(line), [text], "{line}");
        }
    }

    #[test]
    fn an_ambiguous_prefix_counts_where_most_lines_have_it() {
        assert_eq!(
            texts("0: a\n1: a\n0:   b\n1:   b\n"),
            ["a", "a", "  b", "  b"]
        );
        assert_eq!(texts("web-1  | a\nweb-1  |   b\n"), ["a", "  b"]);
        let counted = "1: loss 0.3\n2: loss 0.2\n3: loss 0.1\n4: loss 0.1\n";
        assert_eq!(texts(counted)[0], "1: loss 0.3");
    }

    #[test]
    fn lines_of_several_processes_are_kept_apart() {
        let output = "Nov 18 10:00:01 h python[1]: a\nNov 18 10:00:02 h python[1]: b\nNov 18 10:00:02 h python[2]: c\nd\n";
        let lines = Lines::read(output.as_bytes(), |_, _| {});
        let streams: Vec<u64> = lines.since(0).map(|line| line.stream).collect();
        assert_eq!(streams[0], streams[1]);
        assert_ne!(streams[0], streams[2]);
        assert_eq!(streams[3], 0);
    }

    #[test]
    fn overwritten_text_is_removed() {
        let bar = format!("1/60 loss: 0.3{}2/60 loss: nan", "\u{8}".repeat(14));
        let mut drawn = Vec::new();
        let lines = Lines::read(bar.as_bytes(), |line, _| drawn.push(line.to_owned()));
        assert_eq!(lines.since(0).next().unwrap().text, "2/60 loss: nan");
        assert_eq!(drawn, ["2/60 loss: nan", "1/60 loss: 0.3"]);
    }

    #[test]
    fn empty_lines_are_dropped_and_others_limited() {
        let lines = Lines::read(&b"\n".repeat(1 << 20), |_, _| {});
        assert_eq!(lines.len(), 0);
        let lines = Lines::read(&b"a\n".repeat(1 << 20), |_, _| {});
        assert_eq!(lines.len(), MAX_LINES);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, text: String) {
            for bytes in [bytes, text.into_bytes()] {
                let lines = Lines::read(&bytes, |_, _| {});
                prop_assert!(lines.since(0).all(|line| !line.text.trim().is_empty()));
            }
        }
    }
}
