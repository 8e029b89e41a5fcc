//! Prints the verdict in full: each cause with its evidence, what was ruled out, what could not be seen, and every
//! remedy.

use crate::closing::{cause_line, do_this, ended, go_on, is_bad, memory};
use crate::sheet::Sheet;
use antifreeze_diagnose::run::stacks::{Call, Thread, innermost_user_call};
use antifreeze_diagnose::time::timestamp;
use antifreeze_diagnose::verdict::place::user_place;
use antifreeze_diagnose::verdict::{Cause, Code, EndKind, Verdict};
use antifreeze_diagnose::{Facts, Run};
use antifreeze_text::{TermStyle, sanitize, units};

/// At most this many causes are printed.
const MAX_CAUSES: usize = 4;
/// At most this many threads are printed.
const MAX_THREADS: usize = 16;
/// From this confidence on, what could not be seen is left out.
const SURE_CONFIDENCE: f64 = 0.8;

/// Renders the verdict in full, without a line break at the end.
pub fn explain(run: &Run, style: &TermStyle) -> String {
    let Run {
        facts,
        summary,
        verdict,
        ..
    } = run;
    let mut sheet = Sheet::new(style);
    sheet.rule();
    if verdict.end.kind == EndKind::MachineDied {
        let when = summary.until().map_or_else(String::new, |until| {
            format!(" at {}", style.clock(timestamp(until)))
        });
        let step = summary.steps.map_or_else(String::new, |steps| {
            format!(", after {}", units::count(steps, "step"))
        });
        sheet.text(
            "",
            &format!("The machine died during this run{when}{step}."),
        );
    }
    if !facts.command.is_empty() {
        sheet.with_note("run", &facts.command_line(), &format!("({})", verdict.run));
    }
    sheet.text("ended", &ended(verdict, summary, style));
    let is_stuck = verdict.end.kind == EndKind::Running && !facts.stacks.threads.is_empty();
    causes(&mut sheet, verdict, facts, is_stuck);
    ruled_out(&mut sheet, verdict);
    let is_sure = verdict
        .causes
        .first()
        .is_some_and(|cause| cause.confidence >= SURE_CONFIDENCE);
    if !is_sure && (is_bad(verdict) || !verdict.causes.is_empty()) {
        for what in &verdict.unseen {
            sheet.text("unseen", what);
        }
    }
    stacks(&mut sheet, run);
    memory(&mut sheet, facts, summary);
    remedies(&mut sheet, &verdict.causes);
    go_on(&mut sheet, verdict, facts, summary);
    if let Some(fault) = facts.shim.faults.first() {
        let fault = format!("antifreeze could not see everything: {fault}");
        sheet.text("note", &fault);
    }
    sheet.finish()
}

fn causes(sheet: &mut Sheet<'_>, verdict: &Verdict, facts: &Facts, is_stuck: bool) {
    if verdict.causes.is_empty() {
        let why = match is_bad(verdict) {
            _ if is_stuck => {
                "not known yet: it made no progress for a while, and its threads were here"
            }
            true => "unknown: nothing in the record explains it",
            // Its output goes where it went before.
            false if facts.attached && verdict.end.kind == EndKind::Failed => {
                "unknown: the output of an attached process is not recorded, and may show an error"
            }
            false => "no problem was found",
        };
        sheet.text("why", why);
    }
    for (number, cause) in verdict.causes.iter().take(MAX_CAUSES).enumerate() {
        let label = match number {
            _ if cause.code.slows_run() => "slow",
            0 => "why",
            // Both can be so.
            _ if cause.confidence >= 0.5 => "also",
            _ => "or",
        };
        sheet.text(label, &cause_line(cause, true));
        // The first of them is what was just said.
        for evidence in cause
            .evidence
            .iter()
            .filter(|seen| seen.text != cause.summary)
        {
            sheet.text("", &format!("· {}", evidence.text));
        }
    }
}

/// Adds the current code line of each thread, for a run that hangs or hung.
fn stacks(sheet: &mut Sheet<'_>, run: &Run) {
    let hangs = |cause: &Cause| matches!(cause.code, Code::Deadlock | Code::InfiniteLoop);
    let is_running = run.verdict.end.kind == EndKind::Running;
    if !is_running && !run.verdict.causes.iter().any(hangs) {
        return;
    }
    let threads = &run.facts.stacks.threads;
    for (number, thread) in threads.iter().take(MAX_THREADS).enumerate() {
        let label = if number == 0 { "threads" } else { "" };
        sheet.text(label, &at(thread, run));
    }
    if threads.len() > MAX_THREADS {
        let more = units::count((threads.len() - MAX_THREADS) as u64, "more thread");
        sheet.text("", &format!("{more}: all stacks are in the report"));
    }
}

/// Describes a thread as "process 7, main thread: wait (threading.py:320) from next_batch (train.py:12)".
fn at(thread: &Thread, run: &Run) -> String {
    let which = if thread.is_main {
        "main thread"
    } else {
        "thread"
    };
    let named = |call: &Call| {
        let file = match call.frame.is_users() {
            true => user_place(&call.frame.file, call.frame.line, &run.facts),
            false => format!(
                "{}:{}",
                sanitize::file_name(&call.frame.file),
                call.frame.line
            ),
        };
        format!("{} ({file})", sanitize::escape(call.function.as_bytes()))
    };
    let inner = thread.stack.first();
    let own = innermost_user_call(&thread.stack).filter(|own| Some(*own) != inner);
    let place: Vec<String> = [inner, own].into_iter().flatten().map(named).collect();
    format!("process {}, {which}: {}", thread.pid, place.join(" from "))
}

fn ruled_out(sheet: &mut Sheet<'_>, verdict: &Verdict) {
    let ruled_out: Vec<String> = verdict
        .ruled_out
        .iter()
        .map(|ruled| format!("{} ({})", ruled.code.title(), ruled.why))
        .collect();
    if !ruled_out.is_empty() {
        sheet.text("not", &ruled_out.join(" · "));
    }
}

fn remedies(sheet: &mut Sheet<'_>, causes: &[Cause]) {
    let mut label = "do";
    for (number, cause) in causes.iter().take(MAX_CAUSES).enumerate() {
        // Of what is likeliest all, of the others the best.
        let many = if number == 0 { usize::MAX } else { 1 };
        for remedy in cause.remedies.iter().take(many) {
            do_this(sheet, label, remedy);
            label = "also";
        }
    }
}
