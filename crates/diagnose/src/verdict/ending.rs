//! Determines how a run ended, from its wait status, the actions of the guard, and its last output.

use crate::causes::own_exit_code;
use crate::kernel::Kind;
use crate::kernel::attribution::{Attribution, attribute};
use crate::output::PrintedOutput;
use crate::output::traceback::{Traceback, reports_out_of_memory};
use crate::run::evidence::{incidents_near_end, incidents_of_run};
use crate::run::facts::{Facts, RunState};
use crate::run::summary::{Detached, Ended, RunSummary};
use crate::time::between;
use crate::verdict::phrases::reason;
use crate::verdict::place::user_place;
use crate::verdict::{End, EndKind, format_timestamp};
use antifreeze_sense::{Sample, Stamp};
use antifreeze_text::layout::cut;
use antifreeze_text::signal::{self, Exit};
use antifreeze_text::units;
use std::time::Duration;

/// An error this soon after a refused request counts as its consequence.
const CONSEQUENCE_WITHIN: Duration = Duration::from_secs(30);
/// Memory has run out where less than this share of it is left.
const OUT_OF_MEMORY_SHARE: f64 = 0.03;
/// The name of an error is cut to this many columns.
const ERROR_COLUMNS: usize = 60;
/// Replaces the exit status of an attached process that another program started.
const UNKNOWN_STATUS: &str =
    "the exit status is known only to the program that started the process";
/// The last words of a run are cut to this many columns.
const LAST_WORDS_COLUMNS: usize = 120;

/// Determines how a run ended.
pub(crate) fn determine_end(facts: &Facts, summary: &RunSummary, printed: &PrintedOutput) -> End {
    let traceback = printed.traceback.as_ref();
    let exit = summary.end.map(|end| Exit::from_status(end.status));
    let kind = match (summary.end, summary.detached) {
        (Some(end), _) => kind_from_status(end, facts, summary, traceback),
        (None, Some(detached)) => kind_of_detached(detached, facts, summary),
        (None, None) => match facts.state {
            RunState::StillGuarded => EndKind::Running,
            RunState::Rebooted => EndKind::MachineDied,
            RunState::GuardGone | RunState::Elsewhere => EndKind::Unknown,
            RunState::OnlyPrinted => kind_from_output(facts, summary, printed),
        },
    };
    let (exit_code, signal) = match exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(number)) => (None, Some(number)),
        None => (None, None),
    };
    let at = match kind {
        EndKind::Running => None,
        _ => summary.until().and_then(format_timestamp),
    };
    let detail = describe_end(kind, exit, facts, summary, printed);
    End {
        kind,
        at,
        exit_code,
        signal,
        detail,
    }
}

/// The kind of end of an attached process whose exit status is not known.
fn kind_of_detached(detached: Detached, facts: &Facts, summary: &RunSummary) -> EndKind {
    let follows_a_refusal = || {
        let last = summary.refusals.last;
        last.is_some_and(|last| between(last.at, detached.at) <= CONSEQUENCE_WITHIN)
            || was_at_wall(detached.at, facts, summary)
    };
    if !detached.process_ended {
        EndKind::Detached
    } else if detached.by_guard || summary.forced {
        EndKind::Stopped
    } else if kernel_log_reports_kill(facts, summary) || kernel_counted_kill(facts, summary) {
        EndKind::OomKilled
    } else if follows_a_refusal() {
        EndKind::Walled
    } else {
        EndKind::Exited
    }
}

/// The kind of end of a run that left only its output.
fn kind_from_output(facts: &Facts, summary: &RunSummary, printed: &PrintedOutput) -> EndKind {
    let of_signal = |signal: u32| match signal {
        signal::KILL if kernel_log_reports_kill(facts, summary) => EndKind::OomKilled,
        number if signal::is_crash(number) => EndKind::Crashed,
        _ => EndKind::Killed,
    };
    // A shell reports last: what it reports came after all errors.
    let told = printed.exit_notice;
    let is_last =
        told.is_some_and(|told| !told.is_one_of_several && !signal::is_crash(told.signal));
    match (&printed.traceback, told) {
        (_, Some(told)) if is_last => of_signal(told.signal),
        (Some(traceback), _) if traceback.is_interrupt() => EndKind::Killed,
        (Some(traceback), Some(told)) if traceback.blames_another() => of_signal(told.signal),
        (Some(_), _) => EndKind::Exception,
        (None, Some(told)) => of_signal(told.signal),
        (None, None) if is_interrupted(printed) => EndKind::Killed,
        (None, None) if printed.good_end().is_some() => EndKind::Finished,
        (None, None) => EndKind::Unknown,
    }
}

/// Whether it was interrupted (Ctrl-C), by its error or by the words of its framework.
pub(crate) fn is_interrupted(printed: &PrintedOutput) -> bool {
    let by_trainer = [
        "Detected KeyboardInterrupt",
        "Interrupted by user",
        "Keyboard interrupt received",
        // Fortran's runtime handles the signal before Python can.
        "forrtl: error (200): program aborting due to",
        "ERROR: InterruptException",
        "ERROR: LoadError: InterruptException",
    ];
    printed
        .traceback
        .as_ref()
        .is_some_and(Traceback::is_interrupt)
        || printed.find_line(&by_trainer).is_some()
}

fn kind_from_status(
    end: Ended,
    facts: &Facts,
    summary: &RunSummary,
    traceback: Option<&Traceback>,
) -> EndKind {
    let exit = Exit::from_status(end.status);
    // An attached process continues after an interrupt, as a notebook does after a failed cell.
    if facts.attached && exit == Exit::Code(0) {
        return EndKind::Finished;
    }
    // The flag may be missing if the guard was replaced between the signal and the end.
    let asked_for = matches!(exit, Exit::Signal(signal::KILL | signal::TERMINATE));
    if end.by_guard || (asked_for && summary.stop.is_some()) {
        return EndKind::Stopped;
    }
    if exit == Exit::Code(0) {
        return EndKind::Finished;
    }
    match exit.deadly_signal() {
        Some(signal::KILL) if was_out_of_memory(facts, summary) => EndKind::OomKilled,
        Some(number) if !signal::is_crash(number) => EndKind::Killed,
        // Some frameworks abort instead of raising an error.
        _ if follows_a_refusal(end, facts, summary, traceback) => EndKind::Walled,
        Some(_) => EndKind::Crashed,
        None if traceback.is_some_and(Traceback::is_interrupt) => EndKind::Killed,
        None if traceback.is_some() => EndKind::Exception,
        None => EndKind::Failed,
    }
}

fn follows_a_refusal(
    end: Ended,
    facts: &Facts,
    summary: &RunSummary,
    traceback: Option<&Traceback>,
) -> bool {
    let Some(last) = summary.refusals.last else {
        return was_at_wall(end.at, facts, summary);
    };
    between(last.at, end.at) <= CONSEQUENCE_WITHIN
        || traceback.is_some_and(|traceback| reports_out_of_memory(&traceback.error))
}

/// Whether an attached process ran out of memory. It has no cushion, so refused requests are not reported; only the lack
/// of memory is seen.
fn was_at_wall(ended: Stamp, facts: &Facts, summary: &RunSummary) -> bool {
    let until = summary.rungs.stop_until.filter(|_| facts.attached);
    until.is_some_and(|until| between(until, ended) <= CONSEQUENCE_WITHIN)
}

/// Whether the kernel counted or logged an OOM kill, or no memory was left at the last sample.
fn was_out_of_memory(facts: &Facts, summary: &RunSummary) -> bool {
    kernel_log_reports_kill(facts, summary)
        || kernel_counted_kill(facts, summary)
        || summary.last.as_deref().is_some_and(is_out_of_memory)
}

/// Whether it is certain that the kernel killed it because memory ran out.
fn kernel_killed(facts: &Facts, summary: &RunSummary) -> bool {
    kills(facts, summary).any(|attribution| attribution == Attribution::OurRun)
        || kernel_counted_kill(facts, summary)
}

/// Whether the kernel's log reports an OOM kill of a process that is, or likely is, of the run.
fn kernel_log_reports_kill(facts: &Facts, summary: &RunSummary) -> bool {
    kills(facts, summary).any(Attribution::is_ours)
}

/// Whom the OOM kills near the end of the run hit.
fn kills(facts: &Facts, summary: &RunSummary) -> impl Iterator<Item = Attribution> {
    incidents_near_end(facts, summary)
        .filter(|incident| matches!(incident.kind, Kind::OomKill { .. }))
        .map(|incident| attribute(facts, summary, incident))
}

/// The number of other processes that the kernel killed during the run because memory ran out.
pub(crate) fn kills_of_others(facts: &Facts, summary: &RunSummary) -> usize {
    incidents_of_run(facts, summary)
        .filter(|incident| matches!(incident.kind, Kind::OomKill { .. }))
        .filter(|incident| attribute(facts, summary, incident) == Attribution::OtherProcess)
        .count()
}

/// Whether the kernel counted more OOM kills than its log reports of other processes.
fn kernel_counted_kill(facts: &Facts, summary: &RunSummary) -> bool {
    let kills = |sample: &Sample| sample.paging.oom_kills.value();
    let counts = summary
        .first
        .as_deref()
        .and_then(kills)
        .zip(summary.last.as_deref().and_then(kills));
    let others = kills_of_others(facts, summary) as u64;
    counts.is_some_and(|(before, after)| after.saturating_sub(before) > others)
}

fn is_out_of_memory(sample: &Sample) -> bool {
    let nearly_none = |free: Option<u64>, total: Option<u64>| {
        free.zip(total)
            .is_some_and(|(free, total)| (free as f64) < total as f64 * OUT_OF_MEMORY_SHARE)
    };
    nearly_none(sample.memory.available.value(), sample.memory.total.value())
        || nearly_none(
            sample.cgroup.limit_available.value(),
            sample.cgroup.limit.value(),
        )
}

/// Describes the end, to continue "ended …".
fn describe_end(
    kind: EndKind,
    exit: Option<Exit>,
    facts: &Facts,
    summary: &RunSummary,
    printed: &PrintedOutput,
) -> String {
    let traceback = printed.traceback.as_ref();
    let time = units::duration(summary.duration());
    // Output has no clock.
    let after = match facts.state {
        RunState::OnlyPrinted => String::new(),
        _ => format!(" after {time}"),
    };
    let status = match exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(number)) => signal::name(number),
        None => UNKNOWN_STATUS.to_owned(),
    };
    // Neither an exit status nor a refused request proves it.
    let is_guess = exit.is_none() || summary.refusals.count == 0;
    let probably = if is_guess { "probably " } else { "" };
    let told = printed.exit_notice.map(|notice| notice.signal);
    let signal_name = exit
        .and_then(Exit::deadly_signal)
        .or(told)
        .map_or_else(|| "a signal".into(), signal::name);
    match kind {
        EndKind::Finished if facts.state == RunState::OnlyPrinted => {
            let words = printed.good_end().unwrap_or_default();
            format!(
                "well, by its last line: {}",
                cut(&words, LAST_WORDS_COLUMNS)
            )
        }
        EndKind::Finished => format!("well after {time}"),
        EndKind::Failed => format!("with {status} after {time}"),
        EndKind::Unknown if facts.state == RunState::OnlyPrinted => {
            "in a way that its output does not show".into()
        }
        EndKind::Unknown if facts.state == RunState::Elsewhere => {
            format!("unobserved: the record stops after {time}, and it is from another machine")
        }
        EndKind::Exception => {
            let error = traceback
                .map(Traceback::kind)
                .filter(|kind| !kind.is_empty());
            let error = error.unwrap_or("an error that its output does not name");
            let (error, place) = (
                cut(error, ERROR_COLUMNS),
                format_error_place(traceback, facts),
            );
            // With an exit code of its own it may have caught the error.
            match exit.and_then(own_exit_code) {
                Some(_) => format!("with {status}{after}; its last error was {error}{place}"),
                None => format!("with {error}{after}{place}"),
            }
        }
        EndKind::Walled => match facts.binding_budget() {
            Some(budget) => {
                format!(
                    "{probably}by reaching its budget of {} after {time} ({status})",
                    units::bytes(budget)
                )
            }
            None => format!("{probably}by running out of memory after {time} ({status})"),
        },
        EndKind::Stopped => {
            let why = summary.stop.and_then(|why| reason(why, facts));
            let force = if summary.forced { ", by force" } else { "" };
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            format!("by antifreeze after {time}{force}{why}")
        }
        EndKind::OomKilled => {
            let sure = if kernel_killed(facts, summary) {
                ""
            } else {
                "probably "
            };
            let after = after.replace(" after", ", after");
            format!("{sure}by the kernel, because memory ran out{after}")
        }
        EndKind::Killed
            if exit == Some(Exit::Signal(signal::INTERRUPT)) || is_interrupted(printed) =>
        {
            format!("by Ctrl-C or another SIGINT{after}")
        }
        EndKind::Killed | EndKind::Crashed
            if exit.is_none()
                && printed
                    .exit_notice
                    .is_some_and(|told| told.is_one_of_several) =>
        {
            format!("when one of its processes was ended by {signal_name}")
        }
        EndKind::Killed => format!("by {signal_name} from outside{after}"),
        EndKind::Crashed => format!("by a crash ({signal_name}){after}"),
        EndKind::MachineDied => {
            format!(
                "with the machine, after {time}: the record stops there, without a clean shutdown"
            )
        }
        EndKind::Detached => format!(
            "not while it was guarded: antifreeze detached after {time}, and the process continued with the limits that \
             it had before"
        ),
        EndKind::Exited => format!("after {time}; {UNKNOWN_STATUS}"),
        EndKind::Running => format!("not yet: it has been running for {time}"),
        EndKind::Hung | EndKind::Unknown => {
            format!("unobserved: the guard was gone before the run ended; {time} are recorded")
        }
    }
}

/// Where an error was raised: ", at train.py:12".
fn format_error_place(traceback: Option<&Traceback>, facts: &Facts) -> String {
    match traceback.and_then(|traceback| traceback.frame.as_ref()) {
        Some(frame) => format!(", at {}", user_place(&frame.file, frame.line, facts)),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_record::event::{Event, EventKind, Rung, Trigger};
    use antifreeze_sense::{Pid, ProcessName, Reading};

    const EXIT_1: u32 = 1 << 8;

    fn at(seconds: u64) -> Stamp {
        Stamp {
            monotonic_ns: seconds * 1_000_000_000,
            realtime_ns: 0,
        }
    }

    fn ended(status: u32, by_guard: bool) -> Event {
        let kind = EventKind::Ended {
            status,
            peak: 0,
            worst_delay_ms: 0,
            ended_by_guard: by_guard,
        };
        Event { at: at(100), kind }
    }

    fn refused(seconds: u64) -> Event {
        let kind = EventKind::RequestRefused {
            pid: Pid(1),
            name: ProcessName::new(b"a"),
            bytes: 1,
            footprint: 1,
        };
        Event {
            at: at(seconds),
            kind,
        }
    }

    fn sample(seconds: u64, available: u64, oom_kills: u64) -> Sample {
        let mut sample = Sample {
            at: at(seconds),
            ..Sample::default()
        };
        sample.memory.total = Reading::Value(1_000);
        sample.memory.available = Reading::Value(available);
        sample.paging.oom_kills = Reading::Value(oom_kills);
        sample
    }

    fn kind(events: &[Event], samples: &[Sample], output: &str) -> EndKind {
        let facts = Facts {
            last_output: output.into(),
            ..Facts::default()
        };
        let summary = RunSummary::build(&facts, samples.iter().copied(), events.iter().copied());
        determine_end(
            &facts,
            &summary,
            &PrintedOutput::parse(&facts.last_output, false),
        )
        .kind
    }

    const ERROR: &str =
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\nValueError: x\n";
    const MEMORY: &str =
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\nMemoryError\n";

    #[test]
    fn the_end_is_determined_from_status_and_events() {
        use EndKind::*;
        for (status, by_guard, refusal, output, expected) in [
            (0, false, None, "", Finished),
            (0, false, Some(99), "", Finished),
            (EXIT_1, false, None, "", Failed),
            (EXIT_1, false, None, ERROR, Exception),
            (EXIT_1, false, Some(95), "", Walled),
            (EXIT_1, false, Some(10), ERROR, Exception),
            (EXIT_1, false, Some(10), MEMORY, Walled),
            (EXIT_1, true, None, "", Stopped),
            (15, true, Some(99), "", Stopped),
            (15, false, None, "", Killed),
            (9, false, None, "", Killed),
            (11, false, None, "", Crashed),
            (6 | 0x80, false, Some(99), "", Walled),
            (139 << 8, false, None, "", Crashed),
        ] {
            let events: Vec<Event> = refusal
                .map(refused)
                .into_iter()
                .chain([ended(status, by_guard)])
                .collect();
            assert_eq!(
                kind(&events, &[], output),
                expected,
                "{status} {refusal:?} {output}"
            );
        }
    }

    #[test]
    fn an_attached_process_whose_status_is_unknown_is_judged_by_what_led_to_its_end() {
        use EndKind::*;
        let detached = |process_ended, ended_by_guard| Event {
            at: at(100),
            kind: EventKind::Detached {
                process_ended,
                peak: 0,
                worst_delay_ms: 0,
                ended_by_guard,
            },
        };
        let few_kills = [sample(1, 900, 4), sample(99, 900, 4)];
        let more_kills = [sample(1, 900, 4), sample(99, 900, 5)];
        for (process_ended, by_guard, refusal, samples, expected) in [
            (false, false, None, few_kills, Detached),
            (false, false, Some(99), few_kills, Detached),
            (true, false, None, few_kills, Exited),
            (true, false, Some(10), few_kills, Exited),
            (true, false, Some(95), few_kills, Walled),
            (true, true, Some(95), few_kills, Stopped),
            (true, false, None, more_kills, OomKilled),
        ] {
            let events: Vec<Event> = refusal
                .map(refused)
                .into_iter()
                .chain([detached(process_ended, by_guard)])
                .collect();
            assert_eq!(
                kind(&events, &samples, ""),
                expected,
                "{process_ended} {by_guard} {refusal:?}"
            );
        }
    }

    #[test]
    fn an_attached_process_without_room_dies_at_the_wall_although_no_refusal_is_seen() {
        let stop = |seconds| Event {
            at: at(seconds),
            kind: EventKind::Rung {
                from: Rung::Warn,
                to: Rung::Stop,
                trigger: Trigger::TreeGrowth,
                room: 0,
                growth: 1,
                forecast_ms: None,
                confidence: 90,
            },
        };
        let calm = Event {
            at: at(50),
            kind: EventKind::Rung {
                from: Rung::Stop,
                to: Rung::Calm,
                trigger: Trigger::RoomAvailable,
                room: 1,
                growth: 0,
                forecast_ms: None,
                confidence: 90,
            },
        };
        let attached = Event {
            at: at(0),
            kind: EventKind::Attached { pid: Pid(1) },
        };
        for (events, expected) in [
            (
                vec![attached, stop(90), ended(EXIT_1, false)],
                EndKind::Walled,
            ),
            (vec![attached, stop(90), ended(0, false)], EndKind::Finished),
            (
                vec![attached, stop(40), calm, ended(EXIT_1, false)],
                EndKind::Failed,
            ),
            (vec![attached, ended(EXIT_1, false)], EndKind::Failed),
            // With the cushion, what is refused is seen.
            (vec![stop(90), ended(EXIT_1, false)], EndKind::Failed),
        ] {
            let run = crate::Run::diagnose(Facts::default(), [], events.clone());
            assert_eq!(run.verdict.end.kind, expected, "{events:?}");
        }
    }

    #[test]
    fn a_kernel_that_ended_by_itself_was_not_stopped() {
        let facts = |attached| Facts {
            attached,
            ..Facts::default()
        };
        let kind = |attached, status| {
            let facts = facts(attached);
            let events = [refused(99), ended(status, true)];
            let summary = RunSummary::build(&facts, [], events);
            determine_end(&facts, &summary, &PrintedOutput::parse(b"", false)).kind
        };
        assert_eq!(kind(true, 0), EndKind::Finished);
        assert_eq!(kind(true, EXIT_1), EndKind::Stopped);
        assert_eq!(kind(false, 0), EndKind::Stopped);
    }

    #[test]
    fn a_kill_without_memory_is_the_kernels() {
        let end = [ended(9, false)];
        assert_eq!(
            kind(&end, &[sample(1, 900, 4), sample(99, 900, 5)], ""),
            EndKind::OomKilled
        );
        assert_eq!(
            kind(&end, &[sample(1, 900, 4), sample(99, 10, 4)], ""),
            EndKind::OomKilled
        );
        assert_eq!(
            kind(&end, &[sample(1, 900, 4), sample(99, 900, 4)], ""),
            EndKind::Killed
        );
        assert_eq!(
            kind(&[ended(137 << 8, false)], &[sample(1, 9, 4)], ""),
            EndKind::OomKilled
        );
    }

    #[test]
    fn a_record_without_an_end_shows_what_became_of_the_machine() {
        for (state, expected) in [
            (RunState::StillGuarded, EndKind::Running),
            (RunState::GuardGone, EndKind::Unknown),
            (RunState::Rebooted, EndKind::MachineDied),
        ] {
            let facts = Facts {
                state,
                ..Facts::default()
            };
            let summary = RunSummary::build(&facts, [], []);
            assert_eq!(
                determine_end(&facts, &summary, &PrintedOutput::default()).kind,
                expected
            );
        }
    }
}
