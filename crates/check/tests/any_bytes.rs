//! Any bytes can be checked, fixed and reported without a panic.

#![allow(clippy::unwrap_used)]

mod support;

use antifreeze_check::check_file::{FileReport, FixMode};
use antifreeze_check::error::FileError;
use antifreeze_check::render::{self, Format};
use antifreeze_lint::finding::{Finding, Safety};
use antifreeze_text::TermStyle;
use proptest::prelude::*;

const FORMATS: [Format; 6] = [
    Format::Full,
    Format::Concise,
    Format::Json,
    Format::Github,
    Format::Sarif,
    Format::Gitlab,
];

fn examined(bytes: &[u8], name: &str, fixes: FixMode) -> FileReport {
    let mut reports = support::examined(&[(name, bytes.to_vec())], fixes);
    reports.pop().unwrap()
}

fn survives(bytes: &[u8]) {
    for name in ["a.py", "a.ipynb"] {
        let report = examined(bytes, name, FixMode::Preview(Safety::Unsafe));
        let has_panicked = |error: &FileError| matches!(error, FileError::Panic(_));
        assert!(!report.errors.iter().any(has_panicked), "{report:?}");
        if let Some(change) = report.change {
            let fixed = examined(&change.after, name, FixMode::Off);
            let is_python = |finding: &Finding| finding.rule.code != "AF000";
            assert!(fixed.findings.iter().all(is_python), "{fixed:?}");
        }
        let report = [examined(bytes, name, FixMode::Off)];
        for format in FORMATS {
            render::findings(format, &report, &TermStyle::default());
        }
    }
}

/// Generates pieces of training code in any order.
fn code() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "import torch\n",
        "import torch.nn as nn\n",
        "model = nn.Linear(3, 4)\n",
        "total = 0\n",
        "for x, y in loader:\n",
        "    loss = criterion(model(x), y)\n",
        "    loss.backward()\n",
        "    total += loss\n",
        "    history.append(loss)\n",
        "with torch.no_grad():\n",
        "def f(self, *a, **k):\n",
        "class A(nn.Module):\n",
        "  # antifreeze: ignore[AF101]\n",
        "# antifreeze: ignore-file\n",
        "  # antifreeze: ignore[",
        "try:\n",
        "except:\n",
        "lambda ",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ":",
        ",",
        "=",
        ".",
        "\n",
        "    ",
        "\t",
        "'",
        "\"\"\"",
        "f'{",
        "é",
        "日",
        "\\\n",
        "\r\n",
        "\u{c}",
        "match x:\n",
        "async ",
        "await ",
        "%time x\n",
        "!ls\n",
        "x?\n",
        ",f a\n",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_bytes(bytes: Vec<u8>) {
        survives(&bytes);
    }

    #[test]
    fn any_text(text: String) {
        survives(text.as_bytes());
    }

    #[test]
    fn anything_like_training_code(code in code()) {
        survives(code.as_bytes());
        let notebook = serde_json::json!({
            "cells": [
                {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": code},
                {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": [code, "x"]},
            ],
            "metadata": {}, "nbformat": 4, "nbformat_minor": 2,
        });
        survives(notebook.to_string().as_bytes());
    }
}

#[test]
fn the_deepest_nesting_is_survived() {
    let deep = 40_000;
    for text in [
        "(".repeat(deep),
        "[".repeat(deep) + &"]".repeat(deep),
        format!("x = 1{}", " + 1".repeat(deep)),
        format!("x = {}1", "-".repeat(deep)),
        format!("x = {}1", "not ".repeat(deep)),
        format!("x = a{}", ".b".repeat(deep)),
        format!("x = a{}", "()".repeat(deep)),
        format!("x = {}1", "lambda: ".repeat(deep)),
        format!("x = {}1", "a if b else ".repeat(deep)),
        (0..500)
            .map(|depth| format!("{}if x:\n", " ".repeat(depth)))
            .collect(),
        format!("if x: pass\n{}", "elif x: pass\n".repeat(deep)),
        format!("import torch\nx = 'a'{}", " 'b'".repeat(deep)),
        format!("import torch\nx = f'{}", "{f'".repeat(deep)),
    ] {
        survives(text.as_bytes());
    }
}
