//! Reads the processes of the tree for one sample: their memory, and the totals.
//!
//! Small trees are read whole. In large ones the growing and the young processes are read each time and the rest in turn,
//! so that a sample costs the same however many there are. Totals use the last value of processes that were not read.

use super::ProcessTree;
use super::procfs::Proc;
use super::table::{Slot, Table, copy_status};
use crate::{MAX_LISTED_PROCESSES, Reading, Sample};
use core::cmp::Reverse;
use rustix::io::Errno;

/// Up to this many processes are read for each sample, the growing and the young first.
const MAX_URGENT_READS: usize = 64;
/// Of the rest, this many are read for each sample, those first that were read longest ago.
const MAX_READS_IN_TURN: usize = 32;
/// A process is young for this many nanoseconds after it was first seen.
const YOUNG_NS: u64 = 5_000_000_000;
/// How many processes are listed for their size; the rest of the list is for growth.
const LISTED_FOR_SIZE: usize = MAX_LISTED_PROCESSES * 3 / 4;
/// Of the processes that are not listed, the counters of this many are read for each sample.
const COUNTER_READS_IN_TURN: usize = 8;
/// A process's I/O counters are first read this many nanoseconds after it was first seen: the
/// kernel lets the reader wait for an exec, and young processes call exec.
const IO_READ_AFTER_NS: u64 = 1_000_000_000;
/// Nanoseconds between two reads of a process's counters (CPU time, I/O), which take longer to read than its memory.
const COUNTERS_INTERVAL_NS: u64 = 9_900_000_000;
/// The same for young processes and for those that read files, since most data is read at the start.
const EARLY_COUNTERS_INTERVAL_NS: u64 = 400_000_000;
/// Counters are read often for this many nanoseconds after a process was first seen.
const EARLY_NS: u64 = 8_000_000_000;
/// Of a process that reads files they are read often for this long.
const READING_WATCH_NS: u64 = 60_000_000_000;
/// Samples at least this many nanoseconds apart are those of a calm run. Then a process whose sizes are the same as
/// before is not read again, because its status takes seven times as long to read as its sizes.
const CALM_INTERVAL_NS: u64 = 1_000_000_000;
/// Even then the status of each process is read after this many nanoseconds.
const STATUS_INTERVAL_NS: u64 = 7_900_000_000;
/// A process that read this many bytes since its counters were last read is one that reads files.
const READING_BYTES: u64 = 1 << 20;
/// The counters of a process that grew by more than this many bytes since the last sample are read at once.
const FAST_GROWTH_BYTES: i64 = 4 << 20;

impl<S: Copy + Default> ProcessTree<S> {
    /// Reads the processes and fills `out.processes` and `out.tree`, except for the footprint
    /// and the shared memory, which [`Footprint`](crate::footprint::Footprint) estimates.
    /// Processes that are gone leave the table.
    pub fn read_processes(&mut self, now: u64, out: &mut Sample) {
        self.read_memory(now, out);
        self.fill_process_list(now, out);
        self.fill_totals(out);
    }

    /// Reads the memory of the processes and fills the totals in `out.tree`; `out.processes` stays as it was.
    pub fn read_memory(&mut self, now: u64, out: &mut Sample) {
        let ProcessTree {
            proc, table, order, ..
        } = self;
        order_by_urgency(table, order, now);
        for slot in table.slots_mut() {
            slot.tracked.fresh = false;
        }
        for &index in order.iter() {
            if let Some((slot, keeps_extra_files)) = table.slot_mut(usize::from(index)) {
                slot.refresh(proc, now, keeps_extra_files);
            }
        }
        self.drop_where(|_, slot| slot.gone);
        self.fill_totals(out);
    }

    /// Reads the status of the processes that were skipped because their sizes had not changed. Stopping or
    /// continuing a process does not change its sizes.
    pub fn read_skipped_statuses(&mut self, now: u64) {
        let ProcessTree { proc, table, .. } = self;
        for slot in table.slots_mut() {
            if !slot.tracked.fresh {
                slot.read_status(proc, now);
            }
        }
        self.drop_where(|_, slot| slot.gone);
    }

    fn fill_process_list(&mut self, now: u64, out: &mut Sample) {
        let ProcessTree {
            proc, table, order, ..
        } = self;
        order_by_size_and_growth(table, order);
        out.processes.clear();
        for &index in order.iter() {
            if let Some(slot) = table.slots_mut().get_mut(usize::from(index)) {
                slot.refresh_counters(proc, now);
                out.processes.push(slot.tracked.process);
            }
        }
        for _ in MAX_LISTED_PROCESSES
            ..table
                .len()
                .min(MAX_LISTED_PROCESSES + COUNTER_READS_IN_TURN)
        {
            if let Some(slot) = table
                .slots_mut()
                .iter_mut()
                .min_by_key(|slot| slot.counters_read_at)
            {
                slot.refresh_counters(proc, now);
            }
        }
    }

    fn fill_totals(&self, out: &mut Sample) {
        let slots = || {
            let slots = self.table.slots().iter();
            slots.filter(|slot| !slot.tracked.process.has_ended())
        };
        let living = || slots().map(|slot| &slot.tracked.process);
        let tree = &mut out.tree;
        tree.count = Reading::Value(living().count() as u64);
        tree.threads = sum_known(living().map(|process| process.threads));
        tree.swap = sum_known(living().map(|process| process.swap));
        tree.cpu = sum_known(living().map(|process| process.cpu));
        tree.major_faults = sum_known(living().map(|process| process.major_faults));
        tree.read_bytes = sum_known(living().map(|process| process.read_bytes));
        tree.written_bytes = sum_known(living().map(|process| process.written_bytes));
        tree.read_asked = sum_known(slots().map(|slot| slot.read_asked));
    }
}

impl<S: Copy + Default> Slot<S> {
    fn refresh(&mut self, proc: &Proc, now: u64, keeps_extra_files: bool) {
        let is_young = now.saturating_sub(self.tracked.first_seen) < YOUNG_NS;
        let has_more = keeps_extra_files && !is_young && self.open_extra_files(proc);
        // A root's status is always read, because it shows whether the user stopped the run.
        let is_calm = |at: u64| now.saturating_sub(at) >= CALM_INTERVAL_NS;
        let may_be_as_before = has_more && !self.root && self.read_at.is_some_and(is_calm);
        let sizes = may_be_as_before.then(|| self.read_sizes()).flatten();
        let is_recent = |at: u64| now.saturating_sub(at) < STATUS_INTERVAL_NS;
        if sizes.is_some() && sizes == self.sizes && self.status_at.is_some_and(is_recent) {
            self.tracked.grown = 0;
            self.read_at = Some(now);
            return;
        }
        // The sizes are read before the status, so that a change in between shows in the next sample.
        self.sizes = sizes;
        self.read_status(proc, now);
    }

    fn read_status(&mut self, proc: &Proc, now: u64) {
        let status = match self.status(proc) {
            Ok(status) => status,
            // Any other error, such as no descriptor left, says nothing about the process, so
            // the last values are kept.
            Err(errno) => {
                self.gone = matches!(errno, Errno::SRCH | Errno::NOENT);
                return;
            }
        };
        let before = self.tracked.process.vm_data;
        copy_status(&mut self.tracked.process, &status);
        self.tracked.grown = match (before, status.vm_data) {
            (Reading::Value(before), Reading::Value(after)) => after.wrapping_sub(before) as i64,
            _ => 0,
        };
        self.tracked.fresh = true;
        self.read_at = Some(now);
        self.status_at = Some(now);
    }

    fn refresh_counters(&mut self, proc: &Proc, now: u64) {
        let age = now.saturating_sub(self.tracked.first_seen);
        let pace = match age {
            // What a process reads while it grows shows what fills its memory.
            _ if self.tracked.grown > FAST_GROWTH_BYTES => 0,
            ..EARLY_NS => EARLY_COUNTERS_INTERVAL_NS,
            ..READING_WATCH_NS if self.reads => EARLY_COUNTERS_INTERVAL_NS,
            _ => COUNTERS_INTERVAL_NS,
        };
        if self
            .counters_read_at
            .is_some_and(|at| now.saturating_sub(at) < pace)
        {
            return;
        }
        self.counters_read_at = Some(now);
        let Ok((stat, io)) = self.read_counters(proc, age >= IO_READ_AFTER_NS) else {
            return;
        };
        let process = &mut self.tracked.process;
        process.cpu = stat.cpu;
        process.major_faults = stat.major_faults;
        let Some(io) = io else { return };
        let asked_before = self.read_asked;
        (process.read_bytes, process.written_bytes, self.read_asked) = match io {
            Ok(io) => (io.read_bytes, io.write_bytes, io.rchar),
            Err(errno) => (errno.into(), errno.into(), errno.into()),
        };
        self.reads = match (asked_before, self.read_asked) {
            (Reading::Value(before), Reading::Value(after)) => {
                after.saturating_sub(before) >= READING_BYTES
            }
            _ => true,
        };
    }
}

/// Fills `order` with the indices of the processes to read now.
fn order_by_urgency<S: Copy + Default>(table: &Table<S>, order: &mut Vec<u16>, now: u64) {
    list_all_slots(table, order);
    if order.len() <= MAX_URGENT_READS {
        return;
    }
    let slot = |&index: &u16| table.slots().get(usize::from(index));
    order.sort_unstable_by_key(|index| {
        slot(index).map(|slot| {
            let growth = slot.tracked.grown.max(0);
            let young = now.saturating_sub(slot.tracked.first_seen) < YOUNG_NS;
            (Reverse((growth, young)), slot.read_at)
        })
    });
    if let Some(rest) = order.get_mut(MAX_URGENT_READS..) {
        rest.sort_unstable_by_key(|index| slot(index).map(|slot| slot.read_at));
    }
    order.truncate(MAX_URGENT_READS + MAX_READS_IN_TURN);
}

/// Fills `order` with the indices of the processes to list, largest first.
fn order_by_size_and_growth<S: Copy + Default>(table: &Table<S>, order: &mut Vec<u16>) {
    list_all_slots(table, order);
    let slot = |&index: &u16| table.slots().get(usize::from(index));
    let size = |index: &u16| Reverse(slot(index).map(|slot| slot.tracked.process.resident()));
    order.sort_unstable_by_key(size);
    if let Some(rest) = order.get_mut(LISTED_FOR_SIZE..) {
        rest.sort_unstable_by_key(|index| Reverse(slot(index).map(|slot| slot.tracked.grown)));
    }
    order.truncate(MAX_LISTED_PROCESSES);
    order.sort_unstable_by_key(size);
}

fn list_all_slots<S: Copy + Default>(table: &Table<S>, order: &mut Vec<u16>) {
    order.clear();
    order.extend((0..=u16::MAX).take(table.len()));
}

/// The sum of the values that are known. Without any value it is the first reason; without processes, 0.
fn sum_known(readings: impl Iterator<Item = Reading<u64>>) -> Reading<u64> {
    let mut sum = None;
    let mut missing = None;
    for reading in readings {
        match reading {
            Reading::Value(value) => sum = Some(value.saturating_add(sum.unwrap_or(0))),
            Reading::Unavailable(reason) => missing = missing.or(Some(reason)),
        }
    }
    match (sum, missing) {
        (None, Some(reason)) => Reading::Unavailable(reason),
        (sum, _) => Reading::Value(sum.unwrap_or(0)),
    }
}
