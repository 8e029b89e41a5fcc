//! Why it ended so, as far as counters and the last output show plainly. Where two causes
//! look alike from outside, both are named and neither is called sure. What was looked at
//! and found in order is said too.

use crate::ending::user_file;
use crate::facts::Facts;
use crate::remedies;
use crate::safe;
use crate::series::Growth;
use crate::shim::{How, Suspect};
use crate::signal::{self, Exit};
use crate::story::{Refusal, Story};
use crate::traceback::Traceback;
use crate::units;
use crate::verdict::{Cause, Code, EndKind, Evidence, Location, RuledOut, written};
use crate::words::{cut, process};
use antifreeze_record::event::Why;
use antifreeze_sense::{Sample, Space};

/// Of pairs of points in the later half, so many must rise before growth is called steady.
const STEADY: f64 = 0.85;
/// Steady growth must have made up this share of the peak.
const TELLING_GAIN: f64 = 0.1;
/// A refused request of this share of the footprint is large by itself.
const LARGE_REQUEST: f64 = 0.25;
/// Below this share, a file system counts as full.
const FULL: f64 = 0.02;
/// Others that grew by less than this share of memory did not decide anything.
const NOTABLE: f64 = 0.05;
/// An error's message may be pages long; its beginning tells what it is.
const ERROR_COLUMNS: usize = 160;

pub(crate) fn weigh(
    facts: &Facts,
    story: &Story,
    end: EndKind,
    traceback: Option<&Traceback>,
) -> (Vec<Cause>, Vec<RuledOut>) {
    let mut scales = Scales {
        facts,
        story,
        location: None,
        causes: Vec::new(),
        ruled_out: Vec::new(),
    };
    let short_of_memory = story.refusals.count > 0
        || story.pauses.count > 0
        || matches!(end, EndKind::Stopped | EndKind::OomKilled);
    let went_wrong = !matches!(end, EndKind::Finished | EndKind::Running);
    if matches!(end, EndKind::Walled | EndKind::Exception) {
        scales.location = traceback.and_then(|traceback| location(traceback, facts));
    }
    if short_of_memory {
        scales.weigh_growth();
        scales.weigh_requests();
        scales.weigh_others();
        scales.weigh_container();
    }
    scales.weigh_numbers();
    if went_wrong {
        scales.weigh_space();
        scales.weigh_exit(end, traceback);
    }
    if end == EndKind::MachineDied {
        scales.clear_machine();
    }
    scales
        .causes
        .sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    (scales.causes, scales.ruled_out)
}

fn location(traceback: &Traceback, facts: &Facts) -> Option<Location> {
    let frame = traceback.frame.as_ref()?;
    Some(Location {
        file: user_file(&frame.file, facts),
        line: frame.line,
        name: None,
    })
}

struct Scales<'a> {
    facts: &'a Facts,
    story: &'a Story,
    location: Option<Location>,
    causes: Vec<Cause>,
    ruled_out: Vec<RuledOut>,
}

impl Scales<'_> {
    fn blame(&mut self, code: Code, confidence: f64, summary: String, series: &str) {
        let evidence = Evidence {
            text: summary.clone(),
            series: (!series.is_empty()).then(|| series.into()),
            from: written(self.story.begin()),
            to: self.story.until().and_then(written),
        };
        let remedies = remedies::for_cause(code, self.facts);
        let location = self.location.clone().filter(|_| is_the_scripts(code));
        self.causes.push(Cause {
            code,
            confidence,
            summary,
            location,
            evidence: vec![evidence],
            remedies,
        });
    }

    fn clear(&mut self, code: Code, why: String) {
        self.ruled_out.push(RuledOut { code, why });
    }

    fn weigh_growth(&mut self) {
        // What came after a refusal or a stop is the answer to it, not its cause.
        let refused = self.story.refusals.first.map(|refusal| refusal.at);
        let until = refused.or(self.story.stopped_at);
        let Some(growth) = self.story.footprint.growth_until(until) else {
            return;
        };
        if !is_steady(growth, self.peak()) {
            if growth.gained == 0 {
                self.clear(
                    Code::MemoryLeak,
                    "memory did not grow in the later half of the run".into(),
                );
            }
            return;
        }
        let pace = units::pace(growth.bytes_per_second);
        if let Some(suspect) = self.facts.told.suspect() {
            self.blame_suspect(&suspect, &pace);
            return;
        }
        let summary = format!("memory grew {pace} until there was no room");
        // One large request explains the end better than the growth before it.
        let (leak, dataset) = if self.large_request().is_some() {
            (0.3, 0.2)
        } else {
            (0.65, 0.25)
        };
        self.blame(Code::MemoryLeak, leak, summary, "tree.footprint");
        let summary =
            "filling a list or an array with all samples looks the same from outside".into();
        self.blame(Code::DatasetInMemory, dataset, summary, "tree.footprint");
    }

    /// The script itself was seen to keep what fills the memory.
    fn blame_suspect(&mut self, suspect: &Suspect<'_>, pace: &str) {
        let holder = suspect.holder;
        let name = safe::shown(holder.name.as_bytes());
        let summary = format!("`{name}` {}", suspect.does());
        // What is filled before anything is trained is meant to be there; where steps cannot be seen,
        // it may be either.
        let is_minor = |refusal: Refusal| holder.bytes < refusal.footprint / 4;
        let (leak, dataset) = match suspect.how {
            _ if self.large_request().is_some_and(is_minor) => (Some(0.3), None),
            How::Step(_) => (Some(0.94), None),
            How::Graphs => (Some(0.9), None),
            How::Second(_) | How::Holds if self.facts.told.hello.is_none() => {
                (Some(0.3), Some(0.75))
            }
            How::Second(_) | How::Holds => (Some(0.75), Some(0.3)),
        };
        let location = holder.lines.first().map(|line| Location {
            file: user_file(holder.file.as_bytes(), self.facts),
            line: *line,
            name: Some(holder.name.clone()),
        });
        let codes = [(Code::MemoryLeak, leak), (Code::DatasetInMemory, dataset)];
        for (code, confidence) in codes {
            let Some(confidence) = confidence else {
                continue;
            };
            self.blame(code, confidence, summary.clone(), "tree.footprint");
            if let Some(cause) = self.causes.last_mut() {
                cause.evidence[0].text = format!("memory grew {pace} until there was no room");
                cause.location = location.clone().or(cause.location.take());
                if let Some(remedy) = remedies::for_holder(code, suspect, cause.location.as_ref()) {
                    cause.remedies.insert(0, remedy);
                }
            }
        }
    }

    /// Values that are no numbers, or run away, as the trainer saw them first.
    fn weigh_numbers(&mut self) {
        let told = &self.facts.told;
        let Some(first) = told.numbers.iter().min_by_key(|numbers| numbers.step) else {
            return;
        };
        let of = match first.of.as_str() {
            "gradient" => "gradient",
            _ => "loss",
        };
        let (code, confidence, became) = match first.first.as_str() {
            "nan" => (Code::NumericNan, 0.95, "became NaN"),
            "inf" => (Code::NumericNan, 0.95, "became infinite"),
            _ => (Code::NumericDivergence, 0.7, "ran away"),
        };
        let step = match first.since {
            Some(well) if well + 1 < first.step => {
                format!("between step {} and step {}", well + 1, first.step)
            }
            _ => format!("at step {}", first.step),
        };
        let summary = format!("the {of} {became} {step}");
        self.blame(code, confidence, summary, "");
        let location = first
            .file
            .as_ref()
            .zip(first.line)
            .map(|(file, line)| Location {
                file: user_file(file.as_bytes(), self.facts),
                line,
                name: None,
            });
        if let Some(cause) = self.causes.last_mut() {
            cause.location = location;
        }
    }

    fn weigh_requests(&mut self) {
        let Some(refusal) = self.large_request() else {
            return;
        };
        let summary = format!(
            "asked for {} at once while it held {}",
            units::bytes(refusal.bytes),
            units::bytes(refusal.footprint)
        );
        self.blame(Code::BatchTooLarge, 0.6, summary, "tree.footprint");
    }

    fn large_request(&self) -> Option<Refusal> {
        let largest = self.story.refusals.largest?;
        let is_large = largest.bytes as f64 >= largest.footprint.max(1) as f64 * LARGE_REQUEST;
        is_large.then_some(largest)
    }

    fn weigh_others(&mut self) {
        let grower = self
            .story
            .pauses
            .grower
            .filter(|(name, _, _)| !name.as_bytes().is_empty());
        let blamed = self.story.pauses.count > 0 || self.story.stop == Some(Why::OthersGrew);
        let grew = self.others_growth();
        let notable = self.facts.binding_budget().is_none()
            && grew.is_some_and(|grew| grew as f64 >= self.facts.total as f64 * NOTABLE);
        match (grower, grew) {
            (Some((name, pid, by)), _) if blamed => {
                let who = process(name, pid);
                let summary = format!("{who} grew by {} while memory was short", units::bytes(by));
                self.blame(Code::OtherProcess, 0.75, summary, "memory.available");
            }
            (None, Some(grew)) if blamed || notable => {
                let summary = match grew {
                    0 => "programs outside the run grew while memory was short".into(),
                    grew => format!("programs outside the run grew by {}", units::bytes(grew)),
                };
                let confidence = if blamed { 0.7 } else { 0.4 };
                self.blame(Code::OtherProcess, confidence, summary, "memory.available");
            }
            (None, Some(_)) => self.clear(
                Code::OtherProcess,
                "programs outside the run hardly grew".into(),
            ),
            _ => {}
        }
    }

    /// How much everybody else gained between the first and the last look.
    fn others_growth(&self) -> Option<u64> {
        let others = |sample: &Sample| {
            let used = sample
                .memory
                .total
                .value()?
                .checked_sub(sample.memory.available.value()?)?;
            Some(used.saturating_sub(sample.tree.footprint.value()?))
        };
        let first = others(self.story.first.as_deref()?)?;
        Some(others(self.story.last.as_deref()?)?.saturating_sub(first))
    }

    fn weigh_container(&mut self) {
        let Some(last) = self.story.last.as_deref() else {
            return;
        };
        let limit = last
            .cgroup
            .limit
            .value()
            .filter(|limit| *limit < self.facts.total);
        let Some((limit, left)) = limit.zip(last.cgroup.limit_available.value()) else {
            self.clear(
                Code::ContainerLimit,
                "no limit of a container is below the machine's memory".into(),
            );
            return;
        };
        let machine = last.memory.available.value().unwrap_or(u64::MAX);
        if left < machine && left <= self.facts.reserve.max(limit / 20).saturating_mul(2) {
            let summary = format!(
                "{} of the container's {} were left",
                units::bytes(left),
                units::bytes(limit)
            );
            self.blame(
                Code::ContainerLimit,
                0.55,
                summary,
                "cgroup.limit_available",
            );
        }
    }

    fn weigh_space(&mut self) {
        let Some(last) = self.story.last.as_deref() else {
            return;
        };
        let said_full = contains(&self.facts.last_output, b"No space left on device");
        let bus_error = self.exit().and_then(Exit::deadly_signal) == Some(signal::BUS);
        let (disk, shm) = (last.disk.space, last.shm);
        match share_free(disk) {
            Some((share, free)) if share < FULL => {
                let confidence = if said_full { 0.9 } else { 0.5 };
                let summary = format!("{} were free where the run writes", units::bytes(free));
                self.blame(Code::DiskFull, confidence, summary, "disk.free");
            }
            Some((_, free)) => self.clear(Code::DiskFull, format!("{} free", units::bytes(free))),
            None => {}
        }
        match share_free(shm) {
            Some((share, free)) if share < FULL => {
                let confidence = if bus_error || said_full { 0.75 } else { 0.5 };
                let summary = format!("{} were free in /dev/shm", units::bytes(free));
                self.blame(Code::ShmExhausted, confidence, summary, "shm.free");
            }
            Some((_, free)) => {
                self.clear(
                    Code::ShmExhausted,
                    format!("{} free in /dev/shm", units::bytes(free)),
                );
            }
            None => {}
        }
    }

    fn weigh_exit(&mut self, end: EndKind, traceback: Option<&Traceback>) {
        let signal = self.exit().and_then(Exit::deadly_signal);
        match (end, traceback, signal) {
            (EndKind::Exception, Some(traceback), _) => {
                self.blame(
                    Code::UserException,
                    0.9,
                    cut(&traceback.error, ERROR_COLUMNS),
                    "",
                );
            }
            (EndKind::Crashed, _, Some(number)) => {
                let summary = format!(
                    "{} in the program or one of its libraries",
                    signal::name(number)
                );
                self.blame(Code::NativeCrash, 0.7, summary, "");
            }
            (EndKind::Killed, _, Some(number)) => {
                let (confidence, kernel) = match (number, self.counts_kernel_kills()) {
                    (signal::KILL, false) => (0.6, ""),
                    (signal::KILL, true) => {
                        (0.85, ", and the kernel counted no kill for lack of memory")
                    }
                    _ => (0.9, ""),
                };
                let summary = format!("antifreeze did not send {}{kernel}", signal::name(number));
                self.blame(Code::KilledExternally, confidence, summary, "");
            }
            _ => {}
        }
    }

    /// What the last look before the machine died shows to have been in order.
    fn clear_machine(&mut self) {
        let Some(last) = self.story.last.as_deref() else {
            return;
        };
        let (total, available) = (last.memory.total.value(), last.memory.available.value());
        if let Some((total, available)) = total.zip(available)
            && available as f64 >= total as f64 * NOTABLE
        {
            self.clear(
                Code::SwapThrash,
                format!("{} free at the last look", units::bytes(available)),
            );
        }
        let throttled =
            |sample: Option<&Sample>| sample.and_then(|sample| sample.heat.throttled.value());
        if let Some((before, after)) =
            throttled(self.story.first.as_deref()).zip(throttled(Some(last)))
            && before == after
        {
            let heat = last.heat.hottest.value();
            let heat = heat.map_or_else(String::new, |heat| format!("{} °C, ", heat / 1000));
            self.clear(Code::ThermalThrottle, format!("{heat}no core was slowed"));
        }
    }

    fn counts_kernel_kills(&self) -> bool {
        self.story
            .last
            .as_deref()
            .is_some_and(|last| last.paging.oom_kills.value().is_some())
    }

    fn exit(&self) -> Option<Exit> {
        self.story.end.map(|end| Exit::from_status(end.status))
    }

    fn peak(&self) -> u64 {
        self.story.peak.as_ref().map_or(0, |peak| peak.footprint)
    }
}

/// Whether the line that failed has to do with it.
fn is_the_scripts(code: Code) -> bool {
    matches!(
        code,
        Code::MemoryLeak | Code::BatchTooLarge | Code::DatasetInMemory | Code::UserException
    )
}

fn is_steady(growth: Growth, peak: u64) -> bool {
    growth.steadiness >= STEADY && growth.gained as f64 >= peak as f64 * TELLING_GAIN
}

fn share_free(space: Space) -> Option<(f64, u64)> {
    let (total, free) = (space.total.value()?, space.free.value()?);
    (total > 0).then(|| (free as f64 / total as f64, free))
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len())
        .any(|window| window == needle)
}
