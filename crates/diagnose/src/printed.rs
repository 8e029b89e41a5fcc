//! What a run printed, as far as it tells how it ended. An error after which the training went on ended nothing: it
//! was caught, or was a word in somebody's sentence. Any bytes are read.

mod progress;
mod told;
mod wide;

pub(crate) use progress::is_training;
pub(crate) use told::Told;
pub(crate) use wide::as_utf8;

use crate::kernel::{self, Incident};
use crate::lines::Lines;
use crate::traceback::reader::{Link, Seen, Tracebacks};
use crate::traceback::{CONNECTS_RANKS, Traceback, forms, names_card, tells_of_memory};
use crate::weight::{Weight, is_denied, is_raised, tells_of_more};
use antifreeze_text::signal;
use progress::{LONGEST, closes, is_noise, is_paced, is_progress, shows_progress};

/// So many lines of progress show that it went on.
const WENT_ON: usize = 5;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
