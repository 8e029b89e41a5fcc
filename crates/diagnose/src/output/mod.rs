//! The output of a run, as far as it shows how the run ended. An error after which training continued did not end it: the
//! error was caught, or only mentioned. Any bytes can be parsed.

pub(crate) mod divergence;
pub(crate) mod error_line;
mod exit_notice;
pub(crate) mod lines;
pub(crate) mod losses;
mod progress;
pub mod traceback;
pub(crate) mod utf16;

pub(crate) use exit_notice::ExitNotice;
pub(crate) use progress::is_training;

use crate::kernel::{self, Incident};
use crate::output::error_line::{ErrorLine, announces_recovery, is_denied, is_raised};
use crate::output::lines::Lines;
use crate::output::traceback::reader::{Link, LocatedTraceback, Tracebacks};
use crate::output::traceback::{
    CONNECTS_RANKS, Traceback, forms, names_gpu, reports_out_of_memory,
};
use antifreeze_text::signal;
use progress::{MAX_LINE_BYTES, has_rate, is_noise, is_progress, reports_success, shows_progress};

/// So many lines of progress show that the run continued.
const MIN_PROGRESS_LINES: usize = 5;
/// So many lines may follow the first line of an error message.
const MAX_MESSAGE_LINES: usize = 12;
/// An error within so many lines of the end has nothing relevant after it.
const LAST_LINES: usize = 3;
/// So many lines at the end are searched for words of failure.
const TROUBLE_LINES: usize = 50;

/// The parsed output of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrintedOutput {
    lines: Lines,
    /// The first line of its last part, after which training did not continue.
    ending: usize,
    /// The last line of progress, where the order of the lines is known.
    went_on: Option<usize>,
    /// The last line that reports success, where the order of the lines is known.
    ended_well: Option<usize>,
    /// The first line of the message of the error that ended it.
    error_at: Option<usize>,
    /// The last error; of a chain of errors, the one that explains the most.
    pub traceback: Option<Traceback>,
    /// Its whole message.
    pub message: String,
    /// The other end of that chain.
    pub chained: Option<ChainedError>,
    /// An error that was already printed when the run was interrupted.
    pub interrupted: Option<Traceback>,
    /// Signs that the error did not end the run.
    pub doubt: Doubt,
    /// An error after which the run continued.
    pub caught: Option<Traceback>,
    /// The signal that ended the run or one of its processes, as a shell or launcher reports.
    pub exit_notice: Option<ExitNotice>,
}

/// Signs that an error did not end the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// Lines of progress follow it.
    pub went_on: bool,
    /// The same error was printed before, and the run continued.
    pub is_again: bool,
    /// A report of success after it.
    pub closing: Option<String>,
}

/// The other error of a chain.
#[derive(Clone, Debug)]
pub(crate) struct ChainedError {
    pub traceback: Traceback,
    /// It came after the one that explains the most.
    pub is_later: bool,
}

impl PrintedOutput {
    /// Parses output. `is_all` where nothing else is left of the run. A record keeps standard output and standard error
    /// apart, so the order of the lines is not known, and an end without an error means nothing.
    pub fn parse(output: &[u8], is_all: bool) -> PrintedOutput {
        let mut went_on = 0;
        let mut from_end = None;
        // A progress bar that is redrawn counts as many lines.
        let lines = Lines::read(output, |drawn, number| {
            if went_on < MIN_PROGRESS_LINES && drawn.len() <= MAX_LINE_BYTES && is_progress(drawn) {
                went_on += 1;
                from_end = (went_on == MIN_PROGRESS_LINES).then_some(number);
            }
        });
        let ending = from_end.map_or(0, |number| lines.len().saturating_sub(number + 1));
        let tracebacks = Tracebacks::read(&lines, |line| {
            is_noise(line)
                || reports_success(line)
                || is_progress(line)
                || ExitNotice::parse(line).is_some()
        });
        let has_error =
            tracebacks.telling(ending).is_some() || forms::syntax_error(&lines, ending).is_some();
        let mut printed = PrintedOutput {
            ending: if has_error || is_all { ending } else { 0 },
            lines,
            ..PrintedOutput::default()
        };
        if is_all {
            printed.went_on = printed.last_where(shows_progress);
            printed.ended_well = printed.last_where(reports_success);
        }
        // A shell reports after the end; some programs print the same words earlier.
        let is_over = |at: usize| printed.went_on.is_none_or(|went_on| at > went_on);
        let told = printed.numbered().filter_map(|(at, line)| {
            let told = ExitNotice::parse(line)?;
            let counts = told.is_one_of_several && !printed.was_replaced(at) || is_over(at);
            counts.then_some(told)
        });
        let told: Vec<ExitNotice> = told.collect();
        // SIGTERM is what a launcher sends to the remaining processes, so it is not the first signal.
        let first = told.iter().find(|told| told.signal != signal::TERMINATE);
        printed.exit_notice = first.or(told.first()).copied();
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

    /// Takes over the error that explains the most.
    fn take(&mut self, seen: &LocatedTraceback, tracebacks: &Tracebacks) {
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
            Some((link, root)) if explains_more(&root.traceback, link, &last) => {
                self.traceback = Some(root.traceback.clone());
                self.chained = Some(ChainedError {
                    traceback: last,
                    is_later: true,
                });
            }
            root => {
                self.traceback = Some(last);
                self.chained = root.map(|(_, root)| ChainedError {
                    traceback: root.traceback.clone(),
                    is_later: false,
                });
            }
        }
    }

    fn doubt_of(&self, seen: &LocatedTraceback, tracebacks: &Tracebacks) -> Doubt {
        // The launcher reports last, whatever other processes printed in between.
        let mut after = tracebacks.since(seen.last + 1);
        if self.exit_notice.is_some() || after.any(|other| other.traceback.blames_another()) {
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

    /// Whether the process made progress after an error and before a line.
    fn went_on(&self, seen: &LocatedTraceback, until: usize) -> bool {
        let first = seen.last + 1;
        self.lines
            .since(first)
            .take(until.saturating_sub(first))
            .filter(|line| line.stream == seen.stream)
            // A progress bar is redrawn once more when it is abandoned.
            .any(|line| is_progress(line.text) && !has_rate(line.text))
    }

    /// Whether a process that was lost at a line was restarted or not needed: training continued, and succeeded or the
    /// launcher announced a restart.
    fn was_replaced(&self, lost: usize) -> bool {
        const AGAIN: [&str; 2] = ["will restart worker group", "Restarting worker group"];
        let later = |place: Option<usize>| place.is_some_and(|place| place > lost);
        let is_restart = |line: &str| AGAIN.iter().any(|words| line.contains(words));
        let ended_well = later(self.ended_well) && self.good_end().is_some();
        let until = self.went_on.unwrap_or(lost);
        let mut between = self.numbered().filter(|(at, _)| (lost..until).contains(at));
        later(self.went_on) && (ended_well || between.any(|(_, line)| is_restart(line)))
    }

    /// Marks the error as caught: it did not end the run.
    pub fn set_aside(&mut self) {
        self.caught = self.traceback.take();
        self.message = String::new();
        self.chained = None;
    }

    /// The output with the other error of the chain as its main error.
    pub fn turned(mut self) -> Option<PrintedOutput> {
        let chained = self.chained.take()?;
        self.message = chained.traceback.message();
        let traceback = self.traceback.replace(chained.traceback)?;
        self.chained = Some(ChainedError {
            traceback,
            is_later: !chained.is_later,
        });
        Some(self)
    }

    /// The last line since a line, if it reports success.
    fn closing(&self, since: usize) -> Option<String> {
        let mut lines = self.lines.since(since).rev();
        let last = lines.find(|line| !is_noise(line.text))?;
        reports_success(last.text).then(|| last.text.trim().to_owned())
    }

    /// The last line, if it reports success.
    pub fn good_end(&self) -> Option<String> {
        self.closing(self.ending)
    }

    /// Whether it has lines, and its last lines have no words of failure.
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
        let lately = self
            .ending()
            .rev()
            .take(TROUBLE_LINES)
            .map(str::to_lowercase);
        let mut lately = lately.peekable();
        lately.peek().is_some()
            && !lately.any(|line| TROUBLE.iter().any(|word| line.contains(word)))
    }

    /// All lines that are not empty.
    pub fn lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.since(0).map(|line| line.text)
    }

    /// The lines after the last progress, as far as their order is known.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &str> {
        let first = self.went_on.map_or(self.ending, |went_on| went_on + 1);
        self.lines.since(first).map(|line| line.text)
    }

    /// Incidents from lines of the kernel in the output, where its log was appended or a console has both.
    pub fn kernel_log(&self) -> Vec<Incident> {
        kernel::incidents_in_output(self.last())
    }

    /// The lines of the last part, after which training did not continue.
    pub fn ending(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.since(self.ending).map(|line| line.text)
    }
}

impl PrintedOutput {
    /// The lines of the last part with their numbers.
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

    /// Finds the line of the last part with one of these phrases that says the most about the end; the last of several.
    pub fn find_line(&self, words: &[&str]) -> Option<(ErrorLine, &str)> {
        let holding = self.numbered().filter_map(|(at, line)| {
            let mut held = words.iter().filter(|word| line.contains(**word));
            let word = held.find(|word| !is_denied(line, word))?;
            Some((self.classify_line(at, line, word), line))
        });
        let best = holding.max_by_key(|(weight, _)| *weight);
        best.filter(|(weight, _)| *weight > ErrorLine::Hint)
    }

    /// Classifies a line of the last part by its form and position.
    fn classify_line(&self, at: usize, line: &str, word: &str) -> ErrorLine {
        let is_of_message = self
            .error_at
            .is_some_and(|error| (error..error + MAX_MESSAGE_LINES).contains(&at));
        let before = |place: Option<usize>| place.is_some_and(|place| place > at);
        let ends = self.lines.len().saturating_sub(at) <= LAST_LINES
            && line.trim_start().starts_with(word);
        match ErrorLine::classify(line) {
            _ if is_of_message => ErrorLine::Error,
            _ if before(self.ended_well) => ErrorLine::Hint,
            ErrorLine::Error if before(self.went_on) => ErrorLine::Recovered,
            _ if before(self.went_on) => ErrorLine::Hint,
            // Nothing came after it, and it is not part of a sentence.
            ErrorLine::Mention if ends && !announces_recovery(line) => ErrorLine::Error,
            // An error of something else ended it.
            ErrorLine::Error
                if before(self.error_at)
                    && !is_raised(line)
                    && !self.is_of_machine()
                    && !self.explains_lack(line) =>
            {
                ErrorLine::Mention
            }
            weight => weight,
        }
    }

    /// Whether the error says that there is no GPU, and this line is about GPUs as well.
    fn explains_lack(&self, line: &str) -> bool {
        let traceback = self.traceback.as_ref();
        traceback.is_some_and(Traceback::lacks_gpu) && names_gpu(&line.to_lowercase())
    }

    /// Whether the machine, a GPU or another process may have caused the error.
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
            || reports_out_of_memory(error)
            // Only a line about GPUs explains that there is none.
            || names(&NAMES) && !traceback.lacks_gpu()
            || names(&CONNECTS_RANKS)
    }
}

/// Whether the first error of a chain explains more than the last: not where the last was raised on purpose in its
/// place, or the first is of a kind that scripts catch on purpose.
fn explains_more(root: &Traceback, link: Link, last: &Traceback) -> bool {
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
        || reports_out_of_memory(&root.error) && !reports_out_of_memory(&last.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_before_progress_are_not_in_the_last_part() {
        let bad = "Killed\n";
        let goes_on = "epoch 1 loss 0.2\n".repeat(9);
        assert_eq!(
            PrintedOutput::parse(format!("{bad}{goes_on}").as_bytes(), true).exit_notice,
            None
        );
        assert!(
            PrintedOutput::parse(format!("{goes_on}{bad}").as_bytes(), true)
                .exit_notice
                .is_some()
        );
        let drawn = "1/9 [00:01, 2.0it/s]\r".repeat(9);
        assert_eq!(
            PrintedOutput::parse(format!("{bad}{drawn}").as_bytes(), true).exit_notice,
            None
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, is_all: bool) {
            let bytes = utf16::to_utf8(bytes);
            let printed = PrintedOutput::parse(&bytes, is_all);
            prop_assert!(printed.ending().count() <= printed.lines().count());
        }

        #[test]
        fn any_line_is_read(line: String) {
            ExitNotice::parse(&line);
            is_progress(&line);
        }
    }
}
