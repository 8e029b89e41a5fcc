//! Events on the time axis: one line for every bucket that has events, and a shade where the trainer was evaluating
//! or saving.

use super::draw::{WIDTH, stroke};
use super::html::{Html, Value};
use super::reduce::Axis;
use super::timeline::{PHASES, Shares};
use crate::sentence::{Detail, sentence_with_level};
use antifreeze_diagnose::Facts;
use antifreeze_record::event::Event;
use antifreeze_sense::Phase;
use antifreeze_text::layout::cut;
use std::collections::BTreeMap;

/// A longer title is cut; the table of events has the whole sentence.
const TITLE_COLUMNS: usize = 120;
/// A mark names at most this many events of its bucket and counts the others.
const MAX_TEXTS_PER_MARK: usize = 2;
/// The level of a mark is taken from at most this many events.
const MAX_EVENTS_PER_MARK: usize = 20;
/// At most this many marks are drawn, the last ones.
const MAX_MARKS: usize = 150;

pub(crate) struct Marks {
    marks: Vec<Mark>,
    shades: Vec<Shade>,
}

#[derive(Clone)]
struct Mark {
    seconds: f64,
    place: f64,
    /// The level of its most important event.
    level: Detail,
    texts: Vec<String>,
    more: usize,
}

struct Shade {
    class: &'static str,
    from: f64,
    to: f64,
}

impl Marks {
    pub fn from_events(
        events: &[Event],
        facts: &Facts,
        axis: &Axis,
        phases: Option<&[Option<Shares>]>,
    ) -> Marks {
        let mut by_bucket: BTreeMap<usize, Vec<&Event>> = BTreeMap::new();
        for event in events {
            if let Some(bucket) = axis.bucket(event.at.monotonic_ns) {
                by_bucket.entry(bucket).or_default().push(event);
            }
        }
        let surplus = by_bucket.len().saturating_sub(MAX_MARKS);
        let kept = by_bucket.into_values().skip(surplus);
        Marks {
            marks: kept
                .filter_map(|events| Mark::from_events(&events, facts, axis))
                .collect(),
            shades: shades(phases.unwrap_or_default()),
        }
    }

    pub fn lines(&self, html: &mut Html, height: f64) {
        for mark in &self.marks {
            let class = match mark.level {
                Detail::Quiet => "mark acted",
                Detail::Normal => "mark told",
                Detail::Verbose => "mark noted",
            };
            let x = mark.place * WIDTH;
            html.open("g", &[]).leaf("title", "", &mark.text());
            stroke(html, class.into(), (x, 0.0), (x, height));
            html.close("g");
        }
    }

    pub fn shades(&self, html: &mut Html, height: f64) {
        for shade in &self.shades {
            let width = (shade.to - shade.from) * WIDTH;
            html.open(
                "rect",
                &[
                    ("class", Value::Ours(shade.class)),
                    ("x", (shade.from * WIDTH).into()),
                    ("width", width.into()),
                    ("height", height.into()),
                ],
            );
            html.close("rect");
        }
    }

    /// The marks for the page's script: seconds and text.
    pub fn labels(&self) -> Vec<(f64, String)> {
        let told = |mark: &Mark| ((mark.seconds * 1e3).round() / 1e3, mark.text());
        self.marks.iter().map(told).collect()
    }
}

impl Mark {
    fn from_events(events: &[&Event], facts: &Facts, axis: &Axis) -> Option<Mark> {
        let told: Vec<(Detail, String)> = events
            .iter()
            .take(MAX_EVENTS_PER_MARK)
            .filter_map(|event| sentence_with_level(event, facts))
            .collect();
        let seconds = axis.since(events.first()?.at);
        let texts = told.iter().take(MAX_TEXTS_PER_MARK);
        Some(Mark {
            seconds,
            place: seconds / axis.seconds(),
            level: told.iter().map(|(level, _)| *level).min()?,
            texts: texts.map(|(_, text)| cut(text, TITLE_COLUMNS)).collect(),
            more: events.len().saturating_sub(MAX_TEXTS_PER_MARK),
        })
    }

    fn text(&self) -> String {
        match self.more {
            0 => self.texts.join(" · "),
            more => format!("{} · and {more} more", self.texts.join(" · ")),
        }
    }
}

/// The stretches of time that were mostly evaluation or saving.
fn shades(phases: &[Option<Shares>]) -> Vec<Shade> {
    let mut shades: Vec<Shade> = Vec::new();
    let count = phases.len() as f64;
    for (part, shares) in phases.iter().enumerate() {
        let Some(shares) = shares else { continue };
        let most = PHASES.iter().zip(shares).find(|(_, share)| **share > 0.5);
        let class = match most.map(|((phase, _), _)| phase) {
            Some(Phase::Evaluation) => "shade l5",
            Some(Phase::Saving) => "shade l6",
            _ => continue,
        };
        let (from, to) = (part as f64 / count, (part as f64 + 1.0) / count);
        match shades.last_mut() {
            Some(last) if last.class == class && last.to >= from - 1e-9 => last.to = to,
            _ => shades.push(Shade { class, from, to }),
        }
    }
    shades
}

#[cfg(test)]
mod tests {
    use super::*;
    use antifreeze_record::event::EventKind;
    use antifreeze_sense::Stamp;

    fn event(seconds: u64, kind: EventKind) -> Event {
        let at = Stamp {
            monotonic_ns: seconds * 1_000_000_000,
            realtime_ns: 0,
        };
        Event { at, kind }
    }

    fn drawn(events: &[Event]) -> (Vec<(f64, String)>, String) {
        let axis = Axis::over(0, 600_000_000_000, 600);
        let marks = Marks::from_events(events, &Facts::default(), &axis, None);
        let mut html = Html::default();
        marks.lines(&mut html, 100.0);
        (marks.labels(), html.into_page())
    }

    #[test]
    fn a_mark_tells_all_that_happened_in_its_bucket_and_stands_out_by_the_worst_of_it() {
        let (told, svg) = drawn(&[
            event(300, EventKind::UserStopped),
            event(300, EventKind::Braked { high: 0 }),
            event(300, EventKind::CheckpointMissed { millis: 0 }),
            event(300, EventKind::TreeEnded),
            event(900, EventKind::TreeEnded),
        ]);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].0, 300.0);
        assert!(told[0].1.ends_with("· and 2 more"), "{}", told[0].1);
        assert!(
            svg.contains("class=\"mark acted\" d=\"M500 0L500 100\""),
            "{svg}"
        );
    }

    #[test]
    fn of_very_many_marks_the_last_are_kept() {
        let events: Vec<Event> = (0..600).map(|at| event(at, EventKind::TreeEnded)).collect();
        let (told, _) = drawn(&events);
        assert_eq!(told.len(), MAX_MARKS);
        assert_eq!(told.last().map(|(at, _)| *at), Some(599.0));
    }

    #[test]
    fn evaluation_and_saving_are_shaded_in_whole_stretches() {
        let of = |place: usize| {
            let mut shares = [0.0; PHASES.len()];
            shares[place] = 0.9;
            Some(shares)
        };
        let phases = [
            of(0),
            of(4),
            of(4),
            None,
            of(5),
            of(1),
            of(2),
            of(3),
            None,
            None,
        ];
        let shades = shades(&phases);
        let told: Vec<_> = shades
            .iter()
            .map(|shade| (shade.class, shade.from, shade.to))
            .collect();
        assert_eq!(told, [("shade l5", 0.1, 0.3), ("shade l6", 0.4, 0.5)]);
    }
}
