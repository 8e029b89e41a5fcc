//! Decides which processes enter the table and which leave it.

use super::ProcessTree;
use super::procfs::Proc;
use super::table::Slot;
use crate::Pid;

/// Reads for each process that is admitted: its status, its stat, and its parent's stat.
const READS_PER_ADMISSION: usize = 3;

/// What one call may still read, so that its time is bounded however many processes there are.
pub struct ReadBudget {
    /// The time of the call, in nanoseconds.
    pub now: u64,
    /// Files that may still be opened.
    pub reads: usize,
    /// Children that may still be read from lists.
    pub listed: usize,
    /// Processes that may still be compared with those in a full table.
    pub admission_trials: usize,
}

impl<S: Copy + Default> ProcessTree<S> {
    /// Adds a process to the table if it still is the one whose number was found.
    pub(super) fn admit(&mut self, pid: Pid, budget: &mut ReadBudget) {
        if self.table.is_full() {
            if budget.admission_trials == 0 {
                self.discovery.untracked += 1;
                return;
            }
            budget.admission_trials -= 1;
        }
        budget.reads = budget.reads.saturating_sub(READS_PER_ADMISSION);
        let Ok(slot) = Slot::open(&self.proc, pid, budget.now) else {
            return;
        };
        // The parent is checked last: if it still is the process in the table, then the number in
        // the child's file was its number.
        if self.boundary.is_outside(slot.identity()) || !self.is_ours(slot.tracked.process.parent) {
            return;
        }
        if self.table.is_full() {
            self.discovery.untracked += 1;
            self.make_room_for(&slot);
        }
        self.table.insert(slot);
    }

    /// Removes the lightest process if this one is heavier.
    fn make_room_for(&mut self, newcomer: &Slot<S>) {
        let Some(lightest) = self.table.lightest() else {
            return;
        };
        let known = self.table.slots().get(lightest);
        if known.is_some_and(|known| known.weight() < newcomer.weight())
            && let Some(leaving) = self.table.remove(lightest)
            && !leaving.tracked.process.has_ended()
        {
            self.evicted.push(leaving.tracked);
        }
    }

    /// Whether the parent is in the table or a reaper, and still the same process.
    fn is_ours(&self, parent: Pid) -> bool {
        match self.table.get(parent) {
            Some(slot) => slot.check_alive(&self.proc).is_ok(),
            None => self
                .boundary
                .reaper(parent)
                .is_some_and(|reaper| reaper.check_alive(&self.proc).is_ok()),
        }
    }

    /// Removes the processes for which `gone` returns true.
    pub(super) fn drop_where(&mut self, gone: impl Fn(&Proc, &Slot<S>) -> bool) {
        let mut index = 0;
        while let Some(slot) = self.table.slots().get(index) {
            if gone(&self.proc, slot) {
                self.drop_gone(index);
            } else {
                index += 1;
            }
        }
    }

    pub(super) fn drop_gone(&mut self, index: usize) {
        self.table.remove(index);
        self.discovery.note_lost_process();
    }
}
