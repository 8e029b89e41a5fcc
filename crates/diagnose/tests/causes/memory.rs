//! Where the memory went.

use crate::scenes::{EXIT_1, GB, MB, Scene};
use crate::{blames, is_healthy, rules_out, spares};
use antifreeze_diagnose::Code;
use antifreeze_record::event::{EventKind, Rung, Trigger};
use antifreeze_sense::{Pid, Process, ProcessName, Reading, Reason, Sample};

const KILLED: u32 = 9;
const BUS_ERROR: u32 = 7;

fn filled(grows: impl Fn(u64) -> u64) -> Scene {
    Scene::new()
        .memory(120, grows, |_| 0)
        .refused(119, 40 * MB, 12 * GB)
        .ended(120, EXIT_1)
}

#[test]
fn a_leak_from_outside_is_likely_and_a_dataset_possible() {
    let scene = filled(|second| 2 * GB + second * 90 * MB);
    blames(&scene, Code::MemoryLeak, 0.6);
    let causes = scene.verdict().causes;
    assert!(causes[0].confidence < 0.8, "{causes:#?}");
    assert_eq!(causes[1].code, Code::DatasetInMemory);
}

#[test]
fn a_leak_in_a_process_that_was_attached_to_is_possible_without_a_refusal() {
    let at_wall = EventKind::Rung {
        from: Rung::Warn,
        to: Rung::Stop,
        trigger: Trigger::BudgetExceeded,
        room: 0,
        growth: 90 * MB as i64,
        forecast_ms: None,
        confidence: 0,
    };
    let mut scene = Scene::new()
        .memory(120, |second| GB + second * 90 * MB, |_| 0)
        .event(119, at_wall)
        .ended(120, EXIT_1);
    scene.facts.attached = true;
    scene.facts.budget = Some(GB + 121 * 90 * MB);
    blames(&scene, Code::MemoryLeak, 0.5);
}

#[test]
fn a_plateau_after_a_warm_up_is_no_leak() {
    let scene = filled(|second| (second * GB).min(9 * GB));
    rules_out(&scene, Code::MemoryLeak);
}

#[test]
fn a_cache_that_levels_off_in_a_run_that_ends_well_is_nothing() {
    let levels = |second: u64| 8 * GB - 6 * GB / (1 + second / 8);
    is_healthy(&Scene::new().memory(200, levels, |_| 0).ended(200, 0));
}

#[test]
fn what_was_read_from_files_before_any_step_is_a_dataset() {
    let reading = |read: u64| {
        let mut scene = filled(|second| GB + second * 90 * MB);
        for (second, sample) in (0..).zip(&mut scene.samples) {
            sample.tree.read_asked = Reading::Value(second * read);
        }
        scene
    };
    blames(&reading(90 * MB), Code::DatasetInMemory, 0.65);
    // Made, not read.
    blames(&reading(MB), Code::MemoryLeak, 0.6);
}

#[test]
fn one_request_that_is_large_beside_what_is_held_is_a_batch() {
    let scene = Scene::new()
        .steady(60, 2 * GB)
        .refused(59, 14 * GB, 2 * GB)
        .printed("Traceback (most recent call last):\n  File \"t.py\", line 3, in f\nMemoryError\n")
        .ended(60, EXIT_1);
    blames(&scene, Code::BatchTooLarge, 0.8);
    let small = Scene::new()
        .steady(60, 9 * GB)
        .refused(59, 40 * MB, 9 * GB)
        .ended(60, EXIT_1);
    spares(&small, Code::BatchTooLarge);
}

#[test]
fn a_refusal_in_front_of_free_memory_is_explained_by_what_was_mapped() {
    let mut scene = Scene::new()
        .steady(60, 2 * GB)
        .refused(59, GB, 2 * GB)
        .ended(60, EXIT_1);
    let says = |scene: &Scene| {
        let causes = scene.verdict().causes;
        let evidence = causes[0].evidence.iter();
        evidence
            .filter(|evidence| {
                evidence
                    .text
                    .contains("3 GB that it mapped and has not used yet")
            })
            .count()
    };
    assert_eq!(says(&scene), 0);
    for sample in &mut scene.samples {
        sample.processes.clear();
        sample.processes.push(Process {
            vm_data: Reading::Value(5 * GB),
            rss_anon: Reading::Value(2 * GB),
            ..Process::default()
        });
    }
    assert_eq!(says(&scene), 1);
}

#[test]
fn the_batch_that_would_have_fitted_is_named() {
    let hello =
        r#"{"what":"hello","framework":"torch","version":"2.8","device":"cpu","batch":256}"#;
    let scene = Scene::new()
        .steady(60, 2 * GB)
        .refused(59, 14 * GB, 2 * GB)
        .said(hello)
        .ended(60, EXIT_1);
    let remedy = &scene.verdict().causes[0].remedies[0];
    // 13.9 GB may be used: of the 11.9 GB left, half.
    assert!(
        remedy
            .text
            .contains("a batch of 64, with gradients accumulated over 4"),
        "{remedy:?}"
    );
    assert_eq!(
        remedy.code, None,
        "no line is known that it could be pasted into"
    );
}

#[test]
fn the_line_with_the_size_of_the_batch_is_changed_where_it_is_known() {
    let said = |batch_norm: bool| {
        let loaded = r#"{"what":"loaded","name":"torch","version":"2.8"}"#;
        let batch = format!(
            r#"{{"what":"batch","batch_norm":{batch_norm},"file":"t.py","edits":[],"size":
            {{"line":7,"before":"loader = DataLoader(data, batch_size=","after":")","value":256}}}}"#
        );
        let scene = Scene::new().steady(60, 2 * GB).refused(59, 14 * GB, 2 * GB);
        scene
            .said(&format!("{loaded}\n{}", batch.replace('\n', "")))
            .ended(60, EXIT_1)
    };
    let remedy = said(false).verdict().causes[0].remedies[0].clone();
    assert_eq!(remedy.edits.len(), 1, "{remedy:?}");
    let edit = &remedy.edits[0];
    assert_eq!(
        (edit.file.as_str(), edit.line, edit.last_line),
        ("t.py", 7, 7)
    );
    assert_eq!(edit.before, "loader = DataLoader(data, batch_size=256)");
    assert_eq!(edit.code, "loader = DataLoader(data, batch_size=32)");
    // `antifreeze.step` refuses such a model.
    let remedies = said(true).verdict().causes[0].remedies.clone();
    assert!(
        remedies
            .iter()
            .all(|remedy| !remedy.text.contains("antifreeze.step")),
        "{remedies:?}"
    );
    assert!(remedies[0].text.contains("BatchNorm"), "{remedies:?}");
}

#[test]
fn a_first_step_that_does_not_fit_is_a_batch_and_a_later_one_may_leak() {
    let at_step = |step: u64, file: &str| {
        let error = format!(
            r#"{{"what":"out-of-memory","type":"RuntimeError","message":"can't allocate memory","step":{step}}}"#
        );
        filled(|second| 2 * GB + second * 90 * MB)
            .said(&error)
            .printed(&format!(
                "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n  File \"{file}\", line 9, in g\n\
                 RuntimeError: DefaultCPUAllocator: can't allocate memory\n"
            ))
    };
    let module = "/lib/python3.11/site-packages/torch/nn/modules/module.py";
    blames(&at_step(0, module), Code::BatchTooLarge, 0.6);
    // Whatever was read before it.
    let mut read = at_step(0, module);
    for (second, sample) in (0..).zip(&mut read.samples) {
        sample.tree.read_asked = Reading::Value(second * 90 * MB);
    }
    blames(&read, Code::BatchTooLarge, 0.6);
    blames(&at_step(300, module), Code::MemoryLeak, 0.6);
    // Before it has begun, and without a model.
    blames(&at_step(0, "t.py"), Code::MemoryLeak, 0.6);
}

#[test]
fn steps_that_were_taken_in_parts_are_told_and_nothing_is_said_to_leak() {
    let scene = Scene::new()
        .memory(120, |second| 2 * GB + (second % 10) * GB, |_| 0)
        .refused(30, 40 * MB, 12 * GB)
        .said(r#"{"what":"split","t":1,"size":2048,"of":8192}"#)
        .ended(120, 0);
    blames(&scene, Code::BatchTooLarge, 0.9);
    let causes = scene.verdict().causes;
    assert_eq!(causes.len(), 1, "{causes:#?}");
    let remedy = &causes[0].remedies[0];
    assert!(
        remedy
            .text
            .contains("a batch of 2048, with gradients accumulated over 4"),
        "{remedy:?}"
    );
    assert_eq!(
        remedy.code, None,
        "no line is known that it could be pasted into"
    );
}

#[test]
fn loaders_that_take_most_of_it_are_named() {
    // Each begins with the gigabytes that it shares with the training process.
    let grown = |most: u64| {
        let mut scene = filled(|second| (6 + second * 6 / 119) * GB);
        for (second, sample) in (0..).zip(&mut scene.samples) {
            sample.processes.clear();
            let taken = second * most * MB / 119;
            for (pid, name, held) in [
                (1234, &b"python"[..], 6 * GB),
                (1240, b"pt_data_worker", 5 * GB + taken),
            ] {
                sample.processes.push(Process {
                    pid: Pid(pid),
                    name: ProcessName::new(name),
                    rss_anon: Reading::Value(held),
                    ..Process::default()
                });
            }
        }
        scene
    };
    blames(&grown(6_000), Code::LoaderMemory, 0.8);
    rules_out(&grown(500), Code::LoaderMemory);
    // At the peak it is ending already, and has nothing any more.
    let mut ending = grown(6_000);
    let peak = ending.samples.last_mut().unwrap();
    let all = peak.processes.as_slice().to_vec();
    peak.processes.clear();
    for mut process in all {
        if process.pid == Pid(1240) {
            process.rss_anon = Reading::Unavailable(Reason::Absent);
        }
        peak.processes.push(process);
    }
    blames(&ending, Code::LoaderMemory, 0.8);
}

#[test]
fn shared_memory_that_is_full_is_blamed_for_a_bus_error() {
    let full = |free| move |sample: &mut Sample| sample.shm.free = Reading::Value(free);
    let ended = |free| {
        Scene::new()
            .steady(60, 2 * GB)
            .last(full(free))
            .ended(60, BUS_ERROR)
    };
    blames(&ended(0), Code::ShmExhausted, 0.7);
    rules_out(&ended(6 * GB), Code::ShmExhausted);
}

#[test]
fn a_run_that_lives_on_swap_is_told_and_cold_data_is_not() {
    const PAGE: u64 = 4096;
    let swapping = |held: u64, pace: u64| {
        let mut scene = Scene::new().steady(120, 2 * GB);
        for (second, sample) in (0..).zip(&mut scene.samples) {
            sample.tree.swap = Reading::Value(held);
            sample.paging.swapped_in = Reading::Value(second * pace / PAGE);
            sample.paging.swapped_out = Reading::Value(second * pace / PAGE);
        }
        scene.ended(120, 0)
    };
    blames(&swapping(500 * MB, 20 * MB), Code::SwapThrash, 0.6);
    is_healthy(&swapping(500 * MB, MB));
    is_healthy(&swapping(20 * MB, 20 * MB));
    is_healthy(&swapping(0, 20 * MB));
}

#[test]
fn everything_that_waits_for_memory_is_a_swap_storm() {
    let stalled = |each: u64| {
        let mut scene = Scene::new().steady(120, 9 * GB);
        for (second, sample) in (0..).zip(&mut scene.samples) {
            sample.pressure.memory_full_us = Reading::Value(second * each);
        }
        scene.facts.state = antifreeze_diagnose::RunState::Rebooted;
        scene
    };
    blames(&stalled(600_000), Code::SwapThrash, 0.7);
    rules_out(&stalled(1_000), Code::SwapThrash);
}

#[test]
fn the_limit_of_a_container_is_blamed_where_it_is_nearer_than_the_machines() {
    let limited = |limit: u64, left: u64| {
        let tight = move |sample: &mut Sample| {
            sample.cgroup.limit = Reading::Value(limit);
            sample.cgroup.limit_available = Reading::Value(left);
        };
        Scene::new()
            .steady(90, 6 * GB)
            .last(tight)
            .event(
                89,
                EventKind::StopSent {
                    pid: Pid(1),
                    trigger: Trigger::CgroupLimit,
                },
            )
            .ended_by_guard(90, 15)
    };
    blames(&limited(8 * GB, 200 * MB), Code::ContainerLimit, 0.5);
    spares(&limited(8 * GB, 6 * GB), Code::ContainerLimit);
    rules_out(&limited(64 * GB, 60 * GB), Code::ContainerLimit);
}

#[test]
fn whoever_grew_beside_it_is_named() {
    let paused = EventKind::Paused {
        who: ProcessName::new(b"firefox"),
        pid: Pid(77),
        grew: 4 * GB,
    };
    let scene = Scene::new()
        .steady(60, 4 * GB)
        .event(50, paused)
        .ended(60, KILLED);
    blames(&scene, Code::OtherProcess, 0.7);
    assert!(
        scene.verdict().causes[0]
            .summary
            .contains("firefox (pid 77)")
    );
    rules_out(
        &filled(|second| 2 * GB + second * 90 * MB),
        Code::OtherProcess,
    );
}

/// Two names that were looked at once, with changes for each.
fn two_leaks() -> Scene {
    let holder = |name: &str, bytes: u64, line: u32| {
        format!(
            r#"{{"name":"{name}","file":"t.py","bytes":{bytes},"length":70,"grown":0,"steps":0,"seconds":0,"lines":[{line}]}}"#
        )
    };
    let change = |name: &str, line: u32| {
        format!(
            r#"{{"what":"edits","name":"{name}","file":"t.py","edits":[{{"action":"after","line":{line},"last_line":{line},
            "before":"{name}.append(x)","code":"del {name}[:-10]","why":"bound","keep":10}}]}}"#
        )
        .replace('\n', "")
    };
    filled(|second| 2 * GB + second * 90 * MB).said(&format!(
        "{}\n{}\n{}\n{}\n{}",
        r#"{"what":"hello","framework":"jax","version":"0.10"}"#,
        r#"{"what":"loaded","name":"jax","version":"0.10"}"#,
        format_args!(
            r#"{{"what":"holders","step":0,"resident":12000000000,"names":[{},{},{}]}}"#,
            holder("frames", 6 * GB, 12),
            holder("gradients", 4 * GB, 15),
            holder("losses", 30_000_000, 16)
        ),
        change("frames", 12),
        change("gradients", 15),
    ))
}

#[test]
fn of_two_leaks_that_were_looked_at_once_both_are_named_and_changed() {
    let causes = two_leaks().verdict().causes;
    let first = &causes[0];
    assert_eq!(first.code, Code::MemoryLeak);
    let changed: Vec<&str> = first
        .remedies
        .iter()
        .flat_map(|remedy| remedy.edits.iter().map(|edit| edit.code.as_str()))
        .collect();
    assert_eq!(
        changed,
        ["del frames[:-10]", "del gradients[:-10]"],
        "{first:#?}"
    );
    let told: Vec<&str> = first
        .evidence
        .iter()
        .map(|seen| seen.text.as_str())
        .collect();
    assert!(
        told.iter()
            .any(|text| text.contains("`gradients`") && text.contains("t.py:15")),
        "{told:?}"
    );
    assert!(!told.iter().any(|text| text.contains("losses")), "{told:?}");
}

#[test]
fn no_remedy_is_offered_twice_in_a_verdict() {
    for scene in [two_leaks(), filled(|second| 2 * GB + second * 90 * MB)] {
        let causes = scene.verdict().causes;
        assert!(causes.len() > 1, "{causes:#?}");
        let texts: Vec<&String> = causes
            .iter()
            .flat_map(|cause| &cause.remedies)
            .map(|remedy| &remedy.text)
            .collect();
        let mut once = texts.clone();
        once.sort();
        once.dedup();
        assert_eq!(texts.len(), once.len(), "{texts:#?}");
    }
}

#[test]
fn a_framework_that_was_imported_is_named_where_no_step_was_seen() {
    let unseen = |lines: &str| {
        filled(|second| 2 * GB + second * 90 * MB)
            .said(lines)
            .verdict()
            .unseen
            .join("\n")
    };
    assert!(unseen("").contains("no known framework"));
    let loaded = |name: &str| format!(r#"{{"what":"loaded","name":"{name}","version":"2.1"}}"#);
    let told = unseen(&format!("{}\n{}", loaded("numpy"), loaded("tensorflow")));
    assert!(
        told.contains("tensorflow 2.1 was imported") && !told.contains("numpy"),
        "{told}"
    );
    assert!(!told.contains("no known framework"), "{told}");
}

#[test]
fn a_library_that_was_not_mapped_is_told_with_the_room_it_needs() {
    let scene = |words: &str| {
        let import = format!(
            "Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n    import torch\n{words}\n"
        );
        Scene::new()
            .steady(3, 200 * MB)
            .printed(&import)
            .ended(3, EXIT_1)
    };
    let first = |scene: &Scene| scene.verdict().causes[0].remedies[0].clone();
    for words in [
        "ImportError: /v/torch/_C.so: failed to map segment from shared object",
        "ImportError: libcufft.so.12: cannot map zero-fill pages",
        "OSError: libcublas.so.12: cannot create shared object descriptor: Cannot allocate memory",
        "ImportError: libcublas.so.12: cannot apply additional memory protection after relocation: Cannot allocate memory",
    ] {
        let mut small = scene(words);
        small.facts.budget = Some(GB);
        blames(&small, Code::LibraryNotMapped, 0.85);
        let wider = "antifreeze run --budget 2GB -- python train.py";
        assert_eq!(first(&small).code.as_deref(), Some(wider), "{words}");

        let mut full = scene(words);
        full.facts.available = Some(2 * GB);
        blames(&full, Code::LibraryNotMapped, 0.85);
        let less_kept = "antifreeze run --reserve 750MB -- python train.py";
        assert_eq!(first(&full).code.as_deref(), Some(less_kept), "{words}");

        // There was room, so the limit is another's.
        let roomy = scene(words);
        blames(&roomy, Code::LibraryNotMapped, 0.7);
        assert!(first(&roomy).text.contains("limit of the shell"), "{words}");
        spares(&roomy, Code::MissingDependency);
    }
    let fixed = "ImportError: libgomp.so.1: cannot allocate memory in static TLS block";
    spares(&scene(fixed), Code::LibraryNotMapped);
}

#[test]
fn a_leak_in_a_cell_is_named_as_it_was_while_it_grew() {
    let looks = [
        r#"{"what":"cell","t":1,"file":"/tmp/ipykernel_7/345.py","number":3}"#,
        r#"{"what":"holders","t":110,"step":0,"resident":12000000000,"names":[{"name":"rows","file":"/tmp/ipykernel_7/345.py","bytes":9000000000,"length":40,"grown":5000000000,"steps":0,"seconds":9,"more":5000000000,"lines":[6]}]}"#,
        r#"{"what":"edits","t":110,"name":"rows","file":"/tmp/ipykernel_7/345.py","edits":[{"action":"after","line":6,"last_line":6,"before":"rows.append(x)","indent":"    ","code":"del rows[:-10]","why":"bound","keep":10}]}"#,
        // Between two cells no frame of the script is there.
        r#"{"what":"holders","t":121,"step":0,"resident":12000000000,"names":[]}"#,
    ];
    let scene = filled(|second| 2 * GB + second * 90 * MB)
        .said(&looks.join("\n"))
        .printed("MemoryError      Traceback (most recent call last)\nCell In[3], line 6\n----> 6     rows.append(x)\n\nMemoryError: Unable to allocate\n");
    let verdict = scene.verdict();
    let cause = &verdict.causes[0];
    assert!(
        cause.summary.starts_with("`rows` holds 40 elements"),
        "{cause:#?}"
    );
    assert_eq!(cause.location.as_ref().unwrap().place(), "cell 3, line 6");
    let remedy = &cause.remedies[0];
    assert!(
        remedy.text.ends_with("insert after cell 3, line 6"),
        "{remedy:#?}"
    );
    assert_eq!(remedy.code.as_deref(), Some("    del rows[:-10]"));
}

#[test]
fn a_change_of_two_lines_is_shown_with_the_indentation_of_the_script() {
    let looks = [
        r#"{"what":"holders","step":0,"resident":12000000000,"names":[{"name":"kept","file":"t.py","bytes":9000000000,"length":70,"grown":0,"steps":0,"seconds":0,"lines":[12]}]}"#,
        r#"{"what":"edits","name":"kept","file":"t.py","edits":[{"action":"replace","line":12,"last_line":12,"before":"kept.append(x)","indent":"        ","code":"np.save(f, x)\nkept.append(np.load(f))","why":"spill","imports":["import numpy as np"]}]}"#,
    ];
    let causes = filled(|second| 2 * GB + second * 90 * MB)
        .said(&looks.join("\n"))
        .verdict()
        .causes;
    let remedy = &causes[0].remedies[0];
    assert_eq!(
        remedy.code.as_deref(),
        Some("import numpy as np\n        np.save(f, x)\n        kept.append(np.load(f))")
    );
    assert_eq!(
        remedy.edits[0].code,
        "np.save(f, x)\nkept.append(np.load(f))"
    );
}
