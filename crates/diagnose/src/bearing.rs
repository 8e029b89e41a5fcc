//! Which ends a failing part of the machine explains. A line of the kernel about a card or a disk is true, and most
//! often has nothing to do with how a run ended: an error of the script is not raised by a disk that it does not read
//! from, and what ended well has felt nothing.

use crate::case::{Case, after};
use crate::detect;
use crate::kernel::{Incident, Kind};
use crate::traceback::Traceback;
use crate::verdict::EndKind;
use crate::whose::Whose;
use antifreeze_sense::Stamp;
use antifreeze_text::signal;
use std::time::Duration;

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Card,
    Disk,
    /// The processor, the memory, the bus, or the kernel that runs on them.
    Board,
}

/// Of an end that has another reason in its own words.
const UNLIKELY: f64 = 0.4;
/// Of an end that a part may have made, and much else.
const POSSIBLE: f64 = 0.6;
const PLAUSIBLE: f64 = 0.7;
/// After which what still runs has not felt it.
const LONG: Duration = Duration::from_secs(300);
/// On average, of one: a card that is as busy works for somebody.
const BUSY: f64 = 0.2;
/// Bytes that the cards held more than at first.
const TAKEN: u64 = 200_000_000;

const OF_CARDS: [&str; 10] = [
    "CUDA", "cuda", "NCCL", "HIP", "ROCm", "GPU", "cuDNN", "CUDNN", "CUBLAS", "HSA_",
];

/// How sure one may be at most that a part of which a line tells ended the run; 0 where it cannot have. A run that
/// went on for minutes after it was not felled by it, though a card that is lost stays lost.
pub(crate) fn most(case: &Case<'_>, part: Part, incident: &Incident) -> f64 {
    let went_on = |until: Stamp| {
        after(&incident.line, until).is_some_and(|after| after < -(LONG.as_nanos() as i128))
    };
    let is_sudden = matches!(
        case.end,
        EndKind::Crashed | EndKind::Failed | EndKind::Killed
    );
    let went_on = is_sudden && part != Part::Card && case.story.until().is_some_and(went_on);
    let most = of_the_end(case, part);
    if went_on { most.min(UNLIKELY) } else { most }
}

fn of_the_end(case: &Case<'_>, part: Part) -> f64 {
    match case.end {
        EndKind::MachineDied | EndKind::Hung | EndKind::Unknown => 1.0,
        EndKind::Finished | EndKind::Detached => 0.0,
        // It may have ended well.
        EndKind::Exited => UNLIKELY,
        // It may hang for it.
        EndKind::Running if detect::stands_still(case) => PLAUSIBLE,
        EndKind::Running if part == Part::Card && used_card(case) => POSSIBLE,
        EndKind::Running => 0.0,
        EndKind::Crashed | EndKind::Killed if part == Part::Card && is_on_cpu(case) => UNLIKELY,
        EndKind::Crashed => of_a_fall(case, part),
        // Somebody may have lost patience.
        EndKind::Killed => match part {
            Part::Card => 1.0,
            Part::Disk | Part::Board => POSSIBLE,
        },
        EndKind::Failed => of_a_failure(case, part),
        EndKind::Exception => of_an_error(case, part),
        // Memory was what it lacked.
        EndKind::Walled | EndKind::Stopped | EndKind::OomKilled => match part {
            Part::Disk => 0.0,
            Part::Card | Part::Board => UNLIKELY,
        },
    }
}

/// A page that cannot be read from a disk is a bus error; other falls have more reasons.
fn of_a_fall(case: &Case<'_>, part: Part) -> f64 {
    match part {
        Part::Disk if case.signal() != Some(signal::BUS) => PLAUSIBLE,
        _ => 1.0,
    }
}

/// It ended itself, and nobody knows why.
fn of_a_failure(case: &Case<'_>, part: Part) -> f64 {
    if case.signal().is_some_and(signal::is_crash) {
        return of_a_fall(case, part);
    }
    match part {
        Part::Card if used_card(case) => 1.0,
        Part::Card => 0.5,
        Part::Disk
            if case
                .line_with(&["Input/output error", "[Errno 5]"])
                .is_some() =>
        {
            1.0
        }
        Part::Disk | Part::Board => POSSIBLE,
    }
}

fn of_an_error(case: &Case<'_>, part: Part) -> f64 {
    let error = case.error();
    let is_of_it = match part {
        Part::Card => is_of_card(error),
        Part::Disk => is_of_disk(error),
        Part::Board => is_of_card(error) || is_of_disk(error),
    };
    let blames_another = case
        .printed
        .traceback
        .as_ref()
        .is_some_and(Traceback::blames_another);
    match part {
        _ if is_of_it => 1.0,
        _ if blames_another => of_a_failure(case, part),
        Part::Card if !used_card(case) => 0.0,
        Part::Disk => 0.0,
        Part::Card | Part::Board => UNLIKELY,
    }
}

fn is_of_card(error: &str) -> bool {
    OF_CARDS.iter().any(|word| error.contains(word))
}

/// Something could not be read or written, for no other reason that the system tells.
fn is_of_disk(error: &str) -> bool {
    const WORDS: [&str; 7] = [
        "[Errno 5]",
        "I/O error",
        "Input/output error",
        "[Errno 30]",
        "Read-only file system",
        "[Errno 117]",
        "[Errno 121]",
    ];
    let untold = error.starts_with("OSError") && !error.contains("[Errno ");
    untold || WORDS.iter().any(|word| error.contains(word))
}

/// As its trainer says, or its output; or as the cards or their driver show.
fn used_card(case: &Case<'_>) -> bool {
    if let Some(device) = device(case) {
        return !device.starts_with("cpu");
    }
    let cards = &case.story.cards;
    let first = case
        .first()
        .and_then(|first| first.gpus.memory_used.value());
    let took = cards.peak.zip(first);
    let is_named = || {
        case.incidents().any(|incident| {
            matches!(
                incident.kind,
                Kind::Xid { .. } | Kind::AmdRingTimeout { .. }
            ) && case.whose(incident) == Whose::Ours
        })
    };
    cards.busy().is_some_and(|busy| busy >= BUSY)
        || took.is_some_and(|(peak, first)| peak.used.saturating_sub(first) >= TAKEN)
        || case.line_with(&OF_CARDS).is_some()
        || is_named()
}

/// Where the loss was computed, as the trainer says.
fn device<'a>(case: &Case<'a>) -> Option<&'a str> {
    case.facts.told.hello.as_ref()?.device.as_deref()
}

fn is_on_cpu(case: &Case<'_>) -> bool {
    device(case).is_some_and(|device| device.starts_with("cpu"))
}
