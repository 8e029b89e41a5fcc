//! What the trainers of a run said of themselves: the files that the shim wrote, read without trust.
//! Their lines are described in python/antifreeze/_shim/report.py.

use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// No file is read further; the shim itself writes no more.
const LONGEST: u64 = 2 << 20;

/// All that is worth knowing of it.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub framework: Option<String>,
    pub device: Option<String>,
    /// The newest look at who holds the memory, of whoever holds the most.
    pub holders: Option<Holders>,
    pub numbers: Vec<Numbers>,
    pub out_of_memory: Vec<OutOfMemory>,
    pub saved: Option<Saved>,
    pub not_saved: Option<String>,
    /// Errors of the shim itself.
    pub faults: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Holders {
    pub step: u64,
    pub names: Vec<Holder>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Holder {
    pub name: String,
    pub file: String,
    pub bytes: u64,
    pub length: u64,
    pub bytes_a_step: i64,
    #[serde(default)]
    pub lines: Vec<u32>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Numbers {
    pub of: String,
    pub first: String,
    pub step: u64,
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
}

#[derive(Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum Line {
    Hello {
        framework: String,
        device: Option<String>,
    },
    Holders(Holders),
    Numbers(Numbers),
    OutOfMemory(OutOfMemory),
    Saved(Saved),
    NotSaved {
        why: String,
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
        for file in files {
            if let Ok(file) = File::open(file) {
                told.hear(BufReader::new(file.take(LONGEST)));
            }
        }
        told
    }

    fn hear(&mut self, lines: impl BufRead) {
        let mut holders = None;
        for line in lines.split(b'\n').map_while(Result::ok) {
            match serde_json::from_slice(&line) {
                Ok(Line::Hello { framework, device }) => {
                    self.framework = Some(framework);
                    self.device = device;
                }
                Ok(Line::Holders(newest)) => holders = Some(newest),
                Ok(Line::Numbers(numbers)) => self.numbers.push(numbers),
                Ok(Line::OutOfMemory(error)) => self.out_of_memory.push(error),
                Ok(Line::Saved(saved)) => self.saved = Some(saved),
                Ok(Line::NotSaved { why }) => self.not_saved = Some(why),
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

    /// The name that grows fastest with the steps.
    pub fn grower(&self) -> Option<&Holder> {
        let names = &self.holders.as_ref()?.names;
        names
            .iter()
            .filter(|holder| holder.bytes_a_step > 0)
            .max_by_key(|holder| holder.bytes_a_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(lines: &str) -> Told {
        let mut told = Told::default();
        told.hear(lines.as_bytes());
        told
    }

    #[test]
    fn the_newest_look_counts_and_the_fastest_grower_is_named() {
        let told = told(concat!(
            r#"{"what":"hello","t":1,"pid":7,"framework":"torch","device":"cpu"}"#,
            "\n",
            r#"{"what":"holders","t":2,"step":10,"steps":5,"names":[]}"#,
            "\n",
            r#"{"what":"holders","t":3,"step":20,"steps":10,"names":["#,
            r#"{"name":"model","file":"t.py","scope":"main","bytes":900,"length":3,"bytes_a_step":0,"lines":[]},"#,
            r#"{"name":"history","file":"t.py","scope":"main","bytes":500,"length":9,"bytes_a_step":50,"lines":[12]}]}"#,
            "\n",
            r#"{"what":"news of tomorrow"}"#,
            "\n{ half a li",
        ));
        assert_eq!(told.framework.as_deref(), Some("torch"));
        let grower = told.grower().unwrap();
        assert_eq!((grower.name.as_str(), grower.lines[0]), ("history", 12));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            Told::default().hear(&bytes[..]);
        }
    }
}
