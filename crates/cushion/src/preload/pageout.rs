//! A paused process pages itself out: from outside, `process_madvise(2)` needs `CAP_SYS_NICE`.
//!
//! The guard stops the process, finds a thread of it whose interruption is not seen by the program, raises
//! [`Slot::pageout`], sends the signal and continues the process ([`crate::pageout_signal`] has the handler). The
//! first thread in the handler hands the large anonymous regions to the kernel piece by piece; every other one waits
//! there. All of them stay until the guard withdraws the request, which it does when it resumes the run. The program
//! cannot see that this happened, so it may happen at any instruction.
//!
//! What runs here is a signal handler: system calls and atomics only, and little stack.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::page::{Head, PAGER_BUSY, PAGER_FINISHED, PAGER_READY, Slot};
use crate::pageout_pace::{Pace, writeback_bytes};
use crate::regions::{Region, Regions};
use crate::{guard, pageout_signal, shared, sys};

/// Bytes of a file that are read at a time, on the stack of any thread.
const BUFFER_BYTES: usize = 512;
/// `Writeback:` stands in the first part of `/proc/meminfo`.
const MEMINFO_BYTES: usize = 768;
/// The interval at which `Writeback:` is read after a piece.
const DRAIN_EVERY_NS: u64 = 3_000_000;
/// The longest wait after a piece: other programs may keep the disk busy for longer.
const DRAIN_PATIENCE_NS: u64 = 250_000_000;
/// The interval at which a waiting thread checks that the guard is still alive.
const WAIT_NS: u64 = 500_000_000;

/// A futex word that is never woken: waiting on it is a sleep.
static SLEEP: AtomicU32 = AtomicU32::new(0);

/// Serves the guard's request, if there is one.
pub fn serve() {
    let (Some(head), Some(slot)) = (shared::head(), shared::slot()) else {
        return;
    };
    if !is_wanted(slot) {
        return;
    }
    let is_first = slot
        .pager
        .compare_exchange(PAGER_READY, PAGER_BUSY, AcqRel, Acquire)
        .is_ok();
    if is_first {
        page_out_regions(slot);
        slot.pager.store(PAGER_FINISHED, Release);
        head.kick.fetch_add(1, AcqRel);
        sys::futex_wake(&head.kick);
    }
    wait_for_end(head, slot);
    if is_first {
        pageout_signal::show_readiness(slot);
    }
}

fn is_wanted(slot: &Slot) -> bool {
    slot.pageout.load(Acquire) == 1
}

fn wait_for_end(head: &Head, slot: &Slot) {
    while is_wanted(slot) && !guard::is_gone(head) {
        sys::futex_wait(&slot.pageout, 1, WAIT_NS);
    }
}

fn page_out_regions(slot: &Slot) {
    let Some(maps) = sys::File::read_only(c"/proc/self/maps") else {
        return;
    };
    let mut regions = Regions::default();
    let mut pace = Pace::new();
    let usual = writeback();
    loop {
        let mut buffer = [0; BUFFER_BYTES];
        let bytes = maps.read(&mut buffer);
        if bytes.is_empty() {
            return;
        }
        for byte in bytes {
            if let Some(region) = regions.feed(*byte)
                && !page_out_region(slot, region, &mut pace, usual)
            {
                return;
            }
        }
    }
}

/// False when the request was withdrawn.
fn page_out_region(slot: &Slot, region: Region, pace: &mut Pace, usual: Option<u64>) -> bool {
    let mut start = region.start;
    while start < region.end {
        if !is_wanted(slot) {
            return false;
        }
        let bytes = pace.piece().min(region.end - start);
        let began = sys::now();
        if !sys::page_out(start, bytes) {
            // Locked in memory, or unmapped since, or the kernel is older than 5.4: the region stays as it is.
            return true;
        }
        // One piece is left to be written while the next is prepared, so that the disk does not rest.
        wait_until_written(slot, usual.map(|usual| usual.saturating_add(bytes)));
        pace.learn(bytes, sys::now().saturating_sub(began));
        start += bytes;
    }
    true
}

/// `madvise` only queues the writes. A program that needs the disk would wait behind all that is queued.
fn wait_until_written(slot: &Slot, most: Option<u64>) {
    let Some(most) = most else {
        return;
    };
    let deadline = sys::now().saturating_add(DRAIN_PATIENCE_NS);
    while writeback().is_some_and(|bytes| bytes > most) && is_wanted(slot) && sys::now() < deadline
    {
        sys::futex_wait(&SLEEP, SLEEP.load(Relaxed), DRAIN_EVERY_NS);
    }
}

fn writeback() -> Option<u64> {
    let mut buffer = [0; MEMINFO_BYTES];
    let file = sys::File::read_only(c"/proc/meminfo")?;
    writeback_bytes(file.read(&mut buffer))
}
