//! What a run printed, as far as it tells how it ended. An error after which the training went on ended nothing: it
//! was caught, or was a word in somebody's sentence. Any bytes are read.

use crate::kernel::{self, Incident};
use crate::lines::Lines;
use crate::signal;
use crate::traceback::reader::{Link, Seen, Tracebacks};
use crate::traceback::{CONNECTS_RANKS, Traceback, forms, names_card, tells_of_memory};
use crate::weight::{Weight, is_denied, is_good_end, is_raised, tells_of_more};

/// So many lines of progress show that it went on.
const WENT_ON: usize = 5;
/// A line of progress is short; a page of text is none.
const LONGEST: usize = 600;
/// So many lines may follow the first of an error's message.
const LONGEST_MESSAGE: usize = 12;
/// An error of which these are the last lines has nothing else after it.
const LAST_LINES: usize = 3;
/// The lines in which trouble shows.
const LATELY: usize = 50;

#[derive(Clone, Debug, Default)]
pub(crate) struct Printed {
    lines: Lines,
    /// The line with which its ending begins.
    ending: usize,
    /// Where it went on last, and where it said that it had ended well; where the order of its lines is known.
    went_on: Option<usize>,
    ended_well: Option<usize>,
    /// The first line of the message of the error that ended it.
    error_at: Option<usize>,
    /// The last error there, of a chain the one that tells most.
    pub traceback: Option<Traceback>,
    /// Its whole message.
    pub message: String,
    /// The other end of its chain.
    pub chained: Option<Chained>,
    /// An error that stood there already when somebody interrupted it.
    pub interrupted: Option<Traceback>,
    /// What speaks against its being the end.
    pub doubt: Doubt,
    /// An error after which it went on for a little.
    pub caught: Option<Traceback>,
    /// The signal that ended it, or a part of it, in the words of a shell or a launcher.
    pub told: Option<Told>,
}

/// What speaks against an error's being the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// Lines of progress follow it.
    pub went_on: bool,
    /// The same was printed before, and it had gone on.
    pub is_again: bool,
    /// What was said of a good end after it.
    pub closing: Option<String>,
}

/// An error of the same chain.
#[derive(Clone, Debug)]
pub(crate) struct Chained {
    pub traceback: Traceback,
    /// It came after the one that tells most.
    pub is_later: bool,
}

/// What is said of a process by who had started it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub signal: u32,
    /// It was one of several. A shell speaks of the whole.
    pub is_part: bool,
}

impl Printed {
    /// `is_all` where nothing else is left of the run. A record keeps standard output and error apart, and what was
    /// printed last is not known: there an ending without an error tells nothing.
    pub fn read(output: &[u8], is_all: bool) -> Printed {
        let mut went_on = 0;
        let mut from_end = None;
        // A bar that is drawn again and again is many lines.
        let lines = Lines::read(output, |drawn, number| {
            if went_on < WENT_ON && drawn.len() <= LONGEST && is_progress(drawn) {
                went_on += 1;
                from_end = (went_on == WENT_ON).then_some(number);
            }
        });
        let ending = from_end.map_or(0, |number| lines.len().saturating_sub(number + 1));
        let tracebacks = Tracebacks::read(&lines, |line| {
            is_noise(line) || closes(line) || is_progress(line) || Told::by(line).is_some()
        });
        let has_error =
            tracebacks.telling(ending).is_some() || forms::syntax_error(&lines, ending).is_some();
        let mut printed = Printed {
            ending: if has_error || is_all { ending } else { 0 },
            lines,
            ..Printed::default()
        };
        if is_all {
            printed.went_on = printed.last_where(shows_progress);
            printed.ended_well = printed.last_where(closes);
        }
        // A shell speaks when all is over; some games and parsers print its words.
        let is_over = |at: usize| printed.went_on.is_none_or(|went_on| at > went_on);
        let told = printed.numbered().filter_map(|(at, line)| {
            let told = Told::by(line)?;
            let counts = told.is_part && !printed.was_replaced(at) || is_over(at);
            counts.then_some(told)
        });
        let told: Vec<Told> = told.collect();
        // Those that are left over are asked to end: that is not how it began.
        let first = told.iter().find(|told| told.signal != signal::TERMINATE);
        printed.told = first.or(told.first()).copied();
        match tracebacks.telling(printed.ending) {
            Some(seen) => printed.take(seen, &tracebacks),
            None => printed.traceback = forms::syntax_error(&printed.lines, printed.ending),
        }
        printed.message = printed
            .traceback
            .as_ref()
            .map_or_else(String::new, Traceback::message);
        if is_all && printed.doubt.went_on {
            printed.set_aside();
        }
        printed.error_at = printed.place_of_error();
        printed
    }

    /// The error that tells most, and what is known of it.
    fn take(&mut self, seen: &Seen, tracebacks: &Tracebacks) {
        self.doubt = self.doubt_of(seen, tracebacks);
        let root = tracebacks.root(seen);
        let first = root.map_or(seen.first, |(_, root)| root.first);
        if seen.traceback.is_interrupt() {
            let those = tracebacks.since(self.ending).rev();
            let earlier = those.filter(|other| other.first < first).find(|other| {
                let traceback = &other.traceback;
                !(traceback.is_interrupt()
                    || traceback.blames_another()
                    || traceback.error.is_empty())
            });
            self.interrupted = earlier
                .filter(|other| !self.went_on(other, first))
                .map(|other| other.traceback.clone());
        }
        let last = seen.traceback.clone();
        match root.filter(|(_, root)| !root.traceback.error.is_empty()) {
            Some((link, root)) if tells_more(&root.traceback, link, &last) => {
                self.traceback = Some(root.traceback.clone());
                self.chained = Some(Chained {
                    traceback: last,
                    is_later: true,
                });
            }
            root => {
                self.traceback = Some(last);
                self.chained = root.map(|(_, root)| Chained {
                    traceback: root.traceback.clone(),
                    is_later: false,
                });
            }
        }
    }

    fn doubt_of(&self, seen: &Seen, tracebacks: &Tracebacks) -> Doubt {
        // Who started it has the last word, whatever others printed in between.
        let mut after = tracebacks.since(seen.last + 1);
        if self.told.is_some() || after.any(|other| other.traceback.blames_another()) {
            return Doubt::default();
        }
        let mut before = tracebacks.since(0).rev();
        let same = before.find(|other| {
            other.first < seen.first
                && other.stream == seen.stream
                && other.traceback.frame == seen.traceback.frame
                && other.traceback.kind() == seen.traceback.kind()
        });
        Doubt {
            went_on: self.went_on(seen, self.lines.len()),
            is_again: same.is_some_and(|same| self.went_on(same, seen.first)),
            closing: self.closing(seen.last + 1),
        }
    }

    /// It made progress after an error, and before a line.
    fn went_on(&self, seen: &Seen, until: usize) -> bool {
        let first = seen.last + 1;
        self.lines
            .since(first)
            .take(until.saturating_sub(first))
            .filter(|line| line.stream == seen.stream)
            // A bar is drawn once more when it is given up.
            .any(|line| is_progress(line.text) && !is_paced(line.text))
    }

    /// A process that was lost there was started again, or was not missed: the training went on, and ended well or as
    /// its launcher had said.
    fn was_replaced(&self, lost: usize) -> bool {
        const AGAIN: [&str; 2] = ["will restart worker group", "Restarting worker group"];
        let later = |place: Option<usize>| place.is_some_and(|place| place > lost);
        let is_restart = |line: &str| AGAIN.iter().any(|words| line.contains(words));
        let ended_well = later(self.ended_well) && self.good_end().is_some();
        let until = self.went_on.unwrap_or(lost);
        let mut between = self.numbered().filter(|(at, _)| (lost..until).contains(at));
        later(self.went_on) && (ended_well || between.any(|(_, line)| is_restart(line)))
    }

    /// It was no error that ended it.
    pub fn set_aside(&mut self) {
        self.caught = self.traceback.take();
        self.message = String::new();
        self.chained = None;
    }

    /// The other end of a chain takes the place of the one that tells most.
    pub fn turned(mut self) -> Option<Printed> {
        let chained = self.chained.take()?;
        self.message = chained.traceback.message();
        let traceback = self.traceback.replace(chained.traceback)?;
        self.chained = Some(Chained {
            traceback,
            is_later: !chained.is_later,
        });
        Some(self)
    }

    /// What it said last since a line, where that is of a good end.
    fn closing(&self, since: usize) -> Option<String> {
        let mut lines = self.lines.since(since).rev();
        let last = lines.find(|line| !is_noise(line.text))?;
        closes(last.text).then(|| last.text.trim().to_owned())
    }

    /// The last words of a run that ended well.
    pub fn good_end(&self) -> Option<String> {
        self.closing(self.ending)
    }

    /// It printed something, and nothing of trouble at the end.
    pub fn is_quiet(&self) -> bool {
        const TROUBLE: [&str; 8] = [
            "error",
            "fail",
            "exception",
            "abort",
            "kill",
            "cannot",
            "can't",
            "fatal",
        ];
        let lately = self.ending().rev().take(LATELY).map(str::to_lowercase);
        let mut lately = lately.peekable();
        lately.peek().is_some()
            && !lately.any(|line| TROUBLE.iter().any(|word| line.contains(word)))
    }

    /// All lines that are not empty.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.since(0).map(|line| line.text)
    }

    /// Those after which it made no progress, as far as their order is known.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &str> {
        let first = self.went_on.map_or(self.ending, |went_on| went_on + 1);
        self.lines.since(first).map(|line| line.text)
    }

    /// What the kernel says there: somebody put its log below the output, or both come from one console.
    pub fn kernel_log(&self) -> Vec<Incident> {
        kernel::pasted(self.last())
    }

    /// Those after which it did not go on.
    pub fn ending(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.since(self.ending).map(|line| line.text)
    }
}

impl Printed {
    /// The lines of the ending, with their numbers among all.
    fn numbered(&self) -> impl DoubleEndedIterator<Item = (usize, &str)> {
        let lines = self.lines.since(self.ending).enumerate();
        lines.map(|(at, line)| (self.ending + at, line.text))
    }

    fn last_where(&self, is_it: impl Fn(&str) -> bool) -> Option<usize> {
        let mut lines = self.numbered();
        lines.rfind(|(_, line)| is_it(line)).map(|(at, _)| at)
    }

    fn place_of_error(&self) -> Option<usize> {
        let error = self.traceback.as_ref()?.error.trim();
        self.last_where(|line| !error.is_empty() && line.trim_end().ends_with(error))
    }

    /// The line of the ending with one of these that tells the most of the end, the last of several.
    pub fn line_with(&self, words: &[&str]) -> Option<(Weight, &str)> {
        let holding = self.numbered().filter_map(|(at, line)| {
            let mut held = words.iter().filter(|word| line.contains(**word));
            let word = held.find(|word| !is_denied(line, word))?;
            Some((self.weight(at, line, word), line))
        });
        let best = holding.max_by_key(|(weight, _)| *weight);
        best.filter(|(weight, _)| *weight > Weight::None)
    }

    /// How much this line of the ending tells of the end.
    fn weight(&self, at: usize, line: &str, word: &str) -> Weight {
        let is_of_message = self
            .error_at
            .is_some_and(|error| (error..error + LONGEST_MESSAGE).contains(&at));
        let before = |place: Option<usize>| place.is_some_and(|place| place > at);
        let ends = self.lines.len().saturating_sub(at) <= LAST_LINES
            && line.trim_start().starts_with(word);
        match Weight::of(line) {
            _ if is_of_message => Weight::Error,
            _ if before(self.ended_well) => Weight::None,
            Weight::Error if before(self.went_on) => Weight::Past,
            _ if before(self.went_on) => Weight::None,
            // Nothing came after it, and it is no part of a sentence.
            Weight::Word if ends && !tells_of_more(line) => Weight::Error,
            // An error of something else ended it.
            Weight::Error
                if before(self.error_at)
                    && !is_raised(line)
                    && !self.is_of_machine()
                    && !self.explains_lack(line) =>
            {
                Weight::Word
            }
            weight => weight,
        }
    }

    /// The error that ended it says that there is no card, and this line is about cards too.
    fn explains_lack(&self, line: &str) -> bool {
        let traceback = self.traceback.as_ref();
        traceback.is_some_and(Traceback::lacks_card) && names_card(&line.to_lowercase())
    }

    /// The error that ended it is one that the machine, a card or another process may have made.
    fn is_of_machine(&self) -> bool {
        const NAMES: [&str; 8] = [
            "CUDA", "HIP", "GPU", "cuda", "cuDNN", "CUDNN", "CUBLAS", "rrno ",
        ];
        let Some(traceback) = &self.traceback else {
            return true;
        };
        let error = &traceback.error;
        let names = |words: &[&str]| words.iter().any(|word| error.contains(word));
        traceback.blames_another()
            || tells_of_memory(error)
            // Only what is about cards explains that there is none.
            || names(&NAMES) && !traceback.lacks_card()
            || names(&CONNECTS_RANKS)
    }
}

/// Of a chain the first is what happened, but where the last was raised in its place, or the first was only tried.
fn tells_more(root: &Traceback, link: Link, last: &Traceback) -> bool {
    const TRIED: [&str; 9] = [
        "KeyError",
        "IndexError",
        "AttributeError",
        "StopIteration",
        "ImportError",
        "ModuleNotFoundError",
        "FileNotFoundError",
        "Empty",
        "_queue.Empty",
    ];
    if last.is_interrupt() || root.blames_another() {
        return false;
    }
    let is_by_chance = link == Link::Handling && !last.is_raised && !TRIED.contains(&root.kind());
    root.is_interrupt()
        || last.kind() == "SystemExit"
        || is_by_chance
        || tells_of_memory(&root.error) && !tells_of_memory(&last.error)
}

fn closes(line: &str) -> bool {
    line.len() <= LONGEST && is_good_end(line)
}

/// What is printed while a process goes down, whatever it goes down for.
fn is_noise(line: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "wandb:",
        "Exception ignored",
        "Process ",
        "srun:",
        "slurmstepd:",
        "make:",
        "make[",
        "ERROR conda",
        "Sending process",
        "terminate called",
        "-----",
        "=====",
        "^C",
        "Exception in thread",
    ];
    const WORDS: [&str; 4] = [
        "resource_tracker",
        "leaked semaphore",
        "Warning: ",
        "warnings.warn",
    ];
    // W1116 12:00:00.1 12 api.py:897] …
    let is_glog = matches!(
        line.as_bytes(),
        [b'I' | b'W' | b'E' | b'F', rest @ ..]
            if rest.get(..4).is_some_and(|date| date.iter().all(u8::is_ascii_digit))
    );
    is_glog
        || BEGINNINGS.iter().any(|words| line.starts_with(words))
        || WORDS.iter().any(|words| line.contains(words))
}

/// A bar is drawn once more when an error ends it, and what is logged elsewhere is summed up: neither is progress.
fn shows_progress(line: &str) -> bool {
    line.len() <= LONGEST
        && !line.starts_with("wandb:")
        && !line.contains("%|")
        && is_progress(line)
}

/// "epoch 3", "step: 40", "train_loss=0.2", "12/100 [", "3.9it/s"; a line of code or of an error is none.
pub(crate) fn is_progress(line: &str) -> bool {
    const NAMES: [&str; 6] = ["epoch", "step", "iter", "iteration", "batch", "loss"];
    if line.len() > LONGEST {
        return false;
    }
    let line = line.to_lowercase();
    // The summary at the end repeats the last of everything.
    if ["error", "exception", "traceback", "file \"", "wandb:"]
        .iter()
        .any(|word| line.contains(word))
    {
        return false;
    }
    // The lines of a traceback that show code are indented.
    let is_named = !line.starts_with("  ")
        && NAMES.iter().any(|name| {
            line.match_indices(name).any(|(at, _)| {
                let (before, after) = line.split_at(at);
                // An option of a command says what is wanted.
                if before.split(' ').next_back().is_some_and(is_option) {
                    return false;
                }
                let after = after.get(name.len()..).unwrap_or_default();
                let value =
                    after.trim_start_matches([':', '=', ' ', '\'', '"', '[', '#', '(', '|', '-']);
                value.starts_with(|next: char| next.is_ascii_digit())
            })
        });
    is_named || is_paced(&line) || is_trial(&line)
}

/// `--` or `--max-`.
fn is_option(begin: &str) -> bool {
    let name = begin.strip_prefix("--");
    name.is_some_and(|name| !name.starts_with('-'))
}

/// `Trial 2 finished with value: 0.8`: of a search for parameters.
fn is_trial(line: &str) -> bool {
    line.split_once("trial ").is_some_and(|(_, after)| {
        let rest = after.trim_start_matches(|next: char| next.is_ascii_digit());
        let is_over = [" finished", " pruned", " complete"];
        rest.len() < after.len() && is_over.iter().any(|words| rest.starts_with(words))
    })
}

/// It trains: what is only read, fetched or made ready first has bars as well.
pub(crate) fn is_training(line: &str) -> bool {
    const BEFORE: [&str; 12] = [
        "load", "read", "download", "fetch", "extract", "process", "tokeniz", "map", "cach",
        "import", "shard", "generat",
    ];
    let lower = line.to_lowercase();
    let has_loss = lower.contains("loss");
    let is_bare = is_paced(&lower)
        && !["epoch", "step", "iter"]
            .iter()
            .any(|name| lower.contains(name));
    is_progress(line) && (has_loss || !is_bare && !BEFORE.iter().any(|word| lower.contains(word)))
}

/// A bar.
fn is_paced(line: &str) -> bool {
    const PACES: [&str; 4] = ["it/s", "s/it", "ms/step", "s/step"];
    PACES.iter().any(|pace| {
        line.match_indices(pace).any(|(at, _)| {
            let before = line.get(..at).unwrap_or_default();
            before.ends_with(|last: char| last.is_ascii_digit() || last == '?')
        })
    })
}

impl Told {
    fn by(line: &str) -> Option<Told> {
        let line = line.trim();
        // Of one of several, what started them tells its rank, its number or its name.
        const PARTS: [&str; 5] = [
            "exitcode",
            "return code",
            "received by PID",
            "DataLoader worker",
            "process ",
        ];
        let by_shell = by_shell(line).map(|signal| Told {
            signal,
            is_part: false,
        });
        by_shell.or_else(|| {
            let is_part = PARTS.iter().any(|part| line.contains(part));
            by_launcher(line).map(|signal| Told { signal, is_part })
        })
    }
}

/// As the C library calls them.
const WORDS: [(&str, u32); 8] = [
    ("Killed", signal::KILL),
    ("Terminated", signal::TERMINATE),
    ("Hangup", signal::HANG_UP),
    ("Aborted", signal::ABORT),
    ("Segmentation fault", 11),
    ("Bus error", signal::BUS),
    ("Illegal instruction", 4),
    ("Floating point exception", 8),
];

/// The signal whose name this begins with.
pub(crate) fn word_for(text: &str) -> Option<u32> {
    let word = WORDS.iter().find(|(word, _)| text.starts_with(word));
    word.map(|(_, signal)| *signal)
}

/// `Killed`, `run.sh: line 3: 4242 Killed  python train.py`, `[1]+  Killed  python train.py`, `zsh: killed  python`,
/// `make: *** [train] Killed`, `srun: error: node1: task 0: Killed`.
fn by_shell(line: &str) -> Option<u32> {
    let is_word = |text: &str| {
        let bare = text.strip_suffix("(core dumped)").unwrap_or(text).trim();
        // On a Mac its number follows.
        let bare = match bare.split_once(": ") {
            Some((word, number))
                if word_for(word).is_some_and(|signal| number == signal.to_string()) =>
            {
                word
            }
            _ => bare,
        };
        // What Python writes by itself.
        let bare = bare.strip_prefix("Fatal Python error: ").unwrap_or(bare);
        // Other such exceptions are often caught.
        if let Some(what) = bare.strip_prefix("Windows fatal exception: ") {
            let is_fall = what == "access violation" || what == "stack overflow";
            return is_fall.then_some(11);
        }
        WORDS
            .iter()
            .find(|(word, _)| bare == *word)
            .map(|(_, signal)| *signal)
    };
    if let Some(signal) = is_word(line) {
        return Some(signal);
    }
    let without_number = |text: &'_ str| -> Option<String> {
        let rest = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
        (rest.len() < text.len()).then(|| rest.trim_start().to_owned())
    };
    if let Some((_, rest)) = line.split_once(": line ") {
        let rest = without_number(rest)?;
        let process = rest.strip_prefix(':')?.trim_start();
        return word_for(&without_number(process)?);
    }
    if let Some(rest) = line.strip_prefix('[') {
        let rest = without_number(rest)?;
        return word_for(rest.strip_prefix(']')?.trim_start_matches(['+', '-', ' ']));
    }
    if let Some(rest) = line.strip_prefix("zsh: ") {
        const ZSH: [(&str, u32); 6] = [
            ("killed", signal::KILL),
            ("terminated", signal::TERMINATE),
            ("segmentation fault", 11),
            ("bus error", signal::BUS),
            ("abort", signal::ABORT),
            ("illegal hardware instruction", 4),
        ];
        return ZSH
            .iter()
            .find(|(word, _)| rest.starts_with(word))
            .map(|(_, signal)| *signal);
    }
    if line.starts_with("make") && line.contains(": *** [") {
        return is_word(line.rsplit_once(']')?.1);
    }
    if line.starts_with("srun: error: ") {
        return is_word(line.rsplit_once(": ")?.1);
    }
    None
}

/// `failed (exitcode: -9) local_rank: 0`, `Signal 9 (SIGKILL) received by PID 7`, `terminated with signal SIGKILL`,
/// `exits with return code = -9`, `DataLoader worker (pid 7) is killed by signal: Killed`.
fn by_launcher(line: &str) -> Option<u32> {
    // What one is about to do to those that are left over.
    if line.contains("closing signal") || line.contains("ending signal") {
        return None;
    }
    let after = |mark: &str| {
        line.split_once(mark)
            .map(|(_, rest)| rest.trim_start_matches([' ', ':', '=']))
    };
    if let Some(rest) = after("is killed by signal") {
        return word_for(rest);
    }
    for mark in [
        "erminated with signal",
        "erminated by signal",
        "got signal",
        "exited on signal",
        "<Signals.",
        "Signal",
    ] {
        // A lead of an ECG is a signal, too.
        let is_named = mark != "Signal" || line.contains("(SIG") || line.contains("received");
        let Some(rest) = after(mark).filter(|_| is_named) else {
            continue;
        };
        let end = rest
            .find(|next: char| !next.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let number = word.parse().ok().or_else(|| signal::by_name(word));
        if let Some(number) = number.filter(|number| (1..=64).contains(number)) {
            return Some(number);
        }
    }
    // As shells of Windows show it.
    let bare = line
        .parse::<i64>()
        .ok()
        .filter(|status| *status < -1 || *status > 1 << 31);
    if let Some(told) = bare.and_then(|status| of_windows(status as u32)) {
        return Some(told);
    }
    for mark in [
        "exitcode",
        "xit code",
        "xit Code",
        "return code",
        "exited with code",
    ] {
        let Some(rest) = after(mark) else { continue };
        let hex = rest.get(..10).filter(|hex| hex.starts_with("0x"));
        let hex = hex.and_then(|hex| u32::from_str_radix(hex.get(2..)?, 16).ok());
        if let Some(told) = hex.and_then(of_windows) {
            return Some(told);
        }
        let is_below = rest.starts_with('-');
        let digits = rest.trim_start_matches('-');
        let end = digits
            .find(|next: char| !next.is_ascii_digit())
            .unwrap_or(digits.len());
        let Some(code) = digits.get(..end).and_then(|digits| digits.parse().ok()) else {
            continue;
        };
        let status = if is_below {
            0u32.wrapping_sub(code)
        } else {
            code
        };
        let told = match is_below {
            _ if of_windows(status).is_some() => of_windows(status),
            true => Some(code).filter(|number| (1..=64).contains(number)),
            false => signal::Exit::Code(code).deadly_signal(),
        };
        if told.is_some() {
            return told;
        }
    }
    None
}

/// What Windows ends a program with that crashed.
fn of_windows(status: u32) -> Option<u32> {
    Some(match status {
        0xC000_0005 => 11,
        0xC000_001D => 4,
        0xC000_0094 => 8,
        0xC000_0409 | 0xC000_0374 => signal::ABORT,
        _ => return None,
    })
}

/// What PowerShell and some editors save: two bytes for each character. A mark at the beginning tells; where it was cut
/// off, the letters that people use most have a zero in every other byte.
pub(crate) fn as_utf8(output: Vec<u8>) -> Vec<u8> {
    let decoded = |bytes: &[u8], each: fn([u8; 2]) -> u16| -> Vec<u8> {
        let units = bytes.chunks_exact(2).map(|pair| each([pair[0], pair[1]]));
        let text =
            char::decode_utf16(units).map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER));
        text.collect::<String>().into_bytes()
    };
    match output.as_slice() {
        [0xff, 0xfe, rest @ ..] => decoded(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decoded(rest, u16::from_be_bytes),
        bytes => match zeros(bytes) {
            (few, many) if is_wide(few, many, bytes) => decoded(bytes, u16::from_le_bytes),
            (many, few) if is_wide(few, many, bytes) => decoded(bytes, u16::from_be_bytes),
            _ => output,
        },
    }
}

/// Of a text's beginning.
const SAMPLE: usize = 4096;

/// How many bytes are 0 of those at even places, and at odd ones.
fn zeros(bytes: &[u8]) -> (usize, usize) {
    let sample = bytes.get(..SAMPLE).unwrap_or(bytes);
    let of = |first: usize| {
        let every = sample.iter().skip(first).step_by(2);
        every.filter(|byte| **byte == 0).count()
    };
    (of(0), of(1))
}

fn is_wide(few: usize, many: usize, bytes: &[u8]) -> bool {
    let pairs = bytes.len().min(SAMPLE) / 2;
    pairs >= 8 && many * 3 >= pairs && few * 50 <= pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_word_of_a_shell_or_a_launcher_is_understood() {
        for (line, signal, is_part) in [
            ("Killed", 9, false),
            ("Segmentation fault (core dumped)", 11, false),
            (
                "./run.sh: line 3: 12345 Segmentation fault      (core dumped) python train.py",
                11,
                false,
            ),
            ("[1]+  Killed                  python train.py", 9, false),
            (
                "zsh: illegal hardware instruction (core dumped)  python train.py",
                4,
                false,
            ),
            ("make: *** [Makefile:3: train] Killed", 9, false),
            (
                "srun: error: node01: task 0: Bus error (core dumped)",
                7,
                false,
            ),
            (
                "E1116 api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 7) of binary: python",
                9,
                true,
            ),
            ("  exitcode  : -11 (pid: 123)", 11, true),
            (
                "  traceback : Signal 9 (SIGKILL) received by PID 123",
                9,
                true,
            ),
            (
                "ProcessExitedException: process 0 terminated with signal SIGKILL",
                9,
                true,
            ),
            (
                "launch.py: ['python', 'train.py'] exits with return code = -9",
                9,
                true,
            ),
            ("trainer-1 exited with code 137", 9, false),
            ("Segmentation fault: 11", 11, false),
            ("Fatal Python error: Segmentation fault", 11, false),
            (
                "mpirun noticed that process rank 3 with PID 12 on node n01 exited on signal 9 (Killed).",
                9,
                true,
            ),
            (
                "Process finished with exit code -1073741819 (0xC0000005)",
                11,
                false,
            ),
            (
                "Process finished with exit code 139 (interrupted by signal 11:SIGSEGV)",
                11,
                false,
            ),
            ("Command terminated by signal 9", 9, false),
            ("      Exit Code:    137", 9, false),
            ("Windows fatal exception: access violation", 11, false),
            ("-1073741819", 11, false),
            ("3221225477", 11, false),
            ("python.exe exited with exit code 0xC0000005", 11, false),
            (
                "subprocess.CalledProcessError: Command '['python', 't.py']' died with <Signals.SIGKILL: 9>.",
                9,
                false,
            ),
            (
                "fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)",
                9,
                false,
            ),
            (
                "RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault. ",
                11,
                true,
            ),
        ] {
            assert_eq!(Told::by(line), Some(Told { signal, is_part }), "{line}");
        }
        for line in [
            "Killed it: 3 epochs in a row",
            "The film was Killed",
            "Terminated early: no improvement",
            "Sending process 124 closing signal SIGTERM",
            "failed (exitcode: 1) local_rank: 0 (pid: 7)",
            "Signal to noise 9",
            "Signal 1: lead I, 500 Hz",
            "Fatal Python error: init_fs_encoding: no codec",
            "Killed: 3",
            "the job exited with code 0",
            "[1/3] Killed",
            "Windows fatal exception: code 0xe06d7363",
            "      Exit Code:    1",
            "-9",
            "137",
        ] {
            assert_eq!(Told::by(line), None, "{line}");
        }
    }

    #[test]
    fn progress_is_told_from_code_and_errors() {
        for line in [
            "Epoch 3: train_loss=0.2",
            "step 40",
            "{'loss': 0.31, 'epoch': 0.1}",
            " 10%|#         | 1/10 [00:00<00:04,  2.00it/s]",
            "50/100 [=====>....] - ETA: 5s - loss: 0.2",
            "--- epoch 3 ---",
            "---epoch 3---",
        ] {
            assert!(is_progress(line), "{line}");
        }
        for line in [
            "    loss = 0.5 * x",
            "  File \"train.py\", line 3, in step",
            "RuntimeError: bad loss 3",
            "the step that failed",
            "PS C:\\yolo> python train.py --workers 8 --batch 16 --max-iter=90",
            "",
        ] {
            assert!(!is_progress(line), "{line}");
        }
    }

    #[test]
    fn training_is_told_from_what_comes_before_it() {
        for line in [
            "Epoch 3: train_loss=0.2",
            "step 40",
            " 37%|### | 874/2344 [05:11<08:43, 2.81it/s, loss=1.12]",
            "Trial 2 finished with value: 0.8 and parameters: {}",
        ] {
            assert!(is_training(line), "{line}");
        }
        for line in [
            "loading images:  83%|### | 99713/120000 [06:12<01:15, 267.11it/s]",
            " 83%|### | 99713/120000 [06:12<01:15, 267.11it/s]",
            "Reading batch 3 of 9",
            "Trial 2 failed with value None.",
            "import torch",
        ] {
            assert!(!is_training(line), "{line}");
        }
    }

    #[test]
    fn what_was_printed_before_it_went_on_is_not_its_ending() {
        let bad = "Killed\n";
        let goes_on = "epoch 1 loss 0.2\n".repeat(9);
        assert_eq!(
            Printed::read(format!("{bad}{goes_on}").as_bytes(), true).told,
            None
        );
        assert!(
            Printed::read(format!("{goes_on}{bad}").as_bytes(), true)
                .told
                .is_some()
        );
        let drawn = "1/9 [00:01, 2.0it/s]\r".repeat(9);
        assert_eq!(
            Printed::read(format!("{bad}{drawn}").as_bytes(), true).told,
            None
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, is_all: bool) {
            let bytes = as_utf8(bytes);
            let printed = Printed::read(&bytes, is_all);
            prop_assert!(printed.ending().count() <= printed.lines().count());
        }

        #[test]
        fn any_line_is_read(line: String) {
            Told::by(&line);
            is_progress(&line);
        }
    }
}
