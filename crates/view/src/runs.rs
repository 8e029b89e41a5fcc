//! Renders the stored runs: a table for people, rows for programs, and one run in full.

use crate::closing;
use crate::sentence::{Detail, rung_name, sentence, shown_rung};
use antifreeze_diagnose::Facts;
use antifreeze_diagnose::run::summary::{Peak, RunSummary};
use antifreeze_diagnose::time::{between, timestamp};
use antifreeze_diagnose::verdict::phrases::process;
use antifreeze_diagnose::verdict::{EndKind, Verdict, format_timestamp};
use antifreeze_record::event::{Event, Rung};
use antifreeze_sense::Stamp;
use antifreeze_text::layout::{cut, pad, wrap};
use antifreeze_text::{TermStyle, sanitize, units};
use serde::Serialize;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// `runs show` prints at most this many lines of the last output.
const MAX_OUTPUT_LINES: usize = 15;
/// `runs show` prints at most this many events, the last ones.
const MAX_EVENT_LINES: usize = 40;
/// The width of the time before each event, with its margins.
const TIME_COLUMNS: usize = 12;

/// One row of the list of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow {
    pub run: String,
    /// The start of the run, in RFC 3339.
    pub started: Option<String>,
    pub seconds: f64,
    pub end: EndKind,
    pub peak_bytes: Option<u64>,
    pub command: Vec<String>,
    /// The command, quoted for a shell.
    #[serde(skip)]
    command_line: String,
    #[serde(skip)]
    start: Stamp,
}

impl RunRow {
    pub fn new(facts: &Facts, summary: &RunSummary, verdict: &Verdict) -> RunRow {
        let start = summary.begin();
        RunRow {
            run: verdict.run.clone(),
            started: format_timestamp(start),
            seconds: summary.duration().as_secs_f64(),
            end: verdict.end.kind,
            peak_bytes: verdict.peak.tree_bytes,
            command: verdict.command.clone(),
            command_line: facts.command_line(),
            start,
        }
    }

    fn cells(&self, style: &TermStyle) -> [String; 6] {
        [
            sanitize::escape(self.run.as_bytes()),
            style.date(timestamp(self.start)),
            units::duration(Duration::try_from_secs_f64(self.seconds).unwrap_or_default()),
            self.end.word().into(),
            self.peak_bytes.map_or_else(|| "?".into(), units::bytes),
            self.command_line.clone(),
        ]
    }
}

/// Renders the table of `antifreeze runs`, in the order given, without a line break at the end.
pub fn table(rows: &[RunRow], style: &TermStyle) -> String {
    if rows.is_empty() {
        return "no runs yet: antifreeze run -- python train.py".into();
    }
    let heading = ["run", "when", "took", "ended", "peak", "command"].map(String::from);
    let lines: Vec<[String; 6]> = std::iter::once(heading)
        .chain(rows.iter().map(|row| row.cells(style)))
        .collect();
    let mut widths = [0; 6];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.width());
        }
    }
    let text: Vec<String> = lines
        .iter()
        .map(|line| {
            let cells = line
                .iter()
                .zip(widths)
                .map(|(cell, width)| pad(cell, width));
            cut(cells.collect::<Vec<_>>().join("  ").trim_end(), style.width)
        })
        .collect();
    style.glyphs.render(text.join("\n"))
}

/// Renders one run in full: the verdict, then its evidence.
pub fn show(
    verdict: &Verdict,
    facts: &Facts,
    summary: &RunSummary,
    events: impl IntoIterator<Item = Event>,
    style: &TermStyle,
) -> String {
    let sections = [
        Some(closing::block(verdict, facts, summary, style)),
        ruled_out(verdict),
        happenings(facts, events, style),
        rungs(facts, summary),
        training(facts, verdict, summary),
        largest(summary, style),
        output(facts),
    ];
    let text: Vec<String> = sections.into_iter().flatten().collect();
    style.glyphs.render(text.join("\n\n"))
}

fn ruled_out(verdict: &Verdict) -> Option<String> {
    let list: Vec<String> = verdict
        .ruled_out
        .iter()
        .map(|ruled| {
            format!(
                "  {} ({})",
                ruled.code.title(),
                sanitize::escape(ruled.why.as_bytes())
            )
        })
        .collect();
    titled("ruled out", list)
}

fn happenings(
    facts: &Facts,
    events: impl IntoIterator<Item = Event>,
    style: &TermStyle,
) -> Option<String> {
    let mut kept = std::collections::VecDeque::with_capacity(MAX_EVENT_LINES);
    let mut left_out = 0u64;
    for event in events {
        let Some(text) = sentence(&event, facts, Detail::Verbose) else {
            continue;
        };
        if kept.len() == MAX_EVENT_LINES {
            kept.pop_front();
            left_out += 1;
        }
        let text = wrap(&text, style.width.saturating_sub(TIME_COLUMNS));
        let text = text.join(&format!("\n{}", " ".repeat(TIME_COLUMNS)));
        kept.push_back(format!("  {}  {text}", style.clock(timestamp(event.at))));
    }
    if left_out > 0 {
        kept.push_front(format!(
            "  … {} before these",
            units::count(left_out, "event")
        ));
    }
    titled("what happened", kept.into())
}

fn rungs(facts: &Facts, summary: &RunSummary) -> Option<String> {
    let list: Vec<String> = rung_times(facts, summary)
        .into_iter()
        .map(|(rung, time)| format!("  {}  {}", pad(rung_name(rung), 10), units::duration(time)))
        .collect();
    titled("time on each rung", list)
}

/// The time on each rung of the ladder above the first, without the rungs that the run never reached.
pub(crate) fn rung_times(facts: &Facts, summary: &RunSummary) -> Vec<(Rung, Duration)> {
    let time = |shown: Rung| {
        let same = Rung::ALL
            .into_iter()
            .filter(|rung| shown_rung(*rung, facts) == shown);
        same.map(|rung| summary.rungs.time(rung)).sum()
    };
    Rung::ALL
        .into_iter()
        .filter(|rung| *rung > Rung::Calm)
        .map(|rung| (rung, time(rung)))
        .filter(|(_, time): &(Rung, Duration)| !time.is_zero())
        .collect()
}

/// What the shim reported about the training.
fn training(facts: &Facts, verdict: &Verdict, summary: &RunSummary) -> Option<String> {
    let told = &facts.shim;
    let mut list = Vec::new();
    if let Some(hello) = &told.hello {
        let batch = hello.batch.map(|items| format!("batches of {items}"));
        let about = [hello.device.clone(), hello.dtype.clone(), batch];
        let about: Vec<String> = about.into_iter().flatten().collect();
        let text = format!(
            "{} {}  {}",
            hello.framework,
            hello.version,
            about.join(", ")
        );
        list.push(sanitize::escape(text.trim_end().as_bytes()));
    }
    let frameworks = told.other_frameworks();
    if !frameworks.is_empty() {
        let text = format!("imported: {}", frameworks.join(", "));
        list.push(sanitize::escape(text.as_bytes()));
    }
    if let Some(model) = &told.model {
        let text = format!(
            "{} with {} parameters, {}",
            model.optimizer,
            model.parameters,
            units::bytes(model.bytes)
        );
        list.push(sanitize::escape(text.as_bytes()));
    }
    if let Some(count) = verdict.steps.count {
        let pace = verdict.steps.per_second;
        let pace = pace.map_or_else(String::new, |pace| format!(", {pace:.1} a second"));
        list.push(match told.plan {
            Some(plan) => format!("{count} of {}{pace}", units::count(plan, "step")),
            None => format!("{}{pace}", units::count(count, "step")),
        });
    }
    for (name, share, peak) in summary.phases.observed() {
        list.push(format!(
            "{}  {} of the time, at most {}",
            pad(name, 16),
            pad(&units::percent(share), 4),
            units::bytes(peak)
        ));
    }
    list.extend(told.faults.iter().map(|fault| {
        format!(
            "antifreeze itself failed {}",
            sanitize::escape(fault.as_bytes())
        )
    }));
    titled(
        "training",
        list.into_iter().map(|line| format!("  {line}")).collect(),
    )
}

fn largest(summary: &RunSummary, style: &TermStyle) -> Option<String> {
    let peak = summary.peak.as_ref()?;
    let mut list: Vec<String> = peak
        .largest
        .iter()
        .map(|(name, pid, held)| {
            format!(
                "  {}  {}",
                pad(&units::bytes(*held), 8),
                process(*name, *pid)
            )
        })
        .collect();
    if peak.shared() > 0 {
        list.push(format!("  {}", shared_note(peak)));
    }
    let into = units::duration(between(summary.begin(), peak.at));
    titled(
        &format!(
            "largest processes at the peak ({}, {into} in)",
            style.clock(timestamp(peak.at))
        ),
        list,
    )
}

/// Explains why the processes add up to more than the peak.
pub(crate) fn shared_note(peak: &Peak) -> String {
    format!(
        "together {}: they share the rest",
        units::bytes(peak.footprint)
    )
}

fn output(facts: &Facts) -> Option<String> {
    let end = facts.last_output.trim_ascii_end();
    let mut list: Vec<String> = sanitize::visible_lines(end)
        .rev()
        .take(MAX_OUTPUT_LINES)
        .map(|line| format!("  {line}"))
        .collect();
    list.reverse();
    if end.is_empty() {
        None
    } else {
        titled("last output", list)
    }
}

fn titled(title: &str, lines: Vec<String>) -> Option<String> {
    (!lines.is_empty()).then(|| format!("{title}\n{}", lines.join("\n")))
}
