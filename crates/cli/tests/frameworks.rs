//! Trainers in PyTorch, NumPy, JAX and TensorFlow under a budget, from `examples/`.
//!
//! They need an interpreter that has these frameworks: `ANTIFREEZE_TEST_PYTHON` names it.
//! Budgets leave about a third above what the healthy part of a script needs, and are far
//! below what its fault asks for, so that another build of a framework changes nothing.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::Duration;
use support::{Scene, example, line_of, train};

/// Importing a framework from a cold disk takes most of it.
const LIMIT: Duration = Duration::from_secs(400);

#[test]
fn pytorch_catches_a_batch_that_is_too_large_and_trains_on() {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, "1200MB", &[], "torch_big_batch.py") else {
        return;
    };
    scene
        .finish(&mut run, LIMIT)
        .exits(0)
        .prints("too large for the memory: going on with a batch of 65536")
        .prints("\nstep 5: ")
        .prints("\ndone\n")
        .tells("antifreeze: refused 1.6 GB to python");
    let verdict = scene.verdict();
    assert_eq!(verdict["end"]["kind"], "finished", "{verdict}");
    assert_eq!(verdict["causes"][0]["code"], "batch-too-large", "{verdict}");
}

#[test]
fn a_step_that_does_not_fit_ends_a_plain_loop_and_is_taken_in_parts_by_the_sdk() {
    let losses = |ended: &support::Ended| -> Vec<f64> {
        let lines = ended.stdout.lines();
        lines
            .filter_map(|line| line.split_once("loss ")?.1.parse().ok())
            .collect()
    };
    let run = |budget: &str, flags: &[&str]| {
        let scene = Scene::new();
        let mut run = train(&scene, budget, &[], "torch_split.py")?;
        let ended = scene.finish(run.args(flags), LIMIT);
        Some((ended, scene.verdict()))
    };
    let Some((whole, _)) = run("4GB", &["--whole"]) else {
        return;
    };
    whole.exits(0).prints("\ndone, 8192 items at a time\n");

    let (dead, verdict) = run("900MB", &["--whole"]).unwrap();
    dead.exits(1)
        .tells("DefaultCPUAllocator: can't allocate memory");
    assert!(losses(&dead).is_empty(), "{dead}");
    assert_eq!(verdict["causes"][0]["code"], "batch-too-large", "{verdict}");

    let (parts, verdict) = run("900MB", &[]).unwrap();
    parts.exits(0).prints("\ndone, ");
    assert_eq!(verdict["end"]["kind"], "finished", "{verdict}");
    assert_eq!(verdict["causes"][0]["code"], "batch-too-large", "{verdict}");
    let (here, there) = (losses(&parts), losses(&whole));
    assert_eq!((here.len(), there.len()), (5, 5), "{parts}");
    for (here, there) in here.iter().zip(there) {
        assert!(
            (here - there).abs() <= 1e-4 * there.abs() + 2e-5,
            "{parts}{whole}"
        );
    }
}

#[test]
fn a_leak_in_pytorch_ends_with_its_own_error_at_the_guilty_line() {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, "1GB", &[], "torch_leak.py") else {
        return;
    };
    let ended = scene.finish(&mut run, LIMIT);
    ended
        .exits(1)
        .tells("DefaultCPUAllocator: can't allocate memory");
    let verdict = scene.verdict();
    assert_eq!(verdict["end"]["kind"], "walled", "{verdict}\n{ended}");
    assert_eq!(verdict["causes"][0]["code"], "memory-leak", "{verdict}");
    // Any line of a step may be the one that does not fit.
    let script = example("torch_leak.py");
    let step = line_of(&script, "inputs = torch.randn")..=line_of(&script, "losses.append((hidden");
    let named = ended.stderr.lines().find_map(line_in_main);
    assert!(named.is_some_and(|line| step.contains(&line)), "{ended}");
    // What the memory was filled with, the linter knows, and where it is kept.
    let remedy = &verdict["causes"][0]["remedies"][0];
    assert_eq!(remedy["docs"], "rules/graph-in-container", "{verdict}");
    let kept_at = line_of(&script, "losses.append((hidden");
    assert_eq!(remedy["edits"][0]["line"], kept_at, "{verdict}");
    let code = remedy["edits"][0]["code"].as_str().unwrap();
    assert!(
        code.starts_with("losses.append((hidden") && code.contains(".detach()"),
        "{verdict}"
    );
}

/// The number in `File "…/torch_leak.py", line 12, in main`.
fn line_in_main(text: &str) -> Option<usize> {
    let (_, rest) = text.split_once("torch_leak.py\", line ")?;
    rest.strip_suffix(", in main")?.parse().ok()
}

#[test]
fn a_leak_in_pytorch_is_caught_and_training_goes_on() {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, "1GB", &[], "torch_leak_caught.py") else {
        return;
    };
    scene
        .finish(&mut run, LIMIT)
        .exits(0)
        .prints("out of memory; dropping")
        .prints("\ndone: 150 steps\n")
        .tells("antifreeze: refused 4.2 MB to python");
}

#[test]
fn a_healthy_pytorch_loader_hears_only_the_opening_and_the_end() {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, "2GB", &[], "torch_loader.py") else {
        return;
    };
    let ended = scene.finish(&mut run, LIMIT);
    ended.exits(0).prints("epoch 3").prints("\ndone\n");
    let heard: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(heard.len(), 2, "{ended}");
    assert!(heard[0].starts_with("antifreeze: guarding "), "{ended}");
    assert!(heard[1].starts_with("antifreeze: finished in "), "{ended}");
}

#[test]
fn numpy_catches_a_dataset_that_does_not_fit_and_reads_it_in_chunks() {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, "600MB", &[], "numpy_dataset.py") else {
        return;
    };
    scene
        .finish(&mut run, LIMIT)
        .exits(0)
        .prints("Unable to allocate 3.74 GiB")
        .prints("20000 of 20000 images read")
        .prints("\ndone: mean 9999.5\n")
        .tells("antifreeze: refused 4 GB to python");
}

#[test]
fn jax_catches_a_batch_that_is_too_large_and_trains_on() {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, "900MB", &[], "jax_big_batch.py") else {
        return;
    };
    scene
        .finish(&mut run, LIMIT)
        .exits(0)
        .prints("too large for the memory: going on with a batch of 131072")
        .prints("\nstep 5: ")
        .prints("\ndone\n")
        .tells("antifreeze: refused 1.1 GB to python");
}

#[test]
fn tensorflow_is_warned_saves_and_is_stopped_before_its_allocator_aborts() {
    let scene = Scene::new();
    let flags = ["--checkpoint-signal", "USR1"];
    let Some(mut run) = train(&scene, "900MB", &flags, "tf_leak.py") else {
        return;
    };
    let ended = scene.finish(&mut run, LIMIT);
    ended
        .exits(75)
        .prints("saved checkpoint.weights.h5")
        .prints("leaving in good order")
        .tells("antifreeze: asked for a checkpoint (SIGUSR1)")
        .tells("antifreeze: checkpoint saved in")
        .tells("antifreeze: asked the run to stop (SIGTERM")
        .never_tells("antifreeze: refused")
        .never_tells("SIGKILL");
    assert!(scene.path("checkpoint.weights.h5").exists(), "{ended}");
    let verdict = scene.verdict();
    assert_eq!(verdict["end"]["kind"], "stopped", "{verdict}");
    // The trainer left of its own accord: no abort, no segmentation fault.
    assert!(verdict["end"]["signal"].is_null(), "{verdict}");
    let shown = scene.shown();
    let at = |words: &str| {
        shown
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {shown}"))
    };
    assert!(at("memory grows") < at("asked for a checkpoint"), "{shown}");
    assert!(
        at("checkpoint saved in") < at("asked the run to stop"),
        "{shown}"
    );
}
