//! What would come back if the tree ended: its anonymous memory counted once however many
//! processes share it, its shared memory, and what of it is in swap.
//!
//! The trainer's own cgroup knows, and wins where there is one. Otherwise the kernel tells
//! exactly only at a price (Pss walks every page), so exact values come now and then from
//! a slow thread, and in between the change of each process is followed. What is known of
//! each process is divided in two: its *own*, which goes when it goes, and the rest, which
//! it has in *common* with others and which is counted once for all.
//!
//! Always true: the estimate is at least what the largest process holds and at most what
//! all hold together; it is exact right after a correction that names every process, and
//! while there is one process. Not seen between corrections: a process that writes to
//! pages it has in common gets copies, and its counters do not move. The error is at most
//! the size of those copies.

use crate::parse::Pss;
use crate::{Cgroup, Pid, Process, Reading, Reason, Sample};

/// The exact part of one process, and what it held when that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessShare {
    pub pid: Pid,
    /// Start time: with the number, its identity.
    pub started: u64,
    /// RssAnon + VmSwap, as near in time to the exact part as possible.
    pub held: u64,
    pub pss: Pss,
}

/// What is known of one process. Its own is never more than it holds.
#[derive(Clone, Copy, Debug)]
struct Holding {
    pid: Pid,
    started: u64,
    parent: Pid,
    /// RssAnon + VmSwap.
    held: u64,
    own: u64,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    NotListed,
    Listed,
    New,
}

impl Holding {
    fn common(&self) -> u64 {
        self.held - self.own
    }

    /// What it holds changed. Growth is its own; a loss is its own first.
    fn set_held(&mut self, held: u64) {
        let common = self.common();
        self.own = if held >= self.held {
            self.own + (held - self.held)
        } else if held < common / 2 {
            // It let go of most of what it had in common, as an exec does: what it has now
            // came after.
            held
        } else {
            self.own.saturating_sub(self.held - held).min(held)
        };
        self.held = held;
    }
}

/// Follows the footprint of one tree.
pub struct Footprint {
    holdings: Vec<Holding>,
    capacity: usize,
    /// What processes have in common, counted once.
    common: u64,
    shmem: SharedMemoryEstimate,
}

impl Footprint {
    /// Room for so many processes; those beyond it are not counted.
    pub fn new(capacity: usize) -> Footprint {
        Footprint {
            holdings: Vec::with_capacity(capacity),
            capacity,
            common: 0,
            shmem: SharedMemoryEstimate::default(),
        }
    }

    /// Takes in what the processes hold now, and puts footprint and shared memory into
    /// `out.tree`, from `out.cgroup` where that knows.
    pub fn update<'a>(&mut self, tree: impl Iterator<Item = &'a Process>, out: &mut Sample) {
        let mut missing = None;
        let mut swap = 0u64;
        self.shmem.start_pass();
        for holding in &mut self.holdings {
            holding.presence = Presence::NotListed;
        }
        for (place, process) in tree.filter(|process| !process.has_ended()).enumerate() {
            let swapped = process.swap.value().unwrap_or(0);
            let held = match process.rss_anon {
                Reading::Value(anon) => anon.saturating_add(swapped),
                Reading::Unavailable(reason) => {
                    missing = missing.or(Some(reason));
                    swapped
                }
            };
            swap = swap.saturating_add(swapped);
            self.shmem
                .add_mapping(process.rss_shmem.value().unwrap_or(0));
            self.note_process(place, process, held);
        }
        self.remove_ended();
        self.link_new_children();
        self.bound_common();

        let shmem = self.shmem.estimate();
        let known = self.anon().saturating_add(shmem);
        (out.tree.footprint, out.tree.shmem) = match (cgroup_footprint(&out.cgroup, swap), missing)
        {
            (Some((footprint, shmem)), _) => (Reading::Value(footprint), Reading::Value(shmem)),
            (None, Some(reason)) if known == 0 => unavailable_pair(reason),
            (None, _) => (Reading::Value(known), Reading::Value(shmem)),
        };
        // Processes do not know of shared memory in swap; a cgroup does.
        if let (Reading::Value(own), Reading::Value(theirs)) = (out.cgroup.own_swap, out.tree.swap)
        {
            out.tree.swap = Reading::Value(own.max(theirs));
        }
    }

    /// Takes in exact parts, of all processes of the tree or of as many as could be read,
    /// gathered one after the other. What they held has changed since, and some may have
    /// ended: both are allowed for.
    pub fn apply_exact_shares(&mut self, shares: &[ProcessShare]) {
        for holding in &mut self.holdings {
            holding.presence = Presence::NotListed;
        }
        self.common = 0;
        for share in shares {
            let part = share.pss.anon.saturating_add(share.pss.swap);
            // Of a page in common the part is at most a half, so at least this is its own.
            let own = part.saturating_mul(2).saturating_sub(share.held);
            let own = own.min(part).min(share.held);
            // Also of those that have ended since: what they had in common is still there.
            self.common = self.common.saturating_add(part - own);
            if let Some(place) = self.position(0, share.pid, share.started)
                && let Some(holding) = self.holdings.get_mut(place)
            {
                let latest = core::mem::replace(&mut holding.held, share.held);
                holding.own = own;
                holding.set_held(latest);
                holding.presence = Presence::Listed;
            }
        }
        self.link_uncorrected();
        self.bound_common();
        let exact = shares
            .iter()
            .fold(0u64, |sum, share| sum.saturating_add(share.pss.shmem));
        self.shmem.correct(exact);
    }

    fn anon(&self) -> u64 {
        let own = self.holdings.iter().map(|holding| holding.own);
        own.fold(self.common, u64::saturating_add)
    }

    fn note_process(&mut self, hint: usize, process: &Process, held: u64) {
        match self.position(hint, process.pid, process.started) {
            Some(place) => {
                if let Some(holding) = self.holdings.get_mut(place) {
                    holding.set_held(held);
                    holding.presence = Presence::Listed;
                }
            }
            None if self.holdings.len() < self.capacity => self.holdings.push(Holding {
                pid: process.pid,
                started: process.started,
                parent: process.parent,
                held,
                own: held,
                presence: Presence::New,
            }),
            None => {}
        }
    }

    /// Processes mostly come in the same order, so the place is mostly where it was.
    fn position(&self, hint: usize, pid: Pid, started: u64) -> Option<usize> {
        let same = |holding: &Holding| holding.pid == pid && holding.started == started;
        if self.holdings.get(hint).is_some_and(same) {
            return Some(hint);
        }
        self.holdings.iter().position(same)
    }

    fn parent_of(&self, child: &Holding) -> Option<usize> {
        let parent = |known: &Holding| known.pid == child.parent && known.started <= child.started;
        self.holdings.iter().position(parent)
    }

    fn remove_ended(&mut self) {
        self.holdings
            .retain(|holding| holding.presence != Presence::NotListed);
    }

    /// A process that was just forked has everything in common with its parent; one that
    /// has much less than its parent has already become another program.
    fn link_new_children(&mut self) {
        for place in 0..self.holdings.len() {
            let Some((child, parent)) = self.with_parent(place, Presence::New) else {
                continue;
            };
            if child.held < parent.held / 2 {
                continue;
            }
            let both = child.held.min(parent.held);
            self.make_common(&parent, both);
            let dropped = child.own.min(both);
            // What it had in common with its own children already was counted there.
            self.common = self.common.saturating_sub(both - dropped);
            if let Some(child) = self.holdings.get_mut(place) {
                child.own -= dropped;
            }
        }
    }

    /// Those that an exact batch does not name keep what was thought of them; what they
    /// have in common with a parent that it names was the parent's own when it was taken.
    fn link_uncorrected(&mut self) {
        for place in 0..self.holdings.len() {
            if let Some((child, parent)) = self.with_parent(place, Presence::NotListed) {
                self.make_common(&parent, child.common().min(parent.held));
            }
        }
    }

    /// The process in this place and its parent, if the mark is on it.
    fn with_parent(&self, place: usize, presence: Presence) -> Option<(Holding, Holding)> {
        let child = self
            .holdings
            .get(place)
            .filter(|child| child.presence == presence)?;
        let parent = self.holdings.get(self.parent_of(child)?)?;
        Some((*child, *parent))
    }

    /// So much of what the process holds others hold too: what was its own until now
    /// passes to what is in common.
    fn make_common(&mut self, process: &Holding, amount: u64) {
        let given = process.own.min(amount.saturating_sub(process.common()));
        if let Some(place) = self.position(0, process.pid, process.started)
            && let Some(process) = self.holdings.get_mut(place)
        {
            process.own -= given;
            self.common = self.common.saturating_add(given);
        }
    }

    /// What is in common is at least what any one of them has of it, at most the sum.
    fn bound_common(&mut self) {
        let commons = self.holdings.iter().map(Holding::common);
        let largest = commons.clone().max().unwrap_or(0);
        let sum = commons.fold(0, u64::saturating_add);
        self.common = self.common.clamp(largest, sum);
    }
}

/// Shared memory has no owner: one process's mapping may be another's. The largest is a
/// floor, and its growth since the last exact value is added to that.
#[derive(Clone, Copy, Debug, Default)]
struct SharedMemoryEstimate {
    largest: u64,
    sum: u64,
    /// The last exact value, and the largest at that time.
    exact: Option<(u64, u64)>,
}

impl SharedMemoryEstimate {
    fn start_pass(&mut self) {
        self.largest = 0;
        self.sum = 0;
    }

    fn add_mapping(&mut self, mapped: u64) {
        self.largest = self.largest.max(mapped);
        self.sum = self.sum.saturating_add(mapped);
    }

    fn correct(&mut self, exact: u64) {
        self.exact = Some((exact, self.largest));
    }

    fn estimate(&self) -> u64 {
        let (exact, then) = self.exact.unwrap_or((0, 0));
        let followed = exact.saturating_add(self.largest).saturating_sub(then);
        followed.clamp(self.largest, self.sum)
    }
}

/// Footprint and shared memory as the trainer's own cgroup counts them. Where it does not
/// count swap, that of the processes stands in.
fn cgroup_footprint(cgroup: &Cgroup, swap: u64) -> Option<(u64, u64)> {
    let anon = cgroup.own_anon.value()?;
    let shmem = cgroup.own_shmem.value()?;
    let swap = cgroup.own_swap.value().unwrap_or(swap);
    Some((anon.saturating_add(shmem).saturating_add(swap), shmem))
}

fn unavailable_pair(reason: Reason) -> (Reading<u64>, Reading<u64>) {
    (Reading::Unavailable(reason), Reading::Unavailable(reason))
}

#[cfg(test)]
mod tests;
