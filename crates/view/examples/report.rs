//! Writes three reports into the folder named, for looking at and for the browser tests: a
//! leak that met the wall, a run whose every name is an attack, and a run of a day.
//!
//! `cargo run -p antifreeze-view --example report -- target/reports`

#[allow(dead_code)]
#[path = "../../diagnose/tests/causes/scenes.rs"]
mod scenes;

use antifreeze_diagnose::Run;
use antifreeze_diagnose::run::checkpoints::{Checkpoint, Kind};
use antifreeze_record::event::{Event, EventKind, Rung, ShortText, Trigger};
use antifreeze_sense::{Gpus, Phase, Pid, Process, ProcessName, Reading, Sample};
use antifreeze_text::TermStyle;
use scenes::{EXIT_1, GB, MB, Scene, at};
use std::io;
use std::path::{Path, PathBuf};

const ATTACK: &str = "</script></pre>--><script>window.pwned=1;alert(1)</script><img src=x onerror=window.pwned=1>\"'><svg onload=window.pwned=1>";

fn main() -> io::Result<()> {
    let folder = std::env::args_os()
        .nth(1)
        .map_or("reports".into(), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    write(&folder.join("leak.html"), leak())?;
    write(&folder.join("hostile.html"), hostile())?;
    write(&folder.join("day.html"), day())
}

fn write(file: &Path, scene: Scene) -> io::Result<()> {
    let samples = scene.samples.clone();
    let run = Run::diagnose(scene.facts, scene.samples, scene.events);
    let look = TermStyle {
        home: Some("/home/ada".into()),
        ..TermStyle::default()
    };
    let page = antifreeze_view::report(&run, samples, &look);
    println!("{} {} bytes", file.display(), page.len());
    std::fs::write(file, page)
}

fn leak() -> Scene {
    let held = |second: u64| 3_600 * MB + second * 41 * MB + second % 3 * 60 * MB;
    let warn = |from, to, forecast_ms| EventKind::Rung {
        from,
        to,
        trigger: Trigger::TreeGrowth,
        room: GB as i64,
        growth: 41_000_000,
        forecast_ms: Some(forecast_ms),
        confidence: 90,
    };
    let file = ShortText::new(b"checkpoint-287.pt");
    let mut scene = Scene::new()
        .memory(252, held, |second| 500 * MB + second % 7 * 10 * MB)
        .trained(|second| second * 4, |second| match second {
            120..135 => Phase::Evaluation,
            205..210 => Phase::Saving,
            _ => [Phase::Data, Phase::Forward, Phase::Backward, Phase::Backward, Phase::Optimizer]
                [second as usize % 5],
        })
        .said(concat!(
            r#"{"what":"hello","framework":"torch","version":"2.8.0","device":"cpu","dtype":"float32","batch":32}"#, "\n",
            r#"{"what":"model","optimizer":"AdamW","parameters":1200000,"bytes":4800000}"#, "\n",
            r#"{"what":"holders","step":900,"resident":13000000000,"names":["#,
            r#"{"name":"outputs","file":"/home/ada/net/train.py","bytes":9900000000,"length":900,"grown":4100000000,"steps":400,"seconds":100,"more":4200000000,"lines":[14]},"#,
            r#"{"name":"model","file":"/home/ada/net/train.py","bytes":4800000,"length":0,"grown":0,"steps":400,"seconds":100,"lines":[]}]}"#, "\n",
            r#"{"what":"edits","name":"outputs","file":"/home/ada/net/train.py","edits":[{"action":"after","line":14,"last_line":14,"#,
            r#""before":"outputs.append((x, logits))","code":"del outputs[:-100]","why":"bound","keep":100}]}"#, "\n",
            r#"{"what":"saved","path":"/home/ada/net/checkpoint-820.pt","step":820,"bytes":14400000}"#, "\n",
            r#"{"what":"resumes","step":0,"kinds":["torch"]}"#, "\n",
        ))
        .printed("epoch 1  82%|████████  | 820/1000 [03:25<00:45, 4.0it/s, loss=1.82]\nTraceback (most recent call last):\n  File \"/home/ada/net/train.py\", line 14, in <module>\n    outputs.append((x, logits))\nRuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 41943040 bytes\n")
        .event(0, EventKind::Started { guard: Pid(1230), root: Pid(1234), total: 15_400 * MB, reserve: 1_500 * MB, budget: None })
        .event(120, warn(Rung::Calm, Rung::Warn, 130_000))
        .event(200, warn(Rung::Warn, Rung::Checkpoint, 45_000))
        .event(204, EventKind::CheckpointAsked { pid: Pid(1234), signal: 0 })
        .event(209, EventKind::CheckpointSaved { millis: 1_200, bytes: 14_400_000, file })
        .event(240, warn(Rung::Checkpoint, Rung::Brake, 10_000))
        .event(240, EventKind::Braked { high: 13_500 * MB })
        .refused(251, 41_943_040, 13_800 * MB)
        .ended(252, EXIT_1);
    scene.facts.checkpoints = vec![checkpoint("/home/ada/net/checkpoint-820.pt")];
    busy(scene, 1)
}

fn checkpoint(path: &str) -> Checkpoint {
    Checkpoint {
        kind: Kind::Torch,
        step: 820,
        path: path.into(),
        bytes: Some(14_400_000),
        written: std::time::SystemTime::UNIX_EPOCH,
    }
}

/// Counters of a machine that works, so that every chart has something to show.
fn busy(mut scene: Scene, seconds_apart: u64) -> Scene {
    let mut sums = [0u64; 8];
    for (index, sample) in scene.samples.iter_mut().enumerate() {
        let wave = (index as f64 / 9.0).sin().abs();
        let late = index as f64 / 252.0;
        let grow = [
            (late.powi(6) * 300_000.0).min(900_000.0),
            120_000.0 + 90_000.0 * wave,
            if index % 40 < 6 { 300_000.0 } else { 8_000.0 },
            310.0 + 60.0 * wave,
            30.0 + 20.0 * wave,
            60e6 * (1.0 - wave),
            if index % 40 < 6 { 90e6 } else { 2e6 },
            290.0 + 60.0 * wave,
        ];
        for (sum, more) in sums.iter_mut().zip(grow) {
            *sum += more as u64 * seconds_apart;
        }
        count(sample, &sums, index as u64 * seconds_apart);
        sample.thermal.hottest_millidegrees =
            Reading::Value(52_000 + (wave * 9_000.0 + late.min(3.0) * 14_000.0) as u64);
        // It is read every two seconds, and once not at all.
        sample.gpus = match index {
            60..64 => Gpus::default(),
            _ => card((index as f64 / 2.0).floor() / 4.5),
        };
    }
    scene
}

fn card(time: f64) -> Gpus {
    let value = Reading::Value;
    let wave = time.sin().abs();
    Gpus {
        memory_used: value(9 * GB + (wave * 40.0) as u64 * 10 * MB),
        memory_total: value(12 * GB),
        busy_percent: value(70 + (wave * 28.0) as u64),
        hottest_millidegrees: value(58_000 + (wave * 14_000.0) as u64),
        power_microwatts: value(120_000_000 + (wave * 78.0) as u64 * 1_000_000),
        power_limit_microwatts: value(200_000_000),
        ..Gpus::default()
    }
}

fn count(sample: &mut Sample, sums: &[u64; 8], seconds: u64) {
    let value = Reading::Value;
    sample.pressure.memory_some_us = value(sums[0]);
    sample.pressure.memory_full_us = value(sums[0] / 3);
    sample.pressure.cpu_some_us = value(sums[1]);
    sample.pressure.io_some_us = value(sums[2]);
    sample.cpu.core_count = 8;
    sample.cpu.user = value(sums[3]);
    sample.cpu.system = value(sums[4]);
    sample.cpu.idle = value((seconds * 800).saturating_sub(sums[3] + sums[4]));
    sample.disk.read_bytes = value(sums[5]);
    sample.disk.written_bytes = value(sums[6]);
    sample.tree.cpu = value(sums[7]);
    sample.memory.swap_total = value(2 * GB);
    sample.memory.swap_free = value(2 * GB - (sums[0] * 8).min(GB));
}

fn hostile() -> Scene {
    let json = serde_json::to_string(ATTACK).unwrap_or_default();
    let mut scene = Scene::new()
        .memory(60, |second| 3 * GB + second * 180 * MB, |_| 0)
        .trained(|second| second * 2, |_| Phase::Forward)
        .refused(59, 41 * MB, 13_800 * MB)
        .ended(60, EXIT_1);
    for sample in &mut scene.samples {
        sample.processes.clear();
        for name in ["<script>x</", "\" onload=\"a()", "<img src=x onc"] {
            let name = ProcessName::new(name.as_bytes());
            let rss_anon = Reading::Value(GB);
            sample.processes.push(Process {
                pid: Pid(7),
                name,
                rss_anon,
                ..Process::default()
            });
        }
    }
    let name = ProcessName::new(b"<svg/onload=a()");
    for kind in [
        EventKind::RequestRefused {
            pid: Pid(7),
            name,
            bytes: 1,
            footprint: 1,
        },
        EventKind::Paused {
            who: name,
            pid: Pid(7),
            grew: GB,
        },
        EventKind::CheckpointSaved {
            millis: 1,
            bytes: 1,
            file: ShortText::new(ATTACK.as_bytes()),
        },
        EventKind::CheckpointMissed { millis: 0 },
    ] {
        scene.events.push(Event { at: at(30), kind });
    }
    scene.facts.command = vec!["python".into(), ATTACK.into()];
    scene.facts.run = ATTACK.into();
    scene.facts.record = ATTACK.into();
    scene.facts.folder = ATTACK.into();
    scene.facts.checkpoints = vec![checkpoint(ATTACK)];
    let output = format!(
        "{ATTACK}\nTraceback (most recent call last):\n  File \"{ATTACK}\", line 1, in {ATTACK}\n{ATTACK}Error: {ATTACK}\n"
    );
    scene.printed(&output).said(&format!(
        r#"{{"what":"hello","framework":{json},"version":{json},"device":{json},"dtype":{json},"batch":1}}
{{"what":"model","optimizer":{json},"parameters":1,"bytes":1}}
{{"what":"holders","resident":9,"names":[{{"name":{json},"file":{json},"bytes":9000000000,"length":9,"grown":900000000,"steps":9,"seconds":1,"lines":[1]}}]}}
{{"what":"edits","name":{json},"file":{json},"edits":[{{"action":"after","line":1,"last_line":1,"before":{json},"code":{json},"why":"bound","keep":1}}]}}
{{"what":"saved","path":{json},"step":1,"bytes":1,"names":[{json}]}}
{{"what":"not-saved","why":{json}}}
{{"what":"fault","doing":{json},"error":{json}}}
"#
    ))
}

/// Looks ten seconds apart, which grow denser towards the end as those of a record do.
fn day() -> Scene {
    let mut scene = Scene::new()
        .memory(
            8_640,
            |look| 2 * GB + look % 90 * 12 * MB,
            |look| GB + look / 20 * 3 * MB,
        )
        .trained(
            |look| look * 35,
            |look| match look % 900 {
                800..860 => Phase::Evaluation,
                860..900 => Phase::Saving,
                _ => [Phase::Data, Phase::Data, Phase::Forward, Phase::Backward][look as usize % 4],
            },
        );
    scene = busy(scene, 10);
    for (look, sample) in (0..).zip(&mut scene.samples) {
        sample.at = at(look * 10);
    }
    let last = scene.samples.last().copied().unwrap_or_default();
    for tenth in 1..=3_000 {
        let mut sample = last;
        sample.at.monotonic_ns += tenth * 100_000_000;
        sample.at.realtime_ns += tenth * 100_000_000;
        let held = 2 * GB
            + if (2_500..2_510).contains(&tenth) {
                9 * GB
            } else {
                0
            };
        sample.tree.footprint = Reading::Value(held);
        scene.samples.push(sample);
    }
    for hour in 1..24 {
        scene = scene.event(
            hour * 3_600,
            EventKind::CheckpointSaved {
                millis: 2_300,
                bytes: 800 * MB,
                file: ShortText::new(format!("hour-{hour}.pt").as_bytes()),
            },
        );
    }
    scene
        .event(
            60_000,
            EventKind::Paused {
                who: ProcessName::new(b"chrome"),
                pid: Pid(99),
                grew: 3 * GB,
            },
        )
        .event(
            60_040,
            EventKind::Resumed {
                trigger: Trigger::RoomAvailable,
                millis: 40_000,
            },
        )
        .ended(86_690, 0)
}
