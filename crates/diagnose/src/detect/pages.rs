//! The pages of the causes as files: `docs/causes/<code>.md`, and an index of them.

use crate::detect::{ALL, Detector};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const COMMAND: &str = "ANTIFREEZE_WRITE_PAGES=1 cargo test -p antifreeze-diagnose pages";
const HEAD: &str = "# Causes

What ends a training or slows it down, and `antifreeze explain` can tell. `antifreeze explain --cause CODE`
shows the same page.

| code | what it is |
|---|---|
";

fn row(detector: &Detector) -> String {
    let (code, page) = (detector.code.word(), detector.page());
    let what = page.lines().nth(2).unwrap();
    format!("| [{code}]({code}.md) | {what} |\n")
}

#[test]
fn the_pages_in_docs_are_those_of_the_causes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/causes");
    let index = HEAD.to_owned() + &ALL.iter().map(row).collect::<String>();
    let pages = ALL
        .iter()
        .map(|detector| (format!("{}.md", detector.code.word()), detector.page()));
    let wanted: BTreeMap<_, _> = pages.chain([("README.md".to_owned(), index)]).collect();
    if std::env::var_os("ANTIFREEZE_WRITE_PAGES").is_some() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in &wanted {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let there: BTreeMap<_, _> = fs::read_dir(&folder)
        .unwrap_or_else(|_| panic!("no docs/causes; run: {COMMAND}"))
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    assert!(there == wanted, "docs/causes is stale; run: {COMMAND}");
}

#[test]
fn every_page_says_what_it_is_how_it_is_told_and_the_way_out() {
    for detector in ALL {
        let page = detector.page();
        let word = detector.code.word();
        assert!(page.starts_with(&format!("# {word}\n\n")), "{word}");
        for heading in ["## How it is told", "## What to do"] {
            assert!(page.contains(heading), "{word}: no {heading:?}");
        }
    }
}
