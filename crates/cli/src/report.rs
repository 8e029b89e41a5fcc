//! Reads a run back from its folder and renders it as text, JSON or HTML.

use crate::lint_evidence::add_lint_evidence;
use crate::store;
use antifreeze_diagnose::kernel::Log;
use antifreeze_diagnose::redact::Redactor;
use antifreeze_diagnose::verdict::EndKind;
use antifreeze_diagnose::{Facts, ReadContext, RestartDecision, Run, RunState};
use antifreeze_guard::writer::TAILS;
use antifreeze_ipc::boot_id::boot_id;
use antifreeze_record::event::{Event, EventKind};
use antifreeze_record::{Record, output_tail};
use antifreeze_text::TermStyle;
use antifreeze_view::{Detail, RunRow, closing, met_trouble, was_acted_on};
use std::path::{Path, PathBuf};

pub struct Report {
    run: Run,
    /// The folder of its record.
    record: PathBuf,
}

impl Report {
    fn from_run(run: Run) -> Report {
        let record = run.facts.record.clone();
        Report { run, record }
    }

    /// Reads the report of a run from its folder.
    pub fn read(run: &store::Run) -> Result<Report, String> {
        Report::read_with(run, |_, _| Log::default())
    }

    /// Reads it together with the kernel log of the boot in which the run ended.
    pub fn read_with(
        run: &store::Run,
        log: impl FnOnce(RunState, [u8; 16]) -> Log,
    ) -> Result<Report, String> {
        let now = ReadContext {
            boot: boot_id(),
            guarded: run.is_guarded(),
            is_here: run.is_here,
        };
        Run::open_with(&run.folder, last_output(&run.folder), now, log)
            .map(Report::from_run)
            .map_err(|error| format!("reading {error}"))
    }

    /// Makes a report from the output of a run alone.
    pub fn from_output(output: Vec<u8>, log: Log) -> Report {
        Report::from_run(Run::from_output(output, log))
    }

    /// Makes a report from what the front knows, if the record is incomplete: nothing could be
    /// written, or a slow disk has not taken the last of it yet.
    pub fn from_front(facts: Facts, events: Vec<Event>) -> Report {
        let record = Record::open(&facts.record).ok();
        Report::from_run(Run::diagnose(
            facts,
            record.iter().flat_map(Record::samples),
            events,
        ))
    }

    /// Adds the linter's findings about the lines that its causes name.
    pub fn linked(mut self) -> Report {
        add_lint_evidence(&mut self.run.verdict, &self.run.facts);
        self
    }

    /// Whether the record contains the end of the run.
    pub fn has_end(&self) -> bool {
        let mut events = self.run.events.iter();
        events.any(|event| {
            matches!(
                event.kind,
                EventKind::Ended { .. } | EventKind::Detached { .. }
            )
        })
    }

    pub fn machine_died(&self) -> bool {
        self.run.verdict.end.kind == EndKind::MachineDied
    }

    /// The closing lines; none with `--quiet` where nothing was done to the command.
    pub fn closing(&self, style: &TermStyle, detail: Detail) -> Option<String> {
        let run = &self.run;
        let trouble = met_trouble(&run.verdict, &run.summary);
        if detail == Detail::Quiet && !was_acted_on(&run.verdict, &run.summary) {
            return None;
        }
        let words = closing(&run.verdict, &run.facts, &run.summary, style);
        Some(if trouble {
            format!("\n{words}\n")
        } else {
            format!("antifreeze: {words}\n")
        })
    }

    pub fn again(&self) -> RestartDecision {
        RestartDecision::decide(&self.run.verdict, &self.run.facts)
    }

    pub fn json(&self) -> String {
        serde_json::to_string_pretty(&self.run.verdict).unwrap_or_default() + "\n"
    }

    pub fn explain(&self, style: &TermStyle) -> String {
        antifreeze_view::explain(&self.run, style)
    }

    /// Removes secrets and personal names.
    pub fn redacted(&self, sieve: &Redactor) -> Report {
        let run = &self.run;
        let facts = sieve.redact_facts(&run.facts);
        let record = Record::open(&self.record).ok();
        let samples = record.iter().flat_map(Record::samples);
        Report {
            run: Run::diagnose(facts, samples, run.events.clone()),
            record: self.record.clone(),
        }
    }

    /// The last output of the run.
    pub fn output(&self) -> &[u8] {
        &self.run.facts.last_output
    }

    /// The run's name.
    pub fn name(&self) -> &str {
        &self.run.verdict.run
    }

    /// Renders the HTML page.
    pub fn html(&self, style: &TermStyle) -> String {
        let record = Record::open(&self.record).ok();
        let samples = record.iter().flat_map(Record::samples);
        antifreeze_view::report(&self.run, samples, style)
    }

    pub fn show(&self, style: &TermStyle) -> String {
        let run = &self.run;
        antifreeze_view::show(
            &run.verdict,
            &run.facts,
            &run.summary,
            run.events.iter().copied(),
            style,
        )
    }

    pub fn row(&self) -> RunRow {
        RunRow::new(&self.run.facts, &self.run.summary, &self.run.verdict)
    }

    /// Whether the guard has paused the run and not yet resumed it.
    pub fn is_paused(&self) -> bool {
        let last = self.run.events.iter().rev().find(|event| {
            matches!(
                event.kind,
                EventKind::Paused { .. } | EventKind::Resumed { .. }
            )
        });
        last.is_some_and(|event| matches!(event.kind, EventKind::Paused { .. }))
    }
}

/// The tail of what it printed, standard error last.
fn last_output(folder: &Path) -> Vec<u8> {
    TAILS
        .iter()
        .flat_map(|name| output_tail::read(&folder.join(name)).unwrap_or_default())
        .collect()
}
