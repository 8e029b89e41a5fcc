//! `antifreeze check` as a person, an editor and a pipeline meet it.

#![allow(clippy::expect_used)]

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{Ended, Scene};

const LIMIT: Duration = Duration::from_secs(60);

/// Sums its losses with their graphs, in the last line.
const LEAKY: &str = "\
import torch
from torch import nn

model = nn.Linear(10, 1)
criterion = nn.MSELoss()
total = 0.0
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    total += loss
";

fn check(scene: &Scene, arguments: &[&str]) -> Ended {
    scene.finish(scene.antifreeze().arg("check").args(arguments), LIMIT)
}

/// The same, with this text as its standard input.
fn check_input(scene: &Scene, arguments: &[&str], input: &str) -> Ended {
    let path = scene.script("input", input);
    let mut command = scene.antifreeze();
    command.arg("check").args(arguments);
    command.stdin(Stdio::from(fs::File::open(path).expect("the input")));
    scene.finish(&mut command, LIMIT)
}

fn text(scene: &Scene, name: &str) -> String {
    fs::read_to_string(scene.path(name)).expect("a file of the scene")
}

fn notebook(source: &str) -> String {
    format!(
        r##"{{
 "cells": [
  {{"cell_type": "markdown", "metadata": {{}}, "source": ["# Training"]}},
  {{
   "cell_type": "code", "execution_count": 7, "metadata": {{"tags": [ ]}},
   "outputs": [{{"name": "stdout", "output_type": "stream", "text": ["caf\u00e9"]}}],
   "source": {source}
  }}
 ],
 "metadata": {{"language_info": {{"name": "python"}}, "z": 1.50, "a": 2}},
 "nbformat": 4, "nbformat_minor": 5
}}"##
    )
}

/// The leaky script as the source of a cell.
fn leaky_cell() -> String {
    let lines: Vec<_> = LEAKY.trim_end().split_inclusive('\n').collect();
    let lines = lines.iter().map(|line| format!("    {line:?}"));
    format!("[\n{}\n   ]", lines.collect::<Vec<_>>().join(",\n"))
}

#[test]
fn a_finding_is_shown_with_its_line_and_the_way_out() {
    let scene = Scene::new();
    scene.script("train.py", LEAKY);
    let ended = check(&scene, &["train.py"]);
    ended
        .exits(1)
        .prints("train.py:10:5 error[graph-in-accumulator]: ")
        .prints("10 |     total += loss\n")
        .prints("   |     ^")
        .prints("   = help: ")
        .prints("1 error (1 fixable with --fix)\n");
    assert_eq!(ended.stderr, "", "{ended}");
}

#[test]
fn the_memory_of_a_machine_is_said_in_the_units_that_it_was_given_in() {
    let scene = Scene::new();
    let large = "import numpy as np\ndata = np.zeros((60000, 224, 224, 3), dtype=np.float32)\n";
    scene.script("train.py", large);
    for (size, said) in [
        ("16GB", "on a machine with 16 GB"),
        ("16G", "on a machine with 16 GB"),
        ("16GiB", "on a machine with 17.2 GB"),
    ] {
        check(&scene, &["--ram", size, "train.py"])
            .exits(1)
            .prints("is 36 GB, ")
            .prints(said);
    }
}

#[test]
fn how_many_files_are_well_is_said_in_one_line() {
    let scene = Scene::new();
    let ended = check(&scene, &[]);
    ended
        .exits(0)
        .tells("no Python files or notebooks in this folder; nothing was checked\n");
    assert_eq!(ended.stdout, "", "{ended}");
    let well = LEAKY.replace("+= loss", "+= loss.item()");
    scene.script("train.py", &well);
    for (arguments, said) in [
        (&[][..], "no problems found in 1 file\n"),
        (&["--fix"], "no problems found in 1 file\n"),
        (&["--output-format", "concise"], ""),
    ] {
        let ended = check(&scene, arguments);
        ended.exits(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), (said, ""));
    }
    scene.script("more.py", &well);
    check(&scene, &[])
        .exits(0)
        .prints("no problems found in 2 files\n");
    fs::create_dir(scene.path("empty")).expect("a folder");
    check(&scene, &["empty"])
        .exits(0)
        .tells("no Python files or notebooks in empty; nothing was checked\n");
}

#[test]
fn a_folder_is_walked_in_order_and_without_what_git_ignores() {
    let scene = Scene::new();
    for folder in ["b", "a", "data", "venv"] {
        fs::create_dir(scene.path(folder)).expect("a folder");
        scene.script(&format!("{folder}/train.py"), LEAKY);
    }
    scene.script(".gitignore", "data/\n");
    let ended = check(&scene, &["--output-format", "concise"]);
    ended.exits(1);
    let files: Vec<_> = ended
        .stdout
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(files, ["a/train.py", "b/train.py"], "{ended}");
    check(
        &scene,
        &["data", "venv/train.py", "--output-format", "concise"],
    )
    .exits(1)
    .prints("data/train.py:10:5: error")
    .prints("venv/train.py:10:5: error");
}

#[test]
fn what_cannot_be_read_costs_a_line_and_the_rest_goes_on() {
    let scene = Scene::new();
    scene.script("train.py", LEAKY);
    fs::write(scene.path("binary.py"), b"\x7fELF\0\0\0").expect("a file");
    fs::write(scene.path("latin.py"), b"# caf\xe9\n").expect("a file");
    scene.script("broken.ipynb", "{\"cells\": [");
    check(&scene, &[".", "missing.py"])
        .exits(2)
        .prints("train.py:10:5 error[graph-in-accumulator]")
        .tells("antifreeze: missing.py: No such file")
        .tells("antifreeze: binary.py is not text")
        .tells("antifreeze: latin.py is not UTF-8 (line 1)")
        .tells("antifreeze: broken.ipynb is not a readable notebook");
}

/// A name that a shell's `*` found may have been chosen by somebody else.
#[test]
fn a_name_is_no_command_to_the_terminal() {
    let scene = Scene::new();
    check(&scene, &["\u{1b}]0;title\u{7}.py"])
        .exits(2)
        .tells("\\u{1b}]0;title\\u{7}.py: No such file")
        .never_tells("\u{1b}");
}

#[test]
fn what_is_no_python_is_a_finding() {
    let scene = Scene::new();
    scene.script("two.py", "import os\nprint \"loss\", loss\n");
    scene.script("half.py", "def train(:\n    pass\n");
    check(&scene, &["--output-format", "concise"])
        .exits(1)
        .prints("half.py:1:11: error[syntax-error]: ")
        .prints("two.py:2:1: error[syntax-error]: looks like Python 2");
    check(&scene, &["--ignore", "syntax-error"]).exits(0);
}

#[test]
fn odd_encodings_are_read_and_written_back() {
    let scene = Scene::new();
    let latin = [b"# coding: latin-1\n# caf\xe9\n", LEAKY.as_bytes()].concat();
    fs::write(scene.path("latin.py"), &latin).expect("a file");
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(LEAKY.replace('\n', "\r\n").encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    fs::write(scene.path("utf16.py"), utf16).expect("a file");
    let marked = ["\u{feff}", LEAKY].concat();
    scene.script("marked.py", &marked);
    check(&scene, &["--fix"]).exits(0).prints("3 fixed");
    let fixed = fs::read(scene.path("latin.py")).expect("the file");
    let fix = |text: &str| text.replace("+= loss\n", "+= loss.item()\n");
    assert!(fixed.starts_with(b"# coding: latin-1\n# caf\xe9\n"));
    assert!(fixed.ends_with(fix(LEAKY).as_bytes()));
    assert_eq!(text(&scene, "marked.py"), fix(&marked));
    let units: Vec<u16> = fs::read(scene.path("utf16.py"))
        .expect("the file")
        .chunks(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let expected = fix(LEAKY).replace('\n', "\r\n");
    assert_eq!(String::from_utf16_lossy(&units[1..]), expected);
}

#[test]
fn a_fix_changes_its_line_and_keeps_mode_and_link() {
    let scene = Scene::new();
    let path = scene.script("train.py", LEAKY);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("a mode");
    symlink("train.py", scene.path("link.py")).expect("a link");
    check(&scene, &["--diff", "link.py"])
        .exits(1)
        .prints("-    total += loss\n+    total += loss.item()\n")
        .tells("1 would be fixed");
    assert_eq!(text(&scene, "train.py"), LEAKY);
    check(&scene, &["--fix", "link.py"])
        .exits(0)
        .prints("1 fixed\n");
    assert_eq!(
        text(&scene, "train.py"),
        LEAKY.replace("+= loss\n", "+= loss.item()\n")
    );
    let mode = fs::metadata(&path).expect("the file").permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert!(scene.path("link.py").is_symlink());
    check(&scene, &["--fix"]).exits(0);
}

#[test]
fn a_notebook_is_placed_by_cell_and_fixed_within_it() {
    let scene = Scene::new();
    let before = notebook(&leaky_cell());
    scene.script("train.ipynb", &before);
    check(&scene, &[])
        .exits(1)
        .prints("train.ipynb:cell 2:10:5 error[graph-in-accumulator]");
    check(&scene, &["--fix"]).exits(0).prints("1 fixed");
    assert_eq!(
        text(&scene, "train.ipynb"),
        before.replace("total += loss\"", "total += loss.item()\"")
    );
}

#[test]
fn a_line_of_another_cell_is_called_by_its_cell() {
    let scene = Scene::new();
    let before = notebook(&leaky_cell());
    scene.script("train.ipynb", &before);
    check(&scene, &[])
        .exits(1)
        .prints("the loop at cell 2, line 7");
}

/// Puts a program of this name in the way of the real one.
fn pretended(scene: &Scene, name: &str, script: &str) -> Command {
    fs::create_dir_all(scene.path("bin")).expect("a folder for it");
    let path = scene.script(&format!("bin/{name}"), script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("an executable");
    let mut command = scene.antifreeze();
    let paths = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{paths}", scene.path("bin").display()));
    command
}

#[test]
fn the_graphics_card_is_asked_for_its_memory() {
    let scene = Scene::new();
    scene.script(
        "train.py",
        "import torch\nfrom torch.utils.data import TensorDataset\n\
         x = torch.randn(200_000_000, 10).cuda()\ndata = TensorDataset(x)\n",
    );
    for (card, found) in [("8192", true), ("[N/A]", false)] {
        let script = format!("#!/bin/sh\necho {card}\n");
        let mut command = pretended(&scene, "nvidia-smi", &script);
        let ended = scene.finish(command.arg("check"), LIMIT);
        assert_eq!(ended.stdout.contains("a GPU with 8"), found, "{ended}");
    }
    // One that never answers, which would be there for an hour.
    let mut command = pretended(&scene, "nvidia-smi", "#!/bin/sh\nexec sleep 3600\n");
    scene
        .finish(command.arg("check"), Duration::from_secs(30))
        .exits(0);
}

#[test]
fn magics_are_no_mistakes_and_other_languages_no_business() {
    let scene = Scene::new();
    scene.script(
        "magic.ipynb",
        &notebook(r#"["%matplotlib inline\n", "!pip install x\n", "files = !ls\n", "x = 1"]"#),
    );
    scene.script(
        "shell.ipynb",
        &notebook(r#""%%bash\nfor f in *; do echo; done""#),
    );
    let r = notebook(r#""x <- 1""#).replace("python", "R");
    scene.script("r.ipynb", &r);
    let ended = check(&scene, &[]);
    ended.exits(0);
    assert_eq!(ended.stderr, "", "{ended}");
}

#[test]
fn comments_ignore_and_unused_ones_are_taken_out() {
    let scene = Scene::new();
    let ignored = LEAKY.replace(
        "+= loss\n",
        "+= loss  # antifreeze: ignore[graph-in-accumulator]\n",
    );
    scene.script("train.py", &ignored);
    check(&scene, &[]).exits(0);
    scene.script("train.py", &ignored.replace("+= loss ", "+= loss.item() "));
    check(&scene, &["--output-format", "concise"])
        .exits(1)
        .prints("warning[unused-ignore]");
    check(&scene, &["--fix"]).exits(0);
    assert_eq!(
        text(&scene, "train.py"),
        LEAKY.replace("+= loss\n", "+= loss.item()\n")
    );
}

#[test]
fn settings_choose_and_flags_win() {
    let scene = Scene::new();
    fs::create_dir(scene.path("old")).expect("a folder");
    scene.script("old/train.py", LEAKY);
    scene.script("train.py", LEAKY);
    scene.script(
        "antifreeze.toml",
        "[check.per-file-ignores]\n'old/*' = ['AF1']\n",
    );
    let ended = check(&scene, &["--output-format", "concise"]);
    ended.exits(1).prints("train.py:10:5");
    assert!(!ended.stdout.contains("old/"), "{ended}");
    scene.script("antifreeze.toml", "[check]\nignore = ['AF101']\n");
    check(&scene, &[]).exits(0);
    check(&scene, &["--select", "graph-in-accumulator"]).exits(1);
    scene.script(
        "antifreeze.toml",
        "[check]\nexclude = ['old', 'train.py']\n",
    );
    check(&scene, &[])
        .exits(0)
        .tells("no Python files or notebooks in this folder");
    fs::remove_file(scene.path("antifreeze.toml")).expect("the file");
    scene.script(
        "pyproject.toml",
        "[tool.antifreeze.check]\nselect = ['unused-ignore']\n",
    );
    check(&scene, &[]).exits(0);
}

#[test]
fn a_wrong_name_is_answered_with_the_right_one() {
    let scene = Scene::new();
    scene.script("train.py", LEAKY);
    for flag in ["--select", "--ignore", "--explain"] {
        check(&scene, &[flag, "graph-in-acumulator"])
            .exits(2)
            .tells("did you mean `graph-in-accumulator`?");
    }
    scene.script(
        "antifreeze.toml",
        "[check]\nignore = ['graph-in-acumulator']\n",
    );
    check(&scene, &[])
        .exits(2)
        .tells("antifreeze.toml: there is no rule");
    check(&scene, &["--unsafe-fixes"])
        .exits(2)
        .tells("--fix or --diff");
}

#[test]
fn standard_input_is_checked_and_fixed() {
    let scene = Scene::new();
    check_input(&scene, &["-"], LEAKY)
        .exits(1)
        .prints("-:10:5 error");
    check_input(&scene, &["-", "--stdin-filename", "src/train.py"], LEAKY)
        .exits(1)
        .prints("src/train.py:10:5 error");
    let ended = check_input(&scene, &["-", "--fix"], LEAKY);
    ended.exits(0).tells("1 fixed");
    assert_eq!(ended.stdout, LEAKY.replace("+= loss\n", "+= loss.item()\n"));
    let ended = check_input(&scene, &["-", "--fix"], "x = 1\n");
    ended.exits(0);
    assert_eq!(ended.stdout, "x = 1\n");
    check_input(
        &scene,
        &["-", "--stdin-filename", "a.ipynb"],
        &notebook(&leaky_cell()),
    )
    .exits(1)
    .prints("a.ipynb:cell 2:10:5");
}

#[test]
fn rules_are_listed_and_explained() {
    let scene = Scene::new();
    check(&scene, &["--explain"])
        .exits(0)
        .prints("AF101  graph-in-accumulator");
    check(&scene, &["--explain", "AF101"])
        .exits(0)
        .prints("graph-in-accumulator (AF101)")
        .prints("\n    for x, y in loader:\n");
}

#[test]
fn every_format_is_what_it_says() {
    let scene = Scene::new();
    scene.script("train.py", LEAKY);
    let json = |format: &str| -> serde_json::Value {
        let ended = check(&scene, &["--output-format", format]);
        serde_json::from_str(&ended.exits(1).stdout).expect("JSON")
    };
    assert_eq!(json("json")[0]["start"]["line"], 10);
    assert_eq!(json("gitlab")[0]["check_name"], "graph-in-accumulator");
    assert_eq!(json("sarif")["runs"][0]["results"][0]["ruleId"], "AF101");
    check(&scene, &["--output-format", "github"])
        .exits(1)
        .prints("::error title=antifreeze%3A graph-in-accumulator,file=train.py,line=10");
    scene.script("train.py", "x = 1\n");
    let ended = check(&scene, &["--output-format", "json"]);
    assert_eq!(ended.exits(0).stdout, "[]\n");
}

#[test]
fn a_file_that_is_nested_too_deep_does_not_take_the_others_with_it() {
    let scene = Scene::new();
    scene.script("train.py", LEAKY);
    scene.script("sum.py", &format!("x = 1{}\n", " + 1".repeat(40_000)));
    scene.script("brackets.py", &"(".repeat(40_000));
    check(&scene, &["--output-format", "concise"])
        .exits(1)
        .prints("sum.py:")
        .prints("brackets.py:")
        .prints("train.py:10:5: error[graph-in-accumulator]");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let scene = Scene::new();
    for number in 0..200 {
        scene.script(&format!("train{number}.py"), LEAKY);
    }
    let mut command = Command::new("sh");
    command
        .current_dir(scene.path("."))
        .args(["-c", "\"$0\" check | head -n 1"])
        .arg(env!("CARGO_BIN_EXE_antifreeze"));
    let output = command.output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
