//! The words at the end of a run: one line when all went well, a few labelled lines when
//! there was trouble, and only those that have something to say.

use crate::look::{Look, sparkline};
use crate::sheet::Sheet;
use antifreeze_diagnose::Facts;
use antifreeze_diagnose::story::Story;
use antifreeze_diagnose::verdict::{Cause, Code, EndKind, Remedy, Verdict};
use antifreeze_diagnose::{safe, signal, units};
use antifreeze_record::event::Rung;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

const SPARK_POINTS: usize = 24;
/// Delays below this are not felt as a stall.
const FELT: Duration = Duration::from_millis(500);

/// The closing words, without a line break at the end.
pub fn closing(verdict: &Verdict, facts: &Facts, story: &Story, look: &Look) -> String {
    if met_trouble(verdict, story) {
        block(verdict, facts, story, look)
    } else {
        look.glyphs
            .render(safe::shown(one_line(verdict, facts, story).as_bytes()))
    }
}

/// Whether the run needs more than one line of words.
pub fn met_trouble(verdict: &Verdict, story: &Story) -> bool {
    // The script has told of it itself, or it is for whoever asks why it is slow.
    let is_known = |cause: &Cause| {
        matches!(cause.code, Code::UserException | Code::KilledExternally)
            || cause.code.is_about_speed()
    };
    is_bad(verdict)
        || story.rungs.highest >= Rung::Brake
        || story.refusals.count > 0
        || story.pauses.count > 0
        || story.saves.asked > 0
        || !verdict.causes.iter().all(is_known)
}

/// An end that neither the script nor the person chose.
pub(crate) fn is_bad(verdict: &Verdict) -> bool {
    match verdict.end.kind {
        EndKind::Finished | EndKind::Failed | EndKind::Exception | EndKind::Running => false,
        EndKind::Killed => verdict
            .end
            .signal
            .is_none_or(|number| number == signal::KILL),
        _ => true,
    }
}

fn one_line(verdict: &Verdict, facts: &Facts, story: &Story) -> String {
    let ended = match verdict.end.kind {
        EndKind::Finished => format!("finished in {}", units::duration(story.duration())),
        EndKind::Running => format!("running for {}", units::duration(story.duration())),
        _ => format!("ended {}", verdict.end.detail),
    };
    match peak(facts, story) {
        Some((peak, _)) => format!("{ended}; peak {peak}"),
        None => ended,
    }
}

/// "3.2 of 13.9 GB", and what the whole is.
pub(crate) fn peak(facts: &Facts, story: &Story) -> Option<(String, u64)> {
    let peak = story.peak.as_ref()?.footprint;
    // What the run may use is known from its start; later there may have been more.
    let whole = facts.may_use().max(peak);
    Some((units::bytes_of(peak, whole), whole))
}

/// The labelled lines.
pub(crate) fn block(verdict: &Verdict, facts: &Facts, story: &Story, look: &Look) -> String {
    let mut sheet = Sheet::new(look);
    sheet.rule();
    sheet.text("ended", &ended(verdict, story, look));
    for (label, text) in reasons(verdict) {
        sheet.text(label, &text);
    }
    memory(&mut sheet, facts, story);
    if let Some(remedy) = verdict
        .causes
        .first()
        .and_then(|cause| cause.remedies.first())
    {
        do_this(&mut sheet, "do", remedy);
    }
    go_on(&mut sheet, verdict, facts, story);
    if let Some(fault) = facts.told.faults.first() {
        sheet.text(
            "note",
            &format!("antifreeze did not see all of it: {fault}"),
        );
    }
    let record = format!("record: {}", look.path(&facts.record));
    sheet.with_note(
        "more",
        &format!("antifreeze explain {}", verdict.run),
        &record,
    );
    sheet.finish()
}

/// How much was held, over time.
pub(crate) fn memory(sheet: &mut Sheet<'_>, facts: &Facts, story: &Story) {
    if let Some((peak, whole)) = peak(facts, story) {
        let room = sheet.room().saturating_sub(peak.width() + 2);
        let points = story.footprint.points(SPARK_POINTS.min(room));
        sheet.whole("memory", &format!("{peak}  {}", sparkline(&points, whole)));
    }
}

/// What to do, and what to paste.
pub(crate) fn do_this(sheet: &mut Sheet<'_>, label: &str, remedy: &Remedy) {
    sheet.text(label, &remedy.text);
    if let Some(code) = &remedy.code {
        sheet.whole("", code);
    }
}

/// The command that goes on from the last save, where there is one.
pub(crate) fn go_on(sheet: &mut Sheet<'_>, verdict: &Verdict, facts: &Facts, story: &Story) {
    let goes_on = matches!(verdict.end.kind, EndKind::Finished | EndKind::Running);
    if !goes_on && let Some(note) = last_save(facts, story, sheet.look) {
        sheet.with_note("go on", &next_command(facts), &note);
    }
}

pub(crate) fn ended(verdict: &Verdict, story: &Story, look: &Look) -> String {
    let mut sentences = vec![verdict.end.detail.clone()];
    sentences.extend(besides(verdict, story, look));
    format!("{}.", sentences.join(". "))
}

/// What else is worth a sentence about how it ended, each without its full stop.
pub(crate) fn besides(verdict: &Verdict, story: &Story, look: &Look) -> Vec<String> {
    let mut sentences = Vec::new();
    if verdict.end.kind == EndKind::MachineDied
        && let Some(until) = story.until()
    {
        sentences.push(format!("The last look was at {}", look.clock(until)));
    }
    match story.refusals.count {
        0 => {}
        1 if verdict.end.kind == EndKind::Walled => {}
        1 => sentences.push("One request was refused on the way".into()),
        number => sentences.push(format!("{number} requests were refused on the way")),
    }
    if story.pauses.count > 0 {
        let total = units::duration(story.pauses.total);
        let times = match story.pauses.count {
            1 => String::new(),
            number => format!(" in {number} pauses"),
        };
        sentences.push(format!("It was paused for {total}{times}"));
    }
    if let Some(end) = story.end {
        let delay = units::duration(end.worst_delay);
        sentences.push(if end.worst_delay < FELT {
            format!("Nothing stalled: worst delay {delay}")
        } else {
            format!("Worst delay {delay}")
        });
    }
    sentences
}

fn reasons(verdict: &Verdict) -> Vec<(&'static str, String)> {
    match verdict.causes.as_slice() {
        [] if is_bad(verdict) => vec![("why", unexplained(verdict))],
        [] => Vec::new(),
        [only] => vec![("why", told(only, true))],
        [first, second, ..] => vec![("why", told(first, true)), ("or", told(second, false))],
    }
}

/// We say what we could not see, and what we could.
pub(crate) fn unexplained(verdict: &Verdict) -> String {
    let ruled_out: Vec<&str> = verdict
        .ruled_out
        .iter()
        .map(|ruled| ruled.code.title())
        .collect();
    match ruled_out.as_slice() {
        [] => "nothing that was recorded tells".into(),
        list => format!(
            "nothing that was recorded tells; ruled out: {}",
            list.join(", ")
        ),
    }
}

/// How sure that is, in a word.
pub(crate) fn sureness(confidence: f64) -> &'static str {
    match confidence {
        0.9.. => "sure",
        0.6.. => "likely",
        _ => "perhaps",
    }
}

pub(crate) fn told(cause: &Cause, with_place: bool) -> String {
    let sure = sureness(cause.confidence);
    let place = match &cause.location {
        Some(location) if with_place => format!(" ({}:{})", location.file, location.line),
        _ => String::new(),
    };
    let confidence = units::percent(cause.confidence);
    format!(
        "{}, {sure} ({confidence}): {}{place}",
        cause.code.title(),
        cause.summary
    )
}

/// The command to run next: it goes on from the last save, where its script can.
pub(crate) fn next_command(facts: &Facts) -> String {
    let budget = facts.budget.map_or_else(String::new, |budget| {
        format!("--budget {} ", units::bytes(budget).replace(' ', ""))
    });
    let resume = resume_from(facts);
    format!("{resume}antifreeze run {budget}-- {}", facts.command_line())
}

fn resume_from(facts: &Facts) -> String {
    let told = &facts.told;
    let path = told.saved.as_ref().and_then(|saved| saved.path.clone());
    match (path, told.resumes) {
        (Some(path), Some(_)) => format!("ANTIFREEZE_RESUME={} ", safe::command(&[path.into()])),
        _ => String::new(),
    }
}

/// "(last save: checkpoint.pt, 80 MB, at 02:11:50)".
pub(crate) fn last_save(facts: &Facts, story: &Story, look: &Look) -> Option<String> {
    // What the trainer saved itself it has told more of.
    if let Some(saved) = &facts.told.saved {
        let path = saved.path.as_ref().map(|path| format!("{path}, "));
        let size = saved
            .bytes
            .map(|bytes| format!("{}, ", units::bytes(bytes)));
        return Some(format!(
            "(last save: {}{}step {})",
            path.unwrap_or_default(),
            size.unwrap_or_default(),
            saved.step
        ));
    }
    let save = story.saves.last?;
    let file = match save.file.as_bytes() {
        b"" => String::new(),
        file => format!("{}, ", safe::file_name(file)),
    };
    let size = match save.bytes {
        0 => String::new(),
        bytes => format!("{}, ", units::bytes(bytes)),
    };
    Some(format!(
        "(last save: {file}{size}at {})",
        look.clock(save.at)
    ))
}
