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
