//! The evidence besides the charts: what held the memory, what was trained, the last output, and the machine.

use super::html::Html;
use crate::runs::shared_note;
use antifreeze_diagnose::Run;
use antifreeze_diagnose::shim::Holder;
use antifreeze_diagnose::time::{between, timestamp};
use antifreeze_diagnose::verdict::phrases::process;
use antifreeze_diagnose::verdict::place::{user_file, user_place};
use antifreeze_text::{TermStyle, sanitize, units};

/// At most this many names are listed, the largest ones.
const MAX_HOLDERS: usize = 20;
/// At most this many lines of the last output are shown.
const MAX_OUTPUT_LINES: usize = 200;

pub(crate) fn memory(html: &mut Html, run: &Run, style: &TermStyle) {
    let peak = run
        .summary
        .peak
        .as_ref()
        .filter(|peak| !peak.largest.is_empty());
    let holders = run.facts.shim.holders.as_ref();
    let holders = holders.filter(|holders| !holders.names.is_empty());
    if peak.is_none() && holders.is_none() {
        return;
    }
    html.raw("<section id=\"memory\"><h2>What held the memory</h2>");
    if let Some(holders) = holders {
        html.raw("<table><caption>Names in the script, as last measured; the process held ");
        let in_all = match holders.held {
            0 => holders.resident,
            held => held,
        };
        html.text(&units::bytes(in_all)).raw(" in all</caption>");
        html.raw("<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Where</th><th scope=\"col\">Holds</th><th scope=\"col\">Grew</th></tr></thead><tbody>");
        let mut names: Vec<&Holder> = holders.names.iter().collect();
        names.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
        names.truncate(MAX_HOLDERS);
        for holder in &names {
            html.raw("<tr><td>").leaf("code", "", &holder.name);
            html.raw("</td><td>").leaf("code", "", &place(holder, run));
            html.raw("</td><td>").text(&held(holder));
            if let Some(outer) = part_of(holder, &names) {
                html.raw(", part of ").leaf("code", "", &outer.name);
            }
            html.raw("</td>").leaf("td", "", &grew(holder)).raw("</tr>");
        }
        html.raw("</tbody></table>");
    }
    if let Some(peak) = peak {
        let into = units::duration(between(run.summary.begin(), peak.at));
        let when = format!(
            "The largest processes at the peak, {} ({into} in)",
            style.clock(timestamp(peak.at))
        );
        html.raw("<table>").leaf("caption", "", &when);
        html.raw("<thead><tr><th scope=\"col\">Process</th><th scope=\"col\">Holds</th></tr></thead><tbody>");
        for (name, pid, held) in &peak.largest {
            html.raw("<tr>").leaf("td", "", &process(*name, *pid));
            html.leaf("td", "", &units::bytes(*held)).raw("</tr>");
        }
        html.raw("</tbody></table>");
        if peak.shared() > 0 {
            let note = format!("Processes share memory: {}.", shared_note(peak));
            html.leaf("p", "", &note);
        }
    }
    html.raw("</section>");
}

/// The listed name that contains this one, so that the two are not added up.
fn part_of<'a>(inner: &Holder, names: &[&'a Holder]) -> Option<&'a Holder> {
    let holds = |outer: &&&Holder| {
        let rest = inner.name.strip_prefix(outer.name.as_str());
        rest.is_some_and(|rest| rest.starts_with(['[', '.']))
    };
    names.iter().find(holds).copied()
}

fn place(holder: &Holder, run: &Run) -> String {
    let file = holder.file.as_bytes();
    match holder.lines.first() {
        Some(line) => user_place(file, *line, &run.facts),
        None => user_file(file, &run.facts),
    }
}

fn held(holder: &Holder) -> String {
    let held = units::bytes(holder.bytes);
    match holder.length {
        0 => held,
        length => format!("{held} in {}", units::count(length, "element")),
    }
}

fn grew(holder: &Holder) -> String {
    if holder.grown <= 0 {
        return "no".into();
    }
    let grown = units::bytes(holder.grown.unsigned_abs());
    match holder.steps {
        0 => format!("{grown} in {:.0} s", holder.seconds),
        steps => format!("{grown} in {}", units::count(steps, "step")),
    }
}

pub(crate) fn training(html: &mut Html, run: &Run) {
    let told = &run.facts.shim;
    let steps = &run.verdict.steps;
    let mut list: Vec<(&'static str, String)> = Vec::new();
    if let Some(hello) = &told.hello {
        list.push((
            "framework",
            format!("{} {}", hello.framework, hello.version),
        ));
        let about = [hello.device.clone(), hello.dtype.clone()];
        let about: Vec<String> = about.into_iter().flatten().collect();
        list.push(("on", about.join(", ")));
        let batch = hello.batch.map(|items| units::count(items, "item"));
        list.push(("a batch", batch.unwrap_or_default()));
    }
    list.push(("imported", told.other_frameworks().join(", ")));
    if let Some(model) = &told.model {
        let size = units::bytes(model.bytes);
        list.push((
            "model",
            format!("{} parameters, {size}", thousands(model.parameters)),
        ));
        list.push(("optimizer", model.optimizer.clone()));
    }
    if let Some(count) = steps.count {
        list.push(("steps", thousands(count)));
    }
    if let Some(pace) = steps.per_second {
        list.push(("steps a second", format!("{pace:.1}")));
    }
    if let Some(share) = steps.input_bound {
        list.push((
            "waiting for data",
            format!("{} of the time", units::percent(share)),
        ));
    }
    if let Some(step) = told.resumes {
        list.push(("resumed from", format!("step {step}")));
    }
    facts(html, "training", "Training", list);
}

pub(crate) fn machine(html: &mut Html, run: &Run, style: &TermStyle) {
    let known = &run.facts;
    let mut list = vec![
        ("run", known.run.clone()),
        ("folder", style.path(&known.folder)),
    ];
    if known.total > 0 {
        list.push(("memory", units::bytes(known.total)));
        list.push(("kept for you", units::bytes(known.reserve)));
        list.push(("the run may use", units::bytes(known.usable_memory())));
    }
    list.extend(known.budget.map(|budget| ("budget", units::bytes(budget))));
    list.extend(
        known
            .container
            .map(|limit| ("container limit", units::bytes(limit))),
    );
    if let Some(last) = run.summary.last.as_deref() {
        if last.cpu.core_count > 0 {
            list.push(("cores", last.cpu.core_count.to_string()));
        }
        let swap = last.memory.swap_total.value();
        list.extend(swap.map(|swap| ("swap", units::bytes(swap))));
        let space = last
            .disk
            .space
            .free
            .value()
            .zip(last.disk.space.total.value());
        list.extend(space.map(|(free, total)| ("free disk", units::bytes_of(free, total))));
        let shared = last.shm.free.value().zip(last.shm.total.value());
        list.extend(shared.map(|(free, total)| ("free /dev/shm", units::bytes_of(free, total))));
        if last.disk.network.value() == Some(1) {
            list.push(("folder is on", "a network mount".into()));
        }
    }
    facts(html, "machine", "The machine", list);
}

fn facts(html: &mut Html, id: &'static str, title: &str, list: Vec<(&'static str, String)>) {
    let known: Vec<_> = list
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect();
    if known.is_empty() {
        return;
    }
    html.open("section", &[("id", id.into())])
        .leaf("h2", "", title);
    html.raw("<dl class=\"facts\">");
    for (name, value) in known {
        html.raw("<div>")
            .leaf("dt", "", name)
            .leaf("dd", "", &value)
            .raw("</div>");
    }
    html.raw("</dl></section>");
}

pub(crate) fn output(html: &mut Html, output: &[u8]) {
    printed(html, "output", "Last output", output);
}

pub(crate) fn stacks(html: &mut Html, stacks: &[u8]) {
    printed(html, "stacks", "Thread stacks", stacks);
}

/// Adds the end of some output, as it appeared on the terminal.
fn printed(html: &mut Html, id: &'static str, title: &str, bytes: &[u8]) {
    let bytes = bytes.trim_ascii_end();
    if bytes.is_empty() {
        return;
    }
    html.open("section", &[("id", id.into())])
        .leaf("h2", "", title);
    // What is wider than the screen is scrolled, by keyboard too.
    html.open(
        "pre",
        &[("class", "output".into()), ("tabindex", "0".into())],
    );
    let mut lines: Vec<String> = sanitize::visible_lines(bytes)
        .rev()
        .take(MAX_OUTPUT_LINES)
        .collect();
    lines.reverse();
    for line in lines {
        html.text(&line).raw("\n");
    }
    html.raw("</pre></section>");
}

/// Formats a number with thousands separators: "1,200,000".
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        for (number, said) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), said);
        }
    }
}
