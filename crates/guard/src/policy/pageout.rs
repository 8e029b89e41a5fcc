//! Whether a paused tree should go to swap, and which process of it goes next.
//!
//! A pause stops the growth of the tree, not that of other programs. The kernel takes what they need from all
//! programs alike, and those that a person uses wait for the disk until it has found out which pages are not used.

use super::assessment::Assessment;
use super::pause::FAST_S;
use antifreeze_sense::Pid;

/// What a process must hold in memory to be worth the interruption, bytes.
const MIN_RESIDENT_BYTES: u64 = 16 << 20;

/// One paused process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageoutCandidate {
    pub pid: Pid,
    /// Anonymous memory that is not in swap, bytes.
    pub resident: u64,
    /// It can be asked, and was not in this pause.
    pub can_be_asked: bool,
}

/// Whether a tree that is paused should make room: memory is short, or will be before a disk has taken the tree in,
/// and swap has room. What is in swap already and still in memory counts as room: the kernel needs no disk for it.
pub(super) fn is_wanted(assessment: &Assessment) -> bool {
    let now = assessment.now;
    let swap_has_room = now.swap_free.is_some_and(|free| free > now.reserve / 2);
    let left = assessment.available() + now.swap_cached as f64;
    swap_has_room && left < 1.5 * assessment.reserve() + FAST_S * assessment.signals.available_fall
}

/// The largest that can be asked: one after the other, because they share a disk.
pub fn choose_for_pageout(
    candidates: impl Iterator<Item = PageoutCandidate>,
) -> Option<PageoutCandidate> {
    candidates
        .filter(|candidate| candidate.can_be_asked && candidate.resident >= MIN_RESIDENT_BYTES)
        .max_by_key(|candidate| candidate.resident)
}
