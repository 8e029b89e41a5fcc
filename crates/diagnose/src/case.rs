//! All that is known of a run, and the questions that several detectors ask of it.

use crate::ending::user_file;
use crate::facts::Facts;
use crate::kernel::{Incident, Kind, Line};
use crate::printed::{Printed, is_training};
use crate::series::Growth;
use crate::shim::{How, Suspect};
use crate::story::{Refusal, Story};
use crate::traceback::{Doing, Traceback, tells_of_memory};
use crate::verdict::{EndKind, Location, written};
use crate::whose::{Whose, whose};
use antifreeze_sense::{Sample, Stamp};
use antifreeze_text::signal::{self, Exit};

/// Of pairs of points in the later half, so many must rise before growth is called steady.
const STEADY: f64 = 0.85;
/// Steady growth must have made up this share of the peak.
const TELLING_GAIN: f64 = 0.1;
/// A refused request of this share of the footprint is large by itself.
const LARGE_REQUEST: f64 = 0.25;
/// And this share of what the run may use.
const LARGE_PART: f64 = 0.05;
/// Of a request, to call it the same.
const SERVED: f64 = 0.7;
/// Growth by leaps need not be as steady.
const LEAPING: f64 = 0.6;

/// A line of the log belongs to a run if it is no older than its begin, and no younger than its end, by so many
/// nanoseconds: whoever dies may leave a last word later.
const BEFORE: u64 = 5_000_000_000;
const AFTER: u64 = 120_000_000_000;
const LAST: u64 = 30_000_000_000;

pub(crate) struct Case<'a> {
    pub facts: &'a Facts,
    pub story: &'a Story,
    pub end: EndKind,
    pub printed: &'a Printed,
}

impl<'a> Case<'a> {
    /// Something was done about it, or to it, for want of memory.
    pub fn was_short_of_memory(&self) -> bool {
        self.story.refusals.count > 0
            || self.story.pauses.count > 0
            || self.story.stop.is_some()
            || matches!(
                self.end,
                EndKind::Stopped | EndKind::OomKilled | EndKind::Walled
            )
            || self.tells_of_memory()
    }

    /// It ended with an error for want of memory that antifreeze did not cause, while most of what it may use was free: a
    /// limit of the user's own (`ulimit -d`, `ulimit -v`), or one request that no machine could meet.
    fn had_room(&self) -> bool {
        let nothing_done = self.story.refusals.count == 0
            && self.story.pauses.count == 0
            && self.story.stop.is_none();
        let by_itself = !matches!(
            self.end,
            EndKind::Stopped | EndKind::OomKilled | EndKind::Walled
        );
        let is_free = self.peak() < self.facts.may_use() / 4;
        nothing_done && by_itself && is_free && !self.facts.attached
    }

    /// What ended it is an error for want of memory, in its own words.
    pub fn tells_of_memory(&self) -> bool {
        tells_of_memory(self.error())
    }

    pub fn went_wrong(&self) -> bool {
        !matches!(
            self.end,
            EndKind::Finished | EndKind::Running | EndKind::Detached | EndKind::Exited
        )
    }

    /// Somebody lost patience: it was interrupted, or asked to end, and did so in its own way.
    pub fn was_asked_to_end(&self) -> bool {
        const STATUS: u32 = 128;
        let by_status = matches!(
            self.exit(),
            Some(Exit::Code(code)) if code == STATUS + signal::INTERRUPT || code == STATUS + signal::TERMINATE
        );
        by_status || self.error().starts_with("KeyboardInterrupt")
    }

    /// The error that ended the script, with its whole message; empty without one.
    pub fn error(&self) -> &'a str {
        match self.end {
            EndKind::Finished | EndKind::Running => "",
            _ => &self.printed.message,
        }
    }

    /// Where it was raised, in the script.
    pub fn location(&self) -> Option<Location> {
        match self.end {
            EndKind::Walled | EndKind::Exception => {
                self.location_of(self.printed.traceback.as_ref()?)
            }
            _ => None,
        }
    }

    /// Where an error was raised, in the script.
    pub fn location_of(&self, traceback: &Traceback) -> Option<Location> {
        let frame = traceback.frame.as_ref()?;
        Some(Location {
            file: user_file(&frame.file, self.facts),
            line: frame.line,
            name: None,
        })
    }

    /// The line of the ending of its output that holds one of these and tells the most of the end.
    pub fn line_with(&self, words: &[&str]) -> Option<String> {
        self.said(words).map(|(line, _)| line)
    }

    /// With how sure one may be by it at most: the words of an error may stand in any sentence.
    pub fn said(&self, words: &[&str]) -> Option<(String, f64)> {
        let (weight, line) = self.printed.line_with(words)?;
        Some((line.trim().to_owned(), weight.most()))
    }

    /// The last line of all that it printed that holds one of these, whatever came after it.
    pub fn any_line_with(&self, words: &[&str]) -> Option<String> {
        last_with(self.printed.lines(), words)
    }

    /// It had trained before its end, as far as it printed that.
    pub fn has_trained(&self) -> bool {
        self.story.steps.is_some_and(|steps| steps > 0) || self.printed.lines().any(is_training)
    }

    /// A process that loads data for the training was ended.
    pub fn is_of_loader(&self) -> bool {
        self.line_with(&["DataLoader worker"]).is_some()
    }

    /// The signal that ended it, or one of its processes, where somebody tells.
    pub fn signal(&self) -> Option<u32> {
        let seen = self.exit().and_then(Exit::deadly_signal);
        seen.or(self.printed.told.map(|told| told.signal))
    }

    /// A shell that started it says how it was ended, and ended with a code of its own.
    pub fn is_told_by_shell(&self) -> bool {
        self.end == EndKind::Failed && self.printed.told.is_some_and(|told| !told.is_part)
    }

    pub fn exit(&self) -> Option<Exit> {
        self.story.end.map(|end| Exit::from_status(end.status))
    }

    pub fn first(&self) -> Option<&'a Sample> {
        self.story.first.as_deref()
    }

    pub fn last(&self) -> Option<&'a Sample> {
        self.story.last.as_deref()
    }

    /// The most that the tree held.
    pub fn peak(&self) -> u64 {
        self.story.peak.as_ref().map_or(0, |peak| peak.footprint)
    }

    /// Begin and end of what was seen, as evidence has them.
    pub fn span(&self) -> (Option<String>, Option<String>) {
        let begin = self.story.until().and_then(|_| written(self.story.begin()));
        (begin, self.story.until().and_then(written))
    }

    /// How the tree grew; what came after a refusal or a stop is the answer to it, not its cause.
    pub fn growth(&self) -> Option<Growth> {
        let refused = self.story.refusals.first.map(|refusal| refusal.at);
        self.story
            .footprint
            .growth_until(refused.or(self.story.stopped_at))
    }

    /// How it grew, if it did so steadily until there was no room: over the later half, or since it was low
    /// last. One that makes a larger copy of what it keeps at each step grows by leaps.
    pub fn fills_up(&self) -> Option<Growth> {
        if !self.was_short_of_memory() || self.had_room() {
            return None;
        }
        let refused = self.story.refusals.first.map(|refusal| refusal.at);
        let until = refused.or(self.story.stopped_at);
        let leaps = self
            .large_request()
            .is_some_and(|asked| self.was_served(asked));
        let steady = if leaps { LEAPING } else { STEADY };
        let is_steady = |growth: &Growth| {
            growth.steadiness >= steady && growth.gained as f64 >= self.peak() as f64 * TELLING_GAIN
        };
        let footprint = &self.story.footprint;
        let later = footprint.growth_until(until).filter(is_steady);
        later.or_else(|| footprint.last_rise_until(until).filter(is_steady))
    }

    /// Whether as much had been asked for before, and was had for a while: more was held then than when it was
    /// refused.
    pub fn was_served(&self, refusal: Refusal) -> bool {
        let held_besides = self.peak().saturating_sub(refusal.footprint);
        held_besides as f64 >= refusal.bytes as f64 * SERVED
    }

    /// Who fills the memory, seen from inside. A look after the end of what filled it, as between two cells of a notebook,
    /// names nothing: then the last one before memory ran out counts.
    pub fn suspect(&self) -> Option<Suspect<'a>> {
        let told = &self.facts.told;
        let refused = self.story.refusals.first.map(|refusal| refusal.at);
        let ran_out = refused.or(self.story.stopped_at);
        told.suspect().or_else(|| told.suspect_before(ran_out?))
    }

    /// The request that failed was made on the line on which the suspect grows, so that it is no request for a batch.
    pub fn is_asked_by_suspect(&self) -> bool {
        let Some((suspect, location)) = self.suspect().zip(self.location()) else {
            return false;
        };
        let file = user_file(suspect.holder.file.as_bytes(), self.facts);
        let adds = suspect.how != How::Holds || suspect.holder.joined;
        adds && file == location.file && suspect.holder.lines.contains(&location.line)
    }

    /// It ended in the middle of its first step: there was nothing yet that steps could have left behind.
    pub fn is_first_step(&self) -> bool {
        let doing = self
            .printed
            .traceback
            .as_ref()
            .and_then(|traceback| traceback.doing);
        let made = self.facts.told.out_of_memory.last().map(|error| error.step);
        matches!(doing, Some(Doing::Forward | Doing::Backward))
            && made.or(self.story.steps) == Some(0)
    }

    /// The largest request that was refused, if it is large beside what was held.
    pub fn large_request(&self) -> Option<Refusal> {
        let largest = self.story.refusals.largest?;
        let is_large = largest.bytes as f64 >= largest.footprint.max(1) as f64 * LARGE_REQUEST
            && largest.bytes as f64 >= self.facts.may_use() as f64 * LARGE_PART;
        is_large.then_some(largest)
    }

    /// What the system's log tells of the time of the run.
    pub fn incidents(&self) -> impl DoubleEndedIterator<Item = &'a Incident> {
        incidents(self.facts, self.story)
    }

    /// The last of them that is one of these.
    pub fn incident(&self, is_one: impl Fn(&Kind) -> bool) -> Option<&'a Incident> {
        self.incidents()
            .rev()
            .find(|incident| is_one(&incident.kind))
    }

    /// Whose process it names.
    pub fn whose(&self, incident: &Incident) -> Whose {
        whose(self.facts, self.story, incident)
    }

    /// Whether the system's log could be read, so that its silence means something.
    pub fn knows_log(&self) -> bool {
        !self.facts.log.read.is_empty()
    }

    pub fn cores(&self) -> Option<u64> {
        let cores = self.last()?.cpu.core_count;
        (cores > 0).then_some(cores.into())
    }
}

fn last_with<'a>(
    lines: impl DoubleEndedIterator<Item = &'a str>,
    words: &[&str],
) -> Option<String> {
    let holds = |line: &&str| words.iter().any(|word| line.contains(word));
    lines.rev().find(holds).map(|line| line.trim().to_owned())
}

/// What the system's log tells of the time of a run; of lines without a time, all.
pub(crate) fn incidents<'a>(
    facts: &'a Facts,
    story: &Story,
) -> impl DoubleEndedIterator<Item = &'a Incident> + use<'a> {
    incidents_since(facts, story, story.begin())
}

/// Of its last seconds: what came hours before its end did not end it.
pub(crate) fn last_incidents<'a>(
    facts: &'a Facts,
    story: &Story,
) -> impl DoubleEndedIterator<Item = &'a Incident> + use<'a> {
    let mut since = story.until().unwrap_or_else(|| story.begin());
    since.realtime_ns = since.realtime_ns.saturating_sub(LAST);
    since.monotonic_ns = since.monotonic_ns.saturating_sub(LAST);
    incidents_since(facts, story, since)
}

fn incidents_since<'a>(
    facts: &'a Facts,
    story: &Story,
    begin: Stamp,
) -> impl DoubleEndedIterator<Item = &'a Incident> + use<'a> {
    let until = story.until();
    let is_of_it = move |incident: &&Incident| {
        let Some(until) = until else { return true };
        let since_begin = after(&incident.line, begin);
        let since_end = after(&incident.line, until);
        since_begin.is_none_or(|after| after >= -i128::from(BEFORE))
            && since_end.is_none_or(|after| after <= i128::from(AFTER))
    };
    facts.log.incidents.iter().filter(is_of_it)
}

/// How many nanoseconds after a moment it was said, by the clock that the line has.
pub(crate) fn after(line: &Line, moment: Stamp) -> Option<i128> {
    match (line.at, line.since_boot) {
        (Some(at), _) => Some(at.as_nanosecond() - i128::from(moment.realtime_ns)),
        (None, Some(at)) => Some(at.as_nanos() as i128 - i128::from(moment.monotonic_ns)),
        (None, None) => None,
    }
}
