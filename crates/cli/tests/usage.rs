//! What people type first: with and without `--`, sizes in every form, and mistakes.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::time::Duration;
use support::{Ended, Scene};

const LIMIT: Duration = Duration::from_secs(90);

/// Prints the arguments that reached it, one a line.
const ECHO: &str = "import sys\nfor word in sys.argv[1:]: print(f'[{word}]')\n";

fn antifreeze(scene: &Scene, words: &[&str]) -> Ended {
    scene.finish(scene.antifreeze().args(words), LIMIT)
}

#[test]
fn everything_from_the_commands_name_on_is_the_commands() {
    let scene = Scene::new();
    scene.script("echo.py", ECHO);
    let own = [
        "--budget",
        "4",
        "-q",
        "--",
        "--json",
        "-",
        "--retries=x",
        "run",
        "--help",
    ];
    let expected: String = own.iter().map(|word| format!("[{word}]\n")).collect();
    for before in [
        &["run"][..],
        &["run", "--"],
        &["run", "--budget", "500MB", "-q"],
    ] {
        let words: Vec<&str> = before
            .iter()
            .chain(&["python3", "echo.py"])
            .chain(&own)
            .copied()
            .collect();
        let ended = antifreeze(&scene, &words);
        assert_eq!(ended.exits(0).stdout, expected, "{words:?}\n{ended}");
    }
}

#[test]
fn quiet_adds_nothing_to_a_failure_of_the_commands_own() {
    let scene = Scene::new();
    let failing = [
        "import no_such_module",
        "raise OSError(28, 'No space left on device')",
        "import os; os.abort()",
    ];
    for script in failing {
        let alone = scene.finish(scene.command("python3").args(["-c", script]), LIMIT);
        let words = ["run", "--quiet", "python3", "-c", script];
        let guarded = antifreeze(&scene, &words);
        assert_eq!(guarded.stderr, alone.stderr, "{script}");
    }
}

#[test]
fn a_command_that_begins_with_a_dash_stands_after_two() {
    let scene = Scene::new();
    antifreeze(&scene, &["run", "--", "--strange"])
        .exits(127)
        .tells("--strange: command not found");
    antifreeze(&scene, &["run", "--strange", "python3"])
        .exits(2)
        .tells("unexpected argument '--strange' found");
}

#[test]
fn a_run_without_a_command_says_what_to_type() {
    let scene = Scene::new();
    for words in [&["run"][..], &["run", "--"], &["run", "--budget", "8GB"]] {
        antifreeze(&scene, words)
            .exits(2)
            .tells("`antifreeze run` needs the command to run")
            .tells("antifreeze run python train.py");
    }
}

#[test]
fn a_script_in_place_of_a_command_gets_the_line_to_type() {
    let scene = Scene::new();
    scene.script("train.py", "print('trained')\n");
    let has = |name| scene.command(name).arg("--version").output().is_ok();
    let python = if has("python") { "python" } else { "python3" };
    let line = &format!("antifreeze run {python} train.py --lr 0.1");
    antifreeze(&scene, &["train.py", "--lr", "0.1"])
        .exits(2)
        .tells(line);
    antifreeze(&scene, &["python3", "train.py"])
        .exits(2)
        .tells("antifreeze run python3 train.py");
    antifreeze(&scene, &["run", "train.py", "--lr", "0.1"])
        .exits(127)
        .tells(line);
    antifreeze(&scene, &["run", "./train.py"])
        .exits(126)
        .tells(&format!("antifreeze run {python} ./train.py"));
}

#[test]
fn a_command_that_is_not_there_gets_the_line_to_type() {
    let scene = Scene::new();
    antifreeze(&scene, &["run", "pythn3", "train.py"])
        .exits(127)
        .tells("pythn3: command not found; did you mean: antifreeze run python3 train.py");
    antifreeze(&scene, &["run", "EPOCHS=3", "python3", "train.py"])
        .exits(127)
        .tells("put variables before antifreeze: EPOCHS=3 antifreeze run python3 train.py");
}

#[test]
fn a_wrong_size_is_refused_wherever_it_stands() {
    let scene = Scene::new();
    for (size, message) in [
        ("4", "did you mean 4GB"),
        ("0", "leaves the command no memory"),
        ("10GBs", "did you mean 10GB?"),
        ("150%", "at most 100%"),
        ("-5", "did you mean 5GB?"),
        ("1e9", "did you mean 1GB?"),
        ("", "the size is empty"),
    ] {
        antifreeze(&scene, &["run", "--budget", size, "true"])
            .exits(2)
            .tells(message);
        antifreeze(&scene, &["attach", "--budget", size, "1"])
            .exits(2)
            .tells(message);
        let mut with_variable = scene.antifreeze();
        with_variable.env("ANTIFREEZE_BUDGET", size);
        scene
            .finish(with_variable.args(["run", "true"]), LIMIT)
            .exits(2)
            .tells(message)
            .tells("ANTIFREEZE_BUDGET");
        let settings = format!("budget = '{size}'\n");
        scene.script("antifreeze.toml", &settings);
        antifreeze(&scene, &["run", "true"])
            .exits(2)
            .tells(message)
            .tells("antifreeze.toml");
        std::fs::remove_file(scene.path("antifreeze.toml")).unwrap();
    }
    antifreeze(&scene, &["check", "--ram", "16"])
        .exits(2)
        .tells("did you mean 16GB");
    antifreeze(&scene, &["run", "--allow-swap", "10%", "true"])
        .exits(2)
        .tells("a size is needed here");
}

#[test]
fn units_mean_the_same_everywhere() {
    let scene = Scene::new();
    for (size, shown) in [
        ("300M", "may use 300 MB (budget)"),
        ("300MB", "may use 300 MB (budget)"),
        ("300MiB", "may use 315 MB (budget)"),
        ("300000000", "may use 300 MB (budget)"),
    ] {
        antifreeze(&scene, &["run", "--budget", size, "true"])
            .exits(0)
            .tells(shown);
        scene.script("antifreeze.toml", &format!("budget = '{size}'\n"));
        antifreeze(&scene, &["run", "true"]).exits(0).tells(shown);
        std::fs::remove_file(scene.path("antifreeze.toml")).unwrap();
    }
}

#[test]
fn a_budget_may_be_a_percentage_of_the_memory() {
    let scene = Scene::new();
    let allowed = |percent: &str| {
        let ended = antifreeze(&scene, &["run", "--budget", percent, "true"]);
        let (_, after) = ended.exits(0).stderr.split_once("may use ").unwrap();
        let (size, _) = after.split_once(" (budget)").expect("the budget holds");
        let (number, unit) = size.split_once(' ').unwrap();
        let factor = match unit {
            "MB" => 1e6,
            "GB" => 1e9,
            other => panic!("{other}"),
        };
        number.parse::<f64>().unwrap() * factor
    };
    let (one, two) = (allowed("1%"), allowed("2%"));
    assert!((two / one - 2.0).abs() < 0.1, "{one} {two}");
}
