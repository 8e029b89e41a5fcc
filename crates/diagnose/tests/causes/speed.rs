//! Why it was slow, or stood still.

use crate::scenes::{GB, MB, Scene};
use crate::{blames, is_healthy, rules_out, spares};
use antifreeze_diagnose::run::stacks::Stacks;
use antifreeze_diagnose::run::wait_states::WaitStates;
use antifreeze_diagnose::{Code, RunState};
use antifreeze_sense::{Phase, Process, Reading, Sample};

/// A run that ends well, with something done to every look.
fn went(seconds: u64, shape: impl Fn(u64, &mut Sample)) -> Scene {
    let mut scene = Scene::new().steady(seconds, 2 * GB);
    for (second, sample) in (0..).zip(&mut scene.samples) {
        sample.cpu.core_count = 4;
        shape(second, sample);
    }
    scene
}

fn waiting(share: u64) -> Scene {
    went(200, |_, _| {})
        .trained(
            |second| second * 5 + 1,
            move |second| {
                if second % 10 < share {
                    Phase::Data
                } else {
                    Phase::Forward
                }
            },
        )
        .ended(200, 0)
}

#[test]
fn a_training_that_waits_for_its_data_is_told() {
    blames(&waiting(7), Code::InputBound, 0.8);
    rules_out(&waiting(0), Code::InputBound);
    is_healthy(&waiting(2));
}

#[test]
fn a_disk_that_everything_waits_for_is_told_with_its_mount() {
    let slow = |stalled: u64, remote: u64| {
        went(100, move |second, sample| {
            sample.pressure.io_full_us = Reading::Value(second * stalled);
            sample.tree.read_bytes = Reading::Value(second * 3 * MB);
            sample.disk.network = Reading::Value(remote);
        })
        .ended(100, 0)
    };
    blames(&slow(500_000, 0), Code::SlowStorage, 0.6);
    let mut remote = slow(500_000, 1);
    remote.facts.mount = Some("nfs4 server:/home on /home".into());
    blames(&remote, Code::SlowStorage, 0.8);
    let evidence = remote.verdict().causes[0].evidence.clone();
    assert!(
        evidence
            .iter()
            .any(|evidence| evidence.text.ends_with("server:/home on /home"))
    );
    is_healthy(&slow(20_000, 1));
}

#[test]
fn more_tasks_than_cores_are_told_where_they_wait() {
    let busy = |runnable: u64, waits: u64| {
        went(100, move |second, sample| {
            sample.cpu.runnable = Reading::Value(runnable);
            sample.pressure.cpu_some_us = Reading::Value(second * waits);
            sample.tree.cpu = Reading::Value(second * 390);
            sample.tree.threads = Reading::Value(64);
        })
        .ended(100, 0)
    };
    blames(&busy(30, 900_000), Code::CpuOversubscribed, 0.75);
    rules_out(&busy(4, 300_000), Code::CpuOversubscribed);
    is_healthy(&busy(6, 900_000));
}

/// A training that makes steps for a minute, and then none; `busy` hundredths of a core.
fn stuck(seconds: u64, busy: u64, phase: Phase) -> Scene {
    let mut scene = went(60 + seconds, |second, sample| {
        sample.tree.cpu = Reading::Value(second.min(60) * 100 + second.saturating_sub(60) * busy);
        sample.tree.read_bytes = Reading::Value(7);
    })
    .trained(|second| second.min(60) + 1, move |_| phase);
    scene.facts.state = RunState::StillGuarded;
    scene
}

#[test]
fn nobody_at_work_and_no_step_is_a_deadlock() {
    blames(&stuck(180, 0, Phase::Data), Code::Deadlock, 0.6);
    // Not long enough; and at work.
    is_healthy(&stuck(30, 0, Phase::Forward));
    spares(&stuck(180, 100, Phase::Forward), Code::Deadlock);
}

/// A run whose steps are not known, and which has done nothing for two minutes.
fn idle(waits: &str, wakes: u64) -> Scene {
    let mut scene = went(120, |_, sample| {
        sample.tree.cpu = Reading::Value(500);
        sample.tree.read_bytes = Reading::Value(7);
    });
    scene.facts.state = RunState::StillGuarded;
    let stack = "Current thread 0x1 (most recent call first):
  File \"/usr/lib/python3.11/threading.py\", line 320 in wait
  File \"train.py\", line 12 in next_batch

";
    scene.facts.stacks = Stacks::parse(77, stack.repeat(3).as_bytes());
    let look = |second: u64| {
        let at = second * 1_000_000_000;
        let switches = second * wakes;
        format!(
            "{{\"at\":{at},\"switches\":{switches},\"mains\":[{{\"pid\":77,\"waits\":\"{waits}\"}}]}}\n"
        )
    };
    scene.facts.wait_states = WaitStates::parse((look(60) + &look(63)).as_bytes());
    scene
}

#[test]
fn without_steps_what_it_waits_for_tells() {
    for waits in ["lock", "poll", "pipe", "child"] {
        blames(&idle(waits, 0), Code::Deadlock, 0.8);
    }
    let location = idle("lock", 0).verdict().causes[0]
        .location
        .clone()
        .unwrap();
    assert_eq!((location.file.as_str(), location.line), ("train.py", 12));
    for status in [(128 + 2) << 8, (128 + 15) << 8, 2] {
        blames(&idle("lock", 0).ended(120, status), Code::Deadlock, 0.8);
    }
    spares(&idle("lock", 0).ended(120, 1 << 8), Code::Deadlock);
    for waits in ["input", "time", "network"] {
        is_healthy(&idle(waits, 0));
        rules_out(&idle(waits, 0), Code::Deadlock);
    }
    // Somebody may still be at work there, and slowly.
    let confidence = |scene: Scene| scene.verdict().causes[0].confidence;
    assert!(confidence(idle("lock", 10)) < 0.8);
    assert!(confidence(idle("nothing", 0)) < 0.8);
    let mut stopped = idle("lock", 0);
    stopped = stopped.last(|sample| {
        sample.processes.push(Process {
            state: b'T',
            ..Process::default()
        });
    });
    spares(&stopped, Code::Deadlock);
}

#[test]
fn a_core_at_work_and_no_step_may_be_a_loop() {
    let scene = stuck(180, 100, Phase::Forward);
    blames(&scene, Code::InfiniteLoop, 0.5);
    // Whoever lost patience with it is not why.
    let interrupted = "Traceback (most recent call last):\n  File \"train.py\", line 3, in f\nKeyboardInterrupt\n";
    let given_up = stuck(180, 100, Phase::Forward)
        .printed(interrupted)
        .ended(180, 2);
    blames(&given_up, Code::InfiniteLoop, 0.5);
    assert!(scene.verdict().causes[0].confidence <= 0.6);
    // A long evaluation is nothing.
    is_healthy(&stuck(180, 100, Phase::Evaluation));
}

#[test]
fn cores_that_are_slowed_for_heat_are_told() {
    let hot = |times: u64| {
        went(120, move |second, sample| {
            sample.thermal.throttle_count = Reading::Value(second * times);
        })
        .ended(120, 0)
    };
    blames(&hot(3), Code::ThermalThrottle, 0.5);
    is_healthy(&hot(0));
}

#[test]
fn a_machine_that_went_down_without_a_word_is_told_as_such() {
    let mut scene = Scene::new().steady(300, 4 * GB);
    is_running(&mut scene, RunState::Rebooted);
    blames(&scene, Code::MachineReset, 0.5);
    rules_out(&scene, Code::ThermalThrottle);
    rules_out(&scene, Code::SwapThrash);
    is_running(&mut scene, RunState::StillGuarded);
    is_healthy(&scene);
}

fn is_running(scene: &mut Scene, since: RunState) {
    scene.facts.state = since;
}
