//! The verdict in the report: how the run ended, why, how sure that is, what was ruled out, and what to do.

use super::html::{Html, Value};
use super::inside::thousands;
use crate::closing::{
    add_code, extra_sentences, is_bad, last_save, peak, resume_command, sureness, unexplained,
};
use antifreeze_diagnose::Run;
use antifreeze_diagnose::time::timestamp;
use antifreeze_diagnose::verdict::{Cause, EndKind};
use antifreeze_text::{TermStyle, units};

/// At most this many items are listed. Only a verdict from elsewhere can have more.
const MAX_ITEMS: usize = 12;

pub(crate) fn header(html: &mut Html, run: &Run, title: &str, style: &TermStyle) {
    let Run {
        facts,
        summary,
        verdict,
        ..
    } = run;
    html.raw("<header><p class=\"brand\"><b>antifreeze</b> · run ");
    html.text(&verdict.run).raw("</p>").leaf("h1", "", title);
    let besides = extra_sentences(verdict, summary, style);
    if !besides.is_empty() {
        html.leaf("p", "lead", &format!("{}.", besides.join(". ")));
    }
    html.raw("<dl class=\"facts\">");
    fact(html, "command", |html| {
        html.leaf("code", "", &facts.command_line())
    });
    fact(html, "started", |html| {
        html.text(&style.date(timestamp(summary.begin())))
    });
    fact(html, "took", |html| {
        html.text(&units::duration(summary.duration()))
    });
    if let Some((peak, _)) = peak(facts, summary) {
        fact(html, "peak memory", |html| html.text(&peak));
    }
    if let Some(count) = verdict.steps.count {
        fact(html, "steps", |html| html.text(&thousands(count)));
    }
    html.raw("</dl></header>");
}

fn fact<'a>(
    html: &'a mut Html,
    name: &str,
    value: impl FnOnce(&mut Html) -> &mut Html,
) -> &'a mut Html {
    html.raw("<div>").leaf("dt", "", name).raw("<dd>");
    value(html);
    html.raw("</dd></div>")
}

pub(crate) fn section(html: &mut Html, run: &Run, style: &TermStyle) {
    let verdict = &run.verdict;
    if !verdict.causes.is_empty() || is_bad(verdict) {
        let ended = !matches!(
            verdict.end.kind,
            EndKind::Finished | EndKind::Running | EndKind::Detached
        );
        let title = if ended { "Why" } else { "What was found" };
        html.raw("<section id=\"why\">").leaf("h2", "", title);
        if verdict.causes.is_empty() {
            html.leaf(
                "p",
                "",
                &format!("Why it ended is {}.", unexplained(verdict)),
            );
        }
        for (place, cause) in verdict.causes.iter().take(MAX_ITEMS).enumerate() {
            self::cause(html, cause, place);
        }
        html.raw("</section>");
    }
    next(html, run, style);
    if !verdict.ruled_out.is_empty() {
        html.raw("<section id=\"ruled-out\"><h2>Ruled out</h2><ul class=\"plain\">");
        for ruled in verdict.ruled_out.iter().take(2 * MAX_ITEMS) {
            html.raw("<li>").leaf("b", "", ruled.code.title()).raw(": ");
            html.prose(&ruled.why).raw("</li>");
        }
        html.raw("</ul></section>");
    }
}

fn cause(html: &mut Html, cause: &Cause, place: usize) {
    html.raw("<article class=\"cause\"><h3>");
    html.text(&capital(cause.code.title()));
    let sure = format!(
        "{}, {}",
        sureness(cause.confidence),
        units::percent(cause.confidence)
    );
    html.raw(" ").leaf("span", "sure", &sure).raw("</h3>");
    // The same for the eye; the words above are what counts.
    html.raw("<svg class=\"bar\" width=\"100%\" height=\"4\" aria-hidden=\"true\"><rect class=\"whole\" width=\"100%\" height=\"4\"></rect>");
    html.open(
        "rect",
        &[
            ("class", "part".into()),
            ("width", Value::Percent(cause.confidence.clamp(0.0, 1.0))),
            ("height", 4.0.into()),
        ],
    );
    html.raw("</rect></svg>");
    html.raw("<p class=\"summary\">")
        .prose(&sentence(&cause.summary))
        .raw("</p>");
    if let Some(location) = &cause.location {
        html.raw("<p>At ");
        html.leaf("code", "", &location.place());
        if let Some(name) = &location.name {
            html.raw(", ").leaf("code", "", name);
        }
        html.raw("</p>");
    }
    // Where a cause has but one sign, the summary has told it.
    let told = |text: &str| text == cause.summary;
    let evidence: Vec<_> = cause
        .evidence
        .iter()
        .filter(|sign| !told(&sign.text))
        .collect();
    if !evidence.is_empty() {
        html.raw("<h4>Evidence</h4><ul class=\"plain\">");
        for sign in evidence.into_iter().take(MAX_ITEMS) {
            html.raw("<li>").prose(&sentence(&sign.text)).raw("</li>");
        }
        html.raw("</ul>");
    }
    if !cause.remedies.is_empty() {
        html.raw("<h4>What to do</h4>");
        let mut docs: Vec<&String> = Vec::new();
        for (index, remedy) in cause.remedies.iter().take(MAX_ITEMS).enumerate() {
            html.raw("<p>").prose(&sentence(&remedy.text)).raw("</p>");
            if let Some(code) = &remedy.code {
                paste(html, code, &format!("remedy-{place}-{index}"));
            }
            docs.extend(remedy.docs.as_ref().filter(|page| !docs.contains(page)));
        }
        for page in docs {
            html.raw("<p class=\"docs\">More in the guide: ");
            html.leaf("code", "", page).raw("</p>");
        }
    }
    html.raw("</article>");
}

/// Adds a line to copy, with a copy button.
fn paste(html: &mut Html, code: &str, id: &str) {
    html.raw("<div class=\"paste\">");
    html.open("pre", &[("id", Value::Text(id)), ("tabindex", "0".into())]);
    html.code(code).raw("</pre>");
    html.open(
        "button",
        &[
            ("type", "button".into()),
            ("class", "copy".into()),
            ("data-copy", Value::Text(id)),
        ],
    );
    html.raw("Copy</button></div>");
}

/// Adds the last checkpoint and the command that continues from it.
fn next(html: &mut Html, run: &Run, style: &TermStyle) {
    let ended = !matches!(
        run.verdict.end.kind,
        EndKind::Finished | EndKind::Running | EndKind::Detached
    );
    let save = last_save(&run.facts, &run.summary, style);
    if !ended && save.is_none() {
        return;
    }
    html.raw("<section id=\"next\"><h2>Go on</h2>");
    match save {
        Some(save) => {
            html.leaf("p", "", &sentence(&format!("last save: {save}")));
        }
        None => {
            let why = run.facts.shim.not_saved.as_ref();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            html.leaf("p", "", &format!("No checkpoint was seen{why}."));
        }
    }
    // Without a checkpoint that the script can load, the command would begin at step 0.
    if ended && let Some(continuation) = run.facts.continuation() {
        if let Some(code) = &continuation.missing_code {
            html.raw("<p>").prose(&capital(&add_code(code))).raw("</p>");
            paste(html, &code.code, "next-code");
        }
        paste(html, &resume_command(&run.facts), "next-command");
    }
    html.raw("</section>");
}

/// Capitalizes the text, and adds a full stop if it has no other end.
fn sentence(text: &str) -> String {
    let stop = if text.ends_with(['.', ':', '?']) {
        ""
    } else {
        "."
    };
    format!("{}{stop}", capital(text))
}

/// Capitalizes the text, unless its first word is a place in a file.
fn capital(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_word = |word: &str| {
        word.chars()
            .all(|letter| letter.is_alphabetic() || "'-’".contains(letter))
    };
    if !is_word(word.trim_end_matches([',', '.', ':', ';', '?', '!', ')'])) {
        return text.to_owned();
    }
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_in_passing_becomes_a_sentence() {
        assert_eq!(
            sentence("free some space; the largest folders:"),
            "Free some space; the largest folders:"
        );
        assert_eq!(sentence("`kept` holds 3 GB"), "`kept` holds 3 GB.");
        assert_eq!(sentence(""), ".");
        assert_eq!(sentence("it grew, and then"), "It grew, and then.");
    }

    #[test]
    fn a_sentence_that_begins_with_a_file_keeps_its_name() {
        for text in [
            "l3.py:15: keep the value",
            "net/l3.py:15 rule: it grows",
            "t.py grows",
        ] {
            assert_eq!(sentence(text), format!("{text}."));
        }
    }
}
