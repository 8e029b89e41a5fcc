//! The run over time: charts that share one axis, for the whole run and, if it was long, again for its last minutes,
//! which have more samples and usually the cause.

use super::charts::{CHARTS, Chart, MEMORY, Measure};
use super::draw::{self, Rule, matters};
use super::html::{Html, Value};
use super::marks::Marks;
use super::reduce::{self, Axis, Track};
use super::scale::{TIME_STEPS, time_ticks};
use super::timeline::{PHASES, Shares, Shown, Timeline};
use antifreeze_diagnose::Run;
use antifreeze_diagnose::verdict::Code;
use antifreeze_record::event::{Degradation, EventKind};
use antifreeze_sense::{Reading, Sample, Stamp};
use antifreeze_text::{TermStyle, units};
use serde::Serialize;
use std::time::Duration;

/// The last minutes of runs longer than this are shown again.
const SHOW_END_AFTER: Duration = Duration::from_secs(30 * 60);
/// The length of the stretch at the end that is shown again.
const END_SECONDS: u64 = 5 * 60;
/// The buckets of that stretch, one for each second.
const END_BUCKETS: u64 = 300;
/// The number of labels on the axis, until the script knows the page's width.
const AXIS_LABELS: f64 = 4.0;
/// At most this many errors of the shim are listed, the first ones.
const MAX_FAULTS: usize = 5;

pub(crate) struct Times {
    whole: Timeline,
    end: Option<Timeline>,
}

impl Times {
    pub fn gather(
        run: &Run,
        samples: impl IntoIterator<Item = Sample>,
        style: &TermStyle,
    ) -> Times {
        let summary = &run.summary;
        let events = run.events.iter().map(|event| event.at.monotonic_ns);
        let last = summary.last.iter().map(|last| last.at.monotonic_ns);
        let until = summary.until().map_or(0, |until| until.monotonic_ns);
        let (begin, end) = (
            summary.begin().monotonic_ns,
            events.chain(last).fold(until, u64::max),
        );
        let axis = Axis::over(begin, end, reduce::MAX_BUCKETS);
        let long = Duration::from_nanos(end.saturating_sub(begin)) > SHOW_END_AFTER;
        let late = end.saturating_sub(END_SECONDS * 1_000_000_000);
        let mut times = Times {
            whole: Timeline::new(axis, 0.0, &style.zone),
            end: long.then(|| {
                let begin = late.saturating_sub(begin) as f64 / 1e9;
                Timeline::new(Axis::over(late, end, END_BUCKETS), begin, &style.zone)
            }),
        };
        for sample in samples {
            times.whole.add_sample(&sample);
            times.end.iter_mut().for_each(|end| end.add_sample(&sample));
        }
        times.whole.close();
        times.end.iter_mut().for_each(Timeline::close);
        times
    }

    pub fn section(&self, html: &mut Html, run: &Run) {
        html.raw("<section id=\"timeline\"><h2>The run over time</h2>");
        draw_charts(html, run, &self.whole, "the run");
        html.raw("</section>");
        if let Some(end) = &self.end {
            html.raw("<section id=\"end\"><h2>Its last 5 minutes</h2>");
            draw_charts(html, run, end, "the run's last minutes");
            html.raw("</section>");
        }
    }

    /// Lists what could not be seen, and why: a missing chart does not mean that there was no problem.
    pub fn unseen(&self, html: &mut Html, run: &Run) {
        let shown = self.whole.charts();
        let mut list: Vec<String> = Vec::new();
        for chart in &CHARTS {
            if !shown.iter().any(|shown| shown.chart.title == chart.title) {
                list.push(format!("{}: {}", chart.title, describe_missing(chart, run)));
            }
        }
        list.push("GPUs other than NVIDIA and AMD: not supported by this version".into());
        let mut degradations: Vec<Degradation> = Vec::new();
        for event in &run.events {
            if let EventKind::Degraded {
                degradation,
                detail,
            } = event.kind
                && !degradations.contains(&degradation)
            {
                degradations.push(degradation);
                list.push(crate::degradations::describe_loss(degradation, detail).1);
            }
        }
        let faults = run.facts.shim.faults.iter().take(MAX_FAULTS);
        list.extend(faults.map(|fault| format!("antifreeze itself failed {fault}")));
        html.raw("<section id=\"unseen\"><h2>What could not be seen</h2><ul class=\"plain\">");
        for text in list {
            html.raw("<li>").prose(&text).raw("</li>");
        }
        html.raw("</ul></section>");
    }
}

fn describe_missing(chart: &Chart, run: &Run) -> &'static str {
    let reading = |sample: &Sample| chart.lines.first().map(|line| line.measure.reading(sample));
    match run.summary.last.as_deref().and_then(reading) {
        Some(Reading::Unavailable(why)) => why.describe(),
        Some(Reading::Value(_)) => "seen too briefly",
        None => "no sample was recorded",
    }
}

fn draw_charts(html: &mut Html, run: &Run, timeline: &Timeline, of: &str) {
    let charts = timeline.charts();
    if charts.is_empty() {
        html.leaf("p", "", "No sample was recorded.");
        return;
    }
    let phases = timeline.phases();
    let marks = Marks::from_events(&run.events, &run.facts, &timeline.axis, phases.as_deref());
    html.raw("<div class=\"timeline\"><div class=\"bar\"><div class=\"tools\">");
    html.leaf(
        "p",
        "readout",
        "Move over a chart for values, drag to zoom. Keys: arrows, + and −, Esc.",
    );
    html.raw("<span class=\"buttons\"><button type=\"button\" class=\"in\">Zoom in</button><button type=\"button\" class=\"out\">Zoom out</button><button type=\"button\" class=\"all\">Show all</button></span></div>");
    ruler(html, timeline, of);
    html.raw("</div>");
    for shown in &charts {
        let is_memory = std::ptr::eq(shown.chart, &CHARTS[MEMORY]);
        let rules = if is_memory {
            rules(run, shown, &timeline.axis)
        } else {
            Vec::new()
        };
        draw::chart(html, shown, &rules, &marks, is_memory);
    }
    if let Some(phases) = &phases {
        draw::phases(html, phases, &marks);
    }
    html.data(
        "data",
        &Data::collect(timeline, &charts, phases.as_deref(), &marks),
    );
    html.raw("</div>");
}

/// The axis, which is the cursor's handle too where the script runs.
fn ruler(html: &mut Html, timeline: &Timeline, of: &str) {
    let span = timeline.axis.seconds();
    let label = format!("Cursor through the time of {of}");
    html.open(
        "svg",
        &[
            ("class", "ruler".into()),
            ("role", "img".into()),
            ("width", Value::Percent(1.0)),
            ("height", 36.0.into()),
            ("aria-label", Value::Text(&label)),
        ],
    );
    let begin = timeline.begin;
    for tick in time_ticks(begin, begin + span, AXIS_LABELS) {
        let share = (tick - begin) / span;
        let class = match share {
            0.0..0.02 => "first",
            0.95.. => "last",
            _ => "",
        };
        for (y, text) in [
            (
                14.0,
                units::duration(Duration::try_from_secs_f64(tick).unwrap_or_default()),
            ),
            (30.0, timeline.clock_at(tick - begin)),
        ] {
            html.open(
                "text",
                &[
                    ("class", class.into()),
                    ("x", Value::Percent(share)),
                    ("y", y.into()),
                ],
            );
            html.text(&text).close("text");
        }
    }
    html.close("svg");
}

/// What the run may use, and the line of a leak.
fn rules(run: &Run, shown: &Shown<'_>, axis: &Axis) -> Vec<Rule> {
    let mut rules = Vec::new();
    if run.facts.total > 0 {
        let bound = run.facts.usable_memory();
        let level = bound as f64;
        rules.push(Rule {
            name: format!("may use {}", units::bytes(bound)),
            class: "rule bound",
            from: (0.0, level),
            to: (1.0, level),
        });
    }
    let is_leak = run
        .verdict
        .causes
        .first()
        .is_some_and(|cause| cause.code == Code::MemoryLeak);
    let track = shown
        .lines
        .first()
        .filter(|(line, _)| line.name == "this run");
    if let Some((_, track)) = track.filter(|_| is_leak) {
        rules.extend(leak(run, track, axis));
    }
    rules
}

/// The growth that was found, drawn where it was measured: over the later half of the time
/// before anything was done about it.
fn leak(run: &Run, track: &Track, axis: &Axis) -> Option<Rule> {
    let summary = &run.summary;
    let refused = summary.refusals.first.map(|refusal| refusal.at);
    let until: Option<Stamp> = refused.or(summary.stopped_at);
    let slope = summary.footprint.growth_until(until)?.bytes_per_second;
    let to = until
        .map_or(axis.seconds(), |until| axis.since(until))
        .min(axis.seconds());
    let from = (to / 2.0).max(0.0);
    // The median of what is left of the values, as the slope is the median of all slopes.
    let mut heights: Vec<f64> = Vec::new();
    for (bucket, seen) in track.buckets().iter().enumerate() {
        let at = axis.middle(bucket) * axis.seconds();
        if let Some(seen) = seen.filter(|_| at >= from && at <= to) {
            heights.push(seen.high - slope * at);
        }
    }
    heights.sort_by(f64::total_cmp);
    let height = *heights.get(heights.len() / 2)?;
    let point = |at: f64| (at / axis.seconds(), height + slope * at);
    Some(Rule {
        name: format!("grew {}", units::growth_rate(slope)),
        class: "rule leak",
        from: point(from),
        to: point(to),
    })
}

/// The data with which the page's script shows values and zooms.
#[derive(Serialize)]
struct Data {
    /// Seconds into the run at which it begins, and for which it goes on.
    begin: f64,
    span: f64,
    buckets: usize,
    /// See [`Timeline::clock`].
    clock: Vec<(f64, f64)>,
    steps: &'static [f64],
    charts: Vec<ChartData>,
    marks: Vec<(f64, String)>,
}

#[derive(Serialize)]
struct ChartData {
    unit: &'static str,
    lines: Vec<LineData>,
}

#[derive(Serialize)]
struct LineData {
    values: Vec<Option<f64>>,
    /// The largest of each bucket, where the value is a mean.
    peaks: Option<Vec<Option<f64>>>,
}

impl Data {
    fn collect(
        timeline: &Timeline,
        charts: &[Shown<'_>],
        phases: Option<&[Option<Shares>]>,
        marks: &Marks,
    ) -> Data {
        let line = |measure: Measure, track: &Track| LineData {
            values: track
                .buckets()
                .iter()
                .map(|seen| seen.map(|seen| short(matters(measure, &seen))))
                .collect(),
            peaks: matches!(measure, Measure::Rate(_)).then(|| {
                track
                    .buckets()
                    .iter()
                    .map(|seen| seen.map(|seen| short(seen.high)))
                    .collect()
            }),
        };
        let charts = charts.iter().map(|shown| ChartData {
            unit: shown.chart.unit.word(),
            lines: shown
                .lines
                .iter()
                .map(|(known, track)| line(known.measure, track))
                .collect(),
        });
        let phases = phases.map(|shares| ChartData {
            unit: "share",
            lines: (0..PHASES.len())
                .map(|index| LineData {
                    values: shares
                        .iter()
                        .map(|shares| shares.map(|shares| short(shares[index])))
                        .collect(),
                    peaks: None,
                })
                .collect(),
        });
        Data {
            begin: timeline.begin,
            span: timeline.axis.seconds(),
            buckets: timeline.axis.count,
            clock: timeline.clock.clone(),
            steps: &TIME_STEPS,
            charts: charts.chain(phases).collect(),
            marks: marks.labels(),
        }
    }
}

/// Rounds to the digits that are shown.
fn short(value: f64) -> f64 {
    if value.abs() >= 1e5 {
        let unit = 10f64.powf(value.abs().log10().floor() - 4.0);
        (value / unit).round() * unit
    } else {
        (value * 1e3).round() / 1e3
    }
}
