//! What the shim reported from inside the processes of a run.
//!
//! [`lines`] parses the report files, which are not trusted; [`suspects`] finds the variable that fills the memory;
//! [`texts`] lists every text that a person or a script wrote, so that it can be redacted.

mod lines;
mod suspects;
mod texts;

use crate::run::checkpoints::Kind;
use antifreeze_sense::Stamp;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

pub use suspects::{Suspect, SuspectKind};

/// Times are rounded to whole milliseconds by the shim.
const ROUNDING: Duration = Duration::from_millis(1);
/// A file on a mount whose server is gone is not waited for any longer.
const FILE_TIMEOUT: Duration = Duration::from_secs(1);

/// The reports of the shims of all processes.
#[derive(Clone, Debug, Default)]
pub struct ShimReport {
    /// The framework that trains.
    pub hello: Option<Hello>,
    /// The model.
    pub model: Option<Model>,
    /// The newest list of variables that hold memory, of the process that holds the most.
    pub holders: Option<Holders>,
    /// NaN, infinite and diverged values.
    pub numbers: Vec<Numbers>,
    /// Out-of-memory errors.
    pub out_of_memory: Vec<OutOfMemory>,
    /// The last checkpoint.
    pub saved: Option<Saved>,
    /// Why the last requested checkpoint was not written.
    pub not_saved: Option<String>,
    /// The script can resume from a checkpoint, and began at this step.
    pub resumes: Option<u64>,
    /// The kinds of checkpoints that it can resume from; empty where it did not say.
    pub accepted_kinds: Vec<Kind>,
    /// The planned number of steps.
    pub plan: Option<u64>,
    /// `antifreeze.step` split steps that did not fit.
    pub split: Option<Split>,
    /// Files of notebook cells, and their numbers.
    pub cells: HashMap<String, u64>,
    /// Errors of the shim itself.
    pub faults: Vec<String>,
    /// Imported frameworks, in order.
    pub loaded: Vec<Loaded>,
    /// Changes to the script that make a variable hold less.
    pub script_changes: Vec<ScriptChanges>,
    /// The batch at the last request for memory that failed.
    pub batch: Option<BatchFacts>,
    /// Checkpoints were written, and all of their files are deleted.
    pub saves_deleted: bool,
    /// All reports about holders and checkpoints, oldest first, to know what was known at a moment.
    pub(crate) changes: Vec<Change>,
}

/// An imported framework.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
}

/// Changes to a file that make one variable hold less.
#[derive(Clone, Debug, Deserialize)]
pub struct ScriptChanges {
    /// The name of the holder, or `tf.data` or `torch.utils.data`.
    pub name: String,
    /// The name to show, where it differs from `name`.
    #[serde(default)]
    pub shown: Option<String>,
    /// The file.
    pub file: String,
    /// The changes.
    pub edits: Vec<ScriptChange>,
}

/// One change, as python/antifreeze/_shim/edits.py describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct ScriptChange {
    /// How the lines are changed.
    pub action: ChangeAction,
    /// The first line.
    pub line: u32,
    /// The last line.
    pub last_line: u32,
    /// The lines as they are.
    #[serde(default)]
    pub before: String,
    /// The white space before `line`.
    #[serde(default)]
    pub indent: String,
    /// The new code.
    pub code: String,
    /// Why.
    pub why: ChangeReason,
    /// How many of the newest elements remain.
    pub keep: Option<u64>,
    /// How many of the first elements remain.
    pub first: Option<u64>,
    /// Imports that the code needs.
    #[serde(default)]
    pub imports: Vec<String>,
    /// A line that uses everything in the variable.
    pub whole: Option<u32>,
}

/// How a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeAction {
    /// Replace the lines.
    Replace,
    /// Insert before the first line.
    Before,
    /// Insert after the last line.
    After,
}

/// The reason for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeReason {
    /// Tensors are stored without their graphs.
    Detach,
    /// Only the newest elements remain.
    Bound,
    /// Elements are kept in files.
    Spill,
    /// A state is passed from step to step without its graph.
    State,
    /// A cache of results is limited.
    Cache,
    /// A tf.data pipeline does not cache samples.
    TfCache,
    /// A tf.data pipeline shuffles with a smaller buffer.
    TfShuffle,
    /// A model gets its samples in batches.
    WholeSet,
    /// A dataset caches fewer samples.
    DatasetCache,
    /// A reason of a newer shim.
    #[serde(other)]
    Other,
}

/// What is known about a batch that did not fit.
#[derive(Clone, Debug, Deserialize)]
pub struct BatchFacts {
    /// The model has batch normalization, so the batch should not be split.
    pub batch_norm: bool,
    /// The file.
    pub file: String,
    /// Changes that give the model its samples in batches.
    #[serde(default)]
    pub edits: Vec<ScriptChange>,
    /// Where the batch size is set.
    pub size: Option<BatchSize>,
}

/// The line that sets the batch size.
#[derive(Clone, Debug, Deserialize)]
pub struct BatchSize {
    /// The line.
    pub line: u32,
    /// The text before the number.
    pub before: String,
    /// The text after the number.
    pub after: String,
    /// The batch size.
    pub value: u64,
}

/// A report that replaces an earlier one.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// When it was made, on the monotonic clock.
    at: Duration,
    /// The process, as the number of its file.
    process: usize,
    what: Changed,
}

#[derive(Clone, Debug)]
pub(crate) enum Changed {
    Holders(Holders),
    Saved(Saved),
    NotSaved(String),
}

/// The framework that trains.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    /// Its name.
    pub framework: String,
    /// Its version.
    pub version: String,
    /// The device of the loss.
    pub device: Option<String>,
    /// The type of the loss.
    pub dtype: Option<String>,
    /// The batch size.
    pub batch: Option<u64>,
}

/// The model and its optimizer.
#[derive(Clone, Debug, Deserialize)]
pub struct Model {
    /// The optimizer.
    pub optimizer: String,
    /// The number of parameters.
    pub parameters: u64,
    /// The size of the parameters.
    pub bytes: u64,
}

/// The variables that hold memory, at one time.
#[derive(Clone, Debug, Deserialize)]
pub struct Holders {
    /// Steps made until then.
    #[serde(default)]
    pub step: u64,
    /// The resident size of the process.
    pub resident: u64,
    /// The same without pages of files, as the guard counts it; 0 where it was not reported.
    #[serde(default)]
    pub held: u64,
    /// The variables.
    pub names: Vec<Holder>,
}

/// A variable that holds memory.
#[derive(Clone, Debug, Deserialize)]
pub struct Holder {
    /// Its name.
    pub name: String,
    /// The file of the script.
    pub file: String,
    /// How much it holds.
    pub bytes: u64,
    /// The number of elements of a container; 0 for anything else.
    pub length: u64,
    /// Nodes of autograd graphs that it keeps, whose memory belongs to no variable.
    #[serde(default)]
    pub nodes: u64,
    /// The lines on which it grows.
    #[serde(default)]
    pub lines: Vec<u32>,
    /// Bytes that it grew by since it was first measured.
    pub grown: i64,
    /// Nodes that were added since then.
    #[serde(default)]
    pub new_nodes: i64,
    /// Steps made since then.
    pub steps: u64,
    /// Seconds since then.
    pub seconds: f64,
    /// Bytes that the process grew by since then.
    #[serde(default)]
    pub more: i64,
    /// An array that the script concatenates to.
    #[serde(default)]
    pub joined: bool,
    /// Some of the lines that use all of it.
    #[serde(default)]
    pub used: Vec<u32>,
}

impl Holder {
    /// A container or an array that the script adds to.
    fn is_filled(&self) -> bool {
        self.length > 0 || self.joined
    }
}

/// The first NaN, infinite or diverged value of a kind.
#[derive(Clone, Debug, Deserialize)]
pub struct Numbers {
    /// "loss" or "gradient".
    pub of: String,
    /// What it was: "nan", "inf", or another word for a diverged value.
    pub first: String,
    /// The step.
    pub step: u64,
    /// The last step that was checked and good.
    pub since: Option<u64>,
    /// The file of the script.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
}

/// An out-of-memory error.
#[derive(Clone, Debug, Deserialize)]
pub struct OutOfMemory {
    /// The file of the script.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The step.
    pub step: u64,
    /// The error message.
    pub message: String,
}

/// A checkpoint that was written.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Saved {
    /// Its file.
    pub path: Option<String>,
    /// The step.
    pub step: u64,
    /// Its size.
    pub bytes: Option<u64>,
    /// The script's names for the objects in it.
    #[serde(default)]
    pub names: Vec<String>,
    /// The loop that made the steps, where it is the script's own.
    #[serde(rename = "loop")]
    pub training_loop: Option<TrainingLoop>,
    /// The steps were made by Keras's `fit`.
    pub fit: Option<Fit>,
}

/// A loop of the script, as python/antifreeze/_shim/training_loop.py describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct TrainingLoop {
    /// The file.
    pub file: String,
    /// Its first line.
    pub line: u32,
    /// The indentation of that line.
    pub indent: String,
    /// An unused name for the first step.
    pub variable: String,
    /// The line that begins the loop there; None where the loop does not count steps.
    pub code: Option<String>,
}

/// A call of Keras's `fit`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Fit {
    /// The number of steps in an epoch, where it is known.
    pub steps_in_epoch: Option<u64>,
}

/// Steps that `antifreeze.step` split.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Split {
    /// Items in each part.
    pub size: u64,
    /// Items in the whole batch.
    pub of: u64,
}

impl ShimReport {
    /// What was known about holders and saves at a moment. So a message about an event is the same while the run lasts
    /// and afterwards.
    pub fn known_at(&self, moment: Stamp) -> ShimReport {
        let until = Duration::from_nanos(moment.monotonic_ns) + ROUNDING;
        let (holders, saved, not_saved) = self.known_until(until);
        ShimReport {
            holders,
            saved,
            not_saved,
            ..ShimReport::default()
        }
    }

    /// The highest memory of a process in its lists of holders, and when that was on the monotonic clock.
    pub fn peak_of_holders(&self) -> Option<(Duration, u64)> {
        let looks = self.changes.iter().filter_map(|change| match &change.what {
            Changed::Holders(holders) => Some((change.at, holders.held)),
            _ => None,
        });
        looks.max_by_key(|(_, held)| *held)
    }

    /// Replaces the last checkpoint by the newest one whose file still exists. The history stays as it was.
    pub fn forget_deleted_saves(&mut self) {
        let saves = self
            .changes
            .iter()
            .rev()
            .filter_map(|change| match &change.what {
                Changed::Saved(saved) => Some(saved),
                _ => None,
            });
        let known: Vec<&Saved> = saves.collect();
        let is_there = |saved: &&&Saved| match &saved.path {
            Some(path) => may_exist(Path::new(path)),
            // Another rank reports the path.
            None => known.iter().all(|other| other.path.is_none()),
        };
        let newest = known.iter().find(is_there).map(|saved| (*saved).clone());
        self.saves_deleted = newest.is_none() && !known.is_empty();
        self.saved = newest;
    }

    /// Holders, the last checkpoint, and why a later one failed, as reported until then.
    fn known_until(&self, until: Duration) -> (Option<Holders>, Option<Saved>, Option<String>) {
        let mut holders: HashMap<usize, &Holders> = HashMap::new();
        let (mut saved, mut not_saved): (Option<&Saved>, Option<&String>) = (None, None);
        for change in self.changes.iter().take_while(|change| change.at <= until) {
            match &change.what {
                Changed::Holders(newest) => {
                    holders.insert(change.process, newest);
                }
                Changed::Saved(newest) => {
                    not_saved = None;
                    // The report of the rank that wrote the file has its path.
                    if newest.path.is_some() || saved.is_none() {
                        saved = Some(newest);
                    }
                }
                Changed::NotSaved(why) => not_saved = Some(why),
            }
        }
        let held = |holders: &Holders| holders.names.iter().map(|holder| holder.bytes).max();
        // Of two that hold as much the first process counts, so that the result is always the same.
        let most = holders
            .into_iter()
            .filter(|(_, holders)| held(holders) > Some(0))
            .max_by_key(|(process, holders)| (held(holders), std::cmp::Reverse(*process)));
        let most = most.map(|(_, holders)| holders.clone());
        (most, saved.cloned(), not_saved.cloned())
    }

    /// The changes to the script that were found for a variable.
    pub fn script_changes_for(&self, name: &str) -> Option<&ScriptChanges> {
        self.script_changes
            .iter()
            .find(|changes| changes.name == name && !changes.edits.is_empty())
    }

    /// Whether a known framework was imported.
    pub fn has_loaded(&self, framework: &str) -> bool {
        let trains = self
            .hello
            .as_ref()
            .is_some_and(|hello| hello.framework == framework);
        trains || self.loaded.iter().any(|loaded| loaded.name == framework)
    }

    /// The imported frameworks besides the one that trains: "keras 3.15", "tensorflow 2.21".
    pub fn other_frameworks(&self) -> Vec<String> {
        let trains = |loaded: &&Loaded| {
            self.hello
                .as_ref()
                .is_some_and(|hello| hello.framework == loaded.name)
        };
        // All others import NumPy.
        let others = self
            .loaded
            .iter()
            .filter(|loaded| loaded.name != "numpy" && !trains(loaded));
        others
            .map(|loaded| {
                format!("{} {}", loaded.name, loaded.version)
                    .trim_end()
                    .to_owned()
            })
            .collect()
    }
}

/// Whether a file may exist: false only where it is known not to.
pub(crate) fn may_exist(path: &Path) -> bool {
    let (answer, answered) = std::sync::mpsc::channel();
    let path = path.to_owned();
    let asks = move || {
        let _ = answer.send(path.symlink_metadata());
    };
    let started = std::thread::Builder::new().spawn(asks);
    if started.is_err() {
        return true;
    }
    match answered.recv_timeout(FILE_TIMEOUT) {
        Ok(Err(error)) => error.kind() != std::io::ErrorKind::NotFound,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
