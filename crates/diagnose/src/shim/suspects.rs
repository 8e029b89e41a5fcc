//! Which names of the script fill the memory, judged from the looks that the shim reported.

use super::{Changed, Holder, Holders, ROUNDING, Told};
use antifreeze_sense::Stamp;
use antifreeze_text::units;
use std::time::Duration;

/// One part of so many, of all that is resident, is most of it: half a gigabyte may be the framework itself.
const MOST: u64 = 3;
/// A graph of so many nodes was not made by one step of a model that memory is short for.
const MANY_NODES: u64 = 100;
/// Steps after which a container with as many elements got one in each; if it holds more than one part in so
/// many of the memory.
const ENOUGH_STEPS: u64 = 20;
/// Of what the suspect grew by, one part in so many is a leak of its own.
const SMALL_PART: i64 = 10;
const MUCH: u64 = 10;

/// Who fills the memory, as far as was seen from inside.
#[derive(Clone, Debug)]
pub struct Suspect<'a> {
    pub holder: &'a Holder,
    pub how: How,
    /// All names of the same look.
    names: &'a [Holder],
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
            How::Second(more) => format!("{held}, and grows {}", units::growth_rate(more)),
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

impl Told {
    /// The name that grew most between two looks, or keeps the graphs of all steps; of a single look,
    /// the container that the script adds to and that holds most of the memory.
    pub fn suspect(&self) -> Option<Suspect<'_>> {
        self.holders.as_ref()?.suspect()
    }

    /// The same of the last look until a moment that found one.
    pub fn suspect_before(&self, moment: Stamp) -> Option<Suspect<'_>> {
        let until = Duration::from_nanos(moment.monotonic_ns) + ROUNDING;
        let looks = self
            .changes
            .iter()
            .rev()
            .filter_map(|change| match &change.what {
                Changed::Holders(holders) if change.at <= until => Some(holders),
                _ => None,
            });
        looks.into_iter().find_map(Holders::suspect)
    }
}

impl Holders {
    fn suspect(&self) -> Option<Suspect<'_>> {
        let holders = self;
        let names = holders.names.as_slice();
        let grown = || holders.names.iter().filter(|holder| holder.grown > 0);
        let most = grown().map(|holder| holder.grown).max().unwrap_or(0);
        // Of names that grow alike the one to which the script adds is meant.
        let adds_as_much =
            |holder: &&Holder| !holder.lines.is_empty() && holder.grown >= most / 10 * 9;
        let grower = grown()
            .filter(adds_as_much)
            .max_by_key(|holder| holder.grown);
        let grower = grower.map(|outer| holders.entry_of(outer, |holder| holder.grown));
        let grower = grower.or_else(|| grown().max_by_key(|holder| holder.grown));
        // What has grown by too little to be it does not speak for another.
        let explains = |holder: &&Holder| holder.grown.saturating_mul(3) >= holder.more;
        if let Some(holder) = grower.filter(explains) {
            let grown = holder.grown.unsigned_abs();
            let how = match holder.steps {
                0 => How::Second(grown as f64 / holder.seconds.max(0.001)),
                steps => How::Step(grown / steps),
            };
            return Some(Suspect { holder, how, names });
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
            return Some(Suspect { holder, how, names });
        }
        if let Some(holder) = most
            .clone()
            .filter(|holder| holder.is_filled() && holder.bytes > holders.resident / MOST)
            .max_by_key(|holder| holder.bytes)
            .map(|outer| holders.entry_of(outer, |holder| holder.bytes.cast_signed()))
        {
            let how = How::Holds;
            return Some(Suspect { holder, how, names });
        }
        let holder = most
            .filter(|holder| holder.new_nodes > 0 || holder.seconds == 0.0)
            .max_by_key(|holder| holder.nodes)?;
        let how = How::Graphs;
        (holder.nodes >= MANY_NODES).then_some(Suspect { holder, how, names })
    }
}

impl Holders {
    /// The innermost entry of a container that the script adds to and that has nearly all of what the container has by
    /// this measure: `log['outputs']` rather than `log`.
    fn entry_of<'a>(&'a self, outer: &'a Holder, measure: impl Fn(&Holder) -> i64) -> &'a Holder {
        let entries = self.names.iter().filter(|holder| {
            is_entry(&outer.name, &holder.name)
                && holder.is_filled()
                && !holder.lines.is_empty()
                && measure(holder) >= measure(outer) / 10 * 9
        });
        entries
            .max_by_key(|holder| holder.name.len())
            .unwrap_or(outer)
    }
}

/// Whether a name is an entry of a container of another name, or an attribute of it.
fn is_entry(outer: &str, inner: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with(['[', '.']))
}

impl<'a> Suspect<'a> {
    /// Others that grow beside the suspect, by more than a tenth of what it grew by, on lines of their own.
    pub fn accomplices(&self) -> Vec<&'a Holder> {
        let (main, suspect) = (self.holder, self);
        let same_thing = |one: &Holder, other: &Holder| {
            one.name == other.name
                || is_entry(&one.name, &other.name)
                || is_entry(&other.name, &one.name)
                || (one.file == other.file && one.lines.first() == other.lines.first())
        };
        let is_large = |bytes: u64| bytes.saturating_mul(SMALL_PART.unsigned_abs()) > main.bytes;
        let mut found: Vec<&Holder> = Vec::new();
        for holder in self.names {
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
}
