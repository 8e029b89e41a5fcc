//! Parses the lines of the shim's report files, as python/antifreeze/_shim/event_log.py describes them. A line that cannot be
//! parsed is skipped.

use super::{
    BatchFacts, Change, Changed, Hello, Holders, Loaded, Model, Numbers, OutOfMemory, Saved,
    ScriptChanges, ShimReport, Split,
};
use antifreeze_sense::regular_file;
use serde::Deserialize;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// So much of a file is read; the shim writes no more.
const MAX_BYTES: u64 = 2 << 20;
/// Total size of all files that are read. A folder from another machine may contain any number.
const MAX_TOTAL_BYTES: u64 = 32 * MAX_BYTES;

#[derive(Deserialize)]
struct Timed {
    #[serde(default)]
    t: f64,
    #[serde(flatten)]
    line: Line,
}

#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum Line {
    Hello(Hello),
    Model(Model),
    Holders(Holders),
    Numbers(Numbers),
    OutOfMemory(OutOfMemory),
    Saved(Saved),
    NotSaved {
        why: String,
    },
    Resumes {
        step: u64,
        #[serde(default)]
        kinds: Vec<String>,
    },
    Plan {
        steps: u64,
    },
    Split(Split),
    Loaded(Loaded),
    Edits(ScriptChanges),
    Batch(BatchFacts),
    Cell {
        file: String,
        number: u64,
    },
    Fault {
        doing: String,
        error: String,
    },
    #[serde(other)]
    Other,
}

impl ShimReport {
    /// Reads all report files in a run's folder; files that cannot be read are skipped.
    pub fn read(folder: &Path) -> ShimReport {
        let mut report = ShimReport::default();
        let Ok(entries) = std::fs::read_dir(folder) else {
            return report;
        };
        let mut files: Vec<_> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with("shim-") && name.ends_with(".jsonl"))
            })
            .collect();
        files.sort();
        let mut left = MAX_TOTAL_BYTES;
        for (process, file) in files.into_iter().enumerate() {
            if let Ok(file) = regular_file::open(&file) {
                let max_bytes = MAX_BYTES.min(left);
                let mut lines = BufReader::new(file.take(max_bytes));
                report.add_lines(process, &mut lines);
                left -= max_bytes.saturating_sub(lines.get_ref().limit());
            }
        }
        report.finish();
        report
    }

    /// Parses the lines of one report file.
    pub fn parse(lines: &[u8]) -> ShimReport {
        let mut report = ShimReport::default();
        report.add_lines(0, lines);
        report.finish();
        report
    }

    fn add_lines(&mut self, process: usize, lines: impl BufRead) {
        for line in lines.split(b'\n').map_while(Result::ok) {
            let Ok(Timed { t, line }) = serde_json::from_slice(&line) else {
                continue;
            };
            let at = Duration::try_from_secs_f64(t).unwrap_or_default();
            let mut changes = |what| self.changes.push(Change { at, process, what });
            match line {
                Line::Holders(holders) => changes(Changed::Holders(holders)),
                Line::Saved(saved) => changes(Changed::Saved(saved)),
                Line::NotSaved { why } => changes(Changed::NotSaved(why)),
                Line::Hello(hello) => self.hello = Some(hello),
                Line::Model(model) => self.model = Some(model),
                Line::Numbers(numbers) => self.numbers.push(numbers),
                Line::OutOfMemory(error) => self.out_of_memory.push(error),
                Line::Plan { steps } => self.plan = Some(steps),
                Line::Split(split) => self.split = Some(split),
                Line::Cell { file, number } => {
                    self.cells.insert(file, number);
                }
                Line::Resumes { step, kinds } => {
                    self.resumes = Some(step);
                    for kind in kinds {
                        // A newer version may know more kinds.
                        let kind = serde_json::from_value(kind.into()).ok();
                        self.accepted_kinds
                            .extend(kind.filter(|kind| !self.accepted_kinds.contains(kind)));
                    }
                }
                Line::Fault { doing, error } => self.faults.push(format!("{doing}: {error}")),
                Line::Loaded(loaded) => {
                    if !self.loaded.iter().any(|known| known.name == loaded.name) {
                        self.loaded.push(loaded);
                    }
                }
                Line::Edits(changes) => {
                    let of_same = |known: &ScriptChanges| {
                        known.name == changes.name && known.file == changes.file
                    };
                    self.script_changes.retain(|known| !of_same(known));
                    self.script_changes.push(changes);
                }
                Line::Batch(batch) => self.batch = Some(batch),
                Line::Other => {}
            }
        }
    }

    fn finish(&mut self) {
        // The sort is stable: of two lines of one process in the same millisecond the second counts.
        self.changes.sort_by_key(|change| change.at);
        (self.holders, self.saved, self.not_saved) = self.known_until(Duration::MAX);
    }
}
