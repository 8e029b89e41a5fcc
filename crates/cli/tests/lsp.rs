//! The language server with a real client: pygls, as an editor would speak.
//!
//! It needs an interpreter that has pygls: `ANTIFREEZE_TEST_PYTHON` names it.

// A test that cannot go on has failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::path::Path;
use std::time::Duration;
use support::{Scene, framework_python};

const LIMIT: Duration = Duration::from_secs(90);

#[test]
fn an_editor_is_told_what_is_found_and_how_to_fix_it() {
    let Some(python) = framework_python() else {
        return;
    };
    let scene = Scene::new();
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp.py");
    let mut command = scene.command(python);
    command
        .arg(client)
        .arg(scene.antifreeze().get_program())
        .arg(scene.path(""));
    let ended = scene.finish(&mut command, LIMIT);
    let saw: serde_json::Value =
        serde_json::from_str(ended.exits(0).stdout.lines().last().unwrap()).unwrap();

    assert_eq!(saw["server"], "antifreeze", "{ended}");
    let found = serde_json::json!([["graph-in-accumulator", 10, 8, "antifreeze"]]);
    assert_eq!(saw["found"], found, "{ended}");
    let titles = serde_json::json!([
        ["Keep the value, not the graph", "quickfix"],
        ["Apply all safe antifreeze fixes", "source.fixAll"]
    ]);
    assert_eq!(saw["titles"], titles, "{ended}");
    let fixed = saw["fixed"].as_str().unwrap();
    assert!(
        fixed.contains("        total += loss.detach()\n    return"),
        "{fixed}"
    );
    assert_eq!(saw["after_fix"], serde_json::json!([[2, []]]), "{ended}");
    let broken = saw["while_broken"].as_array().unwrap();
    assert!(broken.contains(&"syntax-error".into()), "{ended}");
    assert_eq!(saw["closed"], 0, "{ended}");

    let notebook = &saw["notebook"];
    let found = serde_json::json!({"0": [], "1": [], "2": [["graph-in-accumulator", 7]]});
    assert_eq!(notebook["found"], found, "{ended}");
    assert_eq!(
        notebook["kinds"],
        serde_json::json!(["quickfix", "source.fixAll"])
    );
    assert_eq!(notebook["fixed"], true, "{ended}");
    let after = serde_json::json!([["0", 0], ["new", 0], ["1", 0], ["2", 0]]);
    assert_eq!(notebook["after_fix"], after, "{ended}");
    assert_eq!(notebook["closed"], 0, "{ended}");
    assert_eq!(saw["status"], 0, "{ended}");
}
