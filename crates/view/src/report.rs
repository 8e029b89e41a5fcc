//! The report of a run: one HTML file that needs nothing else, neither a network nor a
//! server. The verdict first, in plain words; then the run over time, what happened, who
//! held the memory, and what was printed last. It is read on a screen, on a phone, on paper,
//! or aloud; its script only adds a cursor, a zoom and buttons that copy.
//!
//! Everything from a record is a stranger's: it is escaped where it is written ([`html`]),
//! and the page forbids all scripts but our own ([`policy`]). However long the run was, the
//! page stays below 2 MB and is made in constant memory.

mod charts;
mod draw;
mod happened;
mod html;
mod inside;
mod marks;
mod policy;
mod reduce;
mod scale;
mod timeline;
mod times;
mod why;

use antifreeze_diagnose::Run;
use antifreeze_diagnose::time::timestamp;
use antifreeze_diagnose::verdict::EndKind;
use antifreeze_sense::Sample;
use antifreeze_text::{TermStyle, units};
use html::{Html, Value};

const STYLE: &str = include_str!("report/report.css");
const SCRIPT: &str = include_str!("report/report.js");

/// Renders the page. The samples are read once, oldest first.
pub fn report(run: &Run, samples: impl IntoIterator<Item = Sample>, style: &TermStyle) -> String {
    let times = times::Times::gather(run, samples, style);
    let mut html = Html::default();
    let title = headline(run);
    head(&mut html, &format!("{title} · antifreeze"));
    html.raw("<body><a class=\"skip\" href=\"#timeline\">To the timeline</a>");
    why::header(&mut html, run, &title, style);
    html.raw("<main>");
    why::section(&mut html, run, style);
    times.section(&mut html, run);
    happened::section(&mut html, run, style);
    inside::memory(&mut html, run, style);
    inside::training(&mut html, run);
    inside::output(&mut html, &run.facts.last_output);
    inside::stacks(&mut html, &run.facts.stacks.text);
    inside::machine(&mut html, run, style);
    times.unseen(&mut html, run);
    html.raw("</main>");
    footer(&mut html, run, style);
    html.raw("<script>")
        .raw(SCRIPT)
        .raw("</script></body></html>\n");
    html.into_page()
}

/// How it ended, as a sentence without its full stop.
fn headline(run: &Run) -> String {
    let time = units::duration(run.summary.duration());
    match run.verdict.end.kind {
        EndKind::Finished => format!("Finished in {time}"),
        EndKind::Running => format!("Still running, for {time}"),
        EndKind::Detached => format!("Detached after {time}; the process lived on"),
        _ => format!("Ended {}", run.verdict.end.detail),
    }
}

fn head(html: &mut Html, title: &str) {
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    let policy = policy::policy(STYLE, SCRIPT);
    html.open(
        "meta",
        &[
            ("http-equiv", "Content-Security-Policy".into()),
            ("content", Value::Text(&policy)),
        ],
    );
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">");
    html.raw("<meta name=\"referrer\" content=\"no-referrer\">");
    html.leaf("title", "", title);
    html.raw("<style>").raw(STYLE).raw("</style></head>");
}

fn footer(html: &mut Html, run: &Run, style: &TermStyle) {
    html.raw("<footer><p>Made by antifreeze ");
    html.raw(env!("CARGO_PKG_VERSION"))
        .raw(" from the record in ");
    html.leaf("code", "", &style.path(&run.facts.record));
    let zone = style.zone_name(timestamp(run.summary.begin()));
    html.text(&format!(". Times are those of {zone}."))
        .raw("</p></footer>");
}
