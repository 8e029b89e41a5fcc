//! Every Rust file of the repository is formatted: by `cargo fmt`, or by the `rustfmt` command in `./test` for files
//! that belong to no crate. A file that neither reaches, such as one that only a macro includes, fails here.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    path.canonicalize().unwrap()
}

/// The files that a formatter visits, which it lists in verbose mode. `--check` leaves them as they are.
fn visited_by(command: &mut Command) -> BTreeSet<PathBuf> {
    let output = command.current_dir(repository()).output().unwrap();
    let listing = String::from_utf8(output.stdout.clone()).unwrap();
    let paths = listing
        .lines()
        .filter_map(|line| line.strip_prefix("Formatting "));
    let paths: BTreeSet<PathBuf> = paths
        .map(|path| repository().join(path).canonicalize().unwrap())
        .collect();
    assert!(!paths.is_empty(), "{listing}");
    paths
}

/// The `rustfmt` command of the gate, with its arguments.
fn rustfmt_of_gate() -> String {
    let gate = fs::read_to_string(repository().join("test")).unwrap();
    let gate = gate.replace("\\\n", " ");
    let command = gate.lines().find(|line| line.starts_with("rustfmt "));
    command.unwrap().to_owned() + " --verbose"
}

/// The Rust files that git knows or does not ignore.
fn files_of_repository() -> BTreeSet<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .args(["--exclude-standard", "*.rs"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let names = String::from_utf8(output.stdout.clone()).unwrap();
    let names = names.split('\0').filter(|name| !name.is_empty());
    names
        .map(|name| repository().join(name))
        .filter(|path| path.exists())
        .collect()
}

#[test]
fn every_rust_file_is_reached_by_the_formatter() {
    let mut visited =
        visited_by(Command::new("cargo").args(["fmt", "--all", "--", "--check", "-v"]));
    visited.extend(visited_by(
        Command::new("sh").args(["-c", &rustfmt_of_gate()]),
    ));
    let files = files_of_repository();
    let detector = repository().join("crates/diagnose/src/causes/memory_leak.rs");
    assert!(files.contains(&detector) && visited.contains(&detector));
    let missed: Vec<_> = files.difference(&visited).collect();
    assert!(missed.is_empty(), "not formatted: {missed:#?}");
}

#[test]
fn a_badly_formatted_file_is_reported() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::write(folder.join("lib.rs"), "mod detector;\n").unwrap();
    fs::write(folder.join("detector.rs"), "fn detect( ){}\n").unwrap();
    let output = Command::new("rustfmt")
        .args(["--edition", "2024", "--check", "-l", "lib.rs"])
        .current_dir(folder)
        .output()
        .unwrap();
    let listing = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(!output.status.success() && listing.contains("detector.rs"));
}
