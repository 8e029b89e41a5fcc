//! Chooses which events are printed, and remembers what was printed: a script that is refused memory a thousand
//! times does not fill the screen, and a warning that comes and goes is printed once.

use crate::sentence::{Detail, sentence};
use antifreeze_diagnose::Facts;
use antifreeze_diagnose::time::between;
use antifreeze_record::event::{Degradation, Event, EventKind, Rung};
use antifreeze_sense::Stamp;
use antifreeze_text::{Glyphs, units};
use std::time::Duration;

/// The shortest time between two lines about refused requests.
const REFUSAL_GAP: Duration = Duration::from_secs(10);
/// The shortest time between two warnings of the same growth, unless the remaining time has halved.
const WARNING_GAP: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Speaker {
    detail: Detail,
    glyphs: Glyphs,
    refusal_said: Option<Stamp>,
    refused_since: u64,
    warned: Option<(Stamp, u64)>,
    braked: bool,
    /// The number of steps when a lack of progress was last printed.
    still_at: Option<u64>,
    degradations_said: Vec<Degradation>,
}

impl Speaker {
    pub fn new(detail: Detail, glyphs: Glyphs) -> Speaker {
        Speaker {
            detail,
            glyphs,
            refusal_said: None,
            refused_since: 0,
            warned: None,
            braked: false,
            still_at: None,
            degradations_said: Vec::new(),
        }
    }

    /// The line for an event; None if it is not printed now.
    pub fn line_for(&mut self, event: &Event, facts: &Facts) -> Option<String> {
        let is_news = match event.kind {
            EventKind::RequestRefused { .. } if self.refusal_said.is_some() => {
                self.refused_since += 1;
                return self.due_refusals(event.at);
            }
            EventKind::RequestRefused { .. } => {
                self.refusal_said = Some(event.at);
                true
            }
            EventKind::Rung {
                to: Rung::Warn,
                forecast_ms,
                ..
            } => self.is_new_warning(event.at, forecast_ms),
            EventKind::Braked { .. } => !std::mem::replace(&mut self.braked, true),
            EventKind::Released { high: 0 } => std::mem::replace(&mut self.braked, false),
            EventKind::NoProgress { steps } => self.still_at.replace(steps) != Some(steps),
            EventKind::Degraded { degradation, .. }
                if self.degradations_said.contains(&degradation) =>
            {
                false
            }
            EventKind::Degraded { degradation, .. } => {
                self.degradations_said.push(degradation);
                true
            }
            _ => true,
        };
        if !is_news && self.detail < Detail::Verbose {
            return None;
        }
        sentence(event, facts, self.detail).map(|line| self.glyphs.render(line))
    }

    /// The summary of refusals, if one is due by now. To be called periodically.
    pub fn due_refusals(&mut self, now: Stamp) -> Option<String> {
        let said = self.refusal_said?;
        if between(said, now) < REFUSAL_GAP {
            return None;
        }
        let line = self.remaining_refusals()?;
        self.refusal_said = Some(now);
        Some(line)
    }

    /// The summary of refusals that were not printed, for the end of the run.
    pub fn remaining_refusals(&mut self) -> Option<String> {
        match std::mem::take(&mut self.refused_since) {
            0 => None,
            number => Some(format!("refused {}", units::count(number, "more request"))),
        }
    }

    fn is_new_warning(&mut self, at: Stamp, forecast_ms: Option<u64>) -> bool {
        let left = forecast_ms.unwrap_or(u64::MAX);
        if let Some((said, then)) = self.warned
            && between(said, at) < WARNING_GAP
            && left > then / 2
        {
            return false;
        }
        self.warned = Some((at, left));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_record::event::Trigger;
    use antifreeze_sense::{Pid, ProcessName};

    fn at(seconds: u64) -> Stamp {
        Stamp {
            monotonic_ns: seconds * 1_000_000_000,
            realtime_ns: 0,
        }
    }

    fn refusal(seconds: u64) -> Event {
        let kind = EventKind::RequestRefused {
            pid: Pid(7),
            name: ProcessName::new(b"python"),
            bytes: 42_000_000,
            footprint: 0,
        };
        Event {
            at: at(seconds),
            kind,
        }
    }

    fn warning(seconds: u64, forecast_ms: u64) -> Event {
        let kind = EventKind::Rung {
            from: Rung::Watch,
            to: Rung::Warn,
            trigger: Trigger::TreeGrowth,
            room: 0,
            growth: 41_000_000,
            forecast_ms: Some(forecast_ms),
            confidence: 90,
        };
        Event {
            at: at(seconds),
            kind,
        }
    }

    fn speaker() -> Speaker {
        Speaker::new(Detail::Normal, Glyphs::Unicode)
    }

    #[test]
    fn the_first_refusal_is_told_and_the_rest_are_counted() {
        let (mut speaker, facts) = (speaker(), Facts::default());
        assert!(
            speaker
                .line_for(&refusal(0), &facts)
                .unwrap()
                .starts_with("refused 42 MB to python")
        );
        for second in 1..10 {
            assert_eq!(speaker.line_for(&refusal(second), &facts), None);
        }
        assert_eq!(
            speaker.line_for(&refusal(10), &facts).unwrap(),
            "refused 10 more requests"
        );
        assert_eq!(speaker.line_for(&refusal(11), &facts), None);
        assert_eq!(speaker.due_refusals(at(15)), None);
        assert_eq!(
            speaker.due_refusals(at(20)).unwrap(),
            "refused 1 more request"
        );
        assert_eq!(speaker.due_refusals(at(40)), None);
        assert_eq!(speaker.remaining_refusals(), None);
    }

    #[test]
    fn what_was_held_back_is_told_at_the_end() {
        let (mut speaker, facts) = (speaker(), Facts::default());
        speaker.line_for(&refusal(0), &facts);
        speaker.line_for(&refusal(1), &facts);
        assert_eq!(
            speaker.remaining_refusals().unwrap(),
            "refused 1 more request"
        );
        assert_eq!(speaker.remaining_refusals(), None);
    }

    #[test]
    fn a_warning_is_given_again_only_when_time_passed_or_ran_short() {
        let (mut speaker, facts) = (speaker(), Facts::default());
        assert!(speaker.line_for(&warning(0, 100_000), &facts).is_some());
        assert!(speaker.line_for(&warning(5, 90_000), &facts).is_none());
        assert!(speaker.line_for(&warning(9, 50_000), &facts).is_some());
        assert!(speaker.line_for(&warning(70, 50_000), &facts).is_some());
    }

    #[test]
    fn the_brake_is_told_once_on_and_once_off() {
        let (mut speaker, facts) = (speaker(), Facts::default());
        let mut heard = |kind| {
            speaker
                .line_for(&Event { at: at(0), kind }, &facts)
                .is_some()
        };
        assert!(!heard(EventKind::Released { high: 0 }));
        assert!(heard(EventKind::Braked { high: 5 }));
        assert!(!heard(EventKind::Braked { high: 4 }));
        assert!(heard(EventKind::Released { high: 0 }));
    }

    #[test]
    fn that_it_stands_still_is_told_once_and_again_after_more_steps() {
        let (mut speaker, facts) = (speaker(), Facts::default());
        let mut heard = |steps| {
            let kind = EventKind::NoProgress { steps };
            speaker
                .line_for(&Event { at: at(0), kind }, &facts)
                .is_some()
        };
        // Nobody knows whether it should work.
        assert!(!heard(0));
        assert!(heard(7));
        assert!(!heard(7));
        assert!(heard(9));
    }

    #[test]
    fn what_is_missing_is_told_once() {
        let (mut speaker, facts) = (speaker(), Facts::default());
        let event = Event {
            at: at(0),
            kind: EventKind::Degraded {
                degradation: Degradation::WallIgnored,
                detail: 0,
            },
        };
        assert!(speaker.line_for(&event, &facts).is_some());
        assert!(speaker.line_for(&event, &facts).is_none());
    }
}
