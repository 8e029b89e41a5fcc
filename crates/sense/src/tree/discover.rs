//! Finds new processes of the tree and removes those that are gone, with as few reads as possible.
//!
//! The kernel hands out process numbers in a circle and shows the newest. While it does not change, nothing was
//! started. When it rose a little, only the numbers in between can be new, whichever thread of whichever process started
//! them: reading those is cheaper than reading the children of every thread of the tree, and finds more. Only when it
//! rose far, or is not known, is the tree descended from parent to child.
//!
//! From time to time the tree is descended anyway, through every thread: a slow fork has its number before its process
//! is visible, and a container may show a newest number that is not the kernel's.

use super::ProcessTree;
use super::admit::ReadBudget;
use super::procfs::{Listing, read_children};
use super::table::{Identity, Slot};
use crate::{Pid, Reading};

/// Up to this many new numbers are read one by one; with more, the tree is descended.
const MAX_NEW_PIDS_READ_SINGLY: u64 = 64;
/// Files that one call opens before it leaves the rest of a descent to the next call.
const MAX_READS_PER_CALL: usize = 256;
/// Threads of one process whose children are read.
const MAX_THREADS_PER_PROCESS: usize = 512;
/// Unknown children that are noted at a time.
const MAX_UNKNOWN_CHILDREN: usize = 64;
/// Children that one call reads from lists.
const MAX_CHILDREN_LISTED_PER_CALL: usize = 16_384;
/// Unknown children that one call compares with the processes in a full table.
pub const MAX_ADMISSION_TRIALS: usize = 32;
/// Descriptors that are freed when none is left.
const DESCRIPTORS_FREED: usize = 8;
/// Descents through all threads are at least this many nanoseconds apart.
const FULL_DESCENT_INTERVAL_NS: u64 = 1_000_000_000;
/// While the newest number shows what is new, they are at least this many calls apart as well.
const FULL_DESCENT_MIN_CALLS: u32 = 8;

/// What is remembered from call to call.
pub struct Discovery {
    /// The newest number in the last call.
    newest: Option<u64>,
    /// The newest number in the call before the last.
    before: Option<u64>,
    /// A process was started while the newest number did not change.
    newest_is_unreliable: bool,
    /// When the last descent through all threads began.
    full_at: Option<u64>,
    /// Calls since then.
    calls: u32,
    /// Where a descent that was cut short continues.
    resume: Option<Descent>,
    /// A process of the tree is gone, so children that it started unseen belong to a reaper now.
    orphaned: bool,
    /// Processes of the tree that this descent found and that did not fit into the table.
    pub untracked: usize,
    overflow: usize,
    /// How many unknown children the next descent skips before it compares any, so that each
    /// has its turn.
    pass_over: usize,
    unknown_children: Vec<Pid>,
    threads: Vec<Pid>,
}

#[derive(Clone, Copy, Default)]
struct Descent {
    /// Index in the table.
    index: usize,
    /// Offset in the list of all processes, where the kernel lists no children.
    process_list_offset: u64,
    all_threads: bool,
}

impl Discovery {
    pub fn new() -> Discovery {
        Discovery {
            newest: None,
            before: None,
            newest_is_unreliable: false,
            full_at: None,
            calls: 0,
            resume: None,
            orphaned: false,
            untracked: 0,
            overflow: 0,
            pass_over: 0,
            unknown_children: Vec::with_capacity(MAX_UNKNOWN_CHILDREN),
            threads: Vec::with_capacity(MAX_THREADS_PER_PROCESS),
        }
    }

    pub fn overflow(&self) -> usize {
        self.overflow
    }

    pub fn note_lost_process(&mut self) {
        self.orphaned = true;
    }

    /// Starts anew after a root or reaper was added, whose children may be older than the
    /// newest number.
    pub fn restart(&mut self) {
        self.newest = None;
        self.before = None;
        self.full_at = None;
    }

    fn full_descent_is_due(&mut self, numbers_tell: bool, now: u64) -> bool {
        self.calls = self.calls.saturating_add(1);
        let due = self.full_at.is_none_or(|at| {
            now.saturating_sub(at) >= FULL_DESCENT_INTERVAL_NS
                && (self.calls >= FULL_DESCENT_MIN_CALLS || !numbers_tell)
        });
        if due {
            self.full_at = Some(now);
            self.calls = 0;
        }
        due
    }

    /// The numbers handed out since the call before the last. Each is read twice, because a
    /// number can be handed out shortly before its process is visible.
    fn new_numbers(&mut self, newest: Reading<u64>) -> Option<core::ops::RangeInclusive<u64>> {
        let newest = newest
            .value()
            .filter(|&number| number > 0 && !self.newest_is_unreliable);
        let from = core::mem::replace(&mut self.before, self.newest);
        self.newest = newest;
        let (from, to) = (from?, newest?);
        (from <= to && to - from <= MAX_NEW_PIDS_READ_SINGLY).then_some(from.saturating_add(1)..=to)
    }
}

impl<S: Copy + Default> ProcessTree<S> {
    /// Adds new descendants and removes those that are gone. `newest` is the kernel's newest
    /// number; `now` is in nanoseconds, on any clock that does not jump.
    pub fn update_members(&mut self, newest: Reading<u64>, now: u64) {
        self.evicted.clear();
        if self.proc.was_starved() {
            self.table.close_files(DESCRIPTORS_FREED);
            self.boundary.close_files();
        }
        let mut budget = ReadBudget {
            now,
            reads: MAX_READS_PER_CALL,
            listed: MAX_CHILDREN_LISTED_PER_CALL,
            admission_trials: MAX_ADMISSION_TRIALS,
        };
        let numbers = self.discovery.new_numbers(newest);
        for number in numbers.clone().into_iter().flatten() {
            self.inspect_pid(number, &mut budget);
        }
        if core::mem::take(&mut self.discovery.orphaned) {
            self.admit_children_of_reapers(&mut budget);
        }

        let due = self.discovery.full_descent_is_due(numbers.is_some(), now);
        match self.discovery.resume.take() {
            Some(unfinished) => self.descend(unfinished, &mut budget),
            None if due || numbers.is_none() => {
                let known = self.table.len();
                let descent = Descent {
                    all_threads: due,
                    ..Descent::default()
                };
                self.descend(descent, &mut budget);
                let quiet = numbers.is_some_and(|numbers| numbers.is_empty());
                self.discovery.newest_is_unreliable |= quiet && self.table.len() > known;
            }
            None => {}
        }
    }

    /// Reads a number that was handed out lately and admits it if it is a process of the tree.
    fn inspect_pid(&mut self, number: u64, budget: &mut ReadBudget) {
        let Ok(pid) = u32::try_from(number).map(Pid) else {
            return;
        };
        budget.reads = budget.reads.saturating_sub(1);
        let Ok(stat) = self.proc.stat(pid) else {
            return;
        };
        if let Some(index) = self.table.position(pid) {
            let known = self.table.get(pid).map(Slot::identity);
            let started = stat.started;
            if known == Some(Identity { pid, started }) {
                return;
            }
            self.drop_gone(index);
        }
        if self.table.contains(stat.parent) || self.boundary.reaper(stat.parent).is_some() {
            self.admit(pid, budget);
        }
    }

    fn descend(&mut self, mut descent: Descent, budget: &mut ReadBudget) {
        if !self.proc.lists_children {
            return self.inspect_all_processes(descent, budget);
        }
        if descent.index == 0 {
            self.discovery.untracked = 0;
            self.admit_children_of_reapers(budget);
        }
        // Processes that are found on the way are added at the end, so they are descended too.
        while let Some(slot) = self.table.slots().get(descent.index) {
            if budget.reads == 0 {
                self.discovery.resume = Some(descent);
                return;
            }
            let pid = slot.tracked.process.pid;
            let threads = slot.tracked.process.threads.value();
            let all_threads = descent.all_threads && threads != Some(1);
            match self.admit_children(pid, all_threads, budget) {
                Err(_) if self.is_gone(descent.index) => self.drop_gone(descent.index),
                _ => descent.index += 1,
            }
        }
        if self.discovery.untracked > 0 && !self.table.is_full() {
            self.discovery.resume = Some(Descent::default());
        }
        self.settle_overflow();
    }

    /// Admits the children of the reapers' first threads, which get orphans from the kernel.
    fn admit_children_of_reapers(&mut self, budget: &mut ReadBudget) {
        if !self.proc.lists_children {
            return self.inspect_all_processes(Descent::default(), budget);
        }
        for place in 0.. {
            let Some(reaper) = self.boundary.reapers().nth(place) else {
                return;
            };
            // The children of a reaper that is gone belong to another.
            let _ = self.admit_children(reaper.pid, false, budget);
        }
    }

    /// Admits the children of a process that are not in the table.
    fn admit_children(
        &mut self,
        parent: Pid,
        all_threads: bool,
        budget: &mut ReadBudget,
    ) -> rustix::io::Result<()> {
        let ProcessTree {
            proc, discovery, ..
        } = self;
        discovery.threads.clear();
        discovery.threads.push(parent);
        if all_threads {
            budget.reads = budget.reads.saturating_sub(1);
            proc.list_threads(parent, &mut |thread| {
                if thread != parent {
                    discovery.threads.push(thread);
                }
                if discovery.threads.len() < MAX_THREADS_PER_PROCESS {
                    Listing::Continue
                } else {
                    Listing::Stop
                }
            })?;
        }
        for place in 0..self.discovery.threads.len() {
            let Some(&thread) = self.discovery.threads.get(place) else {
                break;
            };
            budget.reads = budget.reads.saturating_sub(1);
            let listed = self.collect_unknown_children(parent, thread, budget);
            while let Some(unknown_child) = self.discovery.unknown_children.pop() {
                self.admit(unknown_child, budget);
            }
            // The first thread stands for the process; the others may end at any time.
            if thread == parent {
                listed?;
            }
        }
        Ok(())
    }

    /// Notes children of one thread that are not in the table, as many as can be admitted.
    fn collect_unknown_children(
        &mut self,
        parent: Pid,
        thread: Pid,
        budget: &mut ReadBudget,
    ) -> rustix::io::Result<()> {
        let ProcessTree {
            proc,
            table,
            discovery,
            boundary,
            ..
        } = self;
        discovery.unknown_children.clear();
        let wanted = if table.is_full() {
            budget.admission_trials
        } else {
            MAX_UNKNOWN_CHILDREN
        };
        let opened;
        let kept = table.get(parent).filter(|_| thread == parent);
        let list = match kept.and_then(Slot::children) {
            Some(kept) => kept,
            None => {
                opened = proc.open_children(parent, thread)?;
                &opened
            }
        };
        read_children(list, &mut |child| {
            budget.listed = budget.listed.saturating_sub(1);
            if !table.contains(child) && !boundary.is_known(child) {
                let turn = discovery.untracked >= discovery.pass_over || !table.is_full();
                if turn && discovery.unknown_children.len() < wanted {
                    discovery.unknown_children.push(child);
                } else {
                    discovery.untracked += 1;
                }
            }
            if budget.listed == 0 {
                Listing::Stop
            } else {
                Listing::Continue
            }
        })
    }

    /// Reads the parent of every process, where the kernel does not list children. A process
    /// that stands before its own parent in the list is found by the next descent.
    fn inspect_all_processes(&mut self, mut descent: Descent, budget: &mut ReadBudget) {
        if descent.process_list_offset == 0 {
            self.discovery.untracked = 0;
        }
        self.drop_where(|proc, slot| slot.is_gone(proc));
        let known = self.table.len();
        while budget.reads > 0 {
            let ProcessTree {
                proc,
                table,
                discovery,
                ..
            } = self;
            discovery.unknown_children.clear();
            let batch = budget.reads.min(MAX_UNKNOWN_CHILDREN);
            let reached = proc.list_processes(descent.process_list_offset, &mut |pid| {
                if !table.contains(pid) {
                    discovery.unknown_children.push(pid);
                }
                if discovery.unknown_children.len() < batch {
                    Listing::Continue
                } else {
                    Listing::Stop
                }
            });
            descent.process_list_offset = reached.unwrap_or(0);
            while let Some(unknown_child) = self.discovery.unknown_children.pop() {
                self.inspect_pid(u64::from(unknown_child.0), budget);
            }
            if descent.process_list_offset == 0 {
                break;
            }
        }
        if descent.process_list_offset != 0 || self.table.len() > known {
            self.discovery.resume = Some(descent);
        } else {
            self.settle_overflow();
        }
    }

    fn is_gone(&self, index: usize) -> bool {
        let slot = self.table.slots().get(index);
        slot.is_some_and(|slot| slot.is_gone(&self.proc))
    }

    /// Notes the overflow after a complete descent: what did not fit into the table.
    fn settle_overflow(&mut self) {
        self.discovery.overflow = self.discovery.untracked;
        let next = self
            .discovery
            .pass_over
            .saturating_add(MAX_ADMISSION_TRIALS);
        self.discovery.pass_over = if next < self.discovery.untracked {
            next
        } else {
            0
        };
    }
}
