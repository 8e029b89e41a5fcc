//! What a person reads at the end of each kind of run.

use crate::scenes::{EXIT_1, GB, MB, Scene};
use crate::shown::{Shown, style};
use antifreeze_diagnose::RunState;
use antifreeze_diagnose::verdict::{Code, EndKind};
use antifreeze_record::event::{EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{Pid, ProcessName, Reading};
use antifreeze_text::{Glyphs, TermStyle};
use antifreeze_view::{RunRow, table};
use insta::assert_snapshot;

const TRACEBACK: &str = r#"epoch 1  12%|##        | 120/1000
Traceback (most recent call last):
  File "/home/ada/net/train.py", line 14, in <module>
    outputs.append((x, logits))
  File "/opt/py/lib/python3.12/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 41943040 bytes
"#;

fn finished_well() -> Scene {
    Scene::new().steady(252, 3_200 * MB).ended(252, 0)
}

fn leak_walled() -> Scene {
    Scene::new()
        .memory(252, |second| 3_600 * MB + second * 41 * MB, |_| 0)
        .event(
            0,
            EventKind::Started {
                guard: Pid(1230),
                root: Pid(1234),
                total: 15_400 * MB,
                reserve: 1_500 * MB,
                budget: None,
            },
        )
        .event(120, rung(Rung::Watch, Rung::Warn, 131_000))
        .event(240, rung(Rung::Warn, Rung::Brake, 10_000))
        .event(240, EventKind::Braked { high: 13_500 * MB })
        .refused(251, 41_943_040, 13_890 * MB)
        .printed(TRACEBACK)
        .ended(252, EXIT_1)
}

fn caught_and_finished() -> Scene {
    Scene::new()
        .steady(600, 6 * GB)
        .refused(50, 9 * GB, 6 * GB)
        .refused(51, 8 * GB, 6 * GB)
        .ended(600, 0)
}

fn stopped_with_checkpoint() -> Scene {
    let saved = EventKind::CheckpointSaved {
        millis: 1_200,
        bytes: 80 * MB,
        file: ShortText::new(b"/home/ada/net/checkpoint.pt"),
    };
    Scene::new()
        .memory(300, |second| 4 * GB + second * 33 * MB, |_| 0)
        .event(280, rung(Rung::Warn, Rung::Checkpoint, 9_000))
        .event(
            280,
            EventKind::CheckpointAsked {
                pid: Pid(1234),
                signal: 10,
            },
        )
        .event(281, saved)
        .event(
            296,
            EventKind::StopSent {
                pid: Pid(1234),
                trigger: Trigger::SwapStorm,
            },
        )
        .ended_by_guard(299, 15)
}

fn paused_and_resumed() -> Scene {
    Scene::new()
        .memory(
            900,
            |_| 6 * GB,
            |second| {
                if (300..420).contains(&second) {
                    9 * GB
                } else {
                    2 * GB
                }
            },
        )
        .event(
            310,
            EventKind::Paused {
                who: ProcessName::new(b"firefox"),
                pid: Pid(555),
                grew: 7 * GB,
            },
        )
        .event(
            425,
            EventKind::Resumed {
                trigger: Trigger::RoomAvailable,
                millis: 115_000,
            },
        )
        .ended(900, 0)
}

fn machine_died() -> Scene {
    let mut scene = Scene::new().steady(10_920, 6 * GB);
    scene.facts.state = RunState::Rebooted;
    scene
}

fn killed_from_outside() -> Scene {
    Scene::new().steady(100, 2 * GB).ended(100, 9)
}

fn crashed() -> Scene {
    Scene::new().steady(30, 2 * GB).ended(30, 11 | 0x80)
}

fn over_budget() -> Scene {
    let mut scene = Scene::new()
        .memory(60, |second| 100 * MB + second * 5 * MB, |_| GB)
        .refused(59, 4 * MB, 398 * MB)
        .printed("Traceback (most recent call last):\n  File \"train.py\", line 8, in <module>\nMemoryError\n")
        .ended(60, EXIT_1);
    scene.facts.budget = Some(400 * MB);
    scene
}

fn hostile() -> Scene {
    let mut scene = Scene::new()
        .memory(60, |second| GB + second * 200 * MB, |_| 0)
        .event(40, EventKind::Paused { who: ProcessName::new(b"\x1b[2Jrm\n\xff"), pid: Pid(666), grew: GB })
        .event(45, EventKind::CheckpointSaved { millis: 10, bytes: 1, file: ShortText::new(b"/tmp/\x1b]0;owned\x07\xfe.pt") })
        .printed("\u{1b}]0;title\u{7}\u{1b}[2J\u{9b}31m\nTraceback (most recent call last):\n  File \"/home/ada/net/\u{202e}yp.\u{1b}[8m\", line 3, in f\nValueError: \u{1b}c\u{0}\n")
        .ended(60, EXIT_1);
    scene.facts.run = "7f3a".into();
    scene.facts.command = vec!["python".into(), "it's \u{1b}[31m; rm -rf ~\n".into()];
    scene.facts.record = "/tmp/\u{1b}[5m/7f3a".into();
    scene
}

fn rung(from: Rung, to: Rung, forecast_ms: u64) -> EventKind {
    EventKind::Rung {
        from,
        to,
        trigger: Trigger::TreeGrowth,
        room: 0,
        growth: 41_000_000,
        forecast_ms: Some(forecast_ms),
        confidence: 94,
    }
}

#[test]
fn a_run_without_trouble_ends_with_one_line() {
    assert_eq!(
        finished_well().closing(),
        "finished in 4 min 12 s; peak 3.2 of 13.9 GB"
    );
    let interrupted = Scene::new().steady(10, GB).ended(10, 2);
    assert_eq!(
        interrupted.closing(),
        "ended by Ctrl-C or another SIGINT after 10 s; peak 1 of 13.9 GB"
    );
    let mistaken = Scene::new()
        .steady(10, GB)
        .printed("Traceback (most recent call last):\n  File \"train.py\", line 3, in f\nValueError: bad\n")
        .ended(10, EXIT_1);
    assert_eq!(
        mistaken.closing(),
        "ended with ValueError after 10 s, at train.py:3; peak 1 of 13.9 GB"
    );
}

#[test]
fn closing_of_a_leak_that_met_the_wall() {
    assert_snapshot!(leak_walled().closing());
}

#[test]
fn closing_of_a_refusal_that_was_caught() {
    assert_snapshot!(caught_and_finished().closing());
}

#[test]
fn closing_of_a_run_stopped_after_a_checkpoint() {
    assert_snapshot!(stopped_with_checkpoint().closing());
}

#[test]
fn closing_of_a_run_that_was_paused() {
    assert_snapshot!(paused_and_resumed().closing());
}

#[test]
fn closing_of_a_run_whose_machine_died() {
    assert_snapshot!(machine_died().show());
}

#[test]
fn closing_of_a_run_killed_from_outside() {
    assert_snapshot!(killed_from_outside().closing());
}

#[test]
fn closing_of_a_crash() {
    assert_snapshot!(crashed().closing());
}

#[test]
fn closing_of_a_run_over_its_budget() {
    assert_snapshot!(over_budget().closing());
}

#[test]
fn closing_in_a_narrow_terminal_without_unicode() {
    let style = TermStyle {
        width: 50,
        glyphs: Glyphs::Ascii,
        ..style()
    };
    let text = leak_walled().closing_as(&style);
    assert!(text.is_ascii());
    assert_snapshot!(text);
}

#[test]
fn a_run_in_full() {
    assert_snapshot!(leak_walled().show());
}

#[test]
fn hostile_names_in_full() {
    let text = hostile().show();
    assert!(
        text.chars()
            .all(|character| character == '\n' || !character.is_control())
    );
    assert_snapshot!(text);
}

#[test]
fn colour_adds_nothing_but_colour() {
    let painted = leak_walled().closing_as(&TermStyle {
        colour: true,
        ..style()
    });
    let plain = painted
        .replace("\u{1b}[1m", "")
        .replace("\u{1b}[2m", "")
        .replace("\u{1b}[0m", "");
    assert_ne!(painted, plain);
    assert_eq!(plain, leak_walled().closing());
}

#[test]
fn the_verdict_as_json() {
    assert_snapshot!(serde_json::to_string_pretty(&leak_walled().verdict()).unwrap());
}

#[test]
fn the_verdict_of_a_good_run_blames_nobody() {
    let verdict = finished_well().verdict();
    assert_eq!(verdict.end.kind, EndKind::Finished);
    assert!(verdict.causes.is_empty() && verdict.ruled_out.is_empty());
}

#[test]
fn causes_that_look_alike_are_both_named_and_neither_is_sure() {
    let causes = leak_walled().verdict().causes;
    let codes: Vec<Code> = causes.iter().map(|cause| cause.code).collect();
    assert_eq!(codes, [Code::MemoryLeak, Code::DatasetInMemory]);
    assert!(causes.iter().all(|cause| cause.confidence < 0.8));
}

#[test]
fn one_large_request_is_blamed_on_its_size() {
    let cause = &caught_and_finished().verdict().causes[0];
    assert_eq!(cause.code, Code::BatchTooLarge);
    assert_eq!(cause.summary, "requested 9 GB at once while it held 6 GB");
}

#[test]
fn a_full_disk_is_blamed_and_surer_when_the_script_says_so() {
    let scene = |output| {
        let full =
            |sample: &mut antifreeze_sense::Sample| sample.disk.space.free = Reading::Value(MB);
        Scene::new()
            .steady(9, GB)
            .last(full)
            .printed(output)
            .ended(9, EXIT_1)
    };
    let confidence = |output| {
        let cause = scene(output).verdict().causes.remove(0);
        assert_eq!(cause.code, Code::DiskFull);
        cause.confidence
    };
    assert!(confidence("OSError: [Errno 28] No space left on device") > confidence(""));
}

#[test]
fn full_shared_memory_is_blamed_for_a_bus_error() {
    let full = |sample: &mut antifreeze_sense::Sample| sample.shm.free = Reading::Value(0);
    let verdict = Scene::new().steady(9, GB).last(full).ended(9, 7).verdict();
    assert_eq!(
        (verdict.end.kind, verdict.causes[0].code),
        (EndKind::Crashed, Code::ShmExhausted)
    );
}

#[test]
fn a_container_that_ran_full_is_blamed() {
    let full = |sample: &mut antifreeze_sense::Sample| {
        sample.cgroup.limit = Reading::Value(8 * GB);
        sample.cgroup.limit_available = Reading::Value(1_600 * MB);
    };
    let scene = Scene::new()
        .steady(90, 6 * GB)
        .last(full)
        .refused(89, 10 * MB, 6 * GB)
        .ended(90, EXIT_1);
    assert_eq!(scene.verdict().causes[0].code, Code::ContainerLimit);
}

#[test]
fn the_kernels_own_kill_is_told_apart() {
    let scene = Scene::new()
        .steady(90, 6 * GB)
        .last(|sample| sample.paging.oom_kills = Reading::Value(4))
        .ended(90, 9);
    assert_eq!(scene.verdict().end.kind, EndKind::OomKilled);
}

#[test]
fn the_table_of_runs() {
    let rows: Vec<RunRow> = [leak_walled(), finished_well(), machine_died(), hostile()]
        .iter()
        .map(|scene| RunRow::new(&scene.facts, &scene.summary(), &scene.verdict()))
        .collect();
    assert_snapshot!(table(&rows, &style()));
    for width in 0..100 {
        let narrow = table(&rows, &TermStyle { width, ..style() });
        assert!(
            narrow.lines().all(|line| line.chars().count() <= width),
            "{width}\n{narrow}"
        );
    }
    assert_snapshot!(
        "row_as_json",
        serde_json::to_string_pretty(&rows[0]).unwrap()
    );
}

#[test]
fn code_of_two_lines_is_shown_on_two_lines() {
    let scene = leak_walled();
    let mut verdict = scene.verdict();
    verdict.causes[0].remedies[0].code = Some("    kept.append(x)\n    del kept[:-5]".into());
    let text = antifreeze_view::show(&verdict, &scene.facts, &scene.summary(), [], &style());
    let lines = "\n             kept.append(x)\n             del kept[:-5]\n";
    assert!(text.contains(lines), "{text}");
}

#[test]
fn a_verdict_that_someone_else_wrote_cannot_drive_the_terminal() {
    let scene = leak_walled();
    let mut verdict = scene.verdict();
    let evil = "\u{1b}[2J\n\u{202e}".to_string();
    verdict.run = evil.clone();
    verdict.end.detail = evil.clone();
    verdict.causes[0].summary = evil.clone();
    verdict.causes[0].remedies[0].code = Some(evil.clone());
    verdict.ruled_out[0].why = evil;
    let text = antifreeze_view::show(&verdict, &scene.facts, &scene.summary(), [], &style());
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    let mut verdict = finished_well().verdict();
    verdict.end.kind = EndKind::Failed;
    verdict.end.detail = "\u{1b}[2J".into();
    let scene = finished_well();
    let text = antifreeze_view::closing(&verdict, &scene.facts, &scene.summary(), &style());
    assert!(!text.contains('\u{1b}'), "{text}");
}

#[test]
fn no_line_of_ours_is_wider_than_the_screen_except_what_is_to_be_copied() {
    for width in 40..120 {
        let text = leak_walled().closing_as(&TermStyle { width, ..style() });
        for line in text.lines().filter(|line| !line.contains("record: ")) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}
