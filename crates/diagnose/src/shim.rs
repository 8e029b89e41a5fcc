//! What the shim reported about the trainers of a run.
//!
//! [`lines`] reads the report files, which are not trusted; [`suspects`] finds the name that fills the memory;
//! [`texts`] lists every text that a person or a script wrote, so that secrets can be removed from it.

mod lines;
mod suspects;
mod texts;

use crate::checkpoints::Kind;
use antifreeze_sense::Stamp;
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

pub use suspects::{How, Suspect};

/// The shim writes times in whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(1);
/// A file that is on a mount whose server is gone is not waited for any longer.
const FILE_TIMEOUT: Duration = Duration::from_secs(1);

/// All that is worth knowing of it.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub hello: Option<Hello>,
    pub model: Option<Model>,
    /// The newest look at who holds the memory, of whoever holds the most.
    pub holders: Option<Holders>,
    pub numbers: Vec<Numbers>,
    pub out_of_memory: Vec<OutOfMemory>,
    pub saved: Option<Saved>,
    /// Why the last save that was asked for did not come.
    pub not_saved: Option<String>,
    /// The script can go on from a save, and this time did from this step.
    pub resumes: Option<u64>,
    /// The kinds of checkpoints that it can continue from; empty where it did not say.
    pub accepted_kinds: Vec<Kind>,
    /// Steps that it means to make.
    pub plan: Option<u64>,
    /// Steps did not fit, and `antifreeze.step` took them in parts.
    pub split: Option<Split>,
    /// Files that stand for cells of a notebook, and the number of each.
    pub cells: HashMap<String, u64>,
    /// Errors of the shim itself.
    pub faults: Vec<String>,
    /// Frameworks that were imported, in that order.
    pub loaded: Vec<Loaded>,
    /// Changes to the script that make a name hold less, by name.
    pub script_changes: Vec<ScriptChanges>,
    /// The batch of the last request for memory that failed.
    pub batch: Option<BatchFacts>,
    /// Saves were made, and all of their files are deleted.
    pub saves_deleted: bool,
    /// All that was said of holders and saves, oldest first: what was known at a moment is read from it.
    pub(crate) changes: Vec<Change>,
}

/// A framework that was imported.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Loaded {
    pub name: String,
    #[serde(default)]
    pub version: String,
}

/// Changes to a file that make one name hold less.
#[derive(Clone, Debug, Deserialize)]
pub struct ScriptChanges {
    /// The name that holders have, or `tf.data` and `torch.utils.data` for what these keep.
    pub name: String,
    /// What grows, where `name` does not say it.
    #[serde(default)]
    pub shown: Option<String>,
    pub file: String,
    pub edits: Vec<ScriptChange>,
}

/// One of them, as python/antifreeze/_shim/edits.py describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct ScriptChange {
    pub action: ChangeAction,
    pub line: u32,
    pub last_line: u32,
    #[serde(default)]
    pub before: String,
    /// The white space before `line`.
    #[serde(default)]
    pub indent: String,
    pub code: String,
    pub why: ChangeReason,
    /// Elements that remain: the newest, and the first so many.
    pub keep: Option<u64>,
    pub first: Option<u64>,
    #[serde(default)]
    pub imports: Vec<String>,
    /// A line that uses all that the name holds.
    pub whole: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeAction {
    Replace,
    Before,
    After,
}

/// What a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeReason {
    /// Tensors are stored without their graphs.
    Detach,
    /// Only the newest elements remain.
    Bound,
    /// Elements are kept in files.
    Spill,
    /// A state is handed on from step to step without its graph.
    State,
    /// A cache of results has a bound.
    Cache,
    /// A pipeline of tf.data keeps no samples, or fewer.
    TfCache,
    TfShuffle,
    /// A model gets its samples in parts.
    WholeSet,
    /// A dataset keeps fewer of the samples that it has read.
    DatasetCache,
    /// What a newer shim may say.
    #[serde(other)]
    Other,
}

/// What is known of a batch that did not fit.
#[derive(Clone, Debug, Deserialize)]
pub struct BatchFacts {
    /// A model has layers that learn from the batch as a whole, so that it is not to be taken in parts.
    pub batch_norm: bool,
    pub file: String,
    /// Changes that give a model its samples in parts.
    #[serde(default)]
    pub edits: Vec<ScriptChange>,
    pub size: Option<BatchSize>,
}

/// Where the size of a batch is written.
#[derive(Clone, Debug, Deserialize)]
pub struct BatchSize {
    pub line: u32,
    /// The text of the line before and after the number.
    pub before: String,
    pub after: String,
    pub value: u64,
}

/// Something that was said, and replaces what was said before it.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// By the monotonic clock.
    at: Duration,
    /// The process that said it, as a number of its file.
    process: usize,
    what: Changed,
}

#[derive(Clone, Debug)]
pub(crate) enum Changed {
    Holders(Holders),
    Saved(Saved),
    NotSaved(String),
}

#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    pub framework: String,
    pub version: String,
    pub device: Option<String>,
    pub dtype: Option<String>,
    pub batch: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Model {
    pub optimizer: String,
    pub parameters: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Holders {
    /// Steps made by then.
    #[serde(default)]
    pub step: u64,
    /// What the whole process held.
    pub resident: u64,
    /// The same without the pages of files, as the guard counts it; 0 where it was not said.
    #[serde(default)]
    pub held: u64,
    pub names: Vec<Holder>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Holder {
    pub name: String,
    pub file: String,
    pub bytes: u64,
    /// Elements of a container; 0 of anything else.
    pub length: u64,
    /// Nodes of graphs that it keeps, whose memory has no name.
    #[serde(default)]
    pub nodes: u64,
    /// The lines on which it grows.
    #[serde(default)]
    pub lines: Vec<u32>,
    /// Bytes and nodes that came since it was first looked at,
    pub grown: i64,
    #[serde(default)]
    pub new_nodes: i64,
    /// in so many steps and seconds, in which the process grew by so many bytes.
    pub steps: u64,
    pub seconds: f64,
    #[serde(default)]
    pub more: i64,
    /// An array to which the script joins more.
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

#[derive(Clone, Debug, Deserialize)]
pub struct Numbers {
    pub of: String,
    pub first: String,
    pub step: u64,
    /// The last step that was looked at and well.
    pub since: Option<u64>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct OutOfMemory {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub step: u64,
    pub message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct Saved {
    pub path: Option<String>,
    pub step: u64,
    pub bytes: Option<u64>,
    /// The script's names for what is in it.
    #[serde(default)]
    pub names: Vec<String>,
    /// The loop that made the steps, where it is the script's own.
    #[serde(rename = "loop")]
    pub training_loop: Option<TrainingLoop>,
    /// Keras's `fit` made the steps.
    pub fit: Option<Fit>,
}

/// A loop of the script, as python/antifreeze/_shim/loops.py describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct TrainingLoop {
    pub file: String,
    /// Its first line, and the white space before it.
    pub line: u32,
    pub indent: String,
    /// A free name for the step to begin at.
    pub variable: String,
    /// The line that begins the loop there; None where the loop does not count steps.
    pub code: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Fit {
    pub steps_in_epoch: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Split {
    /// Items at a time, and of the whole batch.
    pub size: u64,
    pub of: u64,
}

impl Told {
    /// What was known of holders and saves at a moment, without what was said later, and nothing else. So a line
    /// about an event is the same whenever it is written.
    pub fn as_of(&self, moment: Stamp) -> Told {
        let until = Duration::from_nanos(moment.monotonic_ns) + ROUNDING;
        let (holders, saved, not_saved) = self.known_until(until);
        Told {
            holders,
            saved,
            not_saved,
            ..Told::default()
        }
    }

    /// The most that a process held when it looked who holds the memory, and when that was on the monotonic clock.
    pub fn most_held(&self) -> Option<(Duration, u64)> {
        let looks = self.changes.iter().filter_map(|change| match &change.what {
            Changed::Holders(holders) => Some((change.at, holders.held)),
            _ => None,
        });
        looks.max_by_key(|(_, held)| *held)
    }

    /// The newest save whose file is still there stands for the last one. History stays as it was.
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
            // The process with the path is another rank.
            None => known.iter().all(|other| other.path.is_none()),
        };
        let newest = known.iter().find(is_there).map(|saved| (*saved).clone());
        self.saves_deleted = newest.is_none() && !known.is_empty();
        self.saved = newest;
    }

    /// Holders, the last save, and why a later one failed, as they were said until then.
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
                    // What another rank has saved has a path there.
                    if newest.path.is_some() || saved.is_none() {
                        saved = Some(newest);
                    }
                }
                Changed::NotSaved(why) => not_saved = Some(why),
            }
        }
        let held = |holders: &Holders| holders.names.iter().map(|holder| holder.bytes).max();
        // Of two that hold as much the one of the first file, so that it is the same each time.
        let most = holders
            .into_iter()
            .filter(|(_, holders)| held(holders) > Some(0))
            .max_by_key(|(process, holders)| (held(holders), std::cmp::Reverse(*process)));
        let most = most.map(|(_, holders)| holders.clone());
        (most, saved.cloned(), not_saved.cloned())
    }

    /// The changes to the script that were found for a name.
    pub fn changes_for(&self, name: &str) -> Option<&ScriptChanges> {
        self.script_changes
            .iter()
            .find(|changes| changes.name == name && !changes.edits.is_empty())
    }

    /// Whether a framework was imported; unknown frameworks count as not.
    pub fn has_loaded(&self, framework: &str) -> bool {
        let trains = self
            .hello
            .as_ref()
            .is_some_and(|hello| hello.framework == framework);
        trains || self.loaded.iter().any(|loaded| loaded.name == framework)
    }

    /// "keras 3.15, tensorflow 2.21": the frameworks that were imported, but for the one that said that it trains.
    pub fn other_frameworks(&self) -> Vec<String> {
        let trains = |loaded: &&Loaded| {
            self.hello
                .as_ref()
                .is_some_and(|hello| hello.framework == loaded.name)
        };
        // NumPy comes with every other.
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

/// False only where it is known that no file is there.
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
