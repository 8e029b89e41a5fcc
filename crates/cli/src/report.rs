//! A run read back from its folder: the story, the verdict, and the words for it.

use crate::store::Run;
use antifreeze_guard::boot::boot_id;
use antifreeze_guard::writer::TAILS;
use antifreeze_record::event::{Event, What};
use antifreeze_record::{Record, tail};
use antifreeze_view::{Detail, Facts, Look, RunRow, Since, Story, Verdict, closing, met_trouble};

pub struct Report {
    facts: Facts,
    story: Story,
    verdict: Verdict,
    events: Vec<Event>,
}

impl Report {
    /// From what the front knows and what its guard has recorded.
    pub fn of(facts: &Facts) -> Report {
        let mut facts = facts.clone();
        let record = Record::open(&facts.record).ok();
        facts.last_output = last_output(&facts);
        Report::tell(facts, record.as_ref())
    }

    /// From a run's folder alone.
    pub fn read(run: &Run) -> Result<Report, String> {
        let record = run
            .record()
            .map_err(|error| format!("reading {}: {error}", run.folder.display()))?;
        let head = record
            .head()
            .ok_or_else(|| format!("{} holds no record", run.folder.display()))?;
        let since = match (run.is_guarded(), head.boot == boot_id()) {
            (true, _) => Since::StillGuarded,
            (false, true) => Since::GuardGone,
            (false, false) => Since::Rebooted,
        };
        let mut facts = Facts {
            run: run.id.clone(),
            record: run.folder.clone(),
            folder: head.folder,
            command: head.command,
            started: head.start,
            total: head.total,
            reserve: head.reserve,
            budget: head.budget,
            since,
            ..Facts::default()
        };
        if let Some(first) = record.samples().next() {
            facts.available = first.memory.available.value();
            facts.container = first.cgroup.limit.value().filter(|limit| *limit < facts.total);
        }
        facts.last_output = last_output(&facts);
        Ok(Report::tell(facts, Some(&record)))
    }

    fn tell(facts: Facts, record: Option<&Record>) -> Report {
        let events: Vec<Event> = record.map(|record| record.events().collect()).unwrap_or_default();
        let samples = record.into_iter().flat_map(Record::samples);
        let story = Story::tell(&facts, samples, events.iter().copied());
        let verdict = Verdict::reach(&facts, &story);
        Report { facts, story, verdict, events }
    }

    /// The words at the end; none when nothing was asked for and nothing happened.
    pub fn closing(&self, look: &Look, detail: Detail) -> Option<String> {
        let trouble = met_trouble(&self.verdict, &self.story);
        if detail == Detail::Quiet && !trouble {
            return None;
        }
        let words = closing(&self.verdict, &self.facts, &self.story, look);
        Some(if trouble { format!("\n{words}\n") } else { format!("antifreeze: {words}\n") })
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.verdict).unwrap_or_default() + "\n"
    }

    pub fn show(&self, look: &Look) -> String {
        antifreeze_view::show(&self.verdict, &self.facts, &self.story, self.events.iter().copied(), look)
    }

    pub fn row(&self) -> RunRow {
        RunRow::new(&self.facts, &self.story, &self.verdict)
    }

    /// Whether the guard paused it and has not yet let it go on.
    pub fn is_paused(&self) -> bool {
        let last = self.events.iter().rev().find(|event| {
            matches!(event.what, What::Paused { .. } | What::Resumed { .. })
        });
        last.is_some_and(|event| matches!(event.what, What::Paused { .. }))
    }
}

fn last_output(facts: &Facts) -> Vec<u8> {
    let mut output = Vec::new();
    for name in TAILS {
        output.extend(tail::read(&facts.record.join(name)).unwrap_or_default());
    }
    output
}
