//! Decides whether a paused tree should go to swap, and which of its processes is next.
//!
//! A pause stops the growth of the tree, not that of other programs. The kernel takes what they need from all programs
//! alike, and those that the user works with wait for the disk until the kernel knows which pages are unused.

use super::assessment::Assessment;
use super::pause::FAST_S;
use antifreeze_sense::Pid;

/// Resident memory below which a process is not worth the interruption.
const MIN_RESIDENT_BYTES: u64 = 16 << 20;

/// One paused process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageoutCandidate {
    pub pid: Pid,
    /// Anonymous memory that is not in swap, bytes.
    pub resident: u64,
    /// It can be asked, and has not been asked during this pause.
    pub can_be_asked: bool,
}

/// Whether a paused tree should make room: swap has room, and memory is short or will be before a disk has taken in the
/// tree. Memory whose content is in swap already counts as room: the kernel needs no write to free it.
pub(super) fn is_wanted(assessment: &Assessment) -> bool {
    let now = assessment.now;
    let swap_has_room = now.swap_free.is_some_and(|free| free > now.reserve / 2);
    let left = assessment.available() + now.swap_cached as f64;
    swap_has_room && left < 1.5 * assessment.reserve() + FAST_S * assessment.signals.available_fall
}

/// The largest process that can be asked. One at a time, because they share a disk.
pub fn choose_for_pageout(
    candidates: impl Iterator<Item = PageoutCandidate>,
) -> Option<PageoutCandidate> {
    candidates
        .filter(|candidate| candidate.can_be_asked && candidate.resident >= MIN_RESIDENT_BYTES)
        .max_by_key(|candidate| candidate.resident)
}
