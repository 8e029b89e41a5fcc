//! What the graphics cards themselves tell.

use crate::scenes::{EXIT_1, GB, MB, Scene};
use crate::{blames, is_healthy, rules_out, spares};
use antifreeze_diagnose::kernel::{Log, incidents};
use antifreeze_diagnose::{Code, RunState};
use antifreeze_sense::{Gpus, Phase, Reading, Reason};

const OUT: &str = "Traceback (most recent call last):\n  File \"t.py\", line 3, in f\n\
    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n";
const SOFTWARE_POWER_CAP: u64 = 0x4;
const HARDWARE: u64 = 0x8;
const SOFTWARE_HEAT: u64 = 0x20;
const HARDWARE_HEAT: u64 = 0x40;
const POWER_BRAKE: u64 = 0x80;

fn holds(cards: &mut Gpus, used: u64) {
    cards.memory_used = Reading::Value(used);
    cards.fullest_permille = Reading::Value(used * 1000 / (24 * GB));
}

/// Five minutes of training on a card that holds so much at each second.
fn trained(used: impl Fn(u64) -> u64) -> Scene {
    Scene::new()
        .steady(300, 4 * GB)
        .card(move |second, cards| holds(cards, used(second)))
        .trained(|second| second * 5 + 1, |_| Phase::Forward)
}

fn evidence(scene: &Scene) -> String {
    let verdict = scene.verdict();
    let texts: Vec<&str> = verdict.causes[0]
        .evidence
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    texts.join("\n")
}

fn confidence(scene: &Scene, code: Code) -> f64 {
    let causes = scene.verdict().causes;
    let found = causes.iter().find(|cause| cause.code == code);
    found.map_or(0.0, |cause| cause.confidence)
}

#[test]
fn the_peak_of_the_cards_memory_is_in_the_verdict_and_null_where_it_was_not_read() {
    let scene = trained(|second| 10 * GB + second % 7 * GB).ended(300, 0);
    assert_eq!(scene.verdict().peak.vram_bytes, Some(16 * GB));
    let unread = Scene::new().steady(300, 4 * GB).ended(300, 0);
    assert_eq!(unread.verdict().peak.vram_bytes, None);
}

#[test]
fn a_card_that_runs_out_is_told_with_what_it_held() {
    let step = |second: u64| (second * 3 * GB).min(23_400 * MB);
    let scene = Scene::new()
        .steady(20, 4 * GB)
        .card(move |second, cards| holds(cards, step(second)))
        .printed(OUT)
        .ended(20, EXIT_1);
    blames(&scene, Code::VramExhausted, 0.9);
    assert!(
        evidence(&scene).contains("23.4 of 24 GB of GPU memory used at the end"),
        "{}",
        evidence(&scene)
    );
}

#[test]
fn a_cards_memory_that_grows_with_the_steps_until_it_is_full_is_a_leak() {
    // All is let go before the last look.
    let leak = |second: u64| match second {
        296.. => 400 * MB,
        _ => 3 * GB + second * 70 * MB,
    };
    let scene = trained(leak).printed(OUT).ended(300, EXIT_1);
    blames(&scene, Code::VramLeak, 0.75);
    let told = evidence(&scene);
    assert!(
        told.contains("grew 14 MB a step until it was full"),
        "{told}"
    );
    assert!(
        told.contains("of 24 GB of GPU memory used at the end"),
        "{told}"
    );
    assert!(confidence(&scene, Code::VramExhausted) < 0.5);
}

#[test]
fn a_leak_on_one_of_several_cards_is_seen_though_the_others_have_room() {
    let used = |second: u64| 3 * GB + second * 70 * MB;
    let leak = Scene::new()
        .steady(300, 4 * GB)
        .card(move |second, cards| {
            cards.memory_used = Reading::Value(used(second) + 600 * MB);
            cards.memory_total = Reading::Value(96 * GB);
            cards.fullest_permille = Reading::Value(used(second) * 1000 / (24 * GB));
            cards.count = Reading::Value(4);
        })
        .trained(|second| second * 5 + 1, |_| Phase::Forward)
        .printed(OUT)
        .ended(300, EXIT_1);
    blames(&leak, Code::VramLeak, 0.75);
    assert!(
        evidence(&leak)
            .contains("of 96 GB of GPU memory used at the end, 100 % on the fullest GPU"),
        "{}",
        evidence(&leak)
    );
}

#[test]
fn a_cache_on_the_card_that_levels_off_is_no_leak() {
    let levels = |second: u64| (GB + second * 700 * MB).min(22 * GB) + second % 3 * 2 * MB;
    let scene = trained(levels).printed(OUT).ended(300, EXIT_1);
    rules_out(&scene, Code::VramLeak);
    blames(&scene, Code::VramExhausted, 0.8);
    is_healthy(&trained(levels).ended(300, 0));
    // What takes all of the card at once shows nothing of what is in it.
    let jax = "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate on GPU_0_bfc\n";
    let scene = trained(|_| 18 * GB).printed(jax).ended(300, EXIT_1);
    let ruled_out = scene.verdict().ruled_out;
    assert!(
        ruled_out.iter().all(|ruled| ruled.code != Code::VramLeak),
        "{ruled_out:#?}"
    );
}

#[test]
fn growth_that_ends_well_or_far_from_full_is_none() {
    is_healthy(&trained(|second| 3 * GB + second * 68 * MB).ended(300, 0));
    let small = trained(|second| 3 * GB + second * 20 * MB).ended(300, 9);
    spares(&small, Code::VramLeak);
}

/// Ten steps a second while there is room, and then so many.
fn filled(then: u64, full: u64) -> Scene {
    Scene::new()
        .steady(300, 4 * GB)
        .card(move |second, cards| {
            cards.fullest_permille = Reading::Value(if second < 100 { 800 } else { full });
        })
        .trained(
            move |second| 1 + second.min(100) * 10 + second.saturating_sub(100) * then,
            |_| Phase::Forward,
        )
        .ended(300, 0)
}

#[test]
fn a_full_card_on_which_steps_become_much_slower_may_spill() {
    let scene = filled(2, 990);
    blames(&scene, Code::VramSpill, 0.4);
    assert!(confidence(&scene, Code::VramSpill) < 0.6);
    // As fast as before; and slower, but with room.
    is_healthy(&filled(9, 990));
    is_healthy(&filled(2, 900));
}

fn slowed(bits: u64, every: u64) -> Scene {
    Scene::new()
        .steady(300, 4 * GB)
        .card(move |second, cards| {
            cards.hottest_millidegrees = Reading::Value(87_000);
            cards.throttle_bits = Reading::Value(match second % every {
                0 => bits,
                _ => SOFTWARE_POWER_CAP,
            });
        })
        .ended(300, 0)
}

#[test]
fn a_card_that_is_slowed_for_heat_for_long_is_told() {
    for bits in [SOFTWARE_HEAT, HARDWARE | HARDWARE_HEAT] {
        let scene = slowed(bits, 3);
        blames(&scene, Code::ThermalThrottle, 0.6);
        assert!(
            evidence(&scene).contains("33 % of the time, 87 °C at most"),
            "{}",
            evidence(&scene)
        );
        spares(&scene, Code::PowerLimit);
    }
    is_healthy(&slowed(SOFTWARE_HEAT, 40));
}

#[test]
fn a_card_that_its_power_supply_slows_is_told_and_one_at_its_own_limit_is_not() {
    blames(&slowed(HARDWARE | POWER_BRAKE, 3), Code::PowerLimit, 0.6);
    blames(&slowed(HARDWARE, 3), Code::PowerLimit, 0.4);
    is_healthy(&slowed(SOFTWARE_POWER_CAP, 1));
    is_healthy(&slowed(HARDWARE, 40));
}

/// The machine went down under a card that drew so many watts; the log is there, and silent.
fn died(watts: u64) -> Scene {
    let mut scene = Scene::new().steady(300, 4 * GB).card(move |_, cards| {
        cards.power_microwatts = Reading::Value(watts * 1_000_000);
        cards.throttle_bits = Reading::Value(SOFTWARE_POWER_CAP);
    });
    scene.facts.state = RunState::Rebooted;
    scene.facts.log.read = vec!["the kernel's log".into()];
    scene
}

#[test]
fn a_machine_that_died_with_its_card_at_the_limit_most_likely_lacked_power() {
    let scene = died(447);
    blames(&scene, Code::MachineReset, 0.7);
    let verdict = scene.verdict();
    let cause = &verdict.causes[0];
    assert!(
        cause
            .summary
            .starts_with("most likely power: the GPU drew 447 of 450 W at 61 °C"),
        "{}",
        cause.summary
    );
    assert!(
        cause.summary.ends_with("nothing in the kernel's log"),
        "{}",
        cause.summary
    );
    assert_eq!(
        cause.remedies[0].code.as_deref(),
        Some("sudo nvidia-smi -pl 350")
    );
    assert_eq!(
        verdict.unseen.iter().find(|text| text.starts_with("power")),
        None
    );
}

#[test]
fn another_reason_to_die_is_not_put_down_to_power() {
    let summary = |scene: Scene| scene.verdict().causes[0].summary.clone();
    let is_power = |scene: Scene| summary(scene).starts_with("power");
    assert!(!is_power(died(200)));
    // Hot, or out of memory.
    assert!(!is_power(died(447).last(|sample| {
        sample.gpus.hottest_millidegrees = Reading::Value(92_000)
    })));
    let short = died(447).last(|sample| sample.memory.available = Reading::Value(90 * MB));
    assert!(
        short
            .verdict()
            .causes
            .iter()
            .all(|cause| !cause.summary.starts_with("power"))
    );
    // The kernel knows better.
    let mut panicked = died(447);
    let line = b"[ 1298.000000] Kernel panic - not syncing: Fatal exception\n";
    panicked.facts.log = Log {
        incidents: incidents(line, jiff::Timestamp::UNIX_EPOCH),
        read: vec!["the kernel's log".into()],
        missing: Vec::new(),
    };
    blames(&panicked, Code::KernelPanic, 0.9);
    assert!(
        panicked
            .verdict()
            .causes
            .iter()
            .all(|cause| !cause.summary.starts_with("power"))
    );
}

/// A training on a device that waits for data for most of the time, with a card that is so busy.
fn waiting(device: &str, busy: u64) -> Scene {
    Scene::new()
        .steady(200, 2 * GB)
        .card(move |_, cards| cards.busy_percent = Reading::Value(busy))
        .trained(
            |second| second * 5 + 1,
            |second| match second % 10 {
                0..7 => Phase::Data,
                _ => Phase::Forward,
            },
        )
        .said(&format!(
            r#"{{"what":"hello","framework":"torch","version":"2.8","device":"{device}","batch":32}}"#
        ))
        .ended(200, 0)
}

#[test]
fn a_card_that_idles_speaks_for_a_lack_of_data_and_one_at_work_against_it() {
    let idle = waiting("cuda:0", 31);
    blames(&idle, Code::InputBound, 0.8);
    assert!(
        evidence(&idle).contains("busy for 31 % of the time"),
        "{}",
        evidence(&idle)
    );
    rules_out(&waiting("cuda:0", 96), Code::InputBound);
    // On the processor, the card has no say.
    let elsewhere = waiting("cpu", 96);
    blames(&elsewhere, Code::InputBound, 0.8);
    assert!(!evidence(&elsewhere).contains("GPU"));
}

fn lost(at: u64) -> Scene {
    Scene::new().steady(300, 4 * GB).card(move |second, cards| {
        if second >= at {
            *cards = Gpus {
                lost: Reading::Value(1),
                count: Reading::Value(0),
                ..Gpus::unavailable(Reason::Gone)
            };
        }
    })
}

#[test]
fn a_card_that_falls_off_the_bus_is_told_by_its_driver() {
    let cuda = "RuntimeError: CUDA error: unknown error\n";
    blames(
        &lost(280).printed(cuda).ended(300, EXIT_1),
        Code::GpuLost,
        0.85,
    );
    // It was lost before the run; and the run did not need it.
    spares(&lost(0).printed(cuda).ended(300, EXIT_1), Code::GpuLost);
    is_healthy(&lost(280).ended(300, 0));
}

fn silent(from: u64) -> Scene {
    Scene::new().steady(300, 4 * GB).card(move |second, cards| {
        if second >= from {
            *cards = cards.into_stale();
        }
    })
}

#[test]
fn a_driver_that_answers_no_more_may_have_lost_its_card() {
    let scene = silent(200).ended(300, 9);
    let found = confidence(&scene, Code::GpuLost);
    assert!((0.3..0.6).contains(&found), "{found}");
    is_healthy(&silent(200).ended(300, 0));
    let failing = Scene::new().steady(300, 4 * GB).card(|second, cards| {
        if second >= 200 {
            *cards = Gpus::unavailable(Reason::Failed);
        }
    });
    assert!((0.3..0.6).contains(&confidence(&failing.ended(300, 9), Code::GpuLost)));
    // A card that fell asleep did not fall off.
    let asleep = Scene::new().steady(300, 4 * GB).card(|second, cards| {
        if second >= 200 {
            *cards = Gpus::unavailable(Reason::Absent);
        }
    });
    spares(&asleep.ended(300, 9), Code::GpuLost);
    // It never answered: nothing was lost. And whoever asks it may have been out of memory himself.
    spares(&silent(0).ended(300, 9), Code::GpuLost);
    let short = silent(200)
        .refused(299, 40 * MB, 12 * GB)
        .ended(300, EXIT_1);
    spares(&short, Code::GpuLost);
}

#[test]
fn what_could_not_be_seen_of_cards_is_said_when_the_machine_died() {
    let unseen = |mut scene: Scene| {
        scene.facts.state = RunState::Rebooted;
        scene.verdict().unseen.join("\n")
    };
    let nothing = unseen(Scene::new().steady(300, 4 * GB));
    assert!(
        nothing.contains("GPUs: only those of NVIDIA and AMD are read, and there is none"),
        "{nothing}"
    );
    assert!(
        nothing.contains("power: no GPU reports its power draw"),
        "{nothing}"
    );
    let hung = unseen(silent(200));
    assert!(
        hung.contains("GPUs: their driver stopped responding"),
        "{hung}"
    );
    let well = unseen(silent(300));
    assert!(!well.contains("GPUs") && !well.contains("power"), "{well}");
}
