//! All evidence about a run, and the questions that several detectors ask of it.

use crate::kernel::attribution::{Attribution, attribute};
use crate::kernel::{Incident, Kind, Line};
use crate::output::traceback::{Activity, Traceback, reports_out_of_memory};
use crate::output::{PrintedOutput, is_training};
use crate::run::facts::Facts;
use crate::run::series::Growth;
use crate::run::summary::{Refusal, RunSummary};
use crate::shim::{Suspect, SuspectKind};
use crate::verdict::place::user_file;
use crate::verdict::{EndKind, Location, format_timestamp};
use antifreeze_sense::{Sample, Stamp};
use antifreeze_text::signal::{self, Exit};
use std::time::Duration;

/// Growth is steady where at least this share of all pairs of points rises.
const STEADY_SHARE: f64 = 0.85;
/// The same for growth by leaps.
const STEADY_SHARE_OF_LEAPS: f64 = 0.6;
/// Steady growth counts from this share of the peak on.
const MIN_GAIN_SHARE: f64 = 0.1;
/// A refused request is large from this share of the footprint on,
const LARGE_SHARE_OF_FOOTPRINT: f64 = 0.25;
/// and from this share of the memory that the run can use.
const LARGE_SHARE_OF_USABLE: f64 = 0.05;
/// A request was satisfied before if at least this share of it was held besides.
const SATISFIED_SHARE: f64 = 0.7;

/// A line of the log belongs to a run from so long before its beginning,
const LOG_BEFORE_BEGIN: Duration = Duration::from_secs(5);
/// and until so long after its end, since a log may be written late.
const LOG_AFTER_END: Duration = Duration::from_secs(120);
/// The last part of a run, in which something must have happened to have ended it.
const NEAR_END: Duration = Duration::from_secs(30);

/// All evidence about a run.
pub(crate) struct RunEvidence<'a> {
    pub facts: &'a Facts,
    pub summary: &'a RunSummary,
    /// The kind of end, which is determined before the causes.
    pub end: EndKind,
    pub printed: &'a PrintedOutput,
}

impl<'a> RunEvidence<'a> {
    /// Whether the run was slowed, refused memory or ended because memory ran short.
    pub fn was_short_of_memory(&self) -> bool {
        self.summary.refusals.count > 0
            || self.summary.pauses.count > 0
            || self.summary.stop.is_some()
            || matches!(
                self.end,
                EndKind::Stopped | EndKind::OomKilled | EndKind::Walled
            )
            || self.reports_out_of_memory()
    }

    /// Whether it ended with an out-of-memory error while most of the memory was free and antifreeze did nothing. Then a
    /// limit of the user (`ulimit -d`, `ulimit -v`) or a single enormous request is the reason.
    fn had_room(&self) -> bool {
        let nothing_done = self.summary.refusals.count == 0
            && self.summary.pauses.count == 0
            && self.summary.stop.is_none();
        let by_itself = !matches!(
            self.end,
            EndKind::Stopped | EndKind::OomKilled | EndKind::Walled
        );
        let is_free = self.peak_bytes() < self.facts.usable_memory() / 4;
        nothing_done && by_itself && is_free && !self.facts.attached
    }

    /// Whether the error that ended it says that memory ran out.
    pub fn reports_out_of_memory(&self) -> bool {
        reports_out_of_memory(self.error())
    }

    /// Whether it ended with a failure.
    pub fn went_wrong(&self) -> bool {
        !matches!(
            self.end,
            EndKind::Finished | EndKind::Running | EndKind::Detached | EndKind::Exited
        )
    }

    /// Whether it was interrupted or terminated, and exited by itself after that.
    pub fn was_asked_to_stop(&self) -> bool {
        const SIGNAL_STATUS: u32 = 128;
        let by_status = matches!(
            self.exit(),
            Some(Exit::Code(code)) if code == SIGNAL_STATUS + signal::INTERRUPT || code == SIGNAL_STATUS + signal::TERMINATE
        );
        by_status || self.error().starts_with("KeyboardInterrupt")
    }

    /// The error that ended the script, with its whole message; empty where there is none.
    pub fn error(&self) -> &'a str {
        match self.end {
            EndKind::Finished | EndKind::Running => "",
            _ => &self.printed.message,
        }
    }

    /// The line of the script on which that error was raised.
    pub fn error_location(&self) -> Option<Location> {
        match self.end {
            EndKind::Walled | EndKind::Exception => {
                self.location_of_traceback(self.printed.traceback.as_ref()?)
            }
            _ => None,
        }
    }

    /// The line of the script on which the error of a traceback was raised.
    pub fn location_of_traceback(&self, traceback: &Traceback) -> Option<Location> {
        let frame = traceback.frame.as_ref()?;
        Some(Location {
            file: user_file(&frame.file, self.facts),
            line: frame.line,
            name: None,
        })
    }

    /// Finds a line with one of these phrases in the last part of the output: the one that most likely reports an error.
    pub fn find_line(&self, words: &[&str]) -> Option<String> {
        self.find_line_with_confidence(words).map(|(line, _)| line)
    }

    /// Also returns the highest confidence that the line allows, since the words of an error may stand in any sentence.
    pub fn find_line_with_confidence(&self, words: &[&str]) -> Option<(String, f64)> {
        let (kind, line) = self.printed.find_line(words)?;
        Some((line.trim().to_owned(), kind.max_confidence()))
    }

    /// Finds the last line with one of these phrases in the whole output, whatever came after it.
    pub fn find_line_anywhere(&self, words: &[&str]) -> Option<String> {
        last_line_with(self.printed.lines(), words)
    }

    /// Whether it had trained before its end, by its steps or its output.
    pub fn has_trained(&self) -> bool {
        self.summary.steps.is_some_and(|steps| steps > 0) || self.printed.lines().any(is_training)
    }

    /// Whether the output blames a worker of a data loader.
    pub fn blames_loader_worker(&self) -> bool {
        self.find_line(&["DataLoader worker"]).is_some()
    }

    /// The signal that ended it or one of its processes, by its status or its output.
    pub fn signal(&self) -> Option<u32> {
        let seen = self.exit().and_then(Exit::deadly_signal);
        seen.or(self.printed.exit_notice.map(|notice| notice.signal))
    }

    /// Whether a shell reports the signal that ended it, and exited with a code of its own.
    pub fn shell_reports_signal(&self) -> bool {
        self.end == EndKind::Failed
            && self
                .printed
                .exit_notice
                .is_some_and(|notice| !notice.is_one_of_several)
    }

    /// How its process ended, where that is recorded.
    pub fn exit(&self) -> Option<Exit> {
        self.summary.end.map(|end| Exit::from_status(end.status))
    }

    /// The first sample.
    pub fn first_sample(&self) -> Option<&'a Sample> {
        self.summary.first.as_deref()
    }

    /// The last sample.
    pub fn last_sample(&self) -> Option<&'a Sample> {
        self.summary.last.as_deref()
    }

    /// Peak memory of its processes.
    pub fn peak_bytes(&self) -> u64 {
        self.summary.peak.as_ref().map_or(0, |peak| peak.footprint)
    }

    /// Beginning and end of what was observed, formatted for a verdict.
    pub fn time_span(&self) -> (Option<String>, Option<String>) {
        let begin = self
            .summary
            .until()
            .and_then(|_| format_timestamp(self.summary.begin()));
        (begin, self.summary.until().and_then(format_timestamp))
    }

    /// How its memory grew, up to the first refused request or stop.
    pub fn growth(&self) -> Option<Growth> {
        let refused = self.summary.refusals.first.map(|refusal| refusal.at);
        self.summary
            .footprint
            .growth_until(refused.or(self.summary.stopped_at))
    }

    /// How its memory grew, if it grew steadily until it ran out: over the later half of the run, or since it was low
    /// last. A program that copies what it keeps at each step grows by leaps.
    pub fn steady_growth(&self) -> Option<Growth> {
        if !self.was_short_of_memory() || self.had_room() {
            return None;
        }
        let refused = self.summary.refusals.first.map(|refusal| refusal.at);
        let until = refused.or(self.summary.stopped_at);
        let leaps = self
            .large_refusal()
            .is_some_and(|asked| self.was_satisfied_before(asked));
        let min_share = if leaps {
            STEADY_SHARE_OF_LEAPS
        } else {
            STEADY_SHARE
        };
        let is_steady = |growth: &Growth| {
            growth.steadiness >= min_share
                && growth.gained as f64 >= self.peak_bytes() as f64 * MIN_GAIN_SHARE
        };
        let footprint = &self.summary.footprint;
        let later = footprint.growth_until(until).filter(is_steady);
        later.or_else(|| footprint.last_rise_until(until).filter(is_steady))
    }

    /// Whether a request as large as this one was satisfied before: more was held then than when this one was refused.
    pub fn was_satisfied_before(&self, refusal: Refusal) -> bool {
        let held_besides = self.peak_bytes().saturating_sub(refusal.footprint);
        held_besides as f64 >= refusal.bytes as f64 * SATISFIED_SHARE
    }

    /// The variable that fills the memory, as the shim reported. A report after that variable is gone, as between two cells
    /// of a notebook, names nothing; then the last report before memory ran out counts.
    pub fn suspect(&self) -> Option<Suspect<'a>> {
        let shim = &self.facts.shim;
        let refused = self.summary.refusals.first.map(|refusal| refusal.at);
        let ran_out = refused.or(self.summary.stopped_at);
        shim.suspect().or_else(|| shim.suspect_before(ran_out?))
    }

    /// Whether the request that failed was made on the line on which the suspect grows, so that it is not a large batch.
    pub fn suspect_made_request(&self) -> bool {
        let Some((suspect, location)) = self.suspect().zip(self.error_location()) else {
            return false;
        };
        let file = user_file(suspect.holder.file.as_bytes(), self.facts);
        let adds = suspect.kind != SuspectKind::HoldsMost || suspect.holder.joined;
        adds && file == location.file && suspect.holder.lines.contains(&location.line)
    }

    /// Whether it ended in the middle of its first step, so that nothing can have leaked yet.
    pub fn ended_in_first_step(&self) -> bool {
        let doing = self
            .printed
            .traceback
            .as_ref()
            .and_then(|traceback| traceback.activity);
        let made = self.facts.shim.out_of_memory.last().map(|error| error.step);
        matches!(doing, Some(Activity::Forward | Activity::Backward))
            && made.or(self.summary.steps) == Some(0)
    }

    /// The largest refused request, if it is large compared with what was held.
    pub fn large_refusal(&self) -> Option<Refusal> {
        let largest = self.summary.refusals.largest?;
        let is_large = largest.bytes as f64
            >= largest.footprint.max(1) as f64 * LARGE_SHARE_OF_FOOTPRINT
            && largest.bytes as f64 >= self.facts.usable_memory() as f64 * LARGE_SHARE_OF_USABLE;
        is_large.then_some(largest)
    }

    /// Incidents in the kernel's log during the run.
    pub fn incidents(&self) -> impl DoubleEndedIterator<Item = &'a Incident> {
        incidents_of_run(self.facts, self.summary)
    }

    /// The last incident of a kind.
    pub fn last_incident(&self, is_one: impl Fn(&Kind) -> bool) -> Option<&'a Incident> {
        self.incidents()
            .rev()
            .find(|incident| is_one(&incident.kind))
    }

    /// Whether the process that an incident names belongs to the run.
    pub fn attribute(&self, incident: &Incident) -> Attribution {
        attribute(self.facts, self.summary, incident)
    }

    /// Whether the kernel's log was read, so that the absence of an incident means something.
    pub fn has_kernel_log(&self) -> bool {
        !self.facts.log.read.is_empty()
    }

    /// The number of CPU cores.
    pub fn cores(&self) -> Option<u64> {
        let cores = self.last_sample()?.cpu.core_count;
        (cores > 0).then_some(cores.into())
    }
}

fn last_line_with<'a>(
    lines: impl DoubleEndedIterator<Item = &'a str>,
    words: &[&str],
) -> Option<String> {
    let holds = |line: &&str| words.iter().any(|word| line.contains(word));
    lines.rev().find(holds).map(|line| line.trim().to_owned())
}

/// Incidents in the kernel's log during a run. A line without a time counts.
pub(crate) fn incidents_of_run<'a>(
    facts: &'a Facts,
    summary: &RunSummary,
) -> impl DoubleEndedIterator<Item = &'a Incident> + use<'a> {
    incidents_since(facts, summary, summary.begin())
}

/// Incidents in the last seconds of a run: one that came hours before the end did not end it.
pub(crate) fn incidents_near_end<'a>(
    facts: &'a Facts,
    summary: &RunSummary,
) -> impl DoubleEndedIterator<Item = &'a Incident> + use<'a> {
    let mut since = summary.until().unwrap_or_else(|| summary.begin());
    let near_end = NEAR_END.as_nanos() as u64;
    since.realtime_ns = since.realtime_ns.saturating_sub(near_end);
    since.monotonic_ns = since.monotonic_ns.saturating_sub(near_end);
    incidents_since(facts, summary, since)
}

fn incidents_since<'a>(
    facts: &'a Facts,
    summary: &RunSummary,
    begin: Stamp,
) -> impl DoubleEndedIterator<Item = &'a Incident> + use<'a> {
    let until = summary.until();
    let is_of_it = move |incident: &&Incident| {
        let Some(until) = until else { return true };
        let since_begin = nanos_since(&incident.line, begin);
        let since_end = nanos_since(&incident.line, until);
        since_begin.is_none_or(|after| after >= -(LOG_BEFORE_BEGIN.as_nanos() as i128))
            && since_end.is_none_or(|after| after <= LOG_AFTER_END.as_nanos() as i128)
    };
    facts.log.incidents.iter().filter(is_of_it)
}

/// The time from a moment to a line of the log in nanoseconds, on the clock of the line.
pub(crate) fn nanos_since(line: &Line, moment: Stamp) -> Option<i128> {
    match (line.at, line.since_boot) {
        (Some(at), _) => Some(at.as_nanosecond() - i128::from(moment.realtime_ns)),
        (None, Some(at)) => Some(at.as_nanos() as i128 - i128::from(moment.monotonic_ns)),
        (None, None) => None,
    }
}
