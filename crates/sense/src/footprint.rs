//! The footprint of a tree: the memory that would come back if the tree ended. It is its anonymous memory, counted once
//! however many processes share it, its shared memory, and what of it is in swap.
//!
//! # The guarantee
//!
//! The estimate is at least what the largest process holds and at most what all processes hold together. It is exact
//! right after a correction that names every process, and while there is only one process. Between corrections it
//! misses one thing: a process that writes to pages that it has in common with others gets copies, and its counters do
//! not change. The error is at most the size of those copies.
//!
//! # The method
//!
//! Where the trainer has a cgroup of its own, the kernel counts there, and that count is used. Elsewhere exact values
//! are expensive, because the kernel walks every page for Pss. They come from a slow thread from time to time, and in
//! between the change of each process is added. The memory of each process is split in two: its *own*, which goes when
//! the process goes, and the rest, which it has in *common* with others and which is counted once for all of them.

use crate::parse::Pss;
use crate::{Cgroup, Pid, Process, Reading, Reason, Sample};

/// The exact share of one process in the memory of the tree, and what it held when the share was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessShare {
    /// The number of the process.
    pub pid: Pid,
    /// When it started, in clock ticks since boot. Together with the number this identifies it.
    pub started: u64,
    /// RssAnon + VmSwap in bytes, read as close in time to the share as possible.
    pub held: u64,
    /// The share, as the kernel counted it.
    pub pss: Pss,
}

/// The memory of one process, in bytes. `own` is never more than `held`.
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

/// Whether the current pass has met the process.
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

    /// Notes what the process holds now. Growth is its own, and a loss is taken from its own first.
    fn set_held(&mut self, held: u64) {
        let common = self.common();
        self.own = if held >= self.held {
            self.own + (held - self.held)
        } else if held < common / 2 {
            // It freed most of what it had in common, as an exec does: what it has now was
            // allocated after that.
            held
        } else {
            self.own.saturating_sub(self.held - held).min(held)
        };
        self.held = held;
    }
}

/// Estimates the footprint of one tree from sample to sample.
pub struct Footprint {
    holdings: Vec<Holding>,
    capacity: usize,
    /// What processes have in common, counted once.
    common: u64,
    shmem: SharedMemoryEstimate,
}

impl Footprint {
    /// An estimate with room for this many processes. Processes beyond it are not counted.
    pub fn new(capacity: usize) -> Footprint {
        Footprint {
            holdings: Vec::with_capacity(capacity),
            capacity,
            common: 0,
            shmem: SharedMemoryEstimate::default(),
        }
    }

    /// Notes what the processes hold now, and writes footprint and shared memory into
    /// `out.tree`, from `out.cgroup` where that has been read.
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
        // The counters of processes leave out shared memory in swap; those of a cgroup do not.
        if let (Reading::Value(own), Reading::Value(theirs)) = (out.cgroup.own_swap, out.tree.swap)
        {
            out.tree.swap = Reading::Value(own.max(theirs));
        }
    }

    /// Corrects the estimate by exact shares, of all processes of the tree or of as many as
    /// could be read one after the other. Processes may have changed or ended since then.
    pub fn apply_exact_shares(&mut self, shares: &[ProcessShare]) {
        for holding in &mut self.holdings {
            holding.presence = Presence::NotListed;
        }
        self.common = 0;
        for share in shares {
            let part = share.pss.anon.saturating_add(share.pss.swap);
            // The share in a common page is at most a half, so at least this much is its own.
            let own = part.saturating_mul(2).saturating_sub(share.held);
            let own = own.min(part).min(share.held);
            // Also for processes that have ended since: what they had in common is still there.
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

    /// Finds a process. Processes mostly come in the same order, so the hint is mostly right.
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

    /// Splits the memory of new processes. A process that was just forked has everything in
    /// common with its parent; one that has much less has already become another program.
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

    /// Keeps the estimate of processes that a correction does not name. What they have in common
    /// with a parent that it names was counted as the parent's own when its share was read.
    fn link_uncorrected(&mut self) {
        for place in 0..self.holdings.len() {
            if let Some((child, parent)) = self.with_parent(place, Presence::NotListed) {
                self.make_common(&parent, child.common().min(parent.held));
            }
        }
    }

    /// The process at this index and its parent, if its presence is the given one.
    fn with_parent(&self, place: usize, presence: Presence) -> Option<(Holding, Holding)> {
        let child = self
            .holdings
            .get(place)
            .filter(|child| child.presence == presence)?;
        let parent = self.holdings.get(self.parent_of(child)?)?;
        Some((*child, *parent))
    }

    /// Moves memory of a process from its own to the common part, so that `amount` of it is common.
    fn make_common(&mut self, process: &Holding, amount: u64) {
        let given = process.own.min(amount.saturating_sub(process.common()));
        if let Some(place) = self.position(0, process.pid, process.started)
            && let Some(process) = self.holdings.get_mut(place)
        {
            process.own -= given;
            self.common = self.common.saturating_add(given);
        }
    }

    /// Keeps the common part between the largest and the sum of what the processes have of it.
    fn bound_common(&mut self) {
        let commons = self.holdings.iter().map(Holding::common);
        let largest = commons.clone().max().unwrap_or(0);
        let sum = commons.fold(0, u64::saturating_add);
        self.common = self.common.clamp(largest, sum);
    }
}

/// Estimates shared memory, which has no owner: several processes may map the same. The
/// largest mapping is a floor; its growth since the last exact value is added to that value.
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

/// Footprint and shared memory as the trainer's own cgroup counts them. Where the cgroup does
/// not count swap, the swap of the processes is used.
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
