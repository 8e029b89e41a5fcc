//! What happened, gathered from samples and events in one pass and in constant memory, so
//! that a week's record is read as easily as a minute's. Numbers only; what they mean is
//! the verdict's matter.

use crate::cards::CardStory;
use crate::course::Course;
use crate::facts::Facts;
use crate::series::Series;
use crate::time::between;
use crate::whose::Seen;
use antifreeze_record::event::{Event, EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{Phase, Pid, Process, ProcessName, Sample, Stamp};
use std::collections::HashMap;
use std::time::Duration;

/// The phases of a trainer, with the unknown one.
const PHASES: usize = 7;
/// How many processes are remembered of the moment of the peak.
const LARGEST: usize = 5;
/// How many loaders are remembered in all.
const MOST_LOADERS: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The first and the last look, whole: what changed in between is told by comparing.
    pub first: Option<Box<Sample>>,
    pub last: Option<Box<Sample>>,
    pub peak: Option<Peak>,
    pub peak_swap: Option<u64>,
    pub footprint: Series,
    pub rungs: Rungs,
    pub refusals: Refusals,
    pub saves: Saves,
    pub pauses: Pauses,
    /// What the guard ended the run for, if it did.
    pub stop: Option<Trigger>,
    pub forced: bool,
    /// When the guard asked it to end.
    pub stopped_at: Option<Stamp>,
    pub end: Option<Ended>,
    /// How the guard left an attached process, where no status of it is known.
    pub detached: Option<Detached>,
    /// Steps that the trainer made, and what it was at.
    pub steps: Option<u64>,
    pub phases: Phases,
    pub course: Course,
    pub cards: CardStory,
    pub(crate) seen: Seen,
    loaders: Loaders,
    latest: Option<Stamp>,
    started: Stamp,
}

/// The moment at which the tree held the most.
#[derive(Clone, Debug, Default)]
pub struct Peak {
    pub at: Stamp,
    pub footprint: u64,
    /// The largest processes then, largest first. What several of them share is counted in each.
    pub largest: Vec<(ProcessName, Pid, u64)>,
    /// What those of them that load data had taken since they were started. What they share with who started
    /// them was there before.
    pub taken_by_loaders: u64,
    /// What had been mapped, and not used yet.
    pub untouched: u64,
}

impl Peak {
    /// What the largest processes hold in all and is shared, so that the peak counts it once; 0 where their sum is no
    /// more than the peak, but for what changes between two readings.
    pub fn shared(&self) -> u64 {
        let sum = self.largest.iter().map(|(_, _, held)| *held);
        let beyond = sum
            .fold(0, u64::saturating_add)
            .saturating_sub(self.footprint);
        match self.largest.len() {
            2.. if beyond > self.footprint / 100 => beyond,
            _ => 0,
        }
    }
}

/// What the trainer was at, look by look, from its first step on.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    first: Option<Stamp>,
    last: Stamp,
    looks: [u64; PHASES],
    /// The most the tree held in each.
    peaks: [u64; PHASES],
}

impl Phases {
    fn see(&mut self, at: Stamp, phase: u64, footprint: u64) {
        let phase = (phase as usize).min(PHASES - 1);
        self.first.get_or_insert(at);
        self.last = at;
        self.looks[phase] += 1;
        self.peaks[phase] = self.peaks[phase].max(footprint);
    }

    /// How long it was seen to train.
    pub fn time(&self) -> Duration {
        self.first
            .map_or(Duration::ZERO, |first| between(first, self.last))
    }

    /// Those that were seen: their names, their share of the time, and the most that was held.
    pub fn told(&self) -> Vec<(&'static str, f64, u64)> {
        const NAMES: [(Phase, &str); 6] = [
            (Phase::Data, "waits for data"),
            (Phase::Forward, "forward"),
            (Phase::Backward, "backward"),
            (Phase::Optimizer, "optimizer"),
            (Phase::Evaluation, "evaluation"),
            (Phase::Saving, "saving"),
        ];
        NAMES
            .into_iter()
            .filter_map(|(phase, name)| {
                let share = self.share(phase).filter(|share| *share > 0.0)?;
                Some((name, share, self.peaks[phase as usize]))
            })
            .collect()
    }

    /// The share of the time that was spent in a phase; None where phases are not known.
    pub fn share(&self, phase: Phase) -> Option<f64> {
        // A training of short steps is looked into now and then only.
        let known: u64 = self.looks[1..].iter().sum();
        (known > 0).then(|| self.looks[phase as usize] as f64 / known as f64)
    }
}

/// Which rungs were stood on, and how long.
#[derive(Clone, Debug, Default)]
pub struct Rungs {
    time: [Duration; Rung::ALL.len()],
    current: Rung,
    since: Option<Stamp>,
    pub highest: Rung,
    /// When the run was last seen where it had to end.
    pub stop_until: Option<Stamp>,
}

#[derive(Clone, Debug, Default)]
pub struct Refusals {
    pub count: u64,
    pub first: Option<Refusal>,
    pub last: Option<Refusal>,
    pub largest: Option<Refusal>,
}

#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub at: Stamp,
    pub pid: Pid,
    pub name: ProcessName,
    pub bytes: u64,
    pub footprint: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Saves {
    pub asked: u64,
    pub missed: u64,
    pub done: u64,
    /// Of those whose file is still there, as far as that is known.
    pub last: Option<Save>,
}

#[derive(Clone, Copy, Debug)]
pub struct Save {
    pub at: Stamp,
    pub file: ShortText,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Pauses {
    pub count: u64,
    pub total: Duration,
    /// Who grew before the last of them, and by how much.
    pub grower: Option<(ProcessName, Pid, u64)>,
    open: Option<Stamp>,
}

#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub at: Stamp,
    pub status: u32,
    pub worst_delay: Duration,
    pub by_guard: bool,
}

/// The end of the watch over an attached process.
#[derive(Clone, Copy, Debug)]
pub struct Detached {
    pub at: Stamp,
    /// The process has ended; else it lived on.
    pub process_ended: bool,
    pub worst_delay: Duration,
    pub by_guard: bool,
}

impl Story {
    pub fn tell(
        facts: &Facts,
        samples: impl IntoIterator<Item = Sample>,
        events: impl IntoIterator<Item = Event>,
    ) -> Story {
        let mut story = Story {
            started: facts.started,
            ..Story::default()
        };
        for sample in samples {
            story.look(&sample);
        }
        for event in events {
            story.hear(&event);
            if let EventKind::CheckpointSaved { bytes, file, .. } = event.kind {
                let is_by_trainer = file.as_bytes().is_empty() && bytes == 0;
                let is_deleted = facts.deleted_saves.contains(&file)
                    || is_by_trainer && facts.told.saves_deleted;
                if !is_deleted {
                    story.saves.last = Some(Save {
                        at: event.at,
                        file,
                        bytes,
                    });
                }
            }
        }
        // A trainer that looked between two samples may have seen more than any of them.
        if let (Some((_, held)), Some(at)) = (facts.told.most_held(), story.until()) {
            story.raise_peak(at, held);
        }
        story.close();
        story
    }

    /// From the start to the end, or to the last that is known.
    pub fn duration(&self) -> Duration {
        self.until()
            .map_or(Duration::ZERO, |until| between(self.begin(), until))
    }

    /// When it ended, or when the record stops.
    pub fn until(&self) -> Option<Stamp> {
        let detached = self.detached.map(|detached| detached.at);
        self.end.map(|end| end.at).or(detached).or(self.latest)
    }

    /// The worst delay of the guard's own tick, where it came to say so.
    pub fn worst_delay(&self) -> Option<Duration> {
        let detached = self.detached.map(|detached| detached.worst_delay);
        self.end.map(|end| end.worst_delay).or(detached)
    }

    pub fn begin(&self) -> Stamp {
        match &self.first {
            Some(first) if self.started == Stamp::default() => first.at,
            _ => self.started,
        }
    }

    fn look(&mut self, sample: &Sample) {
        self.reach(sample.at);
        self.course.see(sample);
        self.cards.see(sample);
        self.loaders.see(sample);
        self.seen.look(sample);
        if let Some(footprint) = sample.tree.footprint.value() {
            self.footprint.push(sample.at, footprint);
            if self
                .peak
                .as_ref()
                .is_none_or(|peak| footprint > peak.footprint)
            {
                self.peak = Some(Peak {
                    at: sample.at,
                    footprint,
                    largest: largest(sample),
                    taken_by_loaders: self.loaders.taken(sample),
                    untouched: untouched(sample),
                });
            }
        }
        self.peak_swap = self.peak_swap.max(sample.tree.swap.value());
        if let Some(steps) = sample.tree.steps.value().filter(|steps| *steps > 0) {
            self.steps = self.steps.max(Some(steps));
            let phase = sample.tree.phase.value().unwrap_or(0);
            let footprint = sample.tree.footprint.value().unwrap_or(0);
            self.phases.see(sample.at, phase, footprint);
        }
        if self.first.is_none() {
            self.first = Some(Box::new(*sample));
        }
        match &mut self.last {
            Some(last) => **last = *sample,
            None => self.last = Some(Box::new(*sample)),
        }
    }

    fn hear(&mut self, event: &Event) {
        self.reach(event.at);
        match event.kind {
            EventKind::Started { root, .. } => {
                self.seen.meet(root, ProcessName::default(), event.at)
            }
            EventKind::Rung { to, .. } => self.rungs.step(event.at, to, self.started),
            EventKind::RequestRefused {
                pid,
                name,
                bytes,
                footprint,
            } => {
                self.seen.meet(pid, name, event.at);
                self.refusals.add(Refusal {
                    at: event.at,
                    pid,
                    name,
                    bytes,
                    footprint,
                });
            }
            EventKind::CheckpointAsked { .. } => self.saves.asked += 1,
            EventKind::CheckpointMissed { .. } => self.saves.missed += 1,
            EventKind::CheckpointSaved { .. } => self.saves.done += 1,
            EventKind::Paused { who, pid, grew } => {
                self.pauses.count += 1;
                self.pauses.open = Some(event.at);
                self.pauses.grower = Some((who, pid, grew));
            }
            EventKind::Resumed { millis, .. } => {
                self.pauses.open = None;
                self.pauses.total = self
                    .pauses
                    .total
                    .saturating_add(Duration::from_millis(millis));
            }
            EventKind::StopSent { trigger, .. } => {
                self.stop = self.stop.or(Some(trigger));
                self.stopped_at = self.stopped_at.or(Some(event.at));
            }
            EventKind::KillSent { trigger, .. } => {
                self.stop = self.stop.or(Some(trigger));
                self.forced = true;
            }
            EventKind::Ended {
                status,
                peak,
                worst_delay_ms,
                ended_by_guard,
            } => {
                let worst_delay = Duration::from_millis(worst_delay_ms);
                self.end = Some(Ended {
                    at: event.at,
                    status,
                    worst_delay,
                    by_guard: ended_by_guard,
                });
                self.raise_peak(event.at, peak);
            }
            EventKind::Detached {
                process_ended,
                peak,
                worst_delay_ms,
                ended_by_guard,
            } => {
                self.detached = Some(Detached {
                    at: event.at,
                    process_ended,
                    worst_delay: Duration::from_millis(worst_delay_ms),
                    by_guard: ended_by_guard,
                });
                self.raise_peak(event.at, peak);
            }
            _ => {}
        }
    }

    /// The guard samples more often than it records, so its own peak may be the higher one.
    fn raise_peak(&mut self, at: Stamp, footprint: u64) {
        match &mut self.peak {
            Some(peak) => peak.footprint = peak.footprint.max(footprint),
            None if footprint > 0 => {
                self.peak = Some(Peak {
                    at,
                    footprint,
                    ..Peak::default()
                });
            }
            None => {}
        }
    }

    fn reach(&mut self, at: Stamp) {
        if self
            .latest
            .is_none_or(|latest| at.monotonic_ns > latest.monotonic_ns)
        {
            self.latest = Some(at);
        }
    }

    fn close(&mut self) {
        let Some(until) = self.until() else { return };
        if let Some(paused) = self.pauses.open {
            self.pauses.total = self.pauses.total.saturating_add(between(paused, until));
        }
        self.rungs.step(until, self.rungs.current, self.started);
    }
}

impl Rungs {
    /// How long the run stood on a rung.
    pub fn time(&self, rung: Rung) -> Duration {
        self.time.get(rung as usize).copied().unwrap_or_default()
    }

    fn step(&mut self, at: Stamp, to: Rung, started: Stamp) {
        let stood = between(self.since.unwrap_or(started), at);
        if let Some(time) = self.time.get_mut(self.current as usize) {
            *time = time.saturating_add(stood);
        }
        if self.current.max(to) >= Rung::Stop {
            self.stop_until = Some(at);
        }
        self.since = Some(at);
        self.current = to;
        self.highest = self.highest.max(to);
    }
}

impl Refusals {
    fn add(&mut self, refusal: Refusal) {
        self.count += 1;
        self.first.get_or_insert(refusal);
        self.last = Some(refusal);
        if self
            .largest
            .is_none_or(|largest| refusal.bytes > largest.bytes)
        {
            self.largest = Some(refusal);
        }
    }
}

/// What a process holds for itself and in shared memory, where it is known.
fn held(process: &Process) -> u64 {
    [process.rss_anon, process.rss_shmem, process.swap]
        .into_iter()
        .filter_map(|reading| reading.value())
        .fold(0, u64::saturating_add)
}

/// Of each process that may come to load data, what it held when it was born, as far as that was
/// seen, and what it has taken since.
#[derive(Clone, Debug, Default)]
struct Loaders(HashMap<(Pid, u64), Taken>);

#[derive(Clone, Copy, Debug)]
struct Taken {
    born_with: u64,
    since: u64,
}

impl Loaders {
    fn see(&mut self, sample: &Sample) {
        let all = sample.processes.as_slice();
        for process in all {
            let has = held(process);
            let key = (process.pid, process.started);
            // One that is just ending has nothing any more; what it had counts.
            if has == 0 || (self.0.len() >= MOST_LOADERS && !self.0.contains_key(&key)) {
                continue;
            }
            let parent = all.iter().find(|parent| parent.pid == process.parent);
            // What it has beyond its parent it did not inherit.
            let born_with = has.min(parent.map_or(u64::MAX, held));
            let taken = self.0.entry(key).or_insert(Taken {
                born_with,
                since: 0,
            });
            taken.since = has.saturating_sub(taken.born_with);
        }
    }

    fn taken(&self, sample: &Sample) -> u64 {
        let taken = |process: &Process| {
            let taken = self.0.get(&(process.pid, process.started))?;
            Some(taken.since)
        };
        let processes = sample.processes.as_slice().iter();
        processes
            .filter(|process| loads_data(process))
            .filter_map(taken)
            .fold(0, u64::saturating_add)
    }
}

/// As PyTorch names its loaders.
fn loads_data(process: &Process) -> bool {
    process.name.as_bytes().starts_with(b"pt_data_worker")
}

fn untouched(sample: &Sample) -> u64 {
    let of = |process: &Process| {
        let used = process.rss_anon.value()? + process.swap.value().unwrap_or(0);
        Some(process.vm_data.value()?.saturating_sub(used))
    };
    sample.processes.as_slice().iter().filter_map(of).sum()
}

fn largest(sample: &Sample) -> Vec<(ProcessName, Pid, u64)> {
    let mut processes: Vec<_> = sample
        .processes
        .as_slice()
        .iter()
        .map(|process| (process.name, process.pid, held(process)))
        .collect();
    processes.sort_by_key(|(_, _, held)| std::cmp::Reverse(*held));
    processes.truncate(LARGEST);
    processes
}

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
