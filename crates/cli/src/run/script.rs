//! Lints the script before it runs, and prints at most three lines about what is certain.

use antifreeze_check::check_file::{self, CheckOptions, FileReport, FixMode};
use antifreeze_check::settings::RuleSelection;
use antifreeze_lint::finding::Finding;
use antifreeze_lint::rule::Severity;
use antifreeze_lint::target_machine::TargetMachine;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// At most this many lines are printed before the run; the last one names the command for the rest.
const MAX_LINES: usize = 3;

/// The Python script that a command starts, if its arguments show it:
/// `python train.py`, `python -u -X dev train.py`, `torchrun --nproc-per-node 2 train.py`,
/// `./train.py`.
pub fn script_of(command: &[OsString], folder: &Path) -> Option<PathBuf> {
    let is_script = |word: &&OsString| {
        let path = Path::new(word);
        path.extension().is_some_and(|extension| extension == "py") && folder.join(path).is_file()
    };
    // `python -c …` and `python -m …` start no file that is named here.
    let is_file_given = !command
        .iter()
        .skip(1)
        .any(|word| word == "-c" || word == "-m");
    let script = command.iter().find(is_script)?;
    is_file_given.then(|| PathBuf::from(script))
}

/// The warnings about the script, line by line.
pub fn warnings(
    script: &Path,
    folder: &Path,
    selection: &RuleSelection,
    target: TargetMachine,
) -> Vec<String> {
    let options = CheckOptions {
        selection,
        target,
        fixes: FixMode::Off,
    };
    let file = folder.join(script);
    let examined =
        antifreeze_check::parallel::map_items(&[()], |()| check_file::check_file(&file, &options));
    match examined.as_deref() {
        Ok([report]) => warning_lines(report, script),
        _ => Vec::new(),
    }
}

fn warning_lines(report: &FileReport, script: &Path) -> Vec<String> {
    let Some(positions) = &report.positions else {
        return Vec::new();
    };
    let mut serious: Vec<&Finding> = report
        .findings
        .iter()
        .filter(|finding| finding.rule.severity > Severity::Info)
        .collect();
    serious.sort_by_key(|finding| std::cmp::Reverse(finding.rule.severity));
    let name = script.display();
    let line = |finding: &&Finding| {
        let place = positions.position_of(finding.range.start());
        format!("{name}:{}: {}", place.line, finding.message)
    };
    if serious.len() <= MAX_LINES {
        return serious.iter().map(line).collect();
    }
    let mut lines: Vec<String> = serious.iter().take(MAX_LINES - 1).map(line).collect();
    let rest = serious.len() - lines.len();
    lines.push(format!("and {rest} more: antifreeze check {name}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_found_among_the_words() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "").unwrap();
        let script = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            script_of(&words, folder.path())
        };
        let found = Some(PathBuf::from("train.py"));
        for words in [
            "python train.py",
            "python3 -u -X dev train.py --data eval.py",
            "torchrun --nproc-per-node 2 train.py",
            "train.py",
        ] {
            assert_eq!(script(words), found, "{words}");
        }
        for words in [
            "python -m train",
            "python -c pass train.py",
            "python other.py",
            "make",
        ] {
            assert_eq!(script(words), None, "{words}");
        }
    }
}
