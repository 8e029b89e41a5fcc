//! The page as guard and front hold it: mapped from a memfd, for as long as they live.

use antifreeze_cushion::page::{
    self, EVENT_BYTES, EVENTS, Head, OUTPUT_BYTES, Output, PAGER_NONE, Page, SLOTS, Slot, TRAINERS,
    Trainer,
};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::futex;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

pub use antifreeze_cushion::page::BYTES;

/// The page, mapped whole.
#[derive(Clone, Copy)]
pub struct Shared {
    page: &'static Page,
}

impl Shared {
    /// Makes a new page, all zero but for its magic and version.
    pub fn create() -> Result<(Shared, OwnedFd), Errno> {
        let fd = memfd_create("antifreeze-page", MemfdFlags::CLOEXEC)?;
        ftruncate(&fd, page::BYTES as u64)?;
        let shared = Shared::map(&fd)?;
        let head = shared.head();
        head.trainers_at
            .store(offset_of!(Head, trainers) as u32, Relaxed);
        head.trainer_bytes
            .store(size_of::<Trainer>() as u32, Relaxed);
        head.trainers_number.store(TRAINERS as u32, Relaxed);
        head.version.store(page::VERSION, Relaxed);
        head.magic.store(page::MAGIC, Release);
        Ok((shared, fd))
    }

    /// Maps a page that is already there.
    pub fn open(fd: impl AsFd) -> Result<Shared, Errno> {
        if rustix::fs::fstat(&fd)?.st_size < page::BYTES as i64 {
            return Err(Errno::INVAL);
        }
        let shared = Shared::map(fd)?;
        let head = shared.head();
        if head.magic.load(Acquire) != page::MAGIC || head.version.load(Relaxed) != page::VERSION {
            return Err(Errno::INVAL);
        }
        Ok(shared)
    }

    fn map(fd: impl AsFd) -> Result<Shared, Errno> {
        // SAFETY: a fresh shared mapping of a file that is at least as long as the page;
        // every byte pattern is a valid Page, all its fields are atomics, and it is never
        // unmapped.
        let page = unsafe {
            let address = mmap(
                std::ptr::null_mut(),
                page::BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                0,
            )?;
            &*address.cast::<Page>()
        };
        Ok(Shared { page })
    }

    pub fn head(&self) -> &'static Head {
        &self.page.head
    }

    pub fn output(&self, stream: usize) -> &'static Output {
        &self.page.output[stream & 1]
    }

    /// Asks the guard for a tick now.
    pub fn kick(&self) {
        let kick = &self.head().kick;
        kick.fetch_add(1, Release);
        let _ = futex::wake(kick, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// What the cushion of this process reports, and where. The search begins where the
    /// cushion's own began.
    pub fn slot(&self, pid: u32) -> Option<(usize, &'static Slot)> {
        let slots = &self.head().slots;
        let home = pid as usize % SLOTS;
        (home..SLOTS)
            .chain(0..home)
            .find(|place| slots[*place].pid.load(Acquire) == pid)
            .map(|place| (place, &slots[place]))
    }

    /// Reports that a process has no cushion, and is to have no wall.
    pub fn step_aside(&self, pid: u32) {
        let slots = &self.head().slots;
        let home = pid as usize % SLOTS;
        let free = (home..SLOTS).chain(0..home).find(|place| {
            let claimed = slots[*place].pid.compare_exchange(0, pid, AcqRel, Acquire);
            claimed.is_ok()
        });
        if let Some(place) = free {
            slots[place].aside.store(1, Release);
        }
    }

    /// Withdraws all requests to page out: the processes that serve one return to what they were at.
    pub fn withdraw_pageouts(&self) {
        for slot in &self.head().slots {
            if slot.pageout.swap(0, AcqRel) != 0 {
                let _ = futex::wake(&slot.pageout, futex::Flags::empty(), u32::MAX >> 1);
            }
        }
    }

    /// Gives the slots of processes that are gone back.
    pub fn free_slots(&self, alive: impl Fn(u32) -> bool) {
        for slot in &self.head().slots[..SLOTS] {
            let pid = slot.pid.load(Acquire);
            if pid != 0 && !alive(pid) {
                slot.refused.store(0, Relaxed);
                slot.refused_bytes.store(0, Relaxed);
                slot.refused_at.store(0, Relaxed);
                slot.own_limit.store(0, Relaxed);
                slot.drawn.store(0, Relaxed);
                slot.wanted.store(0, Relaxed);
                slot.files.store(0, Relaxed);
                slot.libraries.store(0, Relaxed);
                slot.reserved.store(0, Relaxed);
                slot.zeroed.store(0, Relaxed);
                slot.loading.store(0, Relaxed);
                slot.before_exec.store(0, Relaxed);
                slot.moving.store(0, Relaxed);
                slot.landed.store(0, Relaxed);
                slot.lifted.store(0, Relaxed);
                slot.pager.store(PAGER_NONE, Relaxed);
                slot.pageout.store(0, Relaxed);
                slot.aside.store(0, Relaxed);
                slot.pid.store(0, Release);
            }
        }
        for trainer in &self.head().trainers {
            let pid = trainer.pid.load(Acquire);
            if pid != 0 && !alive(pid) {
                let Trainer {
                    pid,
                    phase,
                    batch,
                    save_asked,
                    stop_asked,
                    save_answered,
                    stop_answered,
                    save_ms,
                    steps,
                    saved_step,
                    rung,
                    look_asked,
                    listens,
                    save_failed,
                } = trainer;
                for word in [
                    phase,
                    batch,
                    save_asked,
                    stop_asked,
                    save_answered,
                    stop_answered,
                    save_ms,
                    rung,
                    look_asked,
                    listens,
                    save_failed,
                ] {
                    word.store(0, Relaxed);
                }
                for long in [steps, saved_step] {
                    long.store(0, Relaxed);
                }
                pid.store(0, Release);
            }
        }
    }

    /// Puts an encoded event where the front will find it. Older ones may be overwritten:
    /// the record has them all.
    pub fn publish(&self, event: &[u8]) {
        let head = self.head();
        let number = head.events.load(Relaxed);
        let slot = &head.event_slots[(number % EVENTS as u64) as usize];
        slot.number.store(0, Release);
        let mut bytes = [0u8; EVENT_BYTES];
        let len = event.len().min(EVENT_BYTES - 1);
        bytes[0] = len as u8;
        bytes[1..=len].copy_from_slice(&event[..len]);
        for (word, chunk) in slot.bytes.iter().zip(bytes.chunks_exact(8)) {
            let mut raw = [0u8; 8];
            raw.copy_from_slice(chunk);
            word.store(u64::from_le_bytes(raw), Relaxed);
        }
        slot.number.store(number + 1, Release);
        head.events.store(number + 1, Release);
    }

    /// The encoded event of this number, if it is still there. Returns its length in `out`.
    pub fn event(&self, number: u64, out: &mut [u8; EVENT_BYTES]) -> Option<usize> {
        let slot = &self.head().event_slots[(number % EVENTS as u64) as usize];
        if slot.number.load(Acquire) != number + 1 {
            return None;
        }
        let mut bytes = [0u8; EVENT_BYTES];
        for (word, chunk) in slot.bytes.iter().zip(bytes.chunks_exact_mut(8)) {
            chunk.copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        if slot.number.load(Acquire) != number + 1 {
            return None;
        }
        let len = usize::from(bytes[0]).min(EVENT_BYTES - 1);
        out[..len].copy_from_slice(&bytes[1..=len]);
        Some(len)
    }
}

/// The trainer's output in the page: filled by whoever relays, kept by the writer.
pub trait OutputRing {
    /// The longest piece that can be put at the end without wrapping around.
    fn space(&self) -> &[std::sync::atomic::AtomicU8];
    /// Bytes read but not yet passed on, up to the wrap.
    fn pending(&self) -> &[std::sync::atomic::AtomicU8];
}

impl OutputRing for Output {
    fn space(&self) -> &[std::sync::atomic::AtomicU8] {
        let filled = self.filled.load(Acquire);
        let held = filled.saturating_sub(self.passed.load(Acquire));
        let start = (filled % OUTPUT_BYTES as u64) as usize;
        let free = OUTPUT_BYTES.saturating_sub(held as usize);
        &self.ring[start..(start + free).min(OUTPUT_BYTES)]
    }

    fn pending(&self) -> &[std::sync::atomic::AtomicU8] {
        let passed = self.passed.load(Acquire);
        let held = self.filled.load(Acquire).saturating_sub(passed);
        let start = (passed % OUTPUT_BYTES as u64) as usize;
        let end = (start + (held as usize).min(OUTPUT_BYTES)).min(OUTPUT_BYTES);
        &self.ring[start..end]
    }
}
