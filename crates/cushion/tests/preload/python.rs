//! Python at the wall: the handler of a MemoryError works, in every version there is.
//!
//! Versions come from ANTIFREEZE_TEST_PYTHONS (paths, separated by `:`), else from PATH.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::MB;
use crate::library;
use crate::sentry::{Sentry, grant};
use crate::subject::Plan;

const LIMIT: u64 = 120 * MB;
const TRIES: usize = 3;

/// The executables themselves: what stands in PATH may be a script in front of one.
fn pythons() -> BTreeSet<PathBuf> {
    let named = env::var("ANTIFREEZE_TEST_PYTHONS").unwrap_or_default();
    let candidates: Vec<PathBuf> = if named.is_empty() {
        (8..=14)
            .map(|minor| format!("python3.{minor}").into())
            .chain(["python3".into()])
            .collect()
    } else {
        named.split(':').map(PathBuf::from).collect()
    };
    let found = candidates.iter().filter_map(|candidate| {
        let question = ["-c", "import sys; print(sys.executable)"];
        let output = Command::new(candidate).args(question).output().ok()?;
        std::fs::canonicalize(String::from_utf8(output.stdout).ok()?.trim()).ok()
    });
    let found: BTreeSet<_> = found.collect();
    if found.is_empty() {
        eprintln!("skipped: no Python here");
    }
    found
}

fn plan(python: &Path, way: &str, report: &Path, times: usize) -> Plan {
    Plan::program(python, LIMIT)
        .arguments([
            library::script("catch.py").as_os_str(),
            way.as_ref(),
            report.as_os_str(),
        ])
        .arguments([times.to_string()])
}

fn survives(way: &str) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    for python in pythons() {
        for _ in 0..TRIES {
            let said = plan(&python, way, &report, 1).run();
            assert_eq!(said.all("survived").len(), 1, "{}", python.display());
        }
    }
}

#[test]
fn a_leak_of_small_objects_is_caught_and_handled() {
    survives("many_small");
}

#[test]
fn a_leak_of_megabytes_is_caught_and_handled() {
    survives("megabytes");
}

#[test]
fn one_large_allocation_is_caught_and_handled() {
    survives("one_large");
}

#[test]
fn the_wall_is_caught_five_times_in_a_row_when_the_guard_moves_it_between() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    // It answers, and has nothing to give.
    let sentry = Sentry::with_headroom(1 << 40).answering(|_| {});
    for python in pythons() {
        for way in ["many_small", "megabytes", "one_large"] {
            let mut trainer = plan(&python, way, &report, 5).with_page(&sentry).start();
            for turn in 1..=5 {
                assert_eq!(
                    trainer.says("caught"),
                    turn,
                    "{way} in {}",
                    python.display()
                );
                grant(trainer.pid(), 60 * MB);
                if turn < 5 {
                    trainer.go_on();
                }
            }
            assert!(trainer.finish().status.success());
        }
    }
}
