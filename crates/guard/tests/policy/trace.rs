//! A trace: what a guard saw of a real run, to be decided on again. `trace_fields.rs` has the
//! format, the example `trace` makes one from a record.

use crate::executor::Executor;
use crate::given::BOOT;
use crate::story::Story;
use crate::trace_fields::FIELDS;
use antifreeze_guard::policy::{Config, History, Motion, PolicyInput, decide};
use antifreeze_guard::policy_input;
use antifreeze_guard::room::MemoryBounds;
use antifreeze_sense::{Reading, Reason, Sample};
use std::fs::DirEntry;
use std::path::Path;
use std::time::Duration;

/// What a save takes in a replay: nobody is there to make it.
const SAVE_TAKES: Duration = Duration::from_millis(300);

pub struct Trace {
    lines: Vec<Line>,
}

#[derive(Clone, Copy)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all lines are the large one"
)]
enum Line {
    Look(PolicyInput),
    /// A request was refused.
    Walled {
        at: u64,
    },
}

impl Trace {
    /// The trace of a scenario of the lab.
    pub fn load(scenario: &str) -> Trace {
        let file = folder().join(scenario).with_extension("trace");
        let text = std::fs::read_to_string(&file);
        text.map_err(|error| error.to_string())
            .and_then(|text| parse(&text))
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    }

    /// The scenarios there are traces of.
    pub fn scenarios() -> Vec<String> {
        let files = folder().read_dir().into_iter().flatten().flatten();
        let name = |file: DirEntry| Some(file.path().file_stem()?.to_str()?.to_string());
        files.filter_map(name).collect()
    }

    /// The same run on a machine with so many bytes more, all of them free.
    pub fn with_more(&self, bytes: u64) -> Trace {
        let richer = |line: &Line| match *line {
            Line::Look(input) => Line::Look(PolicyInput {
                room: input.room + bytes as i64,
                available: input.available + bytes,
                ..input
            }),
            walled @ Line::Walled { .. } => walled,
        };
        Trace {
            lines: self.lines.iter().map(richer).collect(),
        }
    }

    /// Decides on every look again. Nothing that is decided changes what comes next: the run
    /// went as the guard of that day let it go.
    pub fn replay(&self, config: &Config) -> Story {
        let mut history = History::new();
        let mut executor = Executor::default();
        for line in &self.lines {
            match *line {
                Line::Walled { at } => executor.wall(at, &mut history.acts),
                Line::Look(input) => {
                    executor.land_save(input.at, SAVE_TAKES, &mut history.acts);
                    history.push(input);
                    let decision = decide(&history, config);
                    executor.act(&decision, &mut history);
                }
            }
        }
        executor.story
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces"))
}

fn parse(text: &str) -> Result<Trace, String> {
    let mut lines = text.lines();
    let names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    let head = lines.next().unwrap_or_default();
    if !head.ends_with(&names.join(" ")) {
        return Err("made with other fields than these; make it again".to_string());
    }
    let bounds = lines.next().and_then(bounds).ok_or("no terms")?;
    let mut last = Last::default();
    let lines = lines
        .map(|line| last.go_on(line, &bounds).ok_or(line))
        .collect::<Result<_, _>>()
        .map_err(|line| format!("not understood: {line}"))?;
    Ok(Trace { lines })
}

/// `terms RESERVE BUDGET ALLOWED_SWAP`
fn bounds(line: &str) -> Option<MemoryBounds> {
    let mut words = line.strip_prefix("terms ")?.split(' ');
    Some(MemoryBounds {
        reserve: number(words.next()?)?,
        budget: reading(words.next()?)?.value(),
        allow_swap: number(words.next()?)?,
    })
}

fn number(word: &str) -> Option<u64> {
    word.parse().ok()
}

fn reading(word: &str) -> Option<Reading<u64>> {
    match word {
        "-" => Some(Reading::Unavailable(Reason::NotRecorded)),
        word => number(word).map(Reading::Value),
    }
}

/// What the line before said.
#[derive(Default)]
struct Last {
    motion: Motion,
    stride: u64,
    sample: Sample,
}

impl Last {
    fn go_on(&mut self, line: &str, bounds: &MemoryBounds) -> Option<Line> {
        let mut words = line.split(' ');
        let at = BOOT + number(words.next()?)? * 1_000_000;
        let mut changed = || words.next().filter(|word| *word != ".");
        match changed() {
            Some("walled") => return Some(Line::Walled { at }),
            Some("running") => self.motion = Motion::Running,
            Some("paused") => self.motion = Motion::Paused,
            Some("held") => self.motion = Motion::StoppedByUser,
            Some(_) => return None,
            None => {}
        }
        if let Some(stride) = changed() {
            self.stride = number(stride)? << 10;
        }
        for field in &FIELDS {
            if let Some(word) = changed() {
                *(field.place)(&mut self.sample) = reading(word)?.map(|value| value * field.unit);
            }
        }
        let input = policy_input::from_sample(
            &self.sample,
            &bounds.room(&self.sample),
            bounds,
            at,
            self.stride,
            self.motion,
        );
        Some(Line::Look(input))
    }
}
