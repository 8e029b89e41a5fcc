//! From a run's folder to its story and verdict.

use crate::facts::{Facts, Since};
use crate::look::between;
use crate::story::Story;
use crate::verdict::Verdict;
use antifreeze_record::Record;
use antifreeze_record::event::Event;
use antifreeze_sense::{Sample, Stamp};
use std::io;
use std::path::Path;
use std::time::Duration;

/// A guard writes about once a second; in a storm a write took ten. One that has not
/// written for this long is gone.
const SILENCE: Duration = Duration::from_secs(30);

/// The reader's present: which boot of the machine, and when.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub boot: [u8; 16],
    pub at: Stamp,
}

/// One run, read and judged.
pub struct Run {
    pub facts: Facts,
    pub story: Story,
    pub verdict: Verdict,
    record: Record,
}

impl Run {
    /// Reads what is left of a run. `last_output` is the tail of what it printed, standard
    /// error last.
    pub fn open(folder: &Path, last_output: Vec<u8>, now: Now) -> io::Result<Run> {
        let record = Record::open(folder)?;
        let facts = facts(folder, &record, last_output, now);
        let story = Story::tell(&facts, record.samples(), record.events());
        let verdict = Verdict::reach(&facts, &story);
        Ok(Run {
            facts,
            story,
            verdict,
            record,
        })
    }

    /// Oldest first.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.record.events()
    }
}

fn facts(folder: &Path, record: &Record, last_output: Vec<u8>, now: Now) -> Facts {
    let first = record.samples().next();
    let mut facts = Facts {
        record: folder.into(),
        last_output,
        ..Facts::default()
    };
    if let Some(head) = record.head() {
        facts.since = since(head.boot, record.last_stamp().unwrap_or(head.start), now);
        facts.run = head.run;
        facts.folder = head.folder;
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

fn since(boot: [u8; 16], last: Stamp, now: Now) -> Since {
    if boot != now.boot {
        Since::Rebooted
    } else if between(last, now.at) <= SILENCE {
        Since::StillGuarded
    } else {
        Since::GuardGone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_another_boot_tell_what_became_of_the_guard() {
        let at = |seconds: u64| Stamp {
            monotonic: seconds * 1_000_000_000,
            realtime: 0,
        };
        let now = Now {
            boot: [1; 16],
            at: at(100),
        };
        assert_eq!(since([1; 16], at(95), now), Since::StillGuarded);
        assert_eq!(since([1; 16], at(60), now), Since::GuardGone);
        assert_eq!(since([2; 16], at(99), now), Since::Rebooted);
    }
}
