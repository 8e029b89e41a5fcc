//! The kernel's log: incidents such as OOM kills, crashes and hardware errors, and kills by other guards. A log is
//! untrusted; it is read once, line by line, in bounded memory.

pub(crate) mod attribution;
mod clock;
mod collector;
mod gpu;
mod guards;
pub(crate) mod hardware_relevance;
pub mod incident;
mod journal;
mod kmsg;
pub mod line;
mod machine;
mod memory;
mod process;
mod pstore;
mod scan;
pub mod sources;
mod tail;
#[cfg(test)]
mod testing;
pub mod xid;

pub use incident::{Constraint, Guard, Incident, Kind, Severity};
pub use line::{Line, Source};
pub use sources::{Boot, Log, from_file, gather};
pub use xid::{Class, Xid, xid};

use clock::Calendar;
use collector::IncidentCollector;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The latest incidents in a log, in its order. No line is later than `reference`, which supplies the year where lines
/// have none.
pub fn incidents(text: &[u8], reference: Timestamp) -> Vec<Incident> {
    incidents_in(text, reference, TimeZone::system())
}

/// Incidents from lines of the kernel in a program's output: kills, crashes and panics, in words that only the kernel
/// uses, or with a stamp of its own.
pub fn incidents_in_output<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Incident> {
    let calendar = Calendar::new(Timestamp::now(), TimeZone::system());
    let mut collector = IncidentCollector::default();
    for line in lines.filter_map(|line| Line::parse(line.as_bytes(), &calendar)) {
        let is_stamped = line.since_boot.is_some() || line.at.is_some();
        let is_reported = match Kind::from_line(&line) {
            _ if line.source != Source::Kernel => false,
            Some(Kind::OomKill { constraint, .. }) => {
                is_stamped || constraint != Constraint::Unknown
            }
            Some(Kind::Panic { .. } | Kind::Segfault { .. } | Kind::Trap { .. }) => true,
            Some(Kind::Oops { .. } | Kind::Lockup) => is_stamped,
            _ => false,
        };
        if is_reported {
            collector.add_line(line, false);
        }
    }
    collector.into_incidents()
}

fn incidents_in(text: &[u8], reference: Timestamp, zone: TimeZone) -> Vec<Incident> {
    let calendar = Calendar::new(reference, zone);
    let mut collector = IncidentCollector::default();
    for raw in text.split(|byte| *byte == b'\n') {
        if let Some(line) = Line::parse(raw, &calendar) {
            let indented = raw.first().is_some_and(u8::is_ascii_whitespace);
            collector.add_line(line, indented);
        }
    }
    collector.into_incidents()
}
