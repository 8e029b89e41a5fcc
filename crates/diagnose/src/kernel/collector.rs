//! From lines to incidents: several lines about one thing become one, and of very many
//! incidents the latest are kept, the grave ones apart from those that are told by the second.

use super::incident::{Guard, Incident, Kind, Severity};
use super::line::{Line, Source};
use super::{gpu, guards, memory};
use antifreeze_sense::Pid;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::time::Duration;

/// A machine that fails this often fails for what it said last.
const MOST_GRAVE: usize = 9_000;
/// Heat and corrected errors are told by the second: they must not crowd out the rest.
const MOST_MINOR: usize = 1_000;
/// How far the two lines of a report may be apart: other processors write in between.
const LOOK_BACK: usize = 8;
/// Printing a report takes seconds where the console is slow.
const ONE_REPORT: Duration = Duration::from_secs(30);
/// Lines about the same fault follow within one moment.
const ONE_MOMENT: Duration = Duration::from_secs(1);
/// A machine may take minutes to go down.
const ONE_SHUTDOWN: Duration = Duration::from_secs(600);

/// What was found so far, each with its place in the log, and what is waited for.
#[derive(Default)]
pub struct IncidentCollector {
    grave: VecDeque<(u64, Incident)>,
    minor: VecDeque<(u64, Incident)>,
    taken: u64,
    before: Option<(Source, Option<Duration>, Option<Timestamp>)>,
    /// Whom nohang means when it says "the victim".
    victim: Option<(Pid, String)>,
}

impl IncidentCollector {
    /// An indented line without a stamp goes on with what was said before it, by whoever said it.
    fn after_the_one_before(&mut self, mut line: Line, indented: bool) -> Line {
        let bare = line.since_boot.is_none() && line.at.is_none();
        match &self.before {
            Some(before) if indented && bare => {
                (line.source, line.since_boot, line.at) = before.clone();
            }
            _ => self.before = Some((line.source.clone(), line.since_boot, line.at)),
        }
        line
    }

    /// Any line, in the order of the log.
    pub fn add_line(&mut self, line: Line, indented: bool) {
        let line = self.after_the_one_before(line, indented);
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
            true => (&mut self.minor, MOST_MINOR),
            false => (&mut self.grave, MOST_GRAVE),
        };
        if kept.len() == most {
            kept.pop_front();
        }
        kept.push_back((self.taken, incident));
        self.taken += 1;
    }

    pub fn into_incidents(self) -> Vec<Incident> {
        let mut all: Vec<_> = self.grave.into_iter().chain(self.minor).collect();
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
        for (_, earlier) in self.grave.iter_mut().rev().take(LOOK_BACK) {
            if within(&earlier.line, &incident.line, ONE_REPORT)
                && memory::join(&mut earlier.kind, &incident.kind)
            {
                earlier.line = incident.line.clone();
                return true;
            }
        }
        let kept = match incident.kind.is_minor() {
            true => &mut self.minor,
            false => &mut self.grave,
        };
        kept.back_mut().is_some_and(|(_, earlier)| {
            let time = earlier.kind.goes_on_for(&incident.kind);
            let goes_on = time.is_some_and(|time| within(&earlier.line, &incident.line, time));
            if goes_on && incident.kind.is_graver_than(&earlier.kind) {
                *earlier = incident.clone();
            }
            goes_on
        })
    }

    /// The line below an AMD ring's time-out tells whose work it was.
    fn name_amd_process(&mut self, line: &Line) {
        if let Some((_, last)) = self.grave.back_mut()
            && let Kind::AmdRingTimeout { process, .. } = &mut last.kind
            && process.is_none()
            && line.source == Source::Kernel
        {
            *process = gpu::amd_process(&line.text);
        }
    }
}

impl Kind {
    /// Told often, and no death by itself.
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

    /// Of a machine check several lines tell, and only some how grave it was.
    fn is_graver_than(&self, earlier: &Kind) -> bool {
        match (earlier, self) {
            (Kind::MachineCheck { severity: earlier }, Kind::MachineCheck { severity }) => {
                severity > earlier
            }
            _ => false,
        }
    }

    /// For how long a line of the same kind tells nothing new.
    fn goes_on_for(&self, later: &Kind) -> Option<Duration> {
        match (self, later) {
            (
                Kind::PcieError { severity, .. },
                Kind::PcieError {
                    severity: other, ..
                },
            ) => (severity == other).then_some(ONE_MOMENT),
            (Kind::MachineCheck { .. }, Kind::MachineCheck { .. })
            | (Kind::Oops { .. }, Kind::Oops { .. })
            | (Kind::Throttled { .. }, Kind::Throttled { .. })
            | (Kind::PowerLimit { .. }, Kind::PowerLimit { .. }) => Some(ONE_MOMENT),
            (Kind::Shutdown, Kind::Shutdown) => Some(ONE_SHUTDOWN),
            _ => None,
        }
    }
}

/// Whether the second follows the first so soon; lines without a time only follow.
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
