//! The processes of one training tree, followed through /proc without a cgroup.
//!
//! A process belongs to the tree when it was named as a root, when its parent belongs to the tree, or when its parent is
//! a reaper: the guard and the front are child subreapers, so a process that daemonises itself becomes their child. It
//! belongs to the tree until it is gone, whichever parent it has later.
//!
//! # The guarantee
//!
//! - A process number that was reused is never taken for the process that had it before.
//! - No call makes more than a fixed number of reads, however many processes there are.
//! - Nothing is allocated after [`ProcessTree::new`].
//! - No process name can mislead it.
//!
//! A process that starts and ends between two samples is not seen. Beyond the table's capacity only the largest
//! processes are followed.

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

/// How many processes of a tree the guard follows.
pub const TREE_CAPACITY: usize = 512;

/// One process of the tree.
#[derive(Clone, Copy, Debug)]
pub struct TrackedProcess<S> {
    /// What was last read of it.
    pub process: Process,
    /// When it was first seen, in nanoseconds on the caller's clock.
    pub first_seen: u64,
    /// Growth of its VmData between its last two reads, in bytes.
    pub grown: i64,
    /// Its status was read in the last call.
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
    /// The processes that lost their place in the last call of [`ProcessTree::update_members`].
    evicted: Vec<TrackedProcess<S>>,
}

impl<S: Copy + Default> ProcessTree<S> {
    /// Makes an empty tree with room for this many processes.
    pub fn new(capacity: usize) -> rustix::io::Result<ProcessTree<S>> {
        ProcessTree::open_at(Path::new("/proc"), capacity, capacity)
    }

    /// Makes an empty tree over any folder laid out like /proc, with a bound on the descriptors
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

    /// Adds a process as a root of the tree.
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

    /// Adds a child subreaper: its children belong to the tree, and it does not.
    pub fn add_reaper(&mut self, pid: Pid) -> rustix::io::Result<()> {
        self.discovery.restart();
        self.boundary.add_reaper(&self.proc, pid)
    }

    /// Keeps a process out of the tree, such as a helper that is a child of a reaper.
    pub fn exclude(&mut self, pid: Pid) -> rustix::io::Result<()> {
        let outsider = self.boundary.exclude(&self.proc, pid)?;
        if let Some(index) = self.table.position(pid)
            && self.table.get(pid).map(Slot::identity) == Some(outsider)
        {
            self.table.remove(index);
        }
        Ok(())
    }

    /// Iterates over the processes in the table.
    pub fn processes(&self) -> impl Iterator<Item = &TrackedProcess<S>> {
        self.table.slots().iter().map(|slot| &slot.tracked)
    }

    /// Iterates over the processes in the table, to change what the caller keeps about them.
    pub fn processes_mut(&mut self) -> impl Iterator<Item = &mut TrackedProcess<S>> {
        self.table
            .slots_mut()
            .iter_mut()
            .map(|slot| &mut slot.tracked)
    }

    /// Finds a process in the table.
    pub fn get(&self, pid: Pid) -> Option<&TrackedProcess<S>> {
        self.table.get(pid).map(|slot| &slot.tracked)
    }

    /// Whether no process of the tree was alive when it was last read.
    pub fn is_empty(&self) -> bool {
        self.processes().all(|tracked| tracked.process.has_ended())
    }

    /// How many processes of the tree did not fit into the table, as far as they could be counted.
    pub fn overflow(&self) -> usize {
        self.discovery.overflow()
    }

    /// The processes that lost their place to heavier ones in the last [`ProcessTree::update_members`].
    /// They are still alive, so the caller has to undo what it did to them.
    pub fn evicted(&self) -> &[TrackedProcess<S>] {
        &self.evicted
    }

    /// Sends a signal to a process of the tree. A process that reused its number never gets it.
    pub fn send_signal(&self, pid: Pid, signal: Signal) -> rustix::io::Result<()> {
        let slot = self.table.get(pid).ok_or(Errno::SRCH)?;
        let number = i32::try_from(pid.0)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .ok_or(Errno::SRCH)?;
        match pidfd_open(number, PidfdFlags::empty()) {
            // The process is still alive after the descriptor was opened, so it was opened for it.
            Ok(descriptor) => {
                slot.check_alive(&self.proc)?;
                pidfd_send_signal(descriptor, signal)
            }
            Err(Errno::SRCH) => Err(Errno::SRCH),
            // An old kernel, a seccomp filter, or no descriptor left. Numbers are handed out in a
            // circle, so one that was just in use is not reused at once.
            Err(_) => {
                slot.check_alive(&self.proc)?;
                kill_process(number, signal)
            }
        }
    }
}

#[cfg(test)]
mod tests;
