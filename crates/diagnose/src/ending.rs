//! How a run ended, from its wait status, what the guard did, and what it printed last.

use crate::case::{incidents, last_incidents};
use crate::detect::own_code;
use crate::facts::{Facts, Since};
use crate::kernel::Kind;
use crate::printed::Printed;
use crate::story::{Detached, Ended, Story};
use crate::time::between;
use crate::traceback::{Traceback, tells_of_memory};
use crate::verdict::{End, EndKind, written};
use crate::whose::{Whose, whose};
use crate::words::reason;
use antifreeze_sense::{Sample, Stamp};
use antifreeze_text::layout::cut;
use antifreeze_text::signal::{self, Exit};
use antifreeze_text::{sanitize, units};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// An error this soon after a refused request is taken for its consequence.
const CONSEQUENCE: Duration = Duration::from_secs(30);
/// Less than this share of memory left means that it was out.
const OUT: f64 = 0.03;
/// The widest an error's name is shown.
const ERROR_COLUMNS: usize = 60;
/// Stands in for the exit status of an attached process that another program started.
const UNSEEN_STATUS: &str = "the exit status is known only to the program that started the process";
/// And what it said itself.
const WORDS_COLUMNS: usize = 120;

pub(crate) fn judge(facts: &Facts, story: &Story, printed: &Printed) -> End {
    let traceback = printed.traceback.as_ref();
    let exit = story.end.map(|end| Exit::from_status(end.status));
    let kind = match (story.end, story.detached) {
        (Some(end), _) => kind_of(end, facts, story, traceback),
        (None, Some(detached)) => kind_detached(detached, facts, story),
        (None, None) => match facts.since {
            Since::StillGuarded => EndKind::Running,
            Since::Rebooted => EndKind::MachineDied,
            Since::GuardGone | Since::Elsewhere => EndKind::Unknown,
            Since::OnlyPrinted => kind_told(facts, story, printed),
        },
    };
    let (exit_code, signal) = match exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(number)) => (None, Some(number)),
        None => (None, None),
    };
    let at = match kind {
        EndKind::Running => None,
        _ => story.until().and_then(written),
    };
    let detail = detail(kind, exit, facts, story, printed);
    End {
        kind,
        at,
        exit_code,
        signal,
        detail,
    }
}

/// Of an attached process whose exit status is not known.
fn kind_detached(detached: Detached, facts: &Facts, story: &Story) -> EndKind {
    let follows_a_refusal = || {
        let last = story.refusals.last;
        last.is_some_and(|last| between(last.at, detached.at) <= CONSEQUENCE)
            || was_at_wall(detached.at, facts, story)
    };
    if !detached.process_ended {
        EndKind::Detached
    } else if detached.by_guard || story.forced {
        EndKind::Stopped
    } else if log_tells_of_a_kill(facts, story) || kernel_counted(facts, story) {
        EndKind::OomKilled
    } else if follows_a_refusal() {
        EndKind::Walled
    } else {
        EndKind::Exited
    }
}

/// Of a run that left only its output.
fn kind_told(facts: &Facts, story: &Story, printed: &Printed) -> EndKind {
    let of_signal = |signal: u32| match signal {
        signal::KILL if log_tells_of_a_kill(facts, story) => EndKind::OomKilled,
        number if signal::is_crash(number) => EndKind::Crashed,
        _ => EndKind::Killed,
    };
    // A shell has the last word: what it says of came after all errors.
    let told = printed.told;
    let is_last = told.is_some_and(|told| !told.is_part && !signal::is_crash(told.signal));
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

/// Frameworks that save what they can when somebody interrupts them say so.
pub(crate) fn is_interrupted(printed: &Printed) -> bool {
    let by_trainer = [
        "Detected KeyboardInterrupt",
        "Interrupted by user",
        "Keyboard interrupt received",
        // Fortran's library takes it before Python can.
        "forrtl: error (200): program aborting due to",
        "ERROR: InterruptException",
        "ERROR: LoadError: InterruptException",
    ];
    printed
        .traceback
        .as_ref()
        .is_some_and(Traceback::is_interrupt)
        || printed.line_with(&by_trainer).is_some()
}

fn kind_of(end: Ended, facts: &Facts, story: &Story, traceback: Option<&Traceback>) -> EndKind {
    let exit = Exit::from_status(end.status);
    // What was attached to continues after an interruption, such as a notebook after a cell that failed.
    if facts.attached && exit == Exit::Code(0) {
        return EndKind::Finished;
    }
    // The flag may be missing where the guard was replaced between asking and the end.
    let asked_for = matches!(exit, Exit::Signal(signal::KILL | signal::TERMINATE));
    if end.by_guard || (asked_for && story.stop.is_some()) {
        return EndKind::Stopped;
    }
    if exit == Exit::Code(0) {
        return EndKind::Finished;
    }
    match exit.deadly_signal() {
        Some(signal::KILL) if was_out_of_memory(facts, story) => EndKind::OomKilled,
        Some(number) if !signal::is_crash(number) => EndKind::Killed,
        // Some frameworks abort where others raise an error.
        _ if follows_a_refusal(end, facts, story, traceback) => EndKind::Walled,
        Some(_) => EndKind::Crashed,
        None if traceback.is_some_and(Traceback::is_interrupt) => EndKind::Killed,
        None if traceback.is_some() => EndKind::Exception,
        None => EndKind::Failed,
    }
}

fn follows_a_refusal(
    end: Ended,
    facts: &Facts,
    story: &Story,
    traceback: Option<&Traceback>,
) -> bool {
    let Some(last) = story.refusals.last else {
        return was_at_wall(end.at, facts, story);
    };
    between(last.at, end.at) <= CONSEQUENCE
        || traceback.is_some_and(|traceback| tells_of_memory(&traceback.error))
}

/// Nothing reports what the limit refuses to an attached process, which has no cushion. That there was no room left is
/// all that is seen.
fn was_at_wall(ended: Stamp, facts: &Facts, story: &Story) -> bool {
    let until = story.rungs.stop_until.filter(|_| facts.attached);
    until.is_some_and(|until| between(until, ended) <= CONSEQUENCE)
}

/// The kernel's own count rose or its log tells so, or nothing was left when it happened.
fn was_out_of_memory(facts: &Facts, story: &Story) -> bool {
    log_tells_of_a_kill(facts, story)
        || kernel_counted(facts, story)
        || story.last.as_deref().is_some_and(is_out)
}

/// The kernel killed it for lack of memory, by its count or its log, which may only make it likely.
fn kernel_killed(facts: &Facts, story: &Story) -> bool {
    kills(facts, story).any(|whose| whose == Whose::Ours) || kernel_counted(facts, story)
}

/// The last look may be older than the kill.
fn log_tells_of_a_kill(facts: &Facts, story: &Story) -> bool {
    kills(facts, story).any(Whose::is_ours)
}

fn kills(facts: &Facts, story: &Story) -> impl Iterator<Item = Whose> {
    last_incidents(facts, story)
        .filter(|incident| matches!(incident.kind, Kind::OomKill { .. }))
        .map(|incident| whose(facts, story, incident))
}

/// Others that the kernel killed for lack of memory during the run.
pub(crate) fn kills_of_others(facts: &Facts, story: &Story) -> usize {
    incidents(facts, story)
        .filter(|incident| matches!(incident.kind, Kind::OomKill { .. }))
        .filter(|incident| whose(facts, story, incident) == Whose::Others)
        .count()
}

/// More than the log tells of others.
fn kernel_counted(facts: &Facts, story: &Story) -> bool {
    let kills = |sample: &Sample| sample.paging.oom_kills.value();
    let counts = story
        .first
        .as_deref()
        .and_then(kills)
        .zip(story.last.as_deref().and_then(kills));
    let others = kills_of_others(facts, story) as u64;
    counts.is_some_and(|(before, after)| after.saturating_sub(before) > others)
}

fn is_out(sample: &Sample) -> bool {
    let nearly_none = |free: Option<u64>, total: Option<u64>| {
        free.zip(total)
            .is_some_and(|(free, total)| (free as f64) < total as f64 * OUT)
    };
    nearly_none(sample.memory.available.value(), sample.memory.total.value())
        || nearly_none(
            sample.cgroup.limit_available.value(),
            sample.cgroup.limit.value(),
        )
}

fn detail(
    kind: EndKind,
    exit: Option<Exit>,
    facts: &Facts,
    story: &Story,
    printed: &Printed,
) -> String {
    let traceback = printed.traceback.as_ref();
    let time = units::duration(story.duration());
    // No clock is in what it printed.
    let after = match facts.since {
        Since::OnlyPrinted => String::new(),
        _ => format!(" after {time}"),
    };
    let status = match exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(number)) => signal::name(number),
        None => UNSEEN_STATUS.to_owned(),
    };
    // Neither its status nor a refusal that was seen settles it.
    let is_guess = exit.is_none() || story.refusals.count == 0;
    let probably = if is_guess { "probably " } else { "" };
    let told = printed.told.map(|told| told.signal);
    let signal_name = exit
        .and_then(Exit::deadly_signal)
        .or(told)
        .map_or_else(|| "a signal".into(), signal::name);
    match kind {
        EndKind::Finished if facts.since == Since::OnlyPrinted => {
            let words = printed.good_end().unwrap_or_default();
            format!("well, by its last words: {}", cut(&words, WORDS_COLUMNS))
        }
        EndKind::Finished => format!("well after {time}"),
        EndKind::Failed => format!("with {status} after {time}"),
        EndKind::Unknown if facts.since == Since::OnlyPrinted => {
            "in a way that its output does not tell".into()
        }
        EndKind::Unknown if facts.since == Since::Elsewhere => {
            format!("unseen: the record stops {time} in, and it is not of this machine")
        }
        EndKind::Exception => {
            let error = traceback
                .map(Traceback::kind)
                .filter(|kind| !kind.is_empty());
            let error = error.unwrap_or("an error that its output does not name");
            let (error, place) = (cut(error, ERROR_COLUMNS), place(traceback, facts));
            // Then it may have been caught.
            match exit.and_then(own_code) {
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
            None => format!("{probably}by running out of room after {time} ({status})"),
        },
        EndKind::Stopped => {
            let why = story.stop.and_then(|why| reason(why, facts));
            let force = if story.forced { ", by force" } else { "" };
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            format!("by antifreeze after {time}{force}{why}")
        }
        EndKind::OomKilled => {
            let sure = if kernel_killed(facts, story) {
                ""
            } else {
                "probably "
            };
            let after = after.replace(" after", ", after");
            format!("{sure}by the kernel, for lack of memory{after}")
        }
        EndKind::Killed
            if exit == Some(Exit::Signal(signal::INTERRUPT)) || is_interrupted(printed) =>
        {
            format!("by Ctrl-C or another SIGINT{after}")
        }
        EndKind::Killed | EndKind::Crashed
            if exit.is_none() && printed.told.is_some_and(|told| told.is_part) =>
        {
            format!("when one of its processes was ended by {signal_name}")
        }
        EndKind::Killed => format!("by {signal_name} from outside{after}"),
        EndKind::Crashed => format!("by a crash ({signal_name}){after}"),
        EndKind::MachineDied => {
            format!("with the machine, {time} in: the record stops there, without a clean shutdown")
        }
        EndKind::Detached => format!(
            "not while it was guarded: antifreeze detached after {time}, and the process lived on with the limits that \
             it had before"
        ),
        EndKind::Exited => format!("after {time}; {UNSEEN_STATUS}"),
        EndKind::Running => format!("not yet: it has been running for {time}"),
        EndKind::Hung | EndKind::Unknown => {
            format!("unseen: the guard was gone before the run was over; {time} are recorded")
        }
    }
}

fn place(traceback: Option<&Traceback>, facts: &Facts) -> String {
    match traceback.and_then(|traceback| traceback.frame.as_ref()) {
        Some(frame) => format!(", at {}", user_place(&frame.file, frame.line, facts)),
        None => String::new(),
    }
}

/// "train.py:12", or "cell 3, line 6".
pub fn user_place(file: &[u8], line: u32, facts: &Facts) -> String {
    place_of(&user_file(file, facts), line)
}

/// The same of a file that is named as [`user_file`] does.
pub fn place_of(file: &str, line: u32) -> String {
    let is_cell = file == SOME_CELL
        || file
            .strip_prefix("cell ")
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    match is_cell {
        true => format!("{file}, line {line}"),
        false => format!("{file}:{line}"),
    }
}

/// A cell of a notebook whose number is not known.
const SOME_CELL: &str = "a cell";

/// The number of a cell, from the temporary file that IPython names its code by.
fn cell(file: &[u8], facts: &Facts) -> Option<String> {
    let file = std::str::from_utf8(file).ok()?;
    if let Some(number) = facts.told.cells.get(file) {
        return Some(format!("cell {number}"));
    }
    // "Cell In[3]" of a traceback, and "<ipython-input-3-0123abcd>", have it in their names.
    if let Some(rest) = file.strip_prefix("Cell In") {
        let number = rest.trim_start().strip_prefix('[')?.strip_suffix(']')?;
        return Some(format!("cell {}", number.parse::<u64>().ok()?));
    }
    if let Some(rest) = file.strip_prefix("<ipython-input-") {
        let number = rest.split('-').next()?;
        return Some(format!("cell {}", number.parse::<u64>().ok()?));
    }
    let (folder, name) = file.rsplit_once('/')?;
    let kernel = folder.rsplit('/').next()?.strip_prefix("ipykernel_")?;
    let is_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    (is_digits(kernel) && is_digits(name.strip_suffix(".py")?)).then(|| SOME_CELL.to_owned())
}

/// A file of the user, seen from where the run was started; of a notebook, its cell.
pub fn user_file(file: &[u8], facts: &Facts) -> String {
    if let Some(cell) = cell(file, facts) {
        return cell;
    }
    let folder = facts.folder.as_os_str().as_bytes();
    let below = file.strip_prefix(folder).filter(|_| !folder.is_empty());
    sanitize::escape(
        below
            .and_then(|rest| rest.strip_prefix(b"/"))
            .unwrap_or(file),
    )
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
        let story = Story::tell(&facts, samples.iter().copied(), events.iter().copied());
        judge(&facts, &story, &Printed::read(&facts.last_output, false)).kind
    }

    const ERROR: &str =
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\nValueError: x\n";
    const MEMORY: &str =
        "Traceback (most recent call last):\n  File \"t.py\", line 1, in f\nMemoryError\n";

    #[test]
    fn the_end_is_judged_from_status_and_events() {
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
            let run = crate::Run::judge(Facts::default(), [], events.clone());
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
            let story = Story::tell(&facts, [], events);
            judge(&facts, &story, &Printed::read(b"", false)).kind
        };
        assert_eq!(kind(true, 0), EndKind::Finished);
        assert_eq!(kind(true, EXIT_1), EndKind::Stopped);
        assert_eq!(kind(false, 0), EndKind::Stopped);
    }

    #[test]
    fn cells_of_notebooks_are_named_by_their_number() {
        let line = br#"{"what":"cell","t":1,"file":"/tmp/ipykernel_12/345.py","number":3}"#;
        let facts = Facts {
            told: crate::shim::Told::said(line),
            folder: "/home/a".into(),
            ..Facts::default()
        };
        for (file, place) in [
            ("/tmp/ipykernel_12/345.py", "cell 3, line 6"),
            ("/tmp/ipykernel_12/346.py", "a cell, line 6"),
            ("<ipython-input-7-ab12>", "cell 7, line 6"),
            ("Cell In[7]", "cell 7, line 6"),
            ("Cell In [7]", "cell 7, line 6"),
            ("/home/a/train.py", "train.py:6"),
            ("/tmp/ipykernel_12/mine.py", "/tmp/ipykernel_12/mine.py:6"),
        ] {
            assert_eq!(user_place(file.as_bytes(), 6, &facts), place);
        }
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
    fn a_record_without_an_end_tells_what_became_of_the_machine() {
        for (since, expected) in [
            (Since::StillGuarded, EndKind::Running),
            (Since::GuardGone, EndKind::Unknown),
            (Since::Rebooted, EndKind::MachineDied),
        ] {
            let facts = Facts {
                since,
                ..Facts::default()
            };
            let story = Story::tell(&facts, [], []);
            assert_eq!(judge(&facts, &story, &Printed::default()).kind, expected);
        }
    }

    #[test]
    fn files_are_named_from_where_the_run_was_started() {
        let facts = Facts {
            folder: "/home/ada".into(),
            ..Facts::default()
        };
        assert_eq!(user_file(b"/home/ada/src/train.py", &facts), "src/train.py");
        assert_eq!(
            user_file(b"/home/adam/train.py", &facts),
            "/home/adam/train.py"
        );
        assert_eq!(user_file(b"/x.py", &Facts::default()), "/x.py");
    }
}
