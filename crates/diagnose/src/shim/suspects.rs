//! Finds the variable of the script that fills the memory, from the lists of holders that the shim reported.

use super::{Changed, Holder, Holders, ROUNDING, ShimReport};
use antifreeze_sense::Stamp;
use antifreeze_text::units;
use std::time::Duration;

/// A variable holds most of the memory from one part in so many of the resident size on: half a gigabyte may be the
/// framework itself.
const MOST_PART: u64 = 3;
/// A graph of so many nodes was not made by a single step.
const MANY_NODES: u64 = 100;
/// After so many steps a container with as many elements got one in each step,
const MIN_STEPS: u64 = 20;
/// if it holds more than one part in so many of the resident size.
const NOTABLE_PART: u64 = 10;
/// Growth by one part in so many of the suspect's growth is a leak of its own.
const SMALL_PART: i64 = 10;

/// The variable that fills the memory.
#[derive(Clone, Debug)]
pub struct Suspect<'a> {
    /// The variable.
    pub holder: &'a Holder,
    /// How it fills the memory.
    pub kind: SuspectKind,
    /// All variables of the same list.
    names: &'a [Holder],
}

impl Suspect<'_> {
    /// Describes it: "holds 129 elements, 516 MB, 4 MB more with each step".
    pub fn does(&self) -> String {
        let Holder { bytes, length, .. } = *self.holder;
        let number = match length {
            0 => String::new(),
            number => format!("{}, ", units::count(number, "element")),
        };
        let held = format!("holds {number}{}", units::bytes(bytes));
        match self.kind {
            SuspectKind::GrowsPerStep(more) => {
                format!("{held}, {} more with each step", units::bytes(more))
            }
            SuspectKind::GrowsPerSecond(more) => {
                format!("{held}, and grows {}", units::growth_rate(more))
            }
            SuspectKind::HoldsMost => held,
            SuspectKind::KeepsGraphs if length == 0 => "keeps the graph of every step".into(),
            SuspectKind::KeepsGraphs => format!(
                "keeps {} and the graph of each",
                units::count(length, "element")
            ),
        }
    }
}

/// How a variable fills the memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SuspectKind {
    /// It grows by so many bytes with each step.
    GrowsPerStep(u64),
    /// It grows by so many bytes a second, where steps are not known.
    GrowsPerSecond(f64),
    /// It is small, but keeps the graph of every step with all tensors in it.
    KeepsGraphs,
    /// It was measured once, and held the most.
    HoldsMost,
}

impl ShimReport {
    /// The variable that grew most between two lists, or keeps the graphs of all steps; in a single list, the container
    /// that the script adds to and that holds most of the memory.
    pub fn suspect(&self) -> Option<Suspect<'_>> {
        self.holders.as_ref()?.suspect()
    }

    /// The suspect of the last list until a moment that has one.
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
        // Of variables that grow alike the one that the script adds to counts.
        let adds_as_much =
            |holder: &&Holder| !holder.lines.is_empty() && holder.grown >= most / 10 * 9;
        let grower = grown()
            .filter(adds_as_much)
            .max_by_key(|holder| holder.grown);
        let grower = grower.map(|outer| holders.entry_of(outer, |holder| holder.grown));
        let grower = grower.or_else(|| grown().max_by_key(|holder| holder.grown));
        // Growth that is too small to explain the process's growth does not count.
        let explains = |holder: &&Holder| holder.grown.saturating_mul(3) >= holder.more;
        if let Some(holder) = grower.filter(explains) {
            let grown = holder.grown.unsigned_abs();
            let kind = match holder.steps {
                0 => SuspectKind::GrowsPerSecond(grown as f64 / holder.seconds.max(0.001)),
                steps => SuspectKind::GrowsPerStep(grown / steps),
            };
            return Some(Suspect {
                holder,
                kind,
                names,
            });
        }
        let adds = |holder: &&Holder| !holder.lines.is_empty();
        let most = holders.names.iter().filter(adds);
        // As many elements as there were steps: one was added in each.
        let keeps_pace = |holder: &&Holder| {
            let is_first_look = holder.seconds == 0.0;
            is_first_look
                && holders.step >= MIN_STEPS
                && holder.length.abs_diff(holders.step) <= 1
                && holder.bytes > holders.resident / NOTABLE_PART
        };
        if let Some(holder) = most
            .clone()
            .filter(keeps_pace)
            .max_by_key(|holder| holder.bytes)
        {
            let kind = SuspectKind::GrowsPerStep(holder.bytes / holder.length.max(1));
            return Some(Suspect {
                holder,
                kind,
                names,
            });
        }
        if let Some(holder) = most
            .clone()
            .filter(|holder| holder.is_filled() && holder.bytes > holders.resident / MOST_PART)
            .max_by_key(|holder| holder.bytes)
            .map(|outer| holders.entry_of(outer, |holder| holder.bytes.cast_signed()))
        {
            let kind = SuspectKind::HoldsMost;
            return Some(Suspect {
                holder,
                kind,
                names,
            });
        }
        let holder = most
            .filter(|holder| holder.new_nodes > 0 || holder.seconds == 0.0)
            .max_by_key(|holder| holder.nodes)?;
        let kind = SuspectKind::KeepsGraphs;
        (holder.nodes >= MANY_NODES).then_some(Suspect {
            holder,
            kind,
            names,
        })
    }
}

impl Holders {
    /// The innermost entry of a container that the script adds to and that has nearly all of the container by this measure:
    /// `log['outputs']` rather than `log`.
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

/// Whether a name is an entry or attribute of another: `log['outputs']` of `log`.
fn is_entry(outer: &str, inner: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.starts_with(['[', '.']))
}

impl<'a> Suspect<'a> {
    /// Other variables that grow by more than a tenth of the suspect's growth, on other lines.
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
            let grows = match suspect.kind {
                // After a single list only the size is known.
                SuspectKind::HoldsMost => holder.is_filled() && is_large(holder.bytes),
                SuspectKind::GrowsPerStep(_) if main.seconds == 0.0 => {
                    holder.is_filled() && is_large(holder.bytes)
                }
                SuspectKind::KeepsGraphs => {
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
