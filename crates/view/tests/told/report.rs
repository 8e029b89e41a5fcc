//! The report of a run: what stands in it, and that nothing in a record can do harm in it or
//! make it large.

use crate::scenes::{EXIT_1, GB, MB, Scene, at};
use crate::shown::style;
use antifreeze_diagnose::{Run, RunState};
use antifreeze_record::event::{Event, EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{Phase, Pid, Process, ProcessName, Reading};
use insta::assert_snapshot;
use proptest::prelude::*;

fn page(scene: &Scene) -> String {
    let mut facts = scene.facts.clone();
    facts.stacks.text = b"Thread 1 <main>".to_vec();
    let run = Run::diagnose(facts, scene.samples.iter().copied(), scene.events.clone());
    antifreeze_view::report(&run, scene.samples.iter().copied(), &style())
}

fn leak() -> Scene {
    let warned = EventKind::Rung {
        from: Rung::Calm,
        to: Rung::Warn,
        trigger: Trigger::TreeGrowth,
        room: 0,
        growth: 41_000_000,
        forecast_ms: Some(130_000),
        confidence: 90,
    };
    Scene::new()
        .memory(252, |second| 3_600 * MB + second * 41 * MB, |_| 0)
        .trained(|second| second * 4, |_| Phase::Forward)
        .said(concat!(
            r#"{"what":"hello","framework":"torch","version":"2.8","device":"cpu","dtype":"float32","batch":32}"#,
            "\n",
            r#"{"what":"holders","step":900,"resident":12000000000,"names":[{"steps":100,"seconds":10,"more":400000000,"name":"history","file":"/home/ada/net/train.py","bytes":9000000000,"length":900,"grown":400000000,"lines":[12]}]}"#,
        ))
        .printed("step 1\nMemoryError: <no> room & no hope\n")
        .event(120, warned)
        .refused(251, 41_943_040, 13_890 * MB)
        .ended(252, EXIT_1)
}

/// The page without its pictures, styles and scripts: a line for each element that has text.
fn outline(page: &str) -> String {
    let mut lines = Vec::new();
    let mut hidden = 0;
    for (tag, text) in tags(page) {
        let name = tag
            .trim_start_matches('/')
            .split(' ')
            .next()
            .unwrap_or_default();
        if ["svg", "style", "script"].contains(&name) {
            hidden += if tag.starts_with('/') { -1 } else { 1 };
        }
        let text = text.trim();
        if hidden > 0 || tag.starts_with("!doctype") {
            continue;
        }
        if name == "svg" {
            lines.push(format!("[picture] {text}"));
        } else if !text.is_empty() || tag.starts_with("section") {
            lines.push(format!("<{tag}> {text}"));
        }
    }
    lines.join("\n")
}

/// Every tag with the text behind it. No `<` of ours stands in a text or a value, and the
/// style and the script have none that begins a tag.
fn tags(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split('<')
        .skip(1)
        .filter_map(|part| part.split_once('>'))
}

/// Names of all elements and attributes in the page, outside of our own style and script.
fn vocabulary(page: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (before, rest) = page.split_once("<style>").unwrap_or_default();
    let (_, rest) = rest.split_once("</style>").unwrap_or_default();
    let (middle, _) = rest.rsplit_once("<script>").unwrap_or_default();
    for part in [before, middle] {
        for (tag, _) in tags(part) {
            // Between the quotes stand values, and outside of them names.
            for piece in tag.split('"').step_by(2) {
                let names = piece.split_whitespace();
                words.extend(names.map(|name| name.trim_matches(['=', '/']).to_owned()));
            }
        }
    }
    words.sort();
    words.dedup();
    words
}

pub fn assert_harmless(page: &str) {
    const KNOWN: &str = "!doctype a article aria-hidden aria-label b body button caption charset class code content d data-copy dd desc div dl dt \
        figcaption figure footer g h1 h2 h3 h4 head header height href html http-equiv id lang li main meta name p path pre \
        preserveAspectRatio rect role scope script section span svg tabindex table tbody td text th thead title tr type ul \
        viewBox width x y";
    for word in vocabulary(page) {
        let is_known = word.is_empty() || KNOWN.split_whitespace().any(|known| known == word);
        assert!(is_known, "{word}");
    }
    for ours in ["<style>", "</style>", "<script>"] {
        assert_eq!(page.matches(ours).count(), 1, "{ours}");
    }
    let shown = |character: char| character == '\n' || !character.is_control();
    assert!(page.chars().all(shown));
    assert!(page.len() < 2_000_000, "{}", page.len());
}

#[test]
fn a_leak_is_told_from_the_verdict_to_the_last_output() {
    let page = page(&leak());
    assert_harmless(&page);
    assert_snapshot!(outline(&page));
}

#[test]
fn the_leaks_line_the_bound_and_the_marks_are_drawn() {
    let page = page(&leak());
    for part in [
        "class=\"rule leak\"",
        "class=\"rule bound\"",
        "class=\"mark acted\"",
        "<title>memory grows 41 MB a second; full in about 2 min 10 s",
        "grew 41 MB a second",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let healthy = Scene::new().steady(60, GB).ended(60, 0);
    assert!(!self::page(&healthy).contains("class=\"rule leak\""));
}

#[test]
fn a_graphics_card_is_drawn_where_there_is_one() {
    let without = Scene::new().steady(60, GB);
    assert!(!page(&without).contains("<h3>GPU</h3>"));
    let scene = Scene::new().steady(60, GB).card(|second, cards| {
        cards.hottest_millidegrees = Reading::Value(71_000);
        cards.power_microwatts = Reading::Value((300 + second) * 1_000_000);
    });
    let page = page(&scene.ended(60, 0));
    assert_harmless(&page);
    for part in [
        "<h3>GPU memory</h3>",
        "<h3>GPU</h3>",
        "<h3>GPU power</h3>",
        "highest 359 W",
        "highest 450 W",
        "highest 97 %",
        "highest 71 °C",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_page_forbids_all_but_itself() {
    let page = page(&leak());
    let (_, policy) = page
        .split_once("Content-Security-Policy\" content=\"")
        .unwrap();
    let (policy, _) = policy.split_once('"').unwrap();
    assert!(
        policy.contains("default-src &#39;none&#39;") && !policy.contains("unsafe"),
        "{policy}"
    );
    // The name of SVG is no address that anybody asks for.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http://") && !addresses.contains("https://"));
}

#[test]
fn a_run_without_a_single_look_has_a_report() {
    let mut scene = Scene::new();
    scene.facts.state = RunState::Rebooted;
    let page = page(&scene);
    assert_harmless(&page);
    assert!(page.contains("No sample was recorded."));
    assert!(page.contains("Temperature: no sample was recorded"));
}

#[test]
fn what_could_not_be_seen_is_said() {
    let page = page(&leak());
    assert!(
        page.contains("<li>Waiting: not sampled yet</li>"),
        "{}",
        outline(&page)
    );
    assert!(!page.contains("<h3>Waiting</h3>"));
}

#[test]
fn a_record_full_of_everything_stays_small() {
    let long = "<&\"'>".repeat(2_000);
    let json = serde_json::to_string(&long).unwrap();
    let mut scene = leak();
    scene.facts.run = long.clone();
    scene.facts.command = vec![long.clone().into(); 3];
    scene.facts.folder = long.clone().into();
    let holder = format!(
        r#"{{"name":{json},"file":{json},"bytes":9000000000,"length":9,"grown":900000000,"steps":9,"seconds":1,"lines":[1]}}"#
    );
    let holders = vec![holder; 40].join(",");
    let mut scene = scene.printed(&format!("{long}\n").repeat(30)).said(&format!(
        "{{\"what\":\"holders\",\"resident\":9,\"names\":[{holders}]}}\n{{\"what\":\"not-saved\",\"why\":{json}}}\n"
    ));
    let file = ShortText::new(&[b'<'; 200]);
    for index in 0..20_000u64 {
        let kind = match index % 3 {
            0 => EventKind::CheckpointMissed { millis: 0 },
            1 => EventKind::CheckpointSaved {
                millis: 1,
                bytes: 1,
                file,
            },
            _ => EventKind::Paused {
                who: ProcessName::new(&[b'<'; 15]),
                pid: Pid(1),
                grew: 1,
            },
        };
        scene.events.push(Event {
            at: at(index * 5),
            kind,
        });
    }
    // A day in which every line of every chart is never the same.
    let model = scene.samples[0];
    scene.samples = (0..86_400u64)
        .map(|second| {
            let noise = second.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 34;
            let mut sample = model;
            sample.at = at(second);
            let value = |more: u64| Reading::Value(second * 1_000_003 + noise * more);
            sample.tree.footprint = Reading::Value(noise * 11);
            sample.memory.available = Reading::Value(noise * 13);
            sample.memory.swap_total = Reading::Value(GB);
            sample.memory.swap_free = Reading::Value(noise % GB);
            sample.cgroup.limit_available = Reading::Value(noise * 7);
            for counter in [
                &mut sample.pressure.memory_some_us,
                &mut sample.pressure.memory_full_us,
                &mut sample.pressure.cpu_some_us,
                &mut sample.pressure.io_some_us,
            ] {
                *counter = Reading::Value(second * 500_000 + noise % 400_000);
            }
            sample.disk.read_bytes = value(0);
            sample.disk.written_bytes = value(0);
            sample.cpu.user = Reading::Value(second * 50 + noise % 40);
            sample.cpu.idle = Reading::Value(second * 50);
            sample.tree.cpu = Reading::Value(second * 50 + noise % 40);
            sample.thermal.hottest_millidegrees = Reading::Value(noise % 100_000);
            sample.tree.steps = Reading::Value(second * 7 + noise % 5);
            sample.tree.phase = Reading::Value(1 + noise % 6);
            sample
        })
        .collect();
    let page = page(&scene);
    assert_harmless(&page);
    assert!(
        page.len() > 1_000_000,
        "{}: the test no longer tries hard",
        page.len()
    );
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("<script>".to_owned()),
        Just("</script>".to_owned()),
        Just("<!--".to_owned()),
        Just("]]>".to_owned()),
        Just("\" onload=\"x()".to_owned()),
        Just("' onerror='x()".to_owned()),
        Just("<img src=x onerror=x()>".to_owned()),
        Just("&lt;script&gt;".to_owned()),
        Just("`".to_owned()),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_name_output_or_command_becomes_markup(words in prop::collection::vec(hostile(), 12)) {
        let json = |index: usize| serde_json::to_string(&words[index]).unwrap();
        let mut scene = leak()
            .printed(&format!("{}\nTraceback (most recent call last):\n  File \"{}\", line 1, in f\n{}: {}\n", words[0], words[1], words[2], words[3]))
            .said(&format!(
                "{{\"what\":\"hello\",\"framework\":{},\"version\":{},\"device\":{}}}\n{{\"what\":\"holders\",\"resident\":9,\"names\":[{{\"name\":{},\"file\":{},\"bytes\":9000000000,\"length\":9,\"grown\":900000000,\"steps\":9,\"seconds\":1,\"lines\":[1]}}]}}\n{{\"what\":\"saved\",\"path\":{},\"step\":1}}\n{{\"what\":\"fault\",\"doing\":{},\"error\":\"x\"}}\n",
                json(4), json(5), json(6), json(7), json(8), json(9), json(10)
            ));
        scene.facts.run = words[11].clone();
        scene.facts.folder = words[10].clone().into();
        scene.facts.command = words.iter().map(Into::into).collect();
        for (sample, word) in scene.samples.iter_mut().zip(words.iter().cycle()) {
            sample.processes.clear();
            let name = ProcessName::new(word.as_bytes());
            sample.processes.push(Process { name, rss_anon: Reading::Value(GB), ..Process::default() });
        }
        for word in &words {
            let name = ProcessName::new(word.as_bytes());
            let file = ShortText::new(word.as_bytes());
            scene.events.push(Event { at: at(9), kind: EventKind::Paused { who: name, pid: Pid(1), grew: 1 } });
            scene.events.push(Event { at: at(9), kind: EventKind::CheckpointSaved { millis: 1, bytes: 1, file } });
        }
        assert_harmless(&page(&scene));
    }
}
