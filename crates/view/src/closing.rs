//! Prints the end of a run: one line if it had no trouble, otherwise the labelled lines that have content.

use crate::sheet::Sheet;
use antifreeze_diagnose::run::summary::RunSummary;
use antifreeze_diagnose::time::timestamp;
use antifreeze_diagnose::verdict::{Cause, Code, EndKind, Remedy, Verdict};
use antifreeze_diagnose::{Facts, MissingCode};
use antifreeze_record::event::Rung;
use antifreeze_text::layout::sparkline;
use antifreeze_text::{TermStyle, sanitize, signal, units};
use std::path::Path;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

const SPARK_POINTS: usize = 24;
/// A shorter delay is not noticed as a stall.
const NOTICEABLE_DELAY: Duration = Duration::from_millis(500);

/// Renders the end of a run, without a line break at the end.
pub fn closing(
    verdict: &Verdict,
    facts: &Facts,
    summary: &RunSummary,
    style: &TermStyle,
) -> String {
    if met_trouble(verdict, summary) {
        block(verdict, facts, summary, style)
    } else {
        style.glyphs.render(sanitize::escape(
            one_line(verdict, facts, summary).as_bytes(),
        ))
    }
}

/// Whether the end of the run needs more than one line.
pub fn met_trouble(verdict: &Verdict, summary: &RunSummary) -> bool {
    // The script has reported it itself, or it only explains why a run is slow.
    let is_known = |cause: &Cause| {
        matches!(cause.code, Code::UserException | Code::KilledExternally) || cause.code.slows_run()
    };
    is_bad(verdict) || was_acted_on(verdict, summary) || !verdict.causes.iter().all(is_known)
}

/// Whether antifreeze or the kernel's OOM killer interfered with the command. `--quiet` prints a verdict only then: every
/// other failure is the command's own, and it has printed what it has to say.
pub fn was_acted_on(verdict: &Verdict, summary: &RunSummary) -> bool {
    matches!(
        verdict.end.kind,
        EndKind::Walled | EndKind::Stopped | EndKind::OomKilled
    ) || summary.rungs.highest >= Rung::Brake
        || summary.refusals.count > 0
        || summary.pauses.count > 0
        || summary.saves.asked > 0
}

/// Whether neither the script nor a person chose this end.
pub(crate) fn is_bad(verdict: &Verdict) -> bool {
    match verdict.end.kind {
        EndKind::Finished | EndKind::Failed | EndKind::Exception | EndKind::Running => false,
        EndKind::Detached | EndKind::Exited => false,
        EndKind::Killed => verdict
            .end
            .signal
            .is_none_or(|number| number == signal::KILL),
        _ => true,
    }
}

fn one_line(verdict: &Verdict, facts: &Facts, summary: &RunSummary) -> String {
    let ended = match verdict.end.kind {
        EndKind::Finished => format!("finished in {}", units::duration(summary.duration())),
        EndKind::Running => format!("running for {}", units::duration(summary.duration())),
        EndKind::Detached => format!(
            "detached after {}: the process continues unguarded, with its previous limits",
            units::duration(summary.duration())
        ),
        _ => format!("ended {}", verdict.end.detail),
    };
    match peak(facts, summary) {
        Some((peak, _)) => format!("{ended}; peak {peak}"),
        None => ended,
    }
}

/// The peak as "3.2 of 13.9 GB", and the memory that the run may use in bytes.
pub(crate) fn peak(facts: &Facts, summary: &RunSummary) -> Option<(String, u64)> {
    let peak = summary.peak.as_ref()?.footprint;
    // What the run may use is known from its start; later there may have been more.
    let whole = facts.usable_memory().max(peak);
    Some((units::bytes_of(peak, whole), whole))
}

/// Renders the verdict as labelled lines.
pub(crate) fn block(
    verdict: &Verdict,
    facts: &Facts,
    summary: &RunSummary,
    style: &TermStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.rule();
    sheet.text("ended", &ended(verdict, summary, style));
    for (label, text) in cause_lines(verdict) {
        sheet.text(label, &text);
    }
    memory(&mut sheet, facts, summary);
    if let Some(cause) = verdict.causes.first() {
        // Changes to the script belong together: with one of two leaks mended it still runs out of memory.
        let changes = cause
            .remedies
            .iter()
            .take_while(|remedy| !remedy.edits.is_empty())
            .count();
        for (number, remedy) in cause.remedies.iter().take(changes.max(1)).enumerate() {
            do_this(&mut sheet, if number == 0 { "do" } else { "also" }, remedy);
        }
    }
    go_on(&mut sheet, verdict, facts, summary);
    if let Some(fault) = facts.shim.faults.first() {
        sheet.text(
            "note",
            &format!("antifreeze could not see everything: {fault}"),
        );
    }
    let record = format!("record: {}", style.path(&facts.record));
    sheet.with_note(
        "more",
        &format!("antifreeze explain {}", verdict.run),
        &record,
    );
    sheet.finish()
}

/// Adds the peak and a sparkline of the memory over time.
pub(crate) fn memory(sheet: &mut Sheet<'_>, facts: &Facts, summary: &RunSummary) {
    if let Some((peak, whole)) = peak(facts, summary) {
        let room = sheet.room().saturating_sub(peak.width() + 2);
        let points = summary.footprint.points(SPARK_POINTS.min(room));
        sheet.whole("memory", &format!("{peak}  {}", sparkline(&points, whole)));
    }
}

/// Adds a remedy and the code to paste.
pub(crate) fn do_this(sheet: &mut Sheet<'_>, label: &str, remedy: &Remedy) {
    sheet.text(label, &remedy.text);
    if let Some(code) = &remedy.code {
        sheet.code(code);
    }
}

/// Adds the command that continues from the last checkpoint, with the code that the script needs for it. If no command
/// can continue the run, only the checkpoint is named, because a command would start at step 0.
pub(crate) fn go_on(sheet: &mut Sheet<'_>, verdict: &Verdict, facts: &Facts, summary: &RunSummary) {
    if matches!(
        verdict.end.kind,
        EndKind::Finished | EndKind::Running | EndKind::Detached
    ) {
        return;
    }
    let Some(save) = last_save(facts, summary, sheet.style) else {
        return;
    };
    let Some(continuation) = facts.continuation() else {
        sheet.text("saved", &save);
        return;
    };
    let note = format!("(last save: {save})");
    if let Some(code) = &continuation.missing_code {
        sheet.text("go on", &add_code(code));
        sheet.code(&code.code);
        sheet.with_note("", &resume_command(facts), &note);
    } else {
        sheet.with_note("go on", &resume_command(facts), &note);
    }
}

/// The instruction before the code that a script needs in order to continue.
pub(crate) fn add_code(missing: &MissingCode) -> String {
    format!(
        "to continue instead of starting at step 0, {}; then run the command below:",
        missing.instruction
    )
}

pub(crate) fn ended(verdict: &Verdict, summary: &RunSummary, style: &TermStyle) -> String {
    let mut sentences = vec![verdict.end.detail.clone()];
    sentences.extend(extra_sentences(verdict, summary, style));
    format!("{}.", sentences.join(". "))
}

/// Further sentences about the end of the run, each without its full stop.
pub(crate) fn extra_sentences(
    verdict: &Verdict,
    summary: &RunSummary,
    style: &TermStyle,
) -> Vec<String> {
    let mut sentences = Vec::new();
    if verdict.end.kind == EndKind::MachineDied
        && let Some(until) = summary.until()
    {
        sentences.push(format!(
            "The last sample was at {}",
            style.clock(timestamp(until))
        ));
    }
    match summary.refusals.count {
        0 => {}
        1 if verdict.end.kind == EndKind::Walled => {}
        1 => sentences.push("One memory request was refused".into()),
        number => sentences.push(format!("{number} memory requests were refused")),
    }
    if verdict.end.kind == EndKind::Finished && summary.stop.is_some() {
        sentences.push("The process was interrupted, because memory ran out".into());
    }
    if summary.pauses.count > 0 {
        let total = units::duration(summary.pauses.total);
        let times = match summary.pauses.count {
            1 => String::new(),
            number => format!(" in {number} pauses"),
        };
        sentences.push(format!("It was paused for {total}{times}"));
    }
    if let Some(worst) = summary.worst_delay() {
        let delay = units::duration(worst);
        sentences.push(if worst < NOTICEABLE_DELAY {
            format!("Nothing stalled: worst delay {delay}")
        } else {
            format!("Worst delay {delay}")
        });
    }
    sentences
}

fn cause_lines(verdict: &Verdict) -> Vec<(&'static str, String)> {
    match verdict.causes.as_slice() {
        [] if is_bad(verdict) => vec![("why", unexplained(verdict))],
        [] => Vec::new(),
        [only] => vec![("why", cause_line(only, true))],
        [first, second, ..] => vec![
            ("why", cause_line(first, true)),
            ("or", cause_line(second, false)),
        ],
    }
}

/// The line for a run without a known cause: it names what was ruled out.
pub(crate) fn unexplained(verdict: &Verdict) -> String {
    let ruled_out: Vec<&str> = verdict
        .ruled_out
        .iter()
        .map(|ruled| ruled.code.title())
        .collect();
    match ruled_out.as_slice() {
        [] => "unknown: nothing in the record explains it".into(),
        list => format!(
            "unknown: nothing in the record explains it; ruled out: {}",
            list.join(", ")
        ),
    }
}

/// The word for a confidence.
pub(crate) fn sureness(confidence: f64) -> &'static str {
    match confidence {
        0.9.. => "sure",
        0.6.. => "likely",
        _ => "perhaps",
    }
}

pub(crate) fn cause_line(cause: &Cause, with_place: bool) -> String {
    let sure = sureness(cause.confidence);
    let place = match &cause.location {
        Some(location) if with_place => format!(" ({})", location.place()),
        _ => String::new(),
    };
    let confidence = units::percent(cause.confidence);
    format!(
        "{}, {sure} ({confidence}): {}{place}",
        cause.code.title(),
        cause.summary
    )
}

/// The command that continues this run from its last checkpoint, ready to paste.
pub(crate) fn resume_command(facts: &Facts) -> String {
    let budget = facts.budget.map_or_else(String::new, |budget| {
        format!("--budget {} ", units::bytes(budget).replace(' ', ""))
    });
    format!(
        "antifreeze run {budget}--resume={} -- {}",
        facts.run,
        facts.command_line()
    )
}

/// The last checkpoint as "checkpoint.pt, 80 MB, at 02:11:50".
pub(crate) fn last_save(facts: &Facts, summary: &RunSummary, style: &TermStyle) -> Option<String> {
    if let Some(continuation) = facts.continuation() {
        let checkpoint = continuation.checkpoint;
        let size = checkpoint
            .bytes
            .map(|bytes| format!("{}, ", units::bytes(bytes)));
        return Some(format!(
            "{}, {}step {}",
            sanitize::escape(checkpoint.path.as_os_str().as_encoded_bytes()),
            size.unwrap_or_default(),
            checkpoint.step
        ));
    }
    // What the trainer saved itself it has told more of.
    if let Some(saved) = &facts.shim.saved {
        let is_there = |path: &String| {
            facts
                .checkpoints
                .iter()
                .any(|one| one.path == Path::new(path))
        };
        if !saved.path.as_ref().is_none_or(is_there) {
            // It was deleted since.
            return None;
        }
        let path = saved.path.as_ref().map(|path| format!("{path}, "));
        let size = saved
            .bytes
            .map(|bytes| format!("{}, ", units::bytes(bytes)));
        return Some(format!(
            "{}{}step {}",
            path.unwrap_or_default(),
            size.unwrap_or_default(),
            saved.step
        ));
    }
    let save = summary.saves.last?;
    let file = match save.file.as_bytes() {
        b"" => String::new(),
        file => format!("{}, ", sanitize::file_name(file)),
    };
    let size = match save.bytes {
        0 => String::new(),
        bytes => format!("{}, ", units::bytes(bytes)),
    };
    Some(format!(
        "{file}{size}at {}",
        style.clock(timestamp(save.at))
    ))
}
