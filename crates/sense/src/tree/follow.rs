//! Finding new processes of the tree and dropping the gone, with as few reads as it takes.
//!
//! The kernel hands out numbers in a circle and tells the newest. When it stands still,
//! nothing was started. When it moved a little, the numbers in between are all that can be
//! new, whichever thread of whichever process started them: looking at those is cheaper
//! than asking every thread of the tree for its children, and finds more. Only when it
//! moved far, or cannot be told, is the tree descended from parent to child.
//!
//! Now and then it is descended all the same, through every thread: a fork that takes long
//! has its number before it can be seen, and a container may show a newest number that is
//! not the kernel's.

use super::Tree;
use super::admit::Allowance;
use super::procfs::{Next, read_children};
use super::table::{Identity, Slot};
use crate::{Pid, Reading};

/// So many new numbers are looked at one by one; with more, the tree is descended.
const NUMBERS: u64 = 64;
/// Files one call opens before it leaves the rest of a descent to the next call.
const READS: usize = 256;
/// Threads of one process that are asked for their children.
const THREADS: usize = 512;
/// Strangers that are remembered from the lists of one parent.
const STRANGERS: usize = 64;
/// Numbers that one call reads from lists of children.
const LISTED: usize = 16_384;
/// Strangers that are weighed in one call once the table is full.
pub const TRIALS: usize = 32;
/// Descriptors that are freed when there are none left.
const SPARE: usize = 8;
/// Descents through all threads are so many nanoseconds apart or more,
const FULL_PACE: u64 = 1_000_000_000;
/// and so many calls, while the newest number tells what is new.
const FULL_CALLS: u32 = 8;

/// How far the tree has been followed.
pub struct Trail {
    /// The newest number in the last call, and in the one before.
    newest: Option<u64>,
    before: Option<u64>,
    /// The newest number stood still while a process was started.
    misled: bool,
    full_at: Option<u64>,
    /// Calls since then.
    calls: u32,
    /// A descent that was cut short goes on here.
    resume: Option<Descent>,
    /// A process went away: what it started without our seeing it is a reaper's child now.
    orphaned: bool,
    /// Processes of the tree that this descent met and could not take in.
    pub untracked: usize,
    overflow: usize,
    /// How many strangers the next descent passes over before it weighs any, so that all
    /// have their turn.
    pass_over: usize,
    strangers: Vec<Pid>,
    threads: Vec<Pid>,
}

#[derive(Clone, Copy, Default)]
struct Descent {
    /// Place in the table.
    index: usize,
    /// Place in the list of all processes, where the kernel lists no children.
    everybody: u64,
    all_threads: bool,
}

impl Trail {
    pub fn new() -> Trail {
        Trail {
            newest: None,
            before: None,
            misled: false,
            full_at: None,
            calls: 0,
            resume: None,
            orphaned: false,
            untracked: 0,
            overflow: 0,
            pass_over: 0,
            strangers: Vec::with_capacity(STRANGERS),
            threads: Vec::with_capacity(THREADS),
        }
    }

    pub fn overflow(&self) -> usize {
        self.overflow
    }

    pub fn lost_one(&mut self) {
        self.orphaned = true;
    }

    /// The tree got a new root or reaper, whose children may be older than the newest
    /// number.
    pub fn restart(&mut self) {
        self.newest = None;
        self.before = None;
        self.full_at = None;
    }

    fn full_descent_is_due(&mut self, numbers_tell: bool, now: u64) -> bool {
        self.calls = self.calls.saturating_add(1);
        let due = self.full_at.is_none_or(|at| {
            now.saturating_sub(at) >= FULL_PACE && (self.calls >= FULL_CALLS || !numbers_tell)
        });
        if due {
            self.full_at = Some(now);
            self.calls = 0;
        }
        due
    }

    /// The numbers handed out since the call before the last, each of which is thus looked
    /// at twice: a number can be handed out shortly before its process can be seen.
    fn new_numbers(&mut self, newest: Reading<u64>) -> Option<core::ops::RangeInclusive<u64>> {
        let newest = newest.value().filter(|&number| number > 0 && !self.misled);
        let from = core::mem::replace(&mut self.before, self.newest);
        self.newest = newest;
        let (from, to) = (from?, newest?);
        (from <= to && to - from <= NUMBERS).then_some(from.saturating_add(1)..=to)
    }
}

impl<S: Copy + Default> Tree<S> {
    /// Finds new descendants and drops the gone. `newest` is the kernel's newest number;
    /// `now` is in nanoseconds, on any clock that does not jump.
    pub fn follow(&mut self, newest: Reading<u64>, now: u64) {
        self.evicted.clear();
        if self.proc.was_starved() {
            self.table.shed(SPARE);
            self.kin.shed();
        }
        let mut allowance = Allowance {
            now,
            reads: READS,
            listed: LISTED,
            trials: TRIALS,
        };
        let numbers = self.trail.new_numbers(newest);
        for number in numbers.clone().into_iter().flatten() {
            self.look_at(number, &mut allowance);
        }
        if core::mem::take(&mut self.trail.orphaned) {
            self.look_below_reapers(&mut allowance);
        }

        let due = self.trail.full_descent_is_due(numbers.is_some(), now);
        match self.trail.resume.take() {
            Some(unfinished) => self.descend(unfinished, &mut allowance),
            None if due || numbers.is_none() => {
                let known = self.table.len();
                let descent = Descent {
                    all_threads: due,
                    ..Descent::default()
                };
                self.descend(descent, &mut allowance);
                let quiet = numbers.is_some_and(|numbers| numbers.is_empty());
                self.trail.misled |= quiet && self.table.len() > known;
            }
            None => {}
        }
    }

    /// A number that was handed out lately: a process of ours, a thread, or anybody.
    fn look_at(&mut self, number: u64, allowance: &mut Allowance) {
        let Ok(pid) = u32::try_from(number).map(Pid) else {
            return;
        };
        allowance.reads = allowance.reads.saturating_sub(1);
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
        if self.table.contains(stat.parent) || self.kin.reaper(stat.parent).is_some() {
            self.admit(pid, allowance);
        }
    }

    fn descend(&mut self, mut descent: Descent, allowance: &mut Allowance) {
        if !self.proc.lists_children {
            return self.look_at_everybody(descent, allowance);
        }
        if descent.index == 0 {
            self.trail.untracked = 0;
            self.look_below_reapers(allowance);
        }
        // Those that are found on the way stand at the end, so they are descended too.
        while let Some(slot) = self.table.slots().get(descent.index) {
            if allowance.reads == 0 {
                self.trail.resume = Some(descent);
                return;
            }
            let pid = slot.tracked.process.pid;
            let threads = slot.tracked.process.threads.value();
            let all_threads = descent.all_threads && threads != Some(1);
            match self.look_below(pid, all_threads, allowance) {
                Err(_) if self.is_gone(descent.index) => self.drop_gone(descent.index),
                _ => descent.index += 1,
            }
        }
        if self.trail.untracked > 0 && !self.table.is_full() {
            self.trail.resume = Some(Descent::default());
        }
        self.settle_overflow();
    }

    /// The kernel hands orphans to a reaper's first thread, so that one's children do.
    fn look_below_reapers(&mut self, allowance: &mut Allowance) {
        if !self.proc.lists_children {
            return self.look_at_everybody(Descent::default(), allowance);
        }
        for place in 0.. {
            let Some(reaper) = self.kin.reapers().nth(place) else {
                return;
            };
            // A reaper that is gone has handed its children to another.
            let _ = self.look_below(reaper.pid, false, allowance);
        }
    }

    /// Admits the children of a process that are not known yet.
    fn look_below(
        &mut self,
        parent: Pid,
        all_threads: bool,
        allowance: &mut Allowance,
    ) -> rustix::io::Result<()> {
        let Tree { proc, trail, .. } = self;
        trail.threads.clear();
        trail.threads.push(parent);
        if all_threads {
            allowance.reads = allowance.reads.saturating_sub(1);
            proc.threads(parent, &mut |thread| {
                if thread != parent {
                    trail.threads.push(thread);
                }
                if trail.threads.len() < THREADS {
                    Next::More
                } else {
                    Next::Enough
                }
            })?;
        }
        for place in 0..self.trail.threads.len() {
            let Some(&thread) = self.trail.threads.get(place) else {
                break;
            };
            allowance.reads = allowance.reads.saturating_sub(1);
            let listed = self.list_strangers(parent, thread, allowance);
            while let Some(stranger) = self.trail.strangers.pop() {
                self.admit(stranger, allowance);
            }
            // The first thread stands for the process; any other may end at any time.
            if thread == parent {
                listed?;
            }
        }
        Ok(())
    }

    /// Notes the children of one thread that are not in the table, as many as can be met.
    fn list_strangers(
        &mut self,
        parent: Pid,
        thread: Pid,
        allowance: &mut Allowance,
    ) -> rustix::io::Result<()> {
        let Tree {
            proc,
            table,
            trail,
            kin,
            ..
        } = self;
        trail.strangers.clear();
        let wanted = if table.is_full() {
            allowance.trials
        } else {
            STRANGERS
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
            allowance.listed = allowance.listed.saturating_sub(1);
            if !table.contains(child) && !kin.is_known(child) {
                let turn = trail.untracked >= trail.pass_over || !table.is_full();
                if turn && trail.strangers.len() < wanted {
                    trail.strangers.push(child);
                } else {
                    trail.untracked += 1;
                }
            }
            if allowance.listed == 0 {
                Next::Enough
            } else {
                Next::More
            }
        })
    }

    /// Where the kernel does not list children: asks every process for its parent. One
    /// that stands before its own parent in the list is found the next time round.
    fn look_at_everybody(&mut self, mut descent: Descent, allowance: &mut Allowance) {
        if descent.everybody == 0 {
            self.trail.untracked = 0;
        }
        self.drop_those(|proc, slot| slot.is_gone(proc));
        let known = self.table.len();
        while allowance.reads > 0 {
            let Tree {
                proc, table, trail, ..
            } = self;
            trail.strangers.clear();
            let batch = allowance.reads.min(STRANGERS);
            let reached = proc.everybody(descent.everybody, &mut |pid| {
                if !table.contains(pid) {
                    trail.strangers.push(pid);
                }
                if trail.strangers.len() < batch {
                    Next::More
                } else {
                    Next::Enough
                }
            });
            descent.everybody = reached.unwrap_or(0);
            while let Some(stranger) = self.trail.strangers.pop() {
                self.look_at(u64::from(stranger.0), allowance);
            }
            if descent.everybody == 0 {
                break;
            }
        }
        if descent.everybody != 0 || self.table.len() > known {
            self.trail.resume = Some(descent);
        } else {
            self.settle_overflow();
        }
    }

    fn is_gone(&self, index: usize) -> bool {
        let slot = self.table.slots().get(index);
        slot.is_some_and(|slot| slot.is_gone(&self.proc))
    }

    /// A descent is complete: what it could not take in is the overflow.
    fn settle_overflow(&mut self) {
        self.trail.overflow = self.trail.untracked;
        let next = self.trail.pass_over.saturating_add(TRIALS);
        self.trail.pass_over = if next < self.trail.untracked { next } else { 0 };
    }
}
