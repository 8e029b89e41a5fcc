//! The table of events, with the same content as the marks in the charts.

use super::html::{Html, Value};
use crate::runs::rung_times;
use crate::sentence::{self, Detail, rung_name};
use antifreeze_diagnose::Run;
use antifreeze_diagnose::time::{between, timestamp};
use antifreeze_record::event::Event;
use antifreeze_text::layout::cut;
use antifreeze_text::{TermStyle, units};
use std::time::Duration;

/// At most this many events are listed, the last ones.
const MAX_ROWS: usize = 300;
const MAX_COLUMNS: usize = 600;
/// Times in longer runs are shown with their date.
const SHOW_DATE_AFTER: Duration = Duration::from_secs(20 * 60 * 60);

pub(crate) fn section(html: &mut Html, run: &Run, style: &TermStyle) {
    let told = |event: &'_ Event| Some((*event, sentence::sentence_with_level(event, &run.facts)?));
    let events: Vec<_> = run
        .events
        .iter()
        .rev()
        .filter_map(told)
        .take(MAX_ROWS)
        .collect();
    if events.is_empty() {
        return;
    }
    let long = run.summary.duration() > SHOW_DATE_AFTER;
    html.raw("<section id=\"events\"><h2>What happened</h2>");
    if run.events.len() > events.len() && events.len() == MAX_ROWS {
        html.leaf(
            "p",
            "",
            &format!("The last {MAX_ROWS} of {} events.", run.events.len()),
        );
    }
    html.raw("<table><caption>Every event and change of the guard's rung, oldest first</caption>");
    html.raw("<thead><tr><th scope=\"col\">Time</th><th scope=\"col\">Into the run</th><th scope=\"col\">What</th></tr></thead><tbody>");
    for (event, (level, text)) in events.into_iter().rev() {
        let class = match level {
            Detail::Quiet => "acted",
            Detail::Normal => "told",
            Detail::Verbose => "noted",
        };
        html.open("tr", &[("class", Value::Ours(class))]);
        let time = if long {
            style.day_and_clock(timestamp(event.at))
        } else {
            style.clock(timestamp(event.at))
        };
        html.leaf("td", "time", &time);
        let into = between(run.summary.begin(), event.at);
        html.leaf("td", "time", &units::duration(into));
        html.raw("<td>").prose(&cut(&text, MAX_COLUMNS));
        html.raw("</td></tr>");
    }
    html.raw("</tbody></table>");
    rungs(html, run);
    html.raw("</section>");
}

/// Adds the time on each rung of the ladder above the first.
fn rungs(html: &mut Html, run: &Run) {
    let stood = rung_times(&run.facts, &run.summary);
    if stood.is_empty() {
        return;
    }
    html.raw("<h3>Time on each rung of the ladder</h3><dl class=\"facts\">");
    for (rung, time) in stood {
        html.raw("<div>").leaf("dt", "", rung_name(rung));
        html.leaf("dd", "", &units::duration(time)).raw("</div>");
    }
    html.raw("</dl>");
}
