//! Continuing a run from its last checkpoint: every recipe of the docs, and `--resume`.
//!
//! Recipes are taken from docs/shim.md and docs/sdk.md as they stand there. They need an interpreter that has the
//! frameworks: `ANTIFREEZE_TEST_PYTHON` names it.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;
use std::time::Duration;
use support::{Ended, Scene, framework_python, train};

const LIMIT: Duration = Duration::from_secs(580);
/// Steps that each recipe trains.
const STEPS: u64 = 600;
/// Starts of a recipe: three that leak, four that fail at other moments, and one that finishes.
const STARTS: usize = 8;

/// The code of a recipe: the block of Python after its mark.
fn recipe(page: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let mark = format!("<!-- recipe: {name} -->\n```python\n");
    let (_, rest) = text
        .split_once(&mark)
        .unwrap_or_else(|| panic!("{page} has no recipe {name}"));
    rest.split_once("\n```").unwrap().0.to_owned() + "\n"
}

/// The steps at which the starts of a script began.
fn beginnings(ended: &Ended) -> Vec<u64> {
    let lines = ended.stdout.lines();
    lines
        .filter_map(|line| line.strip_prefix("begins at step ")?.parse().ok())
        .collect()
}

/// The script leaks until it is ended, three times in a row. Then it is refused memory in a step, between steps and in
/// validation, and is killed in the middle of a save. Each start continues where the one before it was saved, and the
/// last one finishes.
#[track_caller]
fn gets_through(page: &str, name: &str, faults: &str, budget: &str) {
    let scene = Scene::new();
    let script = scene.script("train.py", &(faults.to_owned() + &recipe(page, name)));
    let retries = (STARTS - 1).to_string();
    let flags = ["--retries", &retries];
    let Some(mut run) = train(&scene, budget, &flags, script.to_str().unwrap()) else {
        return;
    };
    run.env("OMP_NUM_THREADS", "1");
    let ended = scene.finish(&mut run, LIMIT);
    ended.exits(0).prints("finished at step ");
    let begins = beginnings(&ended);
    assert_eq!((begins.len(), begins[0]), (STARTS, 0), "{ended}");
    assert!(begins.is_sorted_by(|one, next| one < next), "{ended}");
    let finished = ended
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("finished at step ")?.parse::<u64>().ok());
    assert!(finished.is_some_and(|step| step >= STEPS), "{ended}");
}

const TORCH_FAULTS: &str = include_str!("recipes/torch_faults.py");
const KERAS_FAULTS: &str = include_str!("recipes/keras_faults.py");

#[test]
fn the_recipe_for_pytorch_gets_through() {
    gets_through("shim.md", "torch", TORCH_FAULTS, "1600MB");
}

#[test]
fn the_recipe_for_a_function_of_the_script_gets_through() {
    gets_through("shim.md", "on_checkpoint", TORCH_FAULTS, "1600MB");
}

#[test]
fn the_recipe_for_lightning_gets_through() {
    gets_through("sdk.md", "lightning", TORCH_FAULTS, "1600MB");
}

#[test]
fn the_recipe_for_the_trainer_gets_through() {
    gets_through("sdk.md", "transformers", TORCH_FAULTS, "1600MB");
}

#[test]
fn the_recipe_for_keras_gets_through() {
    gets_through("sdk.md", "keras", KERAS_FAULTS, "1600MB");
}

/// A plain loop that is refused memory at its third step. `resume` is its line that continues, or nothing.
fn fails_at_third_step(resume: &str) -> String {
    format!(
        "\
import antifreeze, os, torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = 0
{resume}
print('begins at step', step, flush=True)
for step in range(step, step + 5):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    if step % 5 == 2:
        torch.empty(1 << 29)
"
    )
}

const RESUME: &str = "step = antifreeze.resume(model=model, optimizer=optimizer)";

/// `run FLAGS… -- python train.py` in the scene's own folder.
fn run(scene: &Scene, flags: &[&str]) -> Option<Ended> {
    let python = framework_python()?;
    let mut run = scene.run("1600MB");
    run.env("OMP_NUM_THREADS", "1");
    run.args(flags).arg("--").arg(python).arg("train.py");
    Some(scene.finish(&mut run, LIMIT))
}

/// The line of the verdict that begins with `antifreeze run`.
fn offered(ended: &Ended) -> Option<String> {
    let line = ended
        .stderr
        .lines()
        .find(|line| line.contains("antifreeze run "))?;
    let (_, command) = line.split_once("antifreeze run ")?;
    let (command, _) = command.split_once("    (").unwrap_or((command, ""));
    Some(command.trim().to_owned())
}

#[test]
fn the_command_that_the_verdict_offers_continues_the_run() {
    let scene = Scene::new();
    scene.script("train.py", &fails_at_third_step(RESUME));
    let Some(ended) = run(&scene, &[]) else {
        return;
    };
    ended.exits(1).prints("begins at step 0\n");
    let command = offered(&ended).unwrap_or_else(|| panic!("{ended}"));
    let shell = format!("exec \"$ANTIFREEZE\" run {command}");
    let mut again = scene.command("sh");
    again
        .args(["-c", &shell])
        .env("ANTIFREEZE", env!("CARGO_BIN_EXE_antifreeze"));
    let ended = scene.finish(&mut again, LIMIT);
    ended
        .exits(1)
        .prints("begins at step 3\n")
        .tells("antifreeze: continues run ")
        .tells(" from step 3 (");
    // The last run of the command, without its name.
    let ended = run(&scene, &["--resume"]).unwrap();
    let begins = ended.stdout.lines().next().map(str::to_owned);
    assert_eq!(begins.as_deref(), Some("begins at step 8"), "{ended}");
}

#[test]
fn a_script_that_begins_at_step_0_is_shown_the_line_that_it_lacks() {
    let scene = Scene::new();
    scene.script("train.py", &fails_at_third_step(""));
    let Some(ended) = run(&scene, &[]) else {
        return;
    };
    ended.exits(1).tells(RESUME).tells("--resume=");
    // With the line, the command that was offered continues.
    scene.script("train.py", &fails_at_third_step(RESUME));
    run(&scene, &["--resume"])
        .unwrap()
        .prints("begins at step 3\n");
    // Without the line, the run says that nothing was continued.
    scene.script("train.py", &fails_at_third_step(""));
    run(&scene, &["--resume"])
        .unwrap()
        .prints("begins at step 0\n")
        .tells("antifreeze: nothing was resumed: the script did not call antifreeze.resume()");
}

#[test]
fn nothing_is_started_where_there_is_nothing_to_resume() {
    let scene = Scene::new();
    let go = |flags: &[&str], command: &[&str]| {
        let mut run = scene.antifreeze();
        run.arg("run").args(flags).arg("--").args(command);
        scene.finish(&mut run, LIMIT)
    };
    let refused = |flags: &[&str], why: &str| {
        let ended = go(flags, &["echo", "started"]);
        ended.exits(2).tells(why);
        assert_eq!(ended.stdout, "", "{ended}");
    };
    refused(
        &["--resume"],
        "--resume: there is no earlier run of `echo started` in ",
    );
    go(&[], &["echo", "started"]).exits(0).prints("started");
    refused(
        &["--resume"],
        "--resume: no run of `echo started` has a checkpoint that can be loaded",
    );
    refused(
        &["--resume=1999"],
        "--resume: no run `1999`; see: antifreeze runs",
    );
    refused(&["--resume=20"], "has no checkpoint that can be loaded");
    refused(&["--resume", "20"], "has no checkpoint that can be loaded");
}

/// A command that saves a checkpoint of this step and fails.
fn saves(step: u32) -> [String; 3] {
    let script = format!(
        "mkdir -p \"$ANTIFREEZE_SAVES\"
touch \"$ANTIFREEZE_SAVES/.7-step-{step}.pt\"
printf 'PK\\003\\004 and so on PK\\005\\006' > \"$ANTIFREEZE_SAVES/step-{step}.pt\"
exit 1"
    );
    ["sh".into(), "-c".into(), script]
}

#[test]
fn the_checkpoint_of_a_command_is_kept_until_that_command_has_a_newer_one() {
    let scene = Scene::new();
    let go = |flags: &[&str], step| {
        let mut run = scene.antifreeze();
        run.arg("run").args(flags).arg("--").args(saves(step));
        scene.finish(&mut run, LIMIT)
    };
    let saved = || {
        let runs = std::fs::read_dir(scene.path("home/runs")).unwrap();
        let mut names: Vec<String> = runs
            .filter_map(|run| std::fs::read_dir(run.unwrap().path().join("saves")).ok())
            .flatten()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    go(&[], 1).exits(1);
    assert_eq!(saved(), ["step-1.pt"], "what was begun is removed");
    for step in 2..7 {
        go(&[], step);
    }
    let all = [1, 2, 3, 4, 5, 6].map(|step| format!("step-{step}.pt"));
    assert_eq!(saved(), all);
    go(&["--resume"], 1)
        .tells("antifreeze: continues run ")
        .tells(" from step 1 (");
    assert_eq!(saved(), all, "the older one of the two is gone");
}
