//! The memory that guard and front share, mapped for as long as they live: the page, which every process of the tree can
//! write to, and the state, which is theirs alone.

use crate::page::{self, HEAD_BYTES, PAGER_NONE, SLOTS, Slot, TRAINERS, Trainer};
use crate::state::{
    self, EVENT_BYTES, EVENTS, GuardedProcess, GuardedSlot, OUTPUT_BYTES, Output, State,
};
use antifreeze_sense::Pid;
use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create,
};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::futex;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The longer of the two, which a limit for files has to allow.
pub const BYTES: usize = if HEAD_BYTES > size_of::<State>() {
    HEAD_BYTES
} else {
    size_of::<State>()
};

/// Both, mapped whole.
#[derive(Clone, Copy)]
pub struct Shared {
    page: &'static page::Head,
    state: &'static State,
}

/// The memfds behind a [`Shared`].
pub struct Memory {
    pub page: OwnedFd,
    pub state: OwnedFd,
}

impl Shared {
    /// Makes new memory, all zero but for magic, version and places.
    pub fn create() -> Result<(Shared, Memory), Errno> {
        let memory = Memory {
            page: sealed("antifreeze-page", HEAD_BYTES)?,
            state: sealed("antifreeze-state", size_of::<State>())?,
        };
        let shared = Shared::map(&memory.page, &memory.state)?;
        let (page, head) = (shared.page(), shared.head());
        page.trainers_at
            .store(offset_of!(page::Head, trainers) as u32, Relaxed);
        page.trainer_bytes
            .store(size_of::<Trainer>() as u32, Relaxed);
        page.trainers_number.store(TRAINERS as u32, Relaxed);
        page.version.store(page::VERSION, Relaxed);
        page.magic.store(page::MAGIC, Release);
        head.version.store(state::VERSION, Relaxed);
        head.magic.store(state::MAGIC, Release);
        Ok((shared, memory))
    }

    /// Maps memory that is already there. Memory that could be cut short while it is mapped is refused: a run's folder may
    /// name anybody's.
    pub fn open(page: impl AsFd, state: impl AsFd) -> Result<Shared, Errno> {
        if !keeps_its_size(&page) || !keeps_its_size(&state) {
            return Err(Errno::INVAL);
        }
        let bytes = |fd: &dyn AsFd| rustix::fs::fstat(fd.as_fd()).map(|stat| stat.st_size);
        if bytes(&page)? < HEAD_BYTES as i64 || bytes(&state)? < size_of::<State>() as i64 {
            return Err(Errno::INVAL);
        }
        let shared = Shared::map(page, state)?;
        // The state's alone: the page's may have been scribbled over, and is as old as the state.
        let head = shared.head();
        if head.magic.load(Acquire) != state::MAGIC || head.version.load(Relaxed) != state::VERSION
        {
            return Err(Errno::INVAL);
        }
        Ok(shared)
    }

    fn map(page: impl AsFd, state: impl AsFd) -> Result<Shared, Errno> {
        // SAFETY: fresh shared mappings of files that are at least as long and cannot be cut short; every byte pattern
        // is valid for both types, all their fields are atomics, and they are never unmapped.
        unsafe {
            Ok(Shared {
                page: &*map(page, HEAD_BYTES)?.cast(),
                state: &*map(state, size_of::<State>())?.cast(),
            })
        }
    }

    /// What processes of the tree write to as well. Nothing here names a process that something is done to, and what is
    /// read is bounded by the reader.
    pub fn page(&self) -> &'static page::Head {
        self.page
    }

    /// The state of the run.
    pub fn head(&self) -> &'static state::Head {
        &self.state.head
    }

    pub fn output(&self, stream: usize) -> &'static Output {
        &self.state.output[stream & 1]
    }

    /// Bytes of output that have been passed on, of both streams.
    pub fn bytes_passed(&self) -> u64 {
        let passed = |output: &Output| output.passed.load(Acquire);
        self.state
            .output
            .iter()
            .map(passed)
            .fold(0, u64::wrapping_add)
    }

    /// Asks the guard for a tick now.
    pub fn kick(&self) {
        let kick = &self.page().kick;
        kick.fetch_add(1, Release);
        let _ = futex::wake(kick, futex::Flags::empty(), u32::MAX >> 1);
    }

    /// What the cushion of this process reports, and where. The search begins where the
    /// cushion's own began.
    pub fn slot(&self, pid: u32) -> Option<(usize, &'static Slot)> {
        let slots = &self.page().slots;
        let home = pid as usize % SLOTS;
        (home..SLOTS)
            .chain(0..home)
            .find(|place| slots[*place].pid.load(Acquire) == pid)
            .map(|place| (place, &slots[place]))
    }

    /// Reports that a process has no cushion, and is to have no wall.
    pub fn step_aside(&self, pid: u32) {
        let slots = &self.page().slots;
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
        for slot in &self.page().slots {
            if slot.pageout.swap(0, AcqRel) != 0 {
                let _ = futex::wake(&slot.pageout, futex::Flags::empty(), u32::MAX >> 1);
            }
        }
    }

    /// Gives the slots of processes that are gone back.
    pub fn free_slots(&self, alive: impl Fn(u32) -> bool) {
        for slot in &self.page().slots[..SLOTS] {
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
        for trainer in &self.page().trainers {
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

    /// The processes that train, as they report it in the page.
    pub fn trainers(&self) -> impl Iterator<Item = (Pid, &'static Trainer)> {
        self.page()
            .trainers
            .iter()
            .map(|trainer| (Pid(trainer.pid.load(Acquire)), trainer))
            .filter(|(pid, _)| *pid != Pid(0))
    }

    /// Notes all processes that are guarded.
    pub fn note_guarded(&self, processes: impl Iterator<Item = GuardedProcess>) {
        let mut slots = self.head().guarded.iter();
        // The processes come first in the zip: the other way round it would take one slot too many.
        for (process, slot) in processes.zip(slots.by_ref()) {
            slot.store(&process);
        }
        for slot in slots.take_while(|slot| slot.pid.load(Relaxed) != 0) {
            slot.pid.store(0, Release);
        }
    }

    /// Notes again which of the noted processes are paused.
    pub fn note_paused(&self, is_paused: impl Fn(&GuardedProcess) -> bool) {
        for slot in &self.head().guarded {
            let paused = slot.load().is_some_and(|noted| is_paused(&noted));
            slot.paused.store(paused.into(), Release);
        }
    }

    /// The processes that were noted. Some may have ended.
    pub fn guarded(&self) -> impl Iterator<Item = GuardedProcess> {
        self.head().guarded.iter().filter_map(GuardedSlot::load)
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

/// A memfd of this size that no process can shorten or extend: an access beyond its end would be a SIGBUS.
fn sealed(name: &str, bytes: usize) -> Result<OwnedFd, Errno> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, bytes as u64)?;
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

fn keeps_its_size(fd: impl AsFd) -> bool {
    fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK | SealFlags::SEAL))
}

/// # Safety
/// The file has at least so many bytes, and keeps them.
unsafe fn map(fd: impl AsFd, bytes: usize) -> Result<*mut std::ffi::c_void, Errno> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a fresh mapping, where the kernel chooses.
    unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, fd, 0) }
}

/// The output of the trainer in the state: filled by the relay, kept by the writer.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_can_be_cut_short_is_not_mapped() {
        let (_, memory) = Shared::create().unwrap();
        assert!(Shared::open(&memory.page, &memory.state).is_ok());
        let unsealed = memfd_create("unsealed", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&unsealed, 1 << 30).unwrap();
        assert!(Shared::open(&unsealed, &memory.state).is_err());
        assert!(Shared::open(&memory.page, &unsealed).is_err());
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(Shared::open(&file, &memory.state).is_err());
    }
}
