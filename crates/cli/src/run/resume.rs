//! Continuing an earlier run: `--resume`, and each restart of `--retries`.
//!
//! The command learns from two variables what to continue from: `ANTIFREEZE_RESUME` is the newest checkpoint of a kind
//! that its script can load, `ANTIFREEZE_RESUME_SAVES` lists the saves folders of the continued run and of those that it
//! continued itself, newest first, for scripts that load several kinds.

use crate::store::{Run, Store};
use antifreeze_diagnose::ShimReport;
use antifreeze_diagnose::run::checkpoints::{self, Checkpoint};
use antifreeze_record::Record;
use antifreeze_sense::regular_file;
use antifreeze_text::sanitize;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The file of a run's folder that lists the saves folders of the runs that it continued, newest first, one a line.
const ANCESTORS_FILE: &str = "resumed-from";
/// Saves folders beyond this number are ignored.
const MAX_ANCESTORS: usize = 50;

/// An earlier run that can be continued.
#[derive(Debug)]
pub struct Source {
    run: Run,
    checkpoint: Checkpoint,
    /// Saves folders, newest first.
    saves: Vec<PathBuf>,
}

impl Source {
    /// The run with this name; without one, the last run of this command in this folder that has a checkpoint.
    pub fn find(
        store: &Store,
        name: Option<&str>,
        command: &[OsString],
        folder: &Path,
    ) -> Result<Source, String> {
        match name {
            Some(name) => {
                let run = store
                    .find(Some(name))
                    .map_err(|error| format!("--resume: {error}"))?;
                Source::from_run(run).map_err(|run| {
                    format!(
                        "--resume: run {} has no checkpoint that can be loaded; see: antifreeze runs show {}",
                        run.id, run.id
                    )
                })
            }
            None => Source::from_last_run(store, command, folder),
        }
    }

    fn from_last_run(store: &Store, command: &[OsString], folder: &Path) -> Result<Source, String> {
        let mut last = None;
        for run in store.runs().into_iter().rev() {
            if !run.is_of(command, folder) || run.is_guarded() {
                continue;
            }
            match Source::from_run(run) {
                Ok(source) => return Ok(source),
                Err(run) => last = last.or(Some(run.id)),
            }
        }
        let command = sanitize::shell_command(command);
        Err(match last {
            Some(last) => format!(
                "--resume: no run of `{command}` has a checkpoint that can be loaded; the last was {last}. Without \
                 --resume it begins at step 0."
            ),
            None => format!(
                "--resume: there is no earlier run of `{command}` in {}; name one with --resume=RUN (see: antifreeze \
                 runs), or run it without --resume",
                folder.display()
            ),
        })
    }

    /// Returns the run as the error where it has no checkpoint that can be loaded.
    fn from_run(run: Run) -> Result<Source, Run> {
        let report = ShimReport::read(&run.folder);
        let mut saves = vec![run.saves()];
        saves.extend(ancestors(&run.folder));
        let found = saves.iter().find_map(|folder| {
            let checkpoints = checkpoints::scan(folder);
            Checkpoint::newest(&checkpoints, &report.accepted_kinds).cloned()
        });
        match found {
            Some(checkpoint) => Ok(Source {
                run,
                checkpoint,
                saves,
            }),
            None => Err(run),
        }
    }

    /// One line that says which run is continued, and from where.
    pub fn announcement(&self) -> String {
        let path = sanitize::escape(self.checkpoint.path.as_os_str().as_bytes());
        format!(
            "continues run {} from step {} ({path})",
            self.run.id, self.checkpoint.step
        )
    }

    /// The variables that the command gets.
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        let saves: Vec<&OsStr> = self.saves.iter().map(|folder| folder.as_os_str()).collect();
        [
            ("ANTIFREEZE_RESUME", self.checkpoint.path.clone().into()),
            ("ANTIFREEZE_RESUME_SAVES", saves.join(OsStr::new(":"))),
        ]
    }

    /// Notes in the folder of the new run what it continues, so that it can be continued in its turn.
    pub fn note_in(&self, folder: &Path) {
        let saves: Vec<&OsStr> = self.saves.iter().map(|folder| folder.as_os_str()).collect();
        let lines = saves.join(OsStr::new("\n"));
        // Without it the new run is continued from its own checkpoints only.
        let _ = std::fs::write(folder.join(ANCESTORS_FILE), lines.as_bytes());
    }
}

/// The saves folders of the runs that a run continued.
pub fn ancestors(folder: &Path) -> Vec<PathBuf> {
    let bytes = regular_file::read(&folder.join(ANCESTORS_FILE)).unwrap_or_default();
    bytes
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .take(MAX_ANCESTORS)
        .map(|line| PathBuf::from(OsString::from_vec(line.to_vec())))
        .collect()
}

impl Run {
    /// Whether it was a run of this command, started in this folder.
    pub fn is_of(&self, command: &[OsString], folder: &Path) -> bool {
        let head = Record::open(&self.folder)
            .ok()
            .and_then(|record| record.head());
        head.is_some_and(|head| head.command == command && head.folder == folder)
    }
}
