//! The shim in real trainers: scripts as people write them, wrong and right, from `examples/pairs/`.
//!
//! They need an interpreter that has the frameworks: `ANTIFREEZE_TEST_PYTHON` names it.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use support::{Ended, Scene, example, line_of, train};

/// Importing a framework from a cold disk takes most of it.
const LIMIT: Duration = Duration::from_secs(400);

/// What a script that is wrong came to: the first cause, with its line looked up by its text.
struct Wrong {
    scene: Scene,
    ended: Ended,
    script: PathBuf,
}

impl Wrong {
    fn run(budget: &str, name: &str) -> Option<Wrong> {
        let scene = Scene::new();
        let file = format!("pairs/{name}_bad.py");
        let mut run = train(&scene, budget, &[], &file)?;
        let ended = scene.finish(&mut run, LIMIT);
        Some(Wrong {
            scene,
            ended,
            script: example(&file),
        })
    }

    #[track_caller]
    fn blames(&self, code: &str, line: &str, name: Option<&str>) -> Value {
        let verdict = self.scene.verdict();
        let cause = &verdict["causes"][0];
        let found = (
            &cause["code"],
            &cause["location"]["line"],
            &cause["location"]["name"],
        );
        let line = Value::from(line_of(&self.script, line));
        let expected = (&Value::from(code), &line, &Value::from(name));
        assert_eq!(found, expected, "{verdict:#}\n{}", self.ended);
        verdict
    }
}

#[track_caller]
fn runs_clean(budget: &str, name: &str) {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, budget, &[], &format!("pairs/{name}_good.py")) else {
        return;
    };
    let ended = scene.finish(&mut run, LIMIT);
    ended.exits(0).prints("done");
    let ours = ended
        .stderr
        .lines()
        .filter(|line| line.contains("antifreeze"));
    let ours: Vec<&str> = ours.collect();
    assert_eq!(ours.len(), 2, "{ended}");
    assert!(ours[0].starts_with("antifreeze: guarding "), "{ended}");
    assert!(ours[1].starts_with("antifreeze: finished in "), "{ended}");
}

#[test]
fn a_list_that_keeps_every_step_is_named_and_the_run_is_saved() {
    let Some(wrong) = Wrong::run("1GB", "history") else {
        return;
    };
    wrong.ended.exits(1).tells("DefaultCPUAllocator");
    let verdict = wrong.blames("memory-leak", "history.append", Some("history"));
    assert_eq!(verdict["end"]["kind"], "walled", "{verdict}");
    // What PyTorch's libraries have mapped and nobody touches is not held against it.
    let peak = verdict["peak"]["tree_bytes"].as_u64().unwrap();
    assert!((850..=1000).contains(&(peak / 1_000_000)), "{verdict}");
    // Saved at the wall, after the last step that was made.
    let steps = verdict["steps"]["count"].as_u64().unwrap();
    wrong.ended.tells(&format!("step-{steps}.pt"));
}

#[test]
fn a_sum_that_keeps_the_graph_of_every_step_is_named() {
    let Some(wrong) = Wrong::run("1GB", "graph") else {
        return;
    };
    wrong.ended.exits(1);
    wrong.blames("memory-leak", "total += loss", Some("total"));
}

#[test]
fn a_batch_that_is_the_whole_dataset_fails_at_its_line() {
    let Some(wrong) = Wrong::run("1200MB", "batch") else {
        return;
    };
    wrong.ended.exits(1).tells("antifreeze: refused 819 MB");
    wrong.blames("batch-too-large", "loss = (model(inputs)", None);
}

#[test]
fn a_dataset_that_is_read_into_a_list_is_named() {
    let Some(wrong) = Wrong::run("1GB", "dataset") else {
        return;
    };
    wrong.ended.exits(1);
    wrong.blames("dataset-in-memory", "samples.append", Some("samples"));
}

#[test]
fn a_loss_that_is_no_number_is_told_with_its_step() {
    let Some(wrong) = Wrong::run("1GB", "loss") else {
        return;
    };
    wrong
        .ended
        .exits(0)
        .prints("done")
        .tells("NaN or infinite loss, sure (95 %): the ");
    // The loss, or its gradient: whichever a look comes upon first.
    let verdict = wrong.scene.verdict();
    let cause = &verdict["causes"][0];
    let is_loss = cause["summary"].as_str().unwrap().starts_with("the loss");
    let place = if is_loss {
        "loss.backward()"
    } else {
        "optimizer.step()"
    };
    wrong.blames("numeric-nan", place, None);
    // Steps are so short that not every loss is looked at: it was the 40th.
    let summary = verdict["causes"][0]["summary"].as_str().unwrap();
    let steps: Vec<u32> = summary
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(steps[0] <= 40 && *steps.last().unwrap() >= 40, "{summary}");
}

#[test]
fn a_keras_batch_that_is_too_large_is_caught() {
    let Some(wrong) = Wrong::run("1500MB", "keras_batch") else {
        return;
    };
    wrong
        .ended
        .exits(0)
        .prints("too large for the memory: going on")
        .prints("done");
    let verdict = wrong.scene.verdict();
    assert_eq!(verdict["causes"][0]["code"], "batch-too-large", "{verdict}");
}

#[test]
fn a_tensorflow_loop_that_keeps_its_predictions_is_saved_and_stopped_before_it_dies() {
    let Some(wrong) = Wrong::run("1200MB", "keras_tape") else {
        return;
    };
    wrong
        .ended
        .exits(75)
        .tells("antifreeze: checkpoint saved in")
        .tells("antifreeze: asked the run to stop after this step")
        .tells("antifreeze.MemoryPressure")
        .never_tells("SIG");
    let verdict = wrong.blames("memory-leak", "kept.append", Some("kept"));
    assert_eq!(verdict["end"]["kind"], "stopped", "{verdict}");
}

#[test]
fn arrays_of_jax_that_are_kept_are_named() {
    let Some(wrong) = Wrong::run("1GB", "jax") else {
        return;
    };
    wrong.ended.exits(1).tells("Out of memory allocating");
    wrong.blames("memory-leak", "norms.append", Some("norms"));
}

#[test]
fn what_is_right_hears_nothing() {
    for name in ["history", "graph", "dataset", "loss", "jax"] {
        runs_clean("1GB", name);
    }
}

#[test]
fn what_is_right_and_larger_hears_nothing() {
    for (budget, name) in [
        ("1200MB", "batch"),
        ("1500MB", "keras_batch"),
        ("1200MB", "keras_tape"),
    ] {
        runs_clean(budget, name);
    }
}

#[test]
fn a_run_that_can_go_on_gets_through_in_several_starts() {
    let scene = Scene::new();
    let flags = ["--retries", "8"];
    let Some(mut run) = train(&scene, "900MB", &flags, "torch_resume.py") else {
        return;
    };
    let ended = scene.finish(&mut run, LIMIT);
    ended
        .exits(0)
        .prints("begins at step 0\n")
        .prints("done: loss ")
        .tells("antifreeze: restarting from ");
    // Each start goes on where the one before it was ended.
    let begins = ended.stdout.lines().filter_map(|line| {
        let step = line.strip_prefix("begins at step ")?;
        step.parse().ok()
    });
    let begins: Vec<u64> = begins.collect();
    assert!(begins.len() >= 2 && begins.is_sorted(), "{ended}");
    let at_wall: Vec<&str> = ended.stderr.split("restarting from ").skip(1).collect();
    for (told, step) in at_wall.iter().zip(&begins[1..]) {
        assert!(
            told.lines()
                .next()
                .unwrap()
                .contains(&format!("step-{step}.pt")),
            "{ended}"
        );
    }
}

#[test]
fn a_run_that_cannot_go_on_is_not_started_again_in_vain() {
    let scene = Scene::new();
    let flags = ["--retries", "3"];
    let Some(mut run) = train(&scene, "1GB", &flags, "pairs/graph_bad.py") else {
        return;
    };
    scene
        .finish(&mut run, LIMIT)
        .exits(1)
        .tells("antifreeze: not restarted: the script does not call antifreeze.resume()")
        .never_tells("restarting from");
}

#[test]
fn a_script_that_takes_the_request_to_end_for_an_error_of_its_own_is_asked_by_a_signal() {
    let scene = Scene::new();
    let script = scene.script("train.py", GOES_ON);
    let Some(mut run) = train(&scene, "1500MB", &[], script.to_str().unwrap()) else {
        return;
    };
    scene
        .finish(&mut run, LIMIT)
        .exits(75)
        .prints("goes on after MemoryPressure")
        .tells("asked the run to stop after this step: it has used up its budget")
        .never_tells("killed the run");
}

/// What it grows by is shared, so that no wall stops it.
const GOES_ON: &str = "\
import time
import torch
model = torch.nn.Linear(100, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
shared = []
for step in range(2000):
    try:
        shared.append(torch.ones(1 << 20).share_memory_())
        optimizer.zero_grad()
        model(torch.randn(32, 100)).pow(2).mean().backward()
        optimizer.step()
        time.sleep(0.02)
    except MemoryError as error:
        print('goes on after', type(error).__name__, flush=True)
";

/// What was said while it ran is what `runs show`, the verdict and the report say afterwards: the same save, the same
/// number of elements at the same moment, and no name that holds more than the run ever did.
#[test]
fn a_record_says_later_what_was_said_live() {
    let scene = Scene::new();
    let Some(mut run) = train(&scene, "1500MB", &[], "pairs/history_bad.py") else {
        return;
    };
    let ended = scene.finish(&mut run, LIMIT);
    let shown = scene.shown();
    let html = scene.path("page.html");
    let mut explain = scene.antifreeze();
    explain.args(["explain", "--html"]).arg(&html);
    scene.finish(&mut explain, LIMIT).exits(0);
    let page = std::fs::read_to_string(&html).unwrap();
    let page = page.replace("<code>", "`").replace("</code>", "`");
    let live: Vec<&str> = ended
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("antifreeze: "))
        .filter(|line| line.contains("memory grows") || line.contains("checkpoint saved"))
        .collect();
    assert!(
        live.iter().any(|line| line.contains("checkpoint saved")),
        "{ended}"
    );
    for line in live {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains(&words), "{words}\n{shown}");
        let escaped = words.replace('\'', "&#39;");
        assert!(
            page.contains(&words) || page.contains(&escaped),
            "{words}\n{page}"
        );
    }
    // The file that is named as the last save is there; once it is deleted, it is named no more.
    let saves = std::fs::read_dir(scene.path("home/runs"))
        .unwrap()
        .map(|run| run.unwrap().path().join("saves"))
        .find(|saves| saves.is_dir())
        .expect("a save");
    assert!(shown.contains("last save: "), "{shown}");
    std::fs::remove_dir_all(saves).unwrap();
    let later = scene.shown();
    assert!(later.contains("checkpoint saved in "), "{later}");
    assert!(!later.contains("last save: "), "{later}");
    assert!(!later.contains("ANTIFREEZE_RESUME="), "{later}");
}
