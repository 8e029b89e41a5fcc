//! What the trainers of a run said of themselves: the files that the shim wrote, read without trust.
//! Their lines are described in python/antifreeze/_shim/report.py.

use crate::units;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// One part of so many, of all that is resident, is most of it: half a gigabyte may be the framework itself.
const MOST: u64 = 3;
/// No file is read further; the shim itself writes no more.
const LONGEST: u64 = 2 << 20;
/// A graph of so many nodes was not made by one step of a model that memory is short for.
const MANY_NODES: u64 = 100;
/// Steps after which a container with as many elements got one in each; if it holds more than one part in so
/// many of the memory.
const ENOUGH_STEPS: u64 = 20;
const MUCH: u64 = 10;

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
    /// Steps that it means to make.
    pub plan: Option<u64>,
    /// Steps did not fit, and `antifreeze.step` took them in parts.
    pub split: Option<Split>,
    /// Errors of the shim itself.
    pub faults: Vec<String>,
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
    },
    Plan {
        steps: u64,
    },
    Split(Split),
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
        for file in files {
            if let Ok(file) = File::open(file) {
                told.hear(BufReader::new(file.take(LONGEST)));
            }
        }
        told
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
        }
        self.not_saved.iter_mut().for_each(&mut change);
        self.faults.iter_mut().for_each(change);
    }

    /// What is said in these lines.
    pub fn said(lines: &[u8]) -> Told {
        let mut told = Told::default();
        told.hear(lines);
        told
    }

    fn hear(&mut self, lines: impl BufRead) {
        let mut holders = None;
        for line in lines.split(b'\n').map_while(Result::ok) {
            match serde_json::from_slice(&line) {
                Ok(Line::Hello(hello)) => self.hello = Some(hello),
                Ok(Line::Model(model)) => self.model = Some(model),
                Ok(Line::Holders(newest)) => holders = Some(newest),
                Ok(Line::Numbers(numbers)) => self.numbers.push(numbers),
                Ok(Line::OutOfMemory(error)) => self.out_of_memory.push(error),
                Ok(Line::Saved(saved)) => {
                    self.not_saved = None;
                    // What another rank has saved has a path there.
                    if saved.path.is_some() || self.saved.is_none() {
                        self.saved = Some(saved);
                    }
                }
                Ok(Line::NotSaved { why }) => self.not_saved = Some(why),
                Ok(Line::Plan { steps }) => self.plan = Some(steps),
                Ok(Line::Split(split)) => self.split = Some(split),
                Ok(Line::Resumes { step }) => self.resumes = Some(step),
                Ok(Line::Fault { doing, error }) => self.faults.push(format!("{doing}: {error}")),
                Ok(Line::Other) | Err(_) => {}
            }
        }
        let held = |holders: &Option<Holders>| {
            let names = holders.iter().flat_map(|holders| &holders.names);
            names.map(|holder| holder.bytes).max().unwrap_or(0)
        };
        if held(&holders) > held(&self.holders) {
            self.holders = holders;
        }
    }

    /// The name that grew most between two looks, or keeps the graphs of all steps; of a single look,
    /// the container that the script adds to and that holds most of the memory.
    pub fn suspect(&self) -> Option<Suspect<'_>> {
        let holders = self.holders.as_ref()?;
        let grower = holders
            .names
            .iter()
            .filter(|holder| holder.grown > 0)
            .max_by_key(|holder| holder.grown);
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
            .filter(|holder| holder.length > 0 && holder.bytes > holders.resident / MOST)
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            Told::said(&bytes);
        }
    }
}
