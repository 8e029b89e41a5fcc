//! The pages of the causes as files: `docs/causes/<code>.md`, and an index of them.

use crate::causes::{ALL, CauseKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const COMMAND: &str = "ANTIFREEZE_WRITE_PAGES=1 cargo test -p antifreeze-diagnose pages";
const HEAD: &str = "# Causes

The causes that `antifreeze explain` finds for a run that ended or was slow. `antifreeze explain --cause CODE` shows the
same page.

| code | what it is |
|---|---|
";

fn row(kind: &CauseKind) -> String {
    let (code, page) = (kind.word, kind.page());
    let what = page.lines().nth(2).unwrap();
    format!("| [{code}]({code}.md) | {what} |\n")
}

#[test]
fn the_pages_in_docs_are_those_of_the_causes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes");
    let index = HEAD.to_owned() + &ALL.iter().map(|kind| row(kind)).collect::<String>();
    let pages = ALL
        .iter()
        .map(|kind| (format!("{}.md", kind.word), kind.page()));
    let wanted: BTreeMap<_, _> = pages.chain([("README.md".to_owned(), index)]).collect();
    if std::env::var_os("ANTIFREEZE_WRITE_PAGES").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in &wanted {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let found: BTreeMap<_, _> = fs::read_dir(&folder)
        .unwrap_or_else(|_| panic!("no docs/causes; run: {COMMAND}"))
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(
        found == wanted,
        "docs/causes is out of date; run: {COMMAND}"
    );
}

#[test]
fn every_page_says_what_it_is_how_it_is_detected_and_what_to_do() {
    for kind in ALL {
        let page = kind.page();
        let word = kind.word;
        assert!(page.starts_with(&format!("# {word}\n\n")), "{word}");
        for heading in ["## How it is detected", "## What to do"] {
            assert!(page.contains(heading), "{word}: no {heading:?}");
        }
    }
}
