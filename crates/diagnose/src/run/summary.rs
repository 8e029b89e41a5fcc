//! The summary of a run, built from samples and events in one pass and in constant memory, so that a week's record is
//! read as easily as a minute's. It has numbers only; the verdict decides what they mean.

use crate::kernel::attribution::SeenProcesses;
use crate::run::facts::Facts;
use crate::run::gpu_usage::GpuUsage;
use crate::run::rates::Rates;
use crate::run::series::Series;
use crate::time::between;
use antifreeze_record::event::{Event, EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{Phase, Pid, Process, ProcessName, Sample, Stamp};
use std::collections::HashMap;
use std::time::Duration;

/// The number of phases of a training, including the unknown one.
const PHASES: usize = 7;
/// How many processes are remembered from the moment of the peak.
const MAX_LARGEST: usize = 5;
/// How many processes are remembered as possible data loaders.
const MAX_LOADERS: usize = 10_000;

/// The summary of a run.
#[derive(Clone, Debug, Default)]
pub struct RunSummary {
    /// The first sample.
    pub first: Option<Box<Sample>>,
    /// The last sample.
    pub last: Option<Box<Sample>>,
    /// The moment of peak memory.
    pub peak: Option<Peak>,
    /// Peak use of swap in bytes.
    pub peak_swap: Option<u64>,
    /// Memory of the run over time.
    pub footprint: Series,
    /// The rungs of the guard's ladder that the run was on.
    pub rungs: Rungs,
    /// Refused requests for memory.
    pub refusals: Refusals,
    /// Checkpoints that the guard asked for.
    pub saves: Saves,
    /// Pauses of the run.
    pub pauses: Pauses,
    /// Why the guard ended the run, if it did.
    pub stop: Option<Trigger>,
    /// The guard killed the run.
    pub forced: bool,
    /// When the guard asked the run to end.
    pub stopped_at: Option<Stamp>,
    /// The end of the command.
    pub end: Option<Ended>,
    /// The end of the guard's watch over an attached process whose exit status is not known.
    pub detached: Option<Detached>,
    /// The number of training steps.
    pub steps: Option<u64>,
    /// The phases of the training.
    pub phases: Phases,
    /// Rates and shares of time.
    pub rates: Rates,
    /// The use of GPUs.
    pub gpus: GpuUsage,
    pub(crate) seen: SeenProcesses,
    loaders: Loaders,
    latest: Option<Stamp>,
    started: Stamp,
}

/// The moment of peak memory.
#[derive(Clone, Debug, Default)]
pub struct Peak {
    /// When it was.
    pub at: Stamp,
    /// Memory of all processes of the run in bytes.
    pub footprint: u64,
    /// The largest processes, largest first. Memory that several of them share is counted in each.
    pub largest: Vec<(ProcessName, Pid, u64)>,
    /// Memory that data loader processes had taken since they were started, without what they share with their parent.
    pub taken_by_loaders: u64,
    /// Memory that was mapped and not used yet.
    pub untouched: u64,
}

impl Peak {
    /// Memory that the largest processes share, which the peak counts once; 0 where their sum does not exceed the peak by
    /// more than what may change between two readings.
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

/// The phases of the training in each sample, from its first step on.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    first: Option<Stamp>,
    last: Stamp,
    samples: [u64; PHASES],
    /// Peak memory in each.
    peaks: [u64; PHASES],
}

impl Phases {
    fn add(&mut self, at: Stamp, phase: u64, footprint: u64) {
        let phase = (phase as usize).min(PHASES - 1);
        self.first.get_or_insert(at);
        self.last = at;
        self.samples[phase] += 1;
        self.peaks[phase] = self.peaks[phase].max(footprint);
    }

    /// How long the training was observed.
    pub fn time(&self) -> Duration {
        self.first
            .map_or(Duration::ZERO, |first| between(first, self.last))
    }

    /// The phases that were observed, with their share of the time and their peak memory.
    pub fn observed(&self) -> Vec<(&'static str, f64, u64)> {
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

    /// The share of the time in a phase; None where phases are not known.
    pub fn share(&self, phase: Phase) -> Option<f64> {
        // The phase of short steps is known in some samples only.
        let known: u64 = self.samples[1..].iter().sum();
        (known > 0).then(|| self.samples[phase as usize] as f64 / known as f64)
    }
}

/// The rungs of the ladder that the run was on, and for how long.
#[derive(Clone, Debug, Default)]
pub struct Rungs {
    time: [Duration; Rung::ALL.len()],
    current: Rung,
    since: Option<Stamp>,
    /// The highest rung.
    pub highest: Rung,
    /// When the run was last on a rung at which it has to end.
    pub stop_until: Option<Stamp>,
}

/// Refused requests for memory.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    /// How many there were.
    pub count: u64,
    /// The first one.
    pub first: Option<Refusal>,
    /// The last one.
    pub last: Option<Refusal>,
    /// The largest one.
    pub largest: Option<Refusal>,
}

/// A refused request for memory.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// When it was refused.
    pub at: Stamp,
    /// The process.
    pub pid: Pid,
    /// The name of the process.
    pub name: ProcessName,
    /// The size of the request.
    pub bytes: u64,
    /// Memory of the run at that time.
    pub footprint: u64,
}

/// Checkpoints that the guard asked for.
#[derive(Clone, Debug, Default)]
pub struct Saves {
    /// How many were asked for.
    pub asked: u64,
    /// How many did not come.
    pub missed: u64,
    /// How many were written.
    pub done: u64,
    /// The last one whose file still exists, as far as that is known.
    pub last: Option<Save>,
}

/// A checkpoint that was written.
#[derive(Clone, Copy, Debug)]
pub struct Save {
    /// When it was written.
    pub at: Stamp,
    /// Its file.
    pub file: ShortText,
    /// Its size.
    pub bytes: u64,
}

/// Pauses of the run.
#[derive(Clone, Debug, Default)]
pub struct Pauses {
    /// How many there were.
    pub count: u64,
    /// How long they were in all.
    pub total: Duration,
    /// The process that grew before the last pause, and by how much.
    pub grower: Option<(ProcessName, Pid, u64)>,
    open: Option<Stamp>,
}

/// The end of the command.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// When it ended.
    pub at: Stamp,
    /// Its raw wait status.
    pub status: u32,
    /// The longest delay of the guard's own loop.
    pub worst_delay: Duration,
    /// Whether the guard ended it.
    pub by_guard: bool,
}

/// The end of the guard's watch over an attached process.
#[derive(Clone, Copy, Debug)]
pub struct Detached {
    /// When it ended.
    pub at: Stamp,
    /// Whether the process had ended; otherwise it continued.
    pub process_ended: bool,
    /// The longest delay of the guard's own loop.
    pub worst_delay: Duration,
    /// Whether the guard ended the process.
    pub by_guard: bool,
}

impl RunSummary {
    /// Builds the summary from samples and events, each in their order.
    pub fn build(
        facts: &Facts,
        samples: impl IntoIterator<Item = Sample>,
        events: impl IntoIterator<Item = Event>,
    ) -> RunSummary {
        let mut summary = RunSummary {
            started: facts.started,
            ..RunSummary::default()
        };
        for sample in samples {
            summary.apply_sample(&sample);
        }
        for event in events {
            summary.apply_event(&event);
            if let EventKind::CheckpointSaved { bytes, file, .. } = event.kind {
                let is_by_trainer = file.as_bytes().is_empty() && bytes == 0;
                let is_deleted = facts.deleted_saves.contains(&file)
                    || is_by_trainer && facts.shim.saves_deleted;
                if !is_deleted {
                    summary.saves.last = Some(Save {
                        at: event.at,
                        file,
                        bytes,
                    });
                }
            }
        }
        // The shim may have seen a higher peak between two samples.
        if let (Some((_, held)), Some(at)) = (facts.shim.peak_of_holders(), summary.until()) {
            summary.raise_peak(at, held);
        }
        summary.close();
        summary
    }

    /// The time from the start to the end, or to the end of the record.
    pub fn duration(&self) -> Duration {
        self.until()
            .map_or(Duration::ZERO, |until| between(self.begin(), until))
    }

    /// When it ended, or when the record ends.
    pub fn until(&self) -> Option<Stamp> {
        let detached = self.detached.map(|detached| detached.at);
        self.end.map(|end| end.at).or(detached).or(self.latest)
    }

    /// The longest delay of the guard's own loop, where it reported it.
    pub fn worst_delay(&self) -> Option<Duration> {
        let detached = self.detached.map(|detached| detached.worst_delay);
        self.end.map(|end| end.worst_delay).or(detached)
    }

    /// When it began.
    pub fn begin(&self) -> Stamp {
        match &self.first {
            Some(first) if self.started == Stamp::default() => first.at,
            _ => self.started,
        }
    }

    fn apply_sample(&mut self, sample: &Sample) {
        self.extend_to(sample.at);
        self.rates.add_sample(sample);
        self.gpus.add_sample(sample);
        self.loaders.add_sample(sample);
        self.seen.add_sample(sample);
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
                    largest: largest_processes(sample),
                    taken_by_loaders: self.loaders.taken(sample),
                    untouched: untouched_bytes(sample),
                });
            }
        }
        self.peak_swap = self.peak_swap.max(sample.tree.swap.value());
        if let Some(steps) = sample.tree.steps.value().filter(|steps| *steps > 0) {
            self.steps = self.steps.max(Some(steps));
            let phase = sample.tree.phase.value().unwrap_or(0);
            let footprint = sample.tree.footprint.value().unwrap_or(0);
            self.phases.add(sample.at, phase, footprint);
        }
        if self.first.is_none() {
            self.first = Some(Box::new(*sample));
        }
        match &mut self.last {
            Some(last) => **last = *sample,
            None => self.last = Some(Box::new(*sample)),
        }
    }

    fn apply_event(&mut self, event: &Event) {
        self.extend_to(event.at);
        match event.kind {
            EventKind::Started { root, .. } => {
                self.seen.add(root, ProcessName::default(), event.at)
            }
            EventKind::Rung { to, .. } => self.rungs.step(event.at, to, self.started),
            EventKind::RequestRefused {
                pid,
                name,
                bytes,
                footprint,
            } => {
                self.seen.add(pid, name, event.at);
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

    fn extend_to(&mut self, at: Stamp) {
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
    /// How long the run was on a rung.
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

/// Private and shared memory of a process, where it is known.
fn held_bytes(process: &Process) -> u64 {
    [process.rss_anon, process.rss_shmem, process.swap]
        .into_iter()
        .filter_map(|reading| reading.value())
        .fold(0, u64::saturating_add)
}

/// For each process that may load data: the memory that it inherited from its parent, as far as that was seen, and the
/// memory that it has taken since.
#[derive(Clone, Debug, Default)]
struct Loaders(HashMap<(Pid, u64), LoaderMemory>);

#[derive(Clone, Copy, Debug)]
struct LoaderMemory {
    inherited: u64,
    taken: u64,
}

impl Loaders {
    fn add_sample(&mut self, sample: &Sample) {
        let all = sample.processes.as_slice();
        for process in all {
            let has = held_bytes(process);
            let key = (process.pid, process.started);
            // A process that is just exiting has no memory any more; its last value counts.
            if has == 0 || (self.0.len() >= MAX_LOADERS && !self.0.contains_key(&key)) {
                continue;
            }
            let parent = all.iter().find(|parent| parent.pid == process.parent);
            // Memory beyond that of its parent was not inherited.
            let inherited = has.min(parent.map_or(u64::MAX, held_bytes));
            let memory = self.0.entry(key).or_insert(LoaderMemory {
                inherited,
                taken: 0,
            });
            memory.taken = has.saturating_sub(memory.inherited);
        }
    }

    fn taken(&self, sample: &Sample) -> u64 {
        let taken = |process: &Process| {
            let memory = self.0.get(&(process.pid, process.started))?;
            Some(memory.taken)
        };
        let processes = sample.processes.as_slice().iter();
        processes
            .filter(|process| loads_data(process))
            .filter_map(taken)
            .fold(0, u64::saturating_add)
    }
}

/// Whether a process has the name of a PyTorch data loader.
fn loads_data(process: &Process) -> bool {
    process.name.as_bytes().starts_with(b"pt_data_worker")
}

/// Memory that the processes of a sample have mapped and not used yet.
fn untouched_bytes(sample: &Sample) -> u64 {
    let of = |process: &Process| {
        let used = process.rss_anon.value()? + process.swap.value().unwrap_or(0);
        Some(process.vm_data.value()?.saturating_sub(used))
    };
    sample.processes.as_slice().iter().filter_map(of).sum()
}

/// The largest processes of a sample, largest first.
fn largest_processes(sample: &Sample) -> Vec<(ProcessName, Pid, u64)> {
    let mut processes: Vec<_> = sample
        .processes
        .as_slice()
        .iter()
        .map(|process| (process.name, process.pid, held_bytes(process)))
        .collect();
    processes.sort_by_key(|(_, _, held)| std::cmp::Reverse(*held));
    processes.truncate(MAX_LARGEST);
    processes
}

#[cfg(test)]
mod tests;
