//! Finds the page that the guard shares with this process, and the slot in it.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::page::{ENV_C, HEAD_BYTES, Head, MAGIC, SLOTS, Slot, VERSION};
use crate::{guard, seccomp, sys};

/// Set once before `main` and never unmapped; children keep the mapping.
static HEAD: AtomicPtr<Head> = AtomicPtr::new(core::ptr::null_mut());

/// The longest path to the page that is tried.
const PATH_BYTES: usize = 256;

/// None when this process was not given a page, or could not reach it.
pub fn head() -> Option<&'static Head> {
    // SAFETY: null, or a mapping of HEAD_BYTES ≥ size_of::<Head>() that stays. All of its
    // fields are atomics, for which any bytes are valid.
    unsafe { HEAD.load(Ordering::Acquire).as_ref() }
}

/// Maps the page from the first path of the environment that holds one.
pub fn open() {
    let Some(paths) = sys::environment(ENV_C) else {
        return;
    };
    if let Some(head) = paths.to_bytes().split(|b| *b == b':').find_map(map) {
        HEAD.store(head, Ordering::Release);
    }
}

fn terminated<'a>(path: &[u8], buffer: &'a mut [u8; PATH_BYTES]) -> Option<&'a CStr> {
    *buffer = [0; PATH_BYTES];
    buffer.get_mut(..path.len())?.copy_from_slice(path);
    let terminated = buffer.get(..=path.len())?;
    // SAFETY: the path is a part of a C string, so the only NUL is the one behind it.
    Some(unsafe { CStr::from_bytes_with_nul_unchecked(terminated) })
}

/// Whether a program that is started now with these paths could map the page. Not as another user, or where another
/// `/proc` was mounted.
pub fn is_reachable(paths: &[u8]) -> bool {
    paths.split(|byte| *byte == b':').any(|path| {
        terminated(path, &mut [0; PATH_BYTES]).is_some_and(|path| !sys::is_out_of_reach(path, true))
    })
}

fn map(path: &[u8]) -> Option<*mut Head> {
    let file = sys::File::read_write(terminated(path, &mut [0; PATH_BYTES])?)?;
    // A mapping beyond the end of its file would be a SIGBUS in the trainer.
    if file.bytes() < HEAD_BYTES as u64 {
        return None;
    }
    let head = file.map_shared(HEAD_BYTES)?.cast::<Head>();
    // SAFETY: as in `head`. A mapping of something else stays mapped, unused: it happens at
    // most once a process and costs address space only.
    let found = unsafe { &*head };
    let ours = found.magic.load(Ordering::Acquire) == MAGIC
        && found.version.load(Ordering::Acquire) == VERSION;
    ours.then_some(head)
}

/// The slot of this process, claimed when first needed. It is looked up each time: only the PID in the slot is right
/// after any kind of fork. Also None if a filter of system calls may end the process for reading its PID.
pub fn slot() -> Option<&'static Slot> {
    if seccomp::is_filtered() {
        return None;
    }
    slot_of(sys::pid())
}

/// The slot of a process, claimed if it has none.
pub fn slot_of(pid: u32) -> Option<&'static Slot> {
    slot_with(pid).or_else(|| {
        from_home(pid)?.find(|slot| {
            match slot
                .pid
                .compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => true,
                Err(holder) => holder == pid,
            }
        })
    })
}

/// The slot of a process, if it has one.
pub fn slot_with(pid: u32) -> Option<&'static Slot> {
    from_home(pid)?.find(|slot| slot.pid.load(Ordering::Acquire) == pid)
}

fn from_home(pid: u32) -> Option<impl Iterator<Item = &'static Slot>> {
    let (before, from) = head()?.slots.split_at_checked(pid as usize % SLOTS)?;
    Some(from.iter().chain(before))
}

/// Tells the guard that the wall refused `bytes`.
pub fn report_refusal(bytes: u64) {
    if let Some(slot) = slot() {
        slot.refused_bytes.store(bytes, Ordering::Relaxed);
        slot.refused_at.store(guard::now(), Ordering::Relaxed);
        slot.refused.fetch_add(1, Ordering::Release);
    }
    // The program may end before the next tick of the guard.
    if let Some(head) = head() {
        head.kick.fetch_add(1, Ordering::Release);
        sys::futex_wake(&head.kick);
    }
}
