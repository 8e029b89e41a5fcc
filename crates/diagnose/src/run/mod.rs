//! The data of a run: what its folder holds, gathered in one pass over its samples and events, and the [`Run`] with its
//! verdict.

pub mod checkpoints;
pub mod continuation;
pub(crate) mod evidence;
pub mod facts;
pub mod gpu_usage;
pub mod rates;
pub mod restart;
pub mod series;
pub mod stacks;
pub mod summary;
pub mod wait_states;

use crate::kernel::Log;
use crate::output::utf16;
use crate::shim::{ShimReport, may_exist};
use crate::verdict::Verdict;
use antifreeze_record::event::{Degradation, Event, EventKind, ShortText};
use antifreeze_record::{Record, RecordError};
use antifreeze_sense::{Sample, parse};
use antifreeze_text::sanitize;
use facts::{Facts, RunState, Terms};
use stacks::Stacks;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use summary::RunSummary;
use wait_states::WaitStates;

/// Where and when a run's folder is read.
#[derive(Clone, Copy, Debug)]
pub struct ReadContext {
    /// The ID of the current boot.
    pub boot: [u8; 16],
    /// Whether the run's guard is alive.
    pub guarded: bool,
    /// Whether the run took place on this machine.
    pub is_here: bool,
}

/// A run with its verdict.
pub struct Run {
    /// What is known besides samples and events.
    pub facts: Facts,
    /// What samples and events show.
    pub summary: RunSummary,
    /// How it ended and why.
    pub verdict: Verdict,
    /// All events, oldest first.
    pub events: Vec<Event>,
}

impl Run {
    /// Reads a run's folder. `last_output` is the end of what the run printed, standard error last.
    pub fn open(
        folder: &Path,
        last_output: Vec<u8>,
        context: ReadContext,
    ) -> Result<Run, RecordError> {
        Run::open_with(folder, last_output, context, |_, _| Log::default())
    }

    /// Reads a run's folder, together with the kernel's log of the boot in which the run ended.
    pub fn open_with(
        folder: &Path,
        last_output: Vec<u8>,
        context: ReadContext,
        log: impl FnOnce(RunState, [u8; 16]) -> Log,
    ) -> Result<Run, RecordError> {
        let record = Record::open(folder)?;
        let mut facts = facts(folder, &record, last_output, context);
        let boot = record.head().map_or(context.boot, |head| head.boot);
        facts.log = log(facts.state, boot);
        let events: Vec<Event> = record.events().collect();
        // Files of a run from another machine cannot be looked up here.
        if context.is_here {
            facts.shim.forget_deleted_saves();
            facts.deleted_saves = deleted_saves(&events);
        }
        Ok(Run::diagnose(facts, record.samples(), events))
    }

    /// Diagnoses a run from its output alone.
    pub fn from_output(output: Vec<u8>, log: Log) -> Run {
        let facts = Facts {
            last_output: utf16::to_utf8(output),
            log,
            state: RunState::OnlyPrinted,
            ..Facts::default()
        };
        Run::diagnose(facts, [], Vec::new())
    }

    /// Diagnoses a run from facts, samples and events.
    pub fn diagnose(
        mut facts: Facts,
        samples: impl IntoIterator<Item = Sample>,
        events: Vec<Event>,
    ) -> Run {
        let is_attached = |event: &Event| matches!(event.kind, EventKind::Attached { .. });
        facts.attached |= events.iter().any(is_attached);
        facts.has_no_brake |= events.iter().any(|event| lacks_brake(&event.kind));
        let summary = RunSummary::build(&facts, samples, events.iter().copied());
        let verdict = Verdict::reach(&facts, &summary);
        Run {
            facts,
            summary,
            verdict,
            events,
        }
    }
}

/// Whether an event reports that the guard cannot slow the run down.
pub fn lacks_brake(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Degraded {
            degradation: Degradation::NoCgroup | Degradation::NoMemoryController,
            ..
        }
    )
}

/// Lists the checkpoint files that the guard saw and that no longer exist.
fn deleted_saves(events: &[Event]) -> Vec<ShortText> {
    let file = |event: &Event| match event.kind {
        EventKind::CheckpointSaved { file, .. } => Some(file),
        _ => None,
    };
    let mut files: Vec<ShortText> = events.iter().filter_map(file).collect();
    files.dedup();
    // Only the end of a long path is recorded.
    files.retain(|file| {
        let is_whole =
            file.as_bytes().starts_with(b"/") && file.as_bytes().len() < ShortText::MAX_BYTES;
        is_whole && !may_exist(Path::new(OsStr::from_bytes(file.as_bytes())))
    });
    files
}

/// The mount that a folder is on. Does not touch the folder: a mount whose server is gone would not answer.
fn mount_of(folder: &Path) -> Option<String> {
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mount = parse::mount_holding(&mounts, folder.as_os_str().as_bytes())?;
    let [kind, source, point] = [mount.kind, mount.source, mount.point]
        .map(|word| sanitize::escape(&parse::unescape_mount_path(word).collect::<Vec<u8>>()));
    Some(format!("{kind} {source} on {point}"))
}

fn facts(folder: &Path, record: &Record, last_output: Vec<u8>, context: ReadContext) -> Facts {
    let first = record.samples().next();
    let mut facts = Facts {
        record: folder.into(),
        last_output,
        shim: ShimReport::read(folder),
        checkpoints: checkpoints::scan(&folder.join("saves")),
        stacks: Stacks::read(folder),
        wait_states: WaitStates::read(folder),
        ..Facts::default()
    };
    if let Some(head) = record.head() {
        facts.state = match (context.guarded, head.boot == context.boot) {
            (_, false) if !context.is_here => RunState::Elsewhere,
            (_, false) => RunState::Rebooted,
            (true, true) => RunState::StillGuarded,
            (false, true) => RunState::GuardGone,
        };
        facts.run = head.run;
        facts.folder = head.folder;
        if facts.state != RunState::Elsewhere {
            facts.mount = mount_of(&facts.folder);
        }
        facts.command = head.command;
        facts.truncated = head.truncated;
        facts.started = head.start;
        facts.total = head.total;
        facts.reserve = head.reserve;
        facts.budget = head.budget;
    } else if let Some(name) = folder.file_name() {
        facts.run = name.to_string_lossy().into_owned();
    }
    if let Some(first) = first {
        facts.container = first
            .cgroup
            .limit
            .value()
            .filter(|limit| *limit < facts.total);
        facts.available = available(&first);
    }
    if let Some(terms) = Terms::read(folder) {
        facts.attached = terms.attached;
        facts.swap = terms.swap;
        facts.container = terms.container;
        facts.available = terms.available;
    }
    facts
}

/// Memory that was available at the first sample, including what the run had already taken.
fn available(first: &Sample) -> Option<u64> {
    let machine = first.memory.available.value()?;
    let free = first
        .cgroup
        .limit_available
        .value()
        .unwrap_or(u64::MAX)
        .min(machine);
    Some(free.saturating_add(first.tree.footprint.value().unwrap_or(0)))
}
