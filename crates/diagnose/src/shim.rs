//! What the trainers of a run said of themselves: the files that the shim wrote, read without trust.
//! Their lines are described in python/antifreeze/_shim/report.py.

use crate::checkpoints::Kind;
use crate::units;
use antifreeze_record::regular;
use antifreeze_sense::Stamp;
use serde::Deserialize;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

/// One part of so many, of all that is resident, is most of it: half a gigabyte may be the framework itself.
const MOST: u64 = 3;
/// No file is read further; the shim itself writes no more.
const LONGEST: u64 = 2 << 20;
/// A graph of so many nodes was not made by one step of a model that memory is short for.
const MANY_NODES: u64 = 100;
/// Steps after which a container with as many elements got one in each; if it holds more than one part in so
/// many of the memory.
const ENOUGH_STEPS: u64 = 20;
/// Of what the suspect grew by, one part in so many is a leak of its own.
const SMALL_PART: i64 = 10;
const MUCH: u64 = 10;
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
    /// Of the last request that failed.
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

impl ScriptChange {
    fn change_texts(&mut self, change: &mut impl FnMut(&mut String)) {
        change(&mut self.code);
        change(&mut self.before);
        self.imports.iter_mut().for_each(change);
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

#[derive(Clone, Debug, Deserialize)]
pub struct Saved {
    pub path: Option<String>,
    pub step: u64,
    pub bytes: Option<u64>,
    /// The script's names for what is in it.
    #[serde(default)]
    pub names: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Split {
    /// Items at a time, and of the whole batch.
    pub size: u64,
    pub of: u64,
}

/// Who fills the memory, as far as was seen from inside.
#[derive(Clone, Debug)]
pub struct Suspect<'a> {
    pub holder: &'a Holder,
    pub how: How,
}

impl Suspect<'_> {
    /// "holds 129 elements, 516 MB, 4 MB more with each step".
    pub fn does(&self) -> String {
        let Holder { bytes, length, .. } = *self.holder;
        let number = match length {
            0 => String::new(),
            number => format!("{}, ", units::count(number, "element")),
        };
        let held = format!("holds {number}{}", units::bytes(bytes));
        match self.how {
            How::Step(more) => format!("{held}, {} more with each step", units::bytes(more)),
            How::Second(more) => format!("{held}, and grows {}", units::pace(more)),
            How::Holds => held,
            How::Graphs if length == 0 => "keeps the graph of every step".into(),
            How::Graphs => format!(
                "keeps {} and the graph of each",
                units::count(length, "element")
            ),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// By so many bytes with each step, or each second where steps are not seen.
    Step(u64),
    Second(f64),
    /// Small itself, it keeps the graph of every step, with all that is in it.
    Graphs,
    /// It was looked at once, and held most.
    Holds,
}

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

impl Told {
    /// From a run's folder. What cannot be read was not said.
    pub fn read(folder: &Path) -> Told {
        let mut told = Told::default();
        let Ok(entries) = std::fs::read_dir(folder) else {
            return told;
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
        for (process, file) in files.into_iter().enumerate() {
            if let Ok(file) = regular::open(&file) {
                told.hear(process, BufReader::new(file.take(LONGEST)));
            }
        }
        told.know_all();
        told
    }

    /// What was known of holders and saves at a moment, without what was said later, and nothing else. So a line
    /// about an event is the same whenever it is written.
    pub fn as_of(&self, moment: Stamp) -> Told {
        let until = Duration::from_nanos(moment.monotonic) + ROUNDING;
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

    /// Everything in it that a person or a script has written.
    pub fn each_text(&mut self, mut change: impl FnMut(&mut String)) {
        if let Some(hello) = &mut self.hello {
            change(&mut hello.framework);
            change(&mut hello.version);
            hello
                .device
                .iter_mut()
                .chain(&mut hello.dtype)
                .for_each(&mut change);
        }
        if let Some(model) = &mut self.model {
            change(&mut model.optimizer);
        }
        for holder in self
            .holders
            .iter_mut()
            .flat_map(|holders| &mut holders.names)
        {
            change(&mut holder.name);
            change(&mut holder.file);
        }
        for numbers in &mut self.numbers {
            numbers.file.iter_mut().for_each(&mut change);
        }
        for error in &mut self.out_of_memory {
            error.file.iter_mut().for_each(&mut change);
            change(&mut error.message);
        }
        if let Some(saved) = &mut self.saved {
            saved.path.iter_mut().for_each(&mut change);
            saved.names.iter_mut().for_each(&mut change);
        }
        for changes in &mut self.script_changes {
            change(&mut changes.name);
            changes.shown.iter_mut().for_each(&mut change);
            change(&mut changes.file);
            changes
                .edits
                .iter_mut()
                .for_each(|edit| edit.change_texts(&mut change));
        }
        if let Some(batch) = &mut self.batch {
            change(&mut batch.file);
            batch
                .edits
                .iter_mut()
                .for_each(|edit| edit.change_texts(&mut change));
            if let Some(size) = &mut batch.size {
                change(&mut size.before);
                change(&mut size.after);
            }
        }
        for loaded in &mut self.loaded {
            change(&mut loaded.name);
            change(&mut loaded.version);
        }
        for said in &mut self.changes {
            match &mut said.what {
                Changed::Holders(holders) => {
                    for holder in &mut holders.names {
                        change(&mut holder.name);
                        change(&mut holder.file);
                    }
                }
                Changed::Saved(saved) => {
                    saved.path.iter_mut().for_each(&mut change);
                    saved.names.iter_mut().for_each(&mut change);
                }
                Changed::NotSaved(why) => change(why),
            }
        }
        let cells = std::mem::take(&mut self.cells).into_iter();
        self.cells = cells
            .map(|(mut file, number)| {
                change(&mut file);
                (file, number)
            })
            .collect();
        self.not_saved.iter_mut().for_each(&mut change);
        self.faults.iter_mut().for_each(change);
    }

    /// What is said in these lines.
    pub fn said(lines: &[u8]) -> Told {
        let mut told = Told::default();
        told.hear(0, lines);
        told.know_all();
        told
    }

    fn hear(&mut self, process: usize, lines: impl BufRead) {
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
                        // A later version may know more of them.
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

    fn know_all(&mut self) {
        // Stable: of two that were said in the same millisecond by one process, the second counts.
        self.changes.sort_by_key(|change| change.at);
        (self.holders, self.saved, self.not_saved) = self.known_until(Duration::MAX);
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

    /// Others that grow beside the suspect, by more than a tenth of what it grew by, on lines of their own.
    pub fn accomplices(&self, suspect: &Suspect<'_>) -> Vec<&Holder> {
        let main = suspect.holder;
        let same_thing = |one: &Holder, other: &Holder| {
            let is_within = |outer: &str, inner: &str| {
                let rest = inner.strip_prefix(outer);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
            };
            is_within(&one.name, &other.name)
                || is_within(&other.name, &one.name)
                || (one.file == other.file && one.lines.first() == other.lines.first())
        };
        let is_large = |bytes: u64| bytes.saturating_mul(SMALL_PART.unsigned_abs()) > main.bytes;
        let mut found: Vec<&Holder> = Vec::new();
        for holder in self.holders.iter().flat_map(|holders| &holders.names) {
            let grows = match suspect.how {
                // What was looked at once is known by its size alone.
                How::Holds => holder.is_filled() && is_large(holder.bytes),
                How::Step(_) if main.seconds == 0.0 => holder.is_filled() && is_large(holder.bytes),
                How::Graphs => {
                    holder.grown > 0 && holder.grown.saturating_mul(SMALL_PART) > holder.more
                }
                _ => holder.grown > 0 && holder.grown.saturating_mul(SMALL_PART) > main.grown,
            };
            let keeps_graphs = holder.new_nodes > 0 && holder.nodes >= MANY_NODES;
            let is_new =
                !same_thing(main, holder) && !found.iter().any(|known| same_thing(known, holder));
            if (grows || keeps_graphs) && is_new && !holder.lines.is_empty() {
                found.push(holder);
            }
        }
        found
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

    /// The name that grew most between two looks, or keeps the graphs of all steps; of a single look,
    /// the container that the script adds to and that holds most of the memory.
    pub fn suspect(&self) -> Option<Suspect<'_>> {
        let holders = self.holders.as_ref()?;
        let grown = || holders.names.iter().filter(|holder| holder.grown > 0);
        let most = grown().map(|holder| holder.grown).max().unwrap_or(0);
        // Of names that grow alike the one to which the script adds is meant.
        let adds_as_much =
            |holder: &&Holder| !holder.lines.is_empty() && holder.grown >= most / 10 * 9;
        let grower = grown()
            .filter(adds_as_much)
            .max_by_key(|holder| holder.grown);
        let grower = grower.or_else(|| grown().max_by_key(|holder| holder.grown));
        // What has grown by too little to be it does not speak for another.
        let explains = |holder: &&Holder| holder.grown.saturating_mul(3) >= holder.more;
        if let Some(holder) = grower.filter(explains) {
            let grown = holder.grown.unsigned_abs();
            let how = match holder.steps {
                0 => How::Second(grown as f64 / holder.seconds.max(0.001)),
                steps => How::Step(grown / steps),
            };
            return Some(Suspect { holder, how });
        }
        let adds = |holder: &&Holder| !holder.lines.is_empty();
        let most = holders.names.iter().filter(adds);
        // As many elements as there were steps: one was added in each.
        let keeps_pace = |holder: &&Holder| {
            let is_first_look = holder.seconds == 0.0;
            is_first_look
                && holders.step >= ENOUGH_STEPS
                && holder.length.abs_diff(holders.step) <= 1
                && holder.bytes > holders.resident / MUCH
        };
        if let Some(holder) = most
            .clone()
            .filter(keeps_pace)
            .max_by_key(|holder| holder.bytes)
        {
            let how = How::Step(holder.bytes / holder.length.max(1));
            return Some(Suspect { holder, how });
        }
        if let Some(holder) = most
            .clone()
            .filter(|holder| holder.is_filled() && holder.bytes > holders.resident / MOST)
            .max_by_key(|holder| holder.bytes)
        {
            let how = How::Holds;
            return Some(Suspect { holder, how });
        }
        let holder = most
            .filter(|holder| holder.new_nodes > 0 || holder.seconds == 0.0)
            .max_by_key(|holder| holder.nodes)?;
        let how = How::Graphs;
        (holder.nodes >= MANY_NODES).then_some(Suspect { holder, how })
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Stamp {
        Stamp {
            monotonic: seconds * 1_000_000_000,
            realtime: 0,
        }
    }

    fn told(lines: &str) -> Told {
        Told::said(lines.as_bytes())
    }

    #[test]
    fn the_newest_look_counts_and_the_fastest_grower_is_named() {
        let told = told(concat!(
            r#"{"what":"hello","t":1,"pid":7,"framework":"torch","version":"2.8","device":"cpu"}"#,
            "\n",
            r#"{"what":"holders","t":2,"step":10,"resident":9,"names":[]}"#,
            "\n",
            r#"{"what":"holders","t":3,"step":20,"resident":2000,"names":["#,
            r#"{"name":"model","file":"t.py","scope":"main","bytes":900,"length":3,"grown":0,"steps":10,"seconds":1,"lines":[]},"#,
            r#"{"name":"history","file":"t.py","scope":"main","bytes":500,"length":9,"grown":500,"steps":10,"seconds":1,"lines":[12]}]}"#,
            "\n",
            r#"{"what":"news of tomorrow"}"#,
            "\n{ half a li",
        ));
        assert_eq!(told.hello.as_ref().unwrap().framework, "torch");
        let suspect = told.suspect().unwrap();
        assert_eq!(
            (suspect.holder.name.as_str(), suspect.holder.lines[0]),
            ("history", 12)
        );
        assert_eq!(suspect.how, How::Step(50));
    }

    #[test]
    fn a_single_look_names_a_container_that_is_added_to_and_holds_most() {
        let line = |resident| {
            format!(
                r#"{{"what":"holders","step":0,"resident":{resident},"names":[
                {{"name":"kept","file":"t.py","bytes":600,"length":9,"grown":0,"steps":0,"seconds":0,"lines":[12]}}]}}"#
            )
            .replace('\n', "")
        };
        assert_eq!(told(&line(1000)).suspect().unwrap().holder.name, "kept");
        assert!(told(&line(2000)).suspect().is_none());
    }

    #[test]
    fn a_single_look_names_a_container_with_an_element_for_each_step() {
        let line = |step, seconds| {
            format!(
                r#"{{"what":"holders","step":{step},"resident":2000,"names":[
                {{"name":"kept","file":"t.py","bytes":300,"length":30,"grown":0,"steps":0,"seconds":{seconds},"lines":[12]}}]}}"#
            )
            .replace('\n', "")
        };
        let how = |step, seconds| {
            told(&line(step, seconds))
                .suspect()
                .map(|suspect| suspect.how)
        };
        assert_eq!(how(30, 0), Some(How::Step(10)));
        assert_eq!(how(31, 0), Some(How::Step(10)));
        assert_eq!(how(35, 0), None);
        assert_eq!(how(30, 9), None, "in nine seconds it did not grow");
    }

    #[test]
    fn who_keeps_graphs_is_named_where_bytes_do_not_tell() {
        let told = told(concat!(
            r#"{"what":"holders","step":9,"resident":2000000,"names":["#,
            r#"{"name":"x","file":"t.py","bytes":900,"length":0,"grown":400,"steps":5,"seconds":1,"more":900000,"lines":[3]},"#,
            r#"{"name":"losses","file":"t.py","bytes":500,"length":9,"grown":200,"steps":5,"seconds":1,"more":900000,"nodes":400,"new_nodes":90,"lines":[12]}]}"#,
        ));
        let suspect = told.suspect().unwrap();
        assert_eq!(
            (suspect.holder.name.as_str(), suspect.how),
            ("losses", How::Graphs)
        );
    }

    fn holding(seconds: u64, bytes: u64) -> String {
        format!(
            r#"{{"what":"holders","t":{seconds},"step":1,"resident":{bytes},"names":[
            {{"name":"kept","file":"t.py","bytes":{bytes},"length":{seconds},"grown":0,"steps":0,"seconds":0,"lines":[2]}}]}}"#
        )
        .replace('\n', "")
            + "\n"
    }

    #[test]
    fn what_was_known_at_a_moment_does_not_change_with_what_comes_later() {
        let lines = holding(5, 500)
            + r#"{"what":"saved","t":6.0004,"path":"/tmp/step-6.pt","step":6,"seconds":1}"#
            + "\n"
            + &holding(9, 900)
            + r#"{"what":"not-saved","t":10,"step":9,"why":"the disk is full"}"#
            + "\n";
        let told = told(&lines);
        let elements = |told: &Told| told.holders.as_ref().map(|holders| holders.names[0].length);
        let step = |told: &Told| told.saved.as_ref().map(|saved| saved.step);
        for (moment, length, saved, why) in [
            (4, None, None, None),
            (5, Some(5), None, None),
            (6, Some(5), Some(6), None),
            (9, Some(9), Some(6), None),
            (10, Some(9), Some(6), Some("the disk is full")),
        ] {
            let then = told.as_of(at(moment));
            assert_eq!(
                (elements(&then), step(&then), then.not_saved.as_deref()),
                (length, saved, why),
                "{moment}"
            );
            // What was not there yet makes no difference.
            let cut: String = lines
                .lines()
                .filter(|line| {
                    let line: serde_json::Value = serde_json::from_str(line).unwrap();
                    line["t"].as_f64().unwrap() <= moment as f64 + 0.001
                })
                .map(|line| format!("{line}\n"))
                .collect();
            assert_eq!(elements(&Told::said(cut.as_bytes())), length);
        }
    }

    #[test]
    fn the_last_save_is_the_newest_whose_file_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = |step: u64| folder.path().join(format!("step-{step}.pt"));
        let line = |step: u64| {
            let path = path(step);
            let path = path.display();
            format!(r#"{{"what":"saved","t":{step},"path":"{path}","step":{step}}}"#) + "\n"
        };
        let mut told = told(&(line(1) + &line(2) + &line(3)));
        let step = |told: &mut Told| {
            told.forget_deleted_saves();
            told.saved.as_ref().map(|saved| saved.step)
        };
        assert_eq!((step(&mut told), told.saves_deleted), (None, true));
        std::fs::write(path(2), b"a save").unwrap();
        assert_eq!((step(&mut told), told.saves_deleted), (Some(2), false));
        // What was said of it at the time was true then.
        assert_eq!(told.as_of(at(9)).saved.unwrap().step, 3);
    }

    #[test]
    fn of_two_processes_the_later_save_counts_whatever_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let line = |time: u64, step: u64| {
            format!(r#"{{"what":"saved","t":{time},"path":"/tmp/{step}.pt","step":{step}}}"#)
        };
        std::fs::write(folder.path().join("shim-1.jsonl"), line(9, 90)).unwrap();
        std::fs::write(folder.path().join("shim-2.jsonl"), line(5, 50)).unwrap();
        assert_eq!(Told::read(folder.path()).saved.unwrap().step, 90);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            Told::said(&bytes);
        }
    }
}
