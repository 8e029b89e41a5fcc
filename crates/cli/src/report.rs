//! A run read back from its folder, and the words for it.

use crate::link::link;
use crate::store;
use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::{Again, Facts, Now, Run, Since};
use antifreeze_guard::boot::boot_id;
use antifreeze_guard::writer::TAILS;
use antifreeze_record::event::{Event, What};
use antifreeze_record::{Record, tail};
use antifreeze_view::{Detail, Look, RunRow, closing, met_trouble};
use std::path::Path;

pub struct Report(Run);

impl Report {
    /// From a run's folder.
    pub fn read(run: &store::Run) -> Result<Report, String> {
        Report::read_with(run, |_| Log::default())
    }

    /// With what the system's log tells.
    pub fn read_with(run: &store::Run, log: impl FnOnce(Since) -> Log) -> Result<Report, String> {
        let now = Now {
            boot: boot_id(),
            guarded: run.is_guarded(),
            is_here: run.is_here,
        };
        Run::open_with(&run.folder, last_output(&run.folder), now, log)
            .map(Report)
            .map_err(|error| format!("reading {}: {error}", run.folder.display()))
    }

    /// From what a run printed, and nothing else.
    pub fn of_output(output: Vec<u8>, log: Log) -> Report {
        Report(Run::of_output(output, log))
    }

    /// From what the front knows itself, where the record has no end: nothing could be
    /// written, or a slow disk has not taken the last of it yet.
    pub fn by_front(facts: Facts, events: Vec<Event>) -> Report {
        let record = Record::open(&facts.record).ok();
        Report(Run::judge(
            facts,
            record.iter().flat_map(Record::samples),
            events,
        ))
    }

    /// With what the linter knows of the lines that its causes name.
    pub fn linked(mut self) -> Report {
        link(&mut self.0.verdict, &self.0.facts);
        self
    }

    /// Whether the end of the run is in it.
    pub fn has_end(&self) -> bool {
        let mut events = self.0.events.iter();
        events.any(|event| matches!(event.what, What::Ended { .. }))
    }

    /// The words at the end; none when little was asked for and nothing happened.
    pub fn closing(&self, look: &Look, detail: Detail) -> Option<String> {
        let Report(run) = self;
        let trouble = met_trouble(&run.verdict, &run.story);
        if detail == Detail::Quiet && !trouble {
            return None;
        }
        let words = closing(&run.verdict, &run.facts, &run.story, look);
        Some(if trouble {
            format!("\n{words}\n")
        } else {
            format!("antifreeze: {words}\n")
        })
    }

    pub fn again(&self) -> Again {
        Again::of(&self.0.verdict, &self.0.facts.told)
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.0.verdict).unwrap_or_default() + "\n"
    }

    pub fn explain(&self, look: &Look) -> String {
        antifreeze_view::explain(&self.0, look)
    }

    /// One page with all of it, and a timeline.
    pub fn html(&self, look: &Look) -> String {
        let record = Record::open(&self.0.facts.record).ok();
        let samples = record.iter().flat_map(Record::samples);
        antifreeze_view::report(&self.0, samples, b"", look)
    }

    pub fn show(&self, look: &Look) -> String {
        let Report(run) = self;
        antifreeze_view::show(
            &run.verdict,
            &run.facts,
            &run.story,
            run.events.iter().copied(),
            look,
        )
    }

    pub fn row(&self) -> RunRow {
        RunRow::new(&self.0.facts, &self.0.story, &self.0.verdict)
    }

    /// Whether the guard paused it and has not yet let it go on.
    pub fn is_paused(&self) -> bool {
        let last = self
            .0
            .events
            .iter()
            .rev()
            .find(|event| matches!(event.what, What::Paused { .. } | What::Resumed { .. }));
        last.is_some_and(|event| matches!(event.what, What::Paused { .. }))
    }
}

/// The tail of what it printed, standard error last.
fn last_output(folder: &Path) -> Vec<u8> {
    TAILS
        .iter()
        .flat_map(|name| tail::read(&folder.join(name)).unwrap_or_default())
        .collect()
}
