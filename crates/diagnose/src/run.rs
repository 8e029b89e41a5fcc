//! From a run's folder to its story and verdict.

use crate::checkpoints;
use crate::facts::{Facts, Since, Terms};
use crate::kernel::Log;
use crate::printed::as_utf8;
use crate::shim::{Told, may_exist};
use crate::stacks::Stacks;
use crate::story::Story;
use crate::verdict::Verdict;
use crate::waits::Waits;
use antifreeze_record::event::{Degradation, Event, EventKind, ShortText};
use antifreeze_record::{Record, RecordError};
use antifreeze_sense::{Sample, parse};
use antifreeze_text::sanitize;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The reader's present.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Which boot of the machine this is.
    pub boot: [u8; 16],
    /// Whether the run's guard lives.
    pub guarded: bool,
    /// Whether the run was this machine's.
    pub is_here: bool,
}

/// One run, read and judged.
pub struct Run {
    pub facts: Facts,
    pub story: Story,
    pub verdict: Verdict,
    /// Oldest first.
    pub events: Vec<Event>,
}

impl Run {
    /// Reads what is left of a run. `last_output` is the tail of what it printed, standard
    /// error last.
    pub fn open(folder: &Path, last_output: Vec<u8>, now: Now) -> Result<Run, RecordError> {
        Run::open_with(folder, last_output, now, |_, _| Log::default())
    }

    /// With what the system's log tells, of the boot in which it ended.
    pub fn open_with(
        folder: &Path,
        last_output: Vec<u8>,
        now: Now,
        log: impl FnOnce(Since, [u8; 16]) -> Log,
    ) -> Result<Run, RecordError> {
        let record = Record::open(folder)?;
        let mut facts = facts(folder, &record, last_output, now);
        let boot = record.head().map_or(now.boot, |head| head.boot);
        facts.log = log(facts.since, boot);
        let events: Vec<Event> = record.events().collect();
        // Files named in a run from another machine cannot be looked up here.
        if now.is_here {
            facts.told.forget_deleted_saves();
            facts.deleted_saves = deleted_saves(&events);
        }
        Ok(Run::judge(facts, record.samples(), events))
    }

    /// Judges a run by what it printed, where there is nothing else.
    pub fn of_output(output: Vec<u8>, log: Log) -> Run {
        let facts = Facts {
            last_output: as_utf8(output),
            log,
            since: Since::OnlyPrinted,
            ..Facts::default()
        };
        Run::judge(facts, [], Vec::new())
    }

    /// Judges a run by what was seen of it.
    pub fn judge(
        mut facts: Facts,
        samples: impl IntoIterator<Item = Sample>,
        events: Vec<Event>,
    ) -> Run {
        let is_attached = |event: &Event| matches!(event.kind, EventKind::Attached { .. });
        facts.attached |= events.iter().any(is_attached);
        facts.has_no_brake |= events.iter().any(|event| lacks_brake(&event.kind));
        let story = Story::tell(&facts, samples, events.iter().copied());
        let verdict = Verdict::reach(&facts, &story);
        Run {
            facts,
            story,
            verdict,
            events,
        }
    }
}

/// The guard reports that it cannot slow the run down.
pub fn lacks_brake(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Degraded {
            degradation: Degradation::NoCgroup | Degradation::NoMemoryController,
            ..
        }
    )
}

/// Of the files of saves that the guard saw, those that are not there any more.
fn deleted_saves(events: &[Event]) -> Vec<ShortText> {
    let file = |event: &Event| match event.kind {
        EventKind::CheckpointSaved { file, .. } => Some(file),
        _ => None,
    };
    let mut files: Vec<ShortText> = events.iter().filter_map(file).collect();
    files.dedup();
    // Of a long path only the end is recorded.
    files.retain(|file| {
        let is_whole =
            file.as_bytes().starts_with(b"/") && file.as_bytes().len() < ShortText::MAX_BYTES;
        is_whole && !may_exist(Path::new(OsStr::from_bytes(file.as_bytes())))
    });
    files
}

/// Without touching the folder itself: a mount whose server is gone would not answer.
fn mount_of(folder: &Path) -> Option<String> {
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mount = parse::mount_holding(&mounts, folder.as_os_str().as_bytes())?;
    let [kind, source, point] = [mount.kind, mount.source, mount.point]
        .map(|word| sanitize::escape(&parse::unescape_mount_path(word).collect::<Vec<u8>>()));
    Some(format!("{kind} {source} on {point}"))
}

fn facts(folder: &Path, record: &Record, last_output: Vec<u8>, now: Now) -> Facts {
    let first = record.samples().next();
    let mut facts = Facts {
        record: folder.into(),
        last_output,
        told: Told::read(folder),
        checkpoints: checkpoints::scan(&folder.join("saves")),
        stacks: Stacks::read(folder),
        waits: Waits::read(folder),
        ..Facts::default()
    };
    if let Some(head) = record.head() {
        facts.since = match (now.guarded, head.boot == now.boot) {
            (_, false) if !now.is_here => Since::Elsewhere,
            (_, false) => Since::Rebooted,
            (true, true) => Since::StillGuarded,
            (false, true) => Since::GuardGone,
        };
        facts.run = head.run;
        facts.folder = head.folder;
        if facts.since != Since::Elsewhere {
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

/// What there was to be had at the first look, with what the run had already taken.
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
