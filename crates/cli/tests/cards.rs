//! NVIDIA GPUs, through a replacement for the driver's library: what they report is recorded and
//! explained, and a driver that hangs, loses its GPU or reports little does no harm.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use antifreeze_record::Record;
use antifreeze_sense::{Gpus, Reading, Reason};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use support::Scene;

const LIMIT: Duration = Duration::from_secs(90);
const MIB: u64 = 1 << 20;
/// In use, in all, load, temperature, draw, limit, bits.
const AT_WORK: &str = "18000 24000 97 61 447 450 4\n";

/// A scene whose driver answers what is written to `driver` in it.
fn scene(answers: &str) -> Scene {
    let scene = Scene::new();
    answer(&scene, answers);
    scene
}

/// What the driver answers from now on: all at once, for it may be reading.
fn answer(scene: &Scene, answers: &str) {
    let aside = scene.path("driver.new");
    fs::write(&aside, answers).unwrap();
    fs::rename(aside, scene.path("driver")).unwrap();
}

/// `antifreeze run` under that driver.
fn run(scene: &Scene, script: &str) -> Command {
    let mut command = scene.antifreeze();
    under_driver(scene, &mut command);
    command.args(["run", "--", "sh", "-c", script]);
    command
}

fn under_driver(scene: &Scene, command: &mut Command) {
    command
        .env("ANTIFREEZE_NVML", library())
        .env("FAKE_NVML", scene.path("driver"));
}

/// The library, compiled once for each state of its source.
fn library() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml/fake.rs");
    let age = fs::metadata(&source).unwrap().modified().unwrap();
    let age = age
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libfake-nvml-{age}.so"));
    if !library.exists() {
        // Aside and renamed: tests run side by side.
        let aside = library.with_extension(format!("{}.so", std::process::id()));
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let built = Command::new(rustc)
            .args([
                "--crate-type=cdylib",
                "--crate-name=fake_nvml",
                "--edition=2024",
                "-O",
                "-o",
            ])
            .args([&aside, &source])
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        fs::rename(aside, &library).unwrap();
    }
    library
}

/// Runs until `over` is there.
const UNTIL_OVER: &str = "while [ ! -e over ]; do sleep 0.05; done";

fn over(scene: &Scene) {
    fs::write(scene.path("over"), "").unwrap();
}

/// Waits until it is recorded that so much of the cards' memory is in use.
fn until_used(scene: &Scene, mebibytes: u64) {
    scene.until("a reading", LIMIT, || {
        recorded(scene)
            .last()
            .is_some_and(|cards| cards.memory_used == Reading::Value(mebibytes * MIB))
    });
}

/// What the only run recorded of the cards, look by look.
fn recorded(scene: &Scene) -> Vec<Gpus> {
    let Some(run) = fs::read_dir(scene.path("home/runs"))
        .ok()
        .and_then(|mut runs| runs.next())
    else {
        return Vec::new();
    };
    let record = Record::open(&run.unwrap().path());
    record.map_or(Vec::new(), |record| {
        record.samples().map(|sample| sample.gpus).collect()
    })
}

fn last(scene: &Scene) -> Gpus {
    recorded(scene)
        .last()
        .copied()
        .expect("a look was recorded")
}

/// Those of the scene that are the probe.
fn probes(scene: &Scene) -> Vec<u32> {
    let is_probe = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "af-probe\n")
    };
    scene.living().into_iter().filter(is_probe).collect()
}

/// Waits for the probe of a run that has begun.
fn probe(scene: &Scene) -> u32 {
    scene.until("the probe", LIMIT, || !probes(scene).is_empty());
    probes(scene)[0]
}

fn guard(scene: &Scene) -> u32 {
    let is_guard = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name == "antifreeze-guar\n")
    };
    scene.living().into_iter().find(is_guard).expect("a guard")
}

/// What `explain --json` says of the last run.
fn explained(scene: &Scene) -> serde_json::Value {
    let told = scene.finish(scene.antifreeze().args(["explain", "--json"]), LIMIT);
    serde_json::from_str(&told.exits(0).stdout).unwrap()
}

fn nothing_is_left(scene: &Scene) {
    scene.until("the end of everything", LIMIT, || scene.living().is_empty());
}

#[test]
fn what_a_card_tells_is_recorded_and_in_the_verdict() {
    let scene = scene(AT_WORK);
    let mut child = scene.start(&mut run(&scene, &format!("{UNTIL_OVER}; exit 3")));
    until_used(&scene, 18_000);
    over(&scene);
    scene.ended(child.wait().unwrap()).exits(3);
    nothing_is_left(&scene);
    let value = Reading::Value;
    let expected = Gpus {
        memory_used: value(18_000 * MIB),
        memory_total: value(24_000 * MIB),
        busy_percent: value(97),
        hottest_millidegrees: value(61_000),
        power_microwatts: value(447_000_000),
        power_limit_microwatts: value(450_000_000),
        throttle_bits: value(4),
        fullest_permille: value(750),
        count: value(1),
        lost: value(0),
    };
    assert_eq!(last(&scene), expected);
    let verdict = explained(&scene);
    assert_eq!(verdict["peak"]["vram_bytes"], 18_000 * MIB, "{verdict:#}");
}

#[test]
fn what_a_card_does_not_tell_is_not_zero() {
    let scene = scene("- - 40 55 - - -\n");
    let mut child = scene.start(&mut run(&scene, UNTIL_OVER));
    scene.until("a reading", LIMIT, || {
        recorded(&scene)
            .last()
            .is_some_and(|cards| cards.busy_percent.value().is_some())
    });
    over(&scene);
    scene.ended(child.wait().unwrap()).exits(0);
    let cards = last(&scene);
    let absent = Reading::Unavailable(Reason::Absent);
    assert_eq!(
        (
            cards.memory_used,
            cards.memory_total,
            cards.fullest_permille
        ),
        (absent, absent, absent)
    );
    assert_eq!(
        (
            cards.power_microwatts,
            cards.power_limit_microwatts,
            cards.throttle_bits
        ),
        (absent, absent, absent)
    );
    assert_eq!(
        (cards.busy_percent, cards.hottest_millidegrees),
        (Reading::Value(40), Reading::Value(55_000))
    );
}

#[test]
fn a_card_that_falls_off_the_bus_is_told_and_the_others_go_on() {
    let scene = scene(&AT_WORK.repeat(2));
    let mut child = scene.start(&mut run(&scene, &format!("{UNTIL_OVER}; exit 1")));
    until_used(&scene, 36_000);
    answer(&scene, &format!("lost\n{AT_WORK}"));
    scene.until("the loss", LIMIT, || {
        recorded(&scene)
            .last()
            .is_some_and(|cards| cards.lost == Reading::Value(1))
    });
    over(&scene);
    scene.ended(child.wait().unwrap()).exits(1);
    let cards = last(&scene);
    assert_eq!(
        (cards.memory_used, cards.count),
        (Reading::Value(18_000 * MIB), Reading::Value(1))
    );
    let verdict = explained(&scene);
    assert_eq!(verdict["causes"][0]["code"], "gpu-lost", "{verdict:#}");
}

#[test]
fn a_card_that_ran_out_is_explained_with_what_it_held() {
    let scene = scene("23500 24000 97 61 300 450 0\n");
    let words = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    let script = format!("{UNTIL_OVER}; echo '{words}'; exit 1");
    let mut child = scene.start(&mut run(&scene, &script));
    until_used(&scene, 23_500);
    over(&scene);
    scene.ended(child.wait().unwrap()).exits(1);
    let verdict = explained(&scene);
    let cause = &verdict["causes"][0];
    assert_eq!(cause["code"], "vram-exhausted", "{verdict:#}");
    let held = "24.6 of 25.2 GB of GPU memory used at the end";
    assert!(cause["evidence"].to_string().contains(held), "{verdict:#}");
}

#[test]
fn a_driver_that_hangs_delays_neither_start_nor_end() {
    for function in ["init", "memory", "shutdown"] {
        let scene = scene(&format!("hang {function}\n{AT_WORK}"));
        library();
        let begun = Instant::now();
        // Through a pipe: whoever held it open would be waited for.
        let mut command = scene.command("sh");
        under_driver(&scene, &mut command);
        command.args(["-c", "\"$@\" | cat", "sh", env!("CARGO_BIN_EXE_antifreeze")]);
        command.args(["run", "-q", "--", "sh", "-c", "sleep 0.5; echo well"]);
        scene.finish(&mut command, LIMIT).exits(0).prints("well");
        assert!(
            begun.elapsed() < Duration::from_secs(40),
            "{:?}",
            begun.elapsed()
        );
        nothing_is_left(&scene);
        if function != "shutdown" {
            assert_eq!(
                last(&scene).memory_used,
                Reading::Unavailable(Reason::NotYet),
                "{function}"
            );
        }
    }
}

#[test]
fn the_probe_has_nothing_of_the_command_and_none_of_its_terminal() {
    let scene = scene(AT_WORK);
    let mut child = scene.start(&mut run(&scene, UNTIL_OVER));
    // By then it has opened what it needs, and closed what it needed to get there.
    until_used(&scene, 18_000);
    let probe = probe(&scene);
    let links: Vec<PathBuf> = fs::read_dir(format!("/proc/{probe}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .collect();
    let is_its_own = |link: &PathBuf| {
        let name = link.to_string_lossy();
        name == "/dev/null"
            || name.contains("antifreeze-page")
            || name.contains("antifreeze-state")
            || name.starts_with(&*scene.path("driver").to_string_lossy())
    };
    assert!(links.iter().all(is_its_own), "{links:?}");
    let stat = fs::read_to_string(format!("/proc/{probe}/stat")).unwrap();
    let session: u32 = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(3)
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(session, probe);
    over(&scene);
    // It is none of the command's: nobody waits for it, and nobody says so.
    scene
        .ended(child.wait().unwrap())
        .exits(0)
        .never_tells("still run");
    nothing_is_left(&scene);
}

#[test]
fn a_killed_front_takes_no_reading_away() {
    let scene = scene(AT_WORK);
    let mut child = scene.start(&mut run(&scene, UNTIL_OVER));
    scene.until("a reading", LIMIT, || {
        recorded(&scene)
            .last()
            .is_some_and(|cards| cards.memory_used.value().is_some())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    answer(&scene, "20000 24000 90 60 300 450 0\n");
    until_used(&scene, 20_000);
    over(&scene);
    nothing_is_left(&scene);
}

#[test]
fn a_guard_that_is_replaced_reads_on_and_does_not_take_the_probe_for_a_part_of_the_command() {
    let scene = scene(AT_WORK);
    let script = format!("touch begun; {UNTIL_OVER}; exit 6");
    let mut child = scene.start(&mut run(&scene, &script));
    scene.until("its start", LIMIT, || scene.path("begun").exists());
    let (probe, first) = (probe(&scene), guard(&scene));
    kill(first);
    scene.until("another guard", LIMIT, || {
        !scene.living().contains(&first)
            && fs::read_to_string(scene.path("stderr")).is_ok_and(|said| said.contains("replaced"))
    });
    answer(&scene, "20000 24000 90 60 300 450 0\n");
    until_used(&scene, 20_000);
    assert_eq!(probes(&scene), [probe]);
    over(&scene);
    scene
        .ended(child.wait().unwrap())
        .exits(6)
        .never_tells("still run");
    nothing_is_left(&scene);
}

#[test]
fn a_probe_that_nobody_needs_ends_though_the_driver_hangs() {
    let scene = scene(&format!("hang memory\n{AT_WORK}"));
    let mut child = scene.start(&mut run(&scene, &format!("touch begun; {UNTIL_OVER}")));
    let probe = probe(&scene);
    scene.until("its start", LIMIT, || scene.path("begun").exists());
    let guard = guard(&scene);
    // The front first: it would start another guard.
    child.kill().unwrap();
    child.wait().unwrap();
    kill(guard);
    scene.until("its end", LIMIT, || !scene.living().contains(&probe));
    over(&scene);
    nothing_is_left(&scene);
}

#[test]
fn a_dead_probe_is_no_loss_to_the_run_and_leaves_no_zombie() {
    let scene = scene(AT_WORK);
    let mut child = scene.start(&mut run(&scene, &format!("{UNTIL_OVER}; exit 4")));
    let probe = probe(&scene);
    kill(probe);
    scene.until("its place in the process table", LIMIT, || {
        !Path::new(&format!("/proc/{probe}")).exists()
    });
    over(&scene);
    scene.ended(child.wait().unwrap()).exits(4);
    nothing_is_left(&scene);
}

#[test]
fn an_attached_run_is_read_too() {
    let scene = scene(AT_WORK);
    let mut theirs = scene.command("sleep").arg("60").spawn().unwrap();
    let mut attach = scene.antifreeze();
    under_driver(&scene, &mut attach);
    attach.args(["attach", &theirs.id().to_string()]);
    let mut child = scene.start(&mut attach);
    scene.until("a reading", LIMIT, || {
        recorded(&scene)
            .last()
            .is_some_and(|cards| cards.memory_used.value().is_some())
    });
    theirs.kill().unwrap();
    theirs.wait().unwrap();
    scene.ended(child.wait().unwrap()).exits(0);
    nothing_is_left(&scene);
}

#[test]
fn without_a_driver_there_is_no_probe() {
    if ["/proc/driver/nvidia/version", "/dev/nvidiactl"]
        .iter()
        .any(|sign| Path::new(sign).exists())
    {
        return eprintln!("skipped: there is a driver here");
    }
    let scene = Scene::new();
    let mut child =
        scene.start(
            scene
                .antifreeze()
                .args(["run", "--", "sh", "-c", "touch begun; sleep 1"]),
        );
    scene.until("its start", LIMIT, || scene.path("begun").exists());
    assert!(probes(&scene).is_empty());
    child.wait().unwrap();
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("a process number");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
}
