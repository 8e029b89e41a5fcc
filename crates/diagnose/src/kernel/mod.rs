//! The system log after a death: what the kernel, and guards other than ours, say killed a run
//! or a machine. A log is anybody's bytes: it is read once, line by line, in bounded memory.

mod clock;
mod gpu;
mod guards;
pub mod incident;
mod journal;
mod kmsg;
pub mod line;
mod machine;
mod memory;
mod process;
mod pstore;
mod reading;
#[cfg(test)]
mod said;
mod scan;
pub mod sources;
mod tail;
pub mod xid;

pub use incident::{Constraint, Guard, Incident, Kind, Severity};
pub use line::{Line, Source};
pub use sources::{Boot, Log, from_file, gather};
pub use xid::{Class, Xid, xid};

use clock::Calendar;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use reading::Reading;

/// The latest incidents in a log, in its order. `reference` is a moment that no line is later
/// than: where lines bear no year, it is supplied from there.
pub fn incidents(text: &[u8], reference: Timestamp) -> Vec<Incident> {
    incidents_in(text, reference, TimeZone::system())
}

/// What the kernel says in a program's output: kills, crashes and panics, in words that nobody else uses, or below a
/// stamp of its own.
pub fn pasted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Incident> {
    let calendar = Calendar::new(Timestamp::now(), TimeZone::system());
    let mut reading = Reading::default();
    for line in lines.filter_map(|line| Line::parse(line.as_bytes(), &calendar)) {
        let is_stamped = line.since_boot.is_some() || line.at.is_some();
        let is_told = match Kind::of(&line) {
            _ if line.source != Source::Kernel => false,
            Some(Kind::OomKill { constraint, .. }) => {
                is_stamped || constraint != Constraint::Unknown
            }
            Some(Kind::Panic { .. } | Kind::Segfault { .. } | Kind::Trap { .. }) => true,
            Some(Kind::Oops { .. } | Kind::Lockup) => is_stamped,
            _ => false,
        };
        if is_told {
            reading.take(line, false);
        }
    }
    reading.found()
}

fn incidents_in(text: &[u8], reference: Timestamp, zone: TimeZone) -> Vec<Incident> {
    let calendar = Calendar::new(reference, zone);
    let mut reading = Reading::default();
    for raw in text.split(|byte| *byte == b'\n') {
        if let Some(line) = Line::parse(raw, &calendar) {
            let indented = raw.first().is_some_and(u8::is_ascii_whitespace);
            reading.take(line, indented);
        }
    }
    reading.found()
}
