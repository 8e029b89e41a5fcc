//! Collects incidents from lines: several lines about one incident become one, and the latest incidents are kept. Severe
//! ones are kept apart from minor ones, which can be logged every second.

use super::incident::{Guard, Incident, Kind, Severity};
use super::line::{Line, Source};
use super::{gpu, guards, memory};
use antifreeze_sense::Pid;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// So many severe incidents are kept.
const MAX_SEVERE: usize = 9_000;
/// So many minor incidents are kept, such as heat and corrected errors.
const MAX_MINOR: usize = 1_000;
/// The two lines of a report may be so many incidents apart, since other CPUs write in between.
const MAX_INCIDENTS_BETWEEN: usize = 8;
/// The lines of one report are within this time; a slow console takes seconds.
const REPORT_TIME: Duration = Duration::from_secs(30);
/// Lines about the same fault are within this time.
const SAME_FAULT_TIME: Duration = Duration::from_secs(1);
/// The lines of one shutdown are within this time.
const SHUTDOWN_TIME: Duration = Duration::from_secs(600);

/// The incidents so far, each with its position in the log.
#[derive(Default)]
pub struct IncidentCollector {
    severe: VecDeque<(u64, Incident)>,
    minor: VecDeque<(u64, Incident)>,
    taken: u64,
    before: Option<(Source, Option<Duration>, Option<Timestamp>)>,
    /// The process that nohang calls "the victim".
    victim: Option<(Pid, String)>,
}

impl IncidentCollector {
    /// An indented line without a stamp continues the line before it, from the same source.
    fn continue_previous_line(&mut self, mut line: Line, indented: bool) -> Line {
        let bare = line.since_boot.is_none() && line.at.is_none();
        match &self.before {
            Some(before) if indented && bare => {
                (line.source, line.since_boot, line.at) = before.clone();
            }
            _ => self.before = Some((line.source.clone(), line.since_boot, line.at)),
        }
        line
    }

    /// Adds a line, in the order of the log.
    pub fn add_line(&mut self, line: Line, indented: bool) {
        let line = self.continue_previous_line(line, indented);
        let kind = match &line.source {
            Source::Program(name) if name == "nohang" => self.nohang(&line.text),
            _ => Kind::from_line(&line),
        };
        let Some(kind) = kind else {
            self.name_amd_process(&line);
            return;
        };
        let incident = Incident { line, kind };
        if self.belongs_to_an_earlier_one(&incident) {
            return;
        }
        let (kept, most) = match incident.kind.is_minor() {
            true => (&mut self.minor, MAX_MINOR),
            false => (&mut self.severe, MAX_SEVERE),
        };
        if kept.len() == most {
            kept.pop_front();
        }
        kept.push_back((self.taken, incident));
        self.taken += 1;
    }

    /// The incidents in the order of the log.
    pub fn into_incidents(self) -> Vec<Incident> {
        let mut all: Vec<_> = self.severe.into_iter().chain(self.minor).collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, incident)| incident).collect()
    }

    fn nohang(&mut self, text: &str) -> Option<Kind> {
        if let Some(victim) = guards::nohang_victim(text) {
            self.victim = Some(victim);
            return None;
        }
        let signal = guards::nohang_signal(text)?;
        let (pid, name) = self.victim.take().unzip();
        Some(Kind::OutsideGuard {
            who: Guard::Nohang,
            pid,
            name,
            signal: Some(signal.into()),
        })
    }

    fn belongs_to_an_earlier_one(&mut self, incident: &Incident) -> bool {
        for (_, earlier) in self.severe.iter_mut().rev().take(MAX_INCIDENTS_BETWEEN) {
            if within(&earlier.line, &incident.line, REPORT_TIME)
                && memory::join(&mut earlier.kind, &incident.kind)
            {
                earlier.line = incident.line.clone();
                return true;
            }
        }
        let kept = match incident.kind.is_minor() {
            true => &mut self.minor,
            false => &mut self.severe,
        };
        kept.back_mut().is_some_and(|(_, earlier)| {
            let time = earlier.kind.repeats_within(&incident.kind);
            let goes_on = time.is_some_and(|time| within(&earlier.line, &incident.line, time));
            if goes_on && incident.kind.is_more_severe_than(&earlier.kind) {
                *earlier = incident.clone();
            }
            goes_on
        })
    }

    /// The line below an AMD ring timeout names the process.
    fn name_amd_process(&mut self, line: &Line) {
        if let Some((_, last)) = self.severe.back_mut()
            && let Kind::AmdRingTimeout { process, .. } = &mut last.kind
            && process.is_none()
            && line.source == Source::Kernel
        {
            *process = gpu::amd_process(&line.text);
        }
    }
}

impl Kind {
    /// Whether it is logged often and ends nothing by itself.
    fn is_minor(&self) -> bool {
        matches!(
            self,
            Kind::Throttled { .. }
                | Kind::PowerLimit { .. }
                | Kind::MemoryError {
                    corrected: true,
                    ..
                }
                | Kind::PcieError {
                    severity: Severity::Corrected,
                    ..
                }
        )
    }

    /// A machine check is logged in several lines, and only some have its severity.
    fn is_more_severe_than(&self, earlier: &Kind) -> bool {
        match (earlier, self) {
            (Kind::MachineCheck { severity: earlier }, Kind::MachineCheck { severity }) => {
                severity > earlier
            }
            _ => false,
        }
    }

    /// For how long a line of the same kind is about the same incident.
    fn repeats_within(&self, later: &Kind) -> Option<Duration> {
        match (self, later) {
            (
                Kind::PcieError { severity, .. },
                Kind::PcieError {
                    severity: other, ..
                },
            ) => (severity == other).then_some(SAME_FAULT_TIME),
            (Kind::MachineCheck { .. }, Kind::MachineCheck { .. })
            | (Kind::Oops { .. }, Kind::Oops { .. })
            | (Kind::Throttled { .. }, Kind::Throttled { .. })
            | (Kind::PowerLimit { .. }, Kind::PowerLimit { .. }) => Some(SAME_FAULT_TIME),
            (Kind::Shutdown, Kind::Shutdown) => Some(SHUTDOWN_TIME),
            _ => None,
        }
    }
}

/// Whether the second line follows the first within a time; lines without a time always do.
fn within(first: &Line, second: &Line, time: Duration) -> bool {
    if let Some((first, second)) = first.since_boot.zip(second.since_boot) {
        return second.checked_sub(first).is_some_and(|apart| apart <= time);
    }
    let Some((first, second)) = first.at.zip(second.at) else {
        return true;
    };
    let apart = second.duration_since(first);
    !apart.is_negative() && apart.unsigned_abs() <= time
}

#[cfg(test)]
mod tests;
