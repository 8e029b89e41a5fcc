//! Reads the cases in `crates/lint/tests/scripts`.
//!
//! `scripts/<rule>.py` holds all cases of a rule. A line `# ======== <story>.wrong.py ========`
//! begins a case, and the blank line before the next separator belongs to neither. Notebooks are
//! files of their own: `scripts/<rule>/<story>.wrong.ipynb`.
//!
//! - `<story>.wrong` has one known fault, on the line that ends with `# expect: <rule>` (or
//!   `# expect: <rule>, <rule>`). A line that ends with `# or: <rule>` may be reported instead.
//! - `<story>.right` is the same script with the fault repaired.
//! - `innocent.py` holds scripts that only look faulty.

use std::path::{Path, PathBuf};

/// One script or notebook.
pub struct Case {
    /// Such as `graph-in-container/notebook_losses.wrong.ipynb`.
    pub name: String,
    /// The script, or the JSON of the notebook.
    pub content: String,
}

/// The folder of the cases.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../lint/tests/scripts")
}

/// Every case, sorted by name.
pub fn read_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for path in list(&folder()) {
        let rule = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            for notebook in list(&path) {
                let story = notebook.file_name().unwrap().to_str().unwrap();
                cases.push(Case {
                    name: format!("{rule}/{story}"),
                    content: std::fs::read_to_string(&notebook).unwrap(),
                });
            }
        } else if path.extension().is_some_and(|extension| extension == "py") {
            cases.extend(split_cases(&rule, &std::fs::read_to_string(&path).unwrap()));
        }
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    cases
}

fn list(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
}

/// The cases of one file.
fn split_cases(rule: &str, file: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in file.split_inclusive('\n') {
        let story = line
            .trim_end()
            .strip_prefix("# ======== ")
            .and_then(|rest| rest.strip_suffix(" ========"));
        match (story, cases.last_mut()) {
            (Some(story), last) => {
                if let Some(last) = last {
                    assert_eq!(last.content.pop(), Some('\n'), "{rule}/{story}");
                }
                cases.push(Case {
                    name: format!("{rule}/{story}"),
                    content: String::new(),
                });
            }
            (None, Some(last)) => last.content.push_str(line),
            // The comment at the head of the file.
            (None, None) => {}
        }
    }
    cases
}
