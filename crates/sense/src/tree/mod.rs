//! The processes of one training tree, followed through /proc without a cgroup.
//!
//! A process belongs to the tree when it was named as a root, when its parent belongs to
//! it, or when its parent is a reaper: the guard and the front are child subreapers, so
//! whatever daemonises itself becomes a child of theirs. Once it belongs, it stays until
//! it is gone, whoever its parent is later.
//!
//! What this promises: a number that was given to another process is never taken for the
//! first; no call makes more than a fixed number of reads, however many processes there
//! are; nothing is allocated after [`ProcessTree::new`]; and nothing a process calls itself can
//! confuse it. What it cannot promise: a process that was started and ended between two
//! looks is never seen, and beyond the table's capacity only the largest are followed.

mod admit;
mod boundary;
mod discover;
mod procfs;
mod read_processes;
mod table;

use crate::{Pid, Process};
use boundary::Boundary;
use discover::Discovery;
use procfs::Proc;
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use std::path::Path;
use table::{Slot, Table};

/// How many processes a table holds unless told otherwise.
pub const TREE_CAPACITY: usize = 512;

/// One process of the tree.
#[derive(Clone, Copy, Debug)]
pub struct TrackedProcess<S> {
    pub process: Process,
    /// When it was first seen, on the clock of the caller.
    pub first_seen: u64,
    /// Growth of its VmData between its last two reads.
    pub grown: i64,
    /// Read in this tick.
    pub fresh: bool,
    /// What the caller keeps about it.
    pub state: S,
}

/// The processes of one training tree. `S` is what the caller keeps about each.
pub struct ProcessTree<S> {
    proc: Proc,
    table: Table<S>,
    boundary: Boundary,
    discovery: Discovery,
    order: Vec<u16>,
    /// Those that lost their place in the last `follow`.
    evicted: Vec<TrackedProcess<S>>,
}

impl<S: Copy + Default> ProcessTree<S> {
    /// An empty tree with room for so many processes.
    pub fn new(capacity: usize) -> rustix::io::Result<ProcessTree<S>> {
        ProcessTree::open_at(Path::new("/proc"), capacity, capacity)
    }

    /// The same, over any folder laid out like /proc and with a bound on the descriptors
    /// that are kept open.
    pub fn open_at(
        proc: &Path,
        capacity: usize,
        descriptors: usize,
    ) -> rustix::io::Result<ProcessTree<S>> {
        let capacity = capacity.min(usize::from(u16::MAX));
        Ok(ProcessTree {
            proc: Proc::open(proc)?,
            table: Table::new(capacity, descriptors),
            boundary: Boundary::default(),
            discovery: Discovery::new(),
            order: Vec::with_capacity(capacity),
            evicted: Vec::with_capacity(discover::MAX_ADMISSION_TRIALS),
        })
    }

    /// Names a process from which the tree grows.
    pub fn add_root(&mut self, pid: Pid, now: u64) -> rustix::io::Result<()> {
        let mut slot = Slot::open(&self.proc, pid, now)?;
        slot.root = true;
        if let Some(index) = self.table.position(pid) {
            slot.tracked.state = self
                .table
                .remove(index)
                .map(|known| known.tracked.state)
                .unwrap_or_default();
        }
        self.discovery.restart();
        if self.table.insert(slot) {
            Ok(())
        } else {
            Err(Errno::NOSPC)
        }
    }

    /// Names a child subreaper: its children belong to the tree, itself does not.
    pub fn add_reaper(&mut self, pid: Pid) -> rustix::io::Result<()> {
        self.discovery.restart();
        self.boundary.add_reaper(&self.proc, pid)
    }

    /// Keeps a process out, such as a child of a reaper that is no orphan of the tree.
    pub fn exclude(&mut self, pid: Pid) -> rustix::io::Result<()> {
        let outsider = self.boundary.exclude(&self.proc, pid)?;
        if let Some(index) = self.table.position(pid)
            && self.table.get(pid).map(Slot::identity) == Some(outsider)
        {
            self.table.remove(index);
        }
        Ok(())
    }

    pub fn processes(&self) -> impl Iterator<Item = &TrackedProcess<S>> {
        self.table.slots().iter().map(|slot| &slot.tracked)
    }

    pub fn processes_mut(&mut self) -> impl Iterator<Item = &mut TrackedProcess<S>> {
        self.table
            .slots_mut()
            .iter_mut()
            .map(|slot| &mut slot.tracked)
    }

    pub fn get(&self, pid: Pid) -> Option<&TrackedProcess<S>> {
        self.table.get(pid).map(|slot| &slot.tracked)
    }

    /// Nothing of the tree is alive, as far as was read.
    pub fn is_empty(&self) -> bool {
        self.processes().all(|tracked| tracked.process.has_ended())
    }

    /// How many processes of the tree are not followed, as far as they could be counted.
    pub fn overflow(&self) -> usize {
        self.discovery.overflow()
    }

    /// Processes that lost their place to heavier ones in the last [`ProcessTree::follow`]. They
    /// live on: what was done to them has to be undone by whoever did it.
    pub fn evicted(&self) -> &[TrackedProcess<S>] {
        &self.evicted
    }

    /// Sends a signal to a process of the tree, and to no other.
    pub fn send_signal(&self, pid: Pid, signal: Signal) -> rustix::io::Result<()> {
        let slot = self.table.get(pid).ok_or(Errno::SRCH)?;
        let number = i32::try_from(pid.0)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .ok_or(Errno::SRCH)?;
        match pidfd_open(number, PidfdFlags::empty()) {
            // Ours still stands after the descriptor was opened, so it was opened for ours.
            Ok(descriptor) => {
                slot.check_alive(&self.proc)?;
                pidfd_send_signal(descriptor, signal)
            }
            Err(Errno::SRCH) => Err(Errno::SRCH),
            // An old kernel, a filter, or no descriptor left. Numbers are handed out in a
            // circle, so one that was in use a moment ago is not given again at once.
            Err(_) => {
                slot.check_alive(&self.proc)?;
                kill_process(number, signal)
            }
        }
    }
}

#[cfg(test)]
mod tests;
