//! Charts as SVG. Everything that moves in time is drawn into a picture of 1000 by 100 that
//! is stretched to the page and of which the script shows a part when it zooms; labels are
//! drawn beside it, unstretched. Lines differ by dash as well as by colour.

use super::charts::Measure;
use super::html::{Drawn, Html, Value};
use super::marks::Marks;
use super::reduce::{Seen, Track};
use super::scale::Scale;
use super::timeline::{PHASES, Shares, Shown};

pub(crate) const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Room for the label of the topmost mark, and for the stroke at the bottom.
const HEAD: f64 = 16.0;
const FOOT: f64 = 2.0;
/// Labels of lines stand no closer than this.
const LABEL: f64 = 15.0;

/// Classes of lines and areas, in the order in which a chart uses them.
const STROKES: [&str; 6] = [
    "line l1", "line l2", "line l3", "line l4", "line l5", "line l6",
];
const BANDS: [&str; 6] = [
    "band l1", "band l2", "band l3", "band l4", "band l5", "band l6",
];
const LABELS: [&str; 6] = [
    "label l1", "label l2", "label l3", "label l4", "label l5", "label l6",
];

fn class(classes: &[&'static str; 6], index: usize) -> Value<'static> {
    Value::Ours(classes[index % classes.len()])
}

/// A straight line across a chart, between two points given as shares of the time and the value axis.
pub(crate) struct Rule {
    pub name: String,
    pub class: &'static str,
    pub from: (f64, f64),
    pub to: (f64, f64),
}

pub(crate) fn chart(html: &mut Html, shown: &Shown<'_>, rules: &[Rule], marks: &Marks, tall: bool) {
    let tracks = || shown.lines.iter().map(|(_, track)| *track);
    let over = |of: fn(&Track) -> Option<f64>| tracks().filter_map(of);
    let highest = over(Track::highest).chain(rules.iter().map(|rule| rule.to.1));
    let scale = Scale::fit(
        shown.chart.unit,
        over(Track::lowest).fold(f64::INFINITY, f64::min),
        highest.fold(0.0, f64::max),
        if tall { 4.0 } else { 3.0 },
    );
    let frame = Frame::new(tall);
    html.open("figure", &[]);
    caption(html, shown, rules);
    frame.open(html, shown.chart.title, &described(shown));
    marks.shades(html, HEIGHT);
    for tick in &scale.ticks {
        let y = level(&scale, *tick);
        stroke(html, "grid".into(), (0.0, y), (WIDTH, y));
    }
    for (index, (line, track)) in shown.lines.iter().enumerate() {
        curve(html, index, line.measure, track, &scale);
    }
    for rule in rules {
        let place = |(x, y): (f64, f64)| (x * WIDTH, level(&scale, y));
        stroke(html, rule.class.into(), place(rule.from), place(rule.to));
    }
    marks.lines(html, HEIGHT);
    html.close("svg");
    for tick in &scale.ticks {
        let y = frame.y(scale.place(*tick)) - 4.0;
        html.open(
            "text",
            &[("class", "tick".into()), ("x", 2.0.into()), ("y", y.into())],
        );
        html.text(&shown.chart.unit.format_value(*tick))
            .close("text");
    }
    labels(html, shown, &scale, &frame);
    html.close("svg").close("figure");
}

/// Draws the training phases as shares that add up to one.
pub(crate) fn phases(html: &mut Html, shares: &[Option<Shares>], marks: &Marks) {
    html.open("figure", &[])
        .raw("<figcaption><h3>Training phases</h3>");
    html.leaf("p", "tells", "Share of the time in each phase, from its first step on. Evaluation and saving are shaded in all charts.");
    html.raw("<ul class=\"legend\">");
    for (index, (_, name)) in PHASES.iter().enumerate() {
        let known = shares.iter().flatten().map(|shares| shares[index]);
        let (mut sum, mut count) = (0.0, 0.0);
        known.for_each(|share| (sum, count) = (sum + share, count + 1.0));
        let mean = sum / f64::max(count, 1.0);
        entry(
            html,
            STROKES[index],
            name,
            &antifreeze_text::units::percent(mean),
        );
    }
    html.raw("</ul></figcaption>");
    let frame = Frame::new(false);
    frame.open(
        html,
        "Training phases",
        "Share of the time; the list above has the means.",
    );
    let parts = shares.len() as f64;
    let mut floor = vec![0.0; shares.len()];
    for index in 0..PHASES.len() {
        let mut area = Drawn::default();
        let mut edge = Drawn::default();
        let mut reached = None;
        for (bucket, shares) in shares.iter().enumerate() {
            let Some(share) = shares
                .map(|shares| shares[index])
                .filter(|share| *share > 0.0)
            else {
                continue;
            };
            let left = bucket as f64 / parts * WIDTH;
            let right = (bucket as f64 + 1.0) / parts * WIDTH;
            let bottom = (1.0 - floor[bucket]) * HEIGHT;
            floor[bucket] += share;
            let top = (1.0 - floor[bucket]) * HEIGHT;
            area.rectangle((left, top), (right, bottom));
            // One line as long as the phase goes on, so that its dashes do too.
            let goes_on = reached == Some(bucket);
            edge.step(if goes_on { 'L' } else { 'M' }, left, top);
            edge.step('L', right, top);
            reached = Some(bucket + 1);
        }
        path(html, class(&BANDS, index), &area);
        path(html, class(&STROKES, index), &edge);
    }
    marks.lines(html, HEIGHT);
    html.raw("</svg></svg></figure>");
}

fn caption(html: &mut Html, shown: &Shown<'_>, rules: &[Rule]) {
    html.raw("<figcaption>").leaf("h3", "", shown.chart.title);
    html.leaf("p", "tells", shown.chart.tells)
        .raw("<ul class=\"legend\">");
    for (index, (line, track)) in shown.lines.iter().enumerate() {
        let extreme = extreme(line.measure, track);
        let extreme =
            extreme.map(|(word, value)| format!("{word} {}", shown.chart.unit.format_value(value)));
        entry(
            html,
            STROKES[index % STROKES.len()],
            line.name,
            &extreme.unwrap_or_default(),
        );
    }
    for rule in rules {
        entry(html, rule.class, &rule.name, "");
    }
    html.raw("</ul></figcaption>");
}

/// A line of the legend: how it is drawn, its name, and its value where one is known.
fn entry(html: &mut Html, class: &'static str, name: &str, value: &str) {
    html.raw("<li><svg class=\"swatch\" width=\"26\" height=\"10\" aria-hidden=\"true\">");
    stroke(html, class.into(), (0.0, 5.0), (26.0, 5.0));
    html.raw("</svg> ").leaf("span", "name", name).raw(" ");
    html.leaf("span", "value", value).raw("</li>");
}

fn extreme(measure: Measure, track: &Track) -> Option<(&'static str, f64)> {
    match measure {
        Measure::Low(_) => Some(("lowest", track.lowest()?)),
        Measure::High(_) | Measure::Rate(_) => Some(("highest", track.highest()?)),
    }
}

/// Describes the chart in a sentence, for screen readers.
fn described(shown: &Shown<'_>) -> String {
    let lines = shown.lines.iter().filter_map(|(line, track)| {
        let (word, value) = extreme(line.measure, track)?;
        Some(format!(
            "{}: {word} {}",
            line.name,
            shown.chart.unit.format_value(value)
        ))
    });
    let lines: Vec<String> = lines.collect();
    format!("{} {}.", shown.chart.tells, lines.join("; "))
}

/// A line through what matters of each bucket, and a band over all that was seen.
fn curve(html: &mut Html, index: usize, measure: Measure, track: &Track, scale: &Scale) {
    let axis = track.buckets().len().max(1) as f64;
    let x = |bucket: usize| (bucket as f64 + 0.5) / axis * WIDTH;
    let y = |value: f64| level(scale, value);
    let (mut line, mut band) = (Drawn::default(), Drawn::default());
    for stretch in track.stretches() {
        // A lonely bucket is as wide as it is, or it could not be seen.
        let half = if stretch.len() == 1 {
            0.5 / axis * WIDTH
        } else {
            0.0
        };
        for (place, (bucket, seen)) in stretch.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            line.step(command, x(*bucket) - half, y(matters(measure, seen)));
            if half > 0.0 {
                line.step('L', x(*bucket) + half, y(matters(measure, seen)));
            }
        }
        if stretch.iter().any(|(_, seen)| seen.high > seen.low) {
            for (place, (bucket, seen)) in stretch.iter().enumerate() {
                band.step(
                    if place == 0 { 'M' } else { 'L' },
                    x(*bucket) - half,
                    y(seen.high),
                );
            }
            for (bucket, seen) in stretch.iter().rev() {
                band.step('L', x(*bucket) + half, y(seen.low));
            }
            band.close();
        }
    }
    if !band.is_empty() {
        path(html, class(&BANDS, index), &band);
    }
    path(html, class(&STROKES, index), &line);
}

/// The vertical position of a value. The top and the bottom leave space for a stroke.
fn level(scale: &Scale, value: f64) -> f64 {
    1.0 + (1.0 - scale.place(value)) * (HEIGHT - 2.0)
}

/// The value of a bucket at which the line is drawn.
pub(crate) fn matters(measure: Measure, seen: &Seen) -> f64 {
    match measure {
        Measure::High(_) => seen.high,
        Measure::Low(_) => seen.low,
        Measure::Rate(_) => seen.mean(),
    }
}

/// The names of the lines, each where its line ends, pushed apart where they would overlap.
fn labels(html: &mut Html, shown: &Shown<'_>, scale: &Scale, frame: &Frame) {
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (index, (line, track)) in shown.lines.iter().enumerate() {
        if let Some(seen) = track.buckets().iter().flatten().next_back() {
            ends.push((
                frame.y(scale.place(matters(line.measure, seen))) - 5.0,
                index,
            ));
        }
    }
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut above = HEAD - LABEL - 4.0;
    for end in &mut ends {
        end.0 = end.0.max(above + LABEL);
        above = end.0;
    }
    let mut below = frame.height - FOOT - 3.0 + LABEL;
    for end in ends.iter_mut().rev() {
        end.0 = end.0.min(below - LABEL);
        below = end.0;
    }
    for (y, index) in ends {
        let place = ("x", Value::Percent(0.995));
        html.open(
            "text",
            &[("class", class(&LABELS, index)), place, ("y", y.into())],
        );
        let name = shown.lines.get(index).map_or("", |(line, _)| line.name);
        html.text(name).close("text");
    }
}

pub(crate) fn stroke(html: &mut Html, class: Value<'_>, from: (f64, f64), to: (f64, f64)) {
    let mut line = Drawn::default();
    line.step('M', from.0, from.1);
    line.step('L', to.0, to.1);
    path(html, class, &line);
}

fn path(html: &mut Html, class: Value<'_>, drawn: &Drawn) {
    if !drawn.is_empty() {
        html.open("path", &[("class", class), ("d", Value::Drawn(drawn))])
            .close("path");
    }
}

/// The outer picture, in pixels.
struct Frame {
    height: f64,
}

impl Frame {
    fn new(tall: bool) -> Frame {
        Frame {
            height: if tall { 220.0 } else { 120.0 },
        }
    }

    fn y(&self, place: f64) -> f64 {
        HEAD + (1.0 - place) * (self.height - HEAD - FOOT)
    }

    fn open(&self, html: &mut Html, title: &str, description: &str) {
        html.open(
            "svg",
            &[
                ("class", "chart".into()),
                ("role", "img".into()),
                ("width", Value::Percent(1.0)),
                ("height", self.height.into()),
            ],
        );
        html.leaf("title", "", title).leaf("desc", "", description);
        html.open(
            "svg",
            &[
                ("class", "plot".into()),
                ("viewBox", "0 0 1000 100".into()),
                ("preserveAspectRatio", "none".into()),
                ("y", HEAD.into()),
                ("width", Value::Percent(1.0)),
                ("height", (self.height - HEAD - FOOT).into()),
            ],
        );
    }
}
