//! Frames that are not on disk yet, in memory that is allocated once.
//!
//! While writes fail, the newest frames stay: the oldest samples are dropped first, and the oldest events only when no
//! sample is left.

use crate::frame::{self, Frame, FrameKind};

/// One bit for each level that still has to write the frame.
pub(super) type LevelBits = u8;

/// A little more than the ring between the threads can hold, so that draining it at once never drops a frame.
const PENDING_BYTES: usize = 384 * 1024;
/// How much is freed at a time when the memory is full, so that not every frame has to free its own room.
const FREED_BYTES: usize = PENDING_BYTES / 16;

/// The pending frames, one behind the other: each is a byte of [`LevelBits`], then a frame.
pub(super) struct Pending {
    bytes: Box<[u8]>,
    len: usize,
}

impl Pending {
    pub fn new() -> Pending {
        Pending {
            bytes: vec![0; PENDING_BYTES].into_boxed_slice(),
            len: 0,
        }
    }

    /// Adds a frame at the end. Returns how many others were dropped for it; `None` when the
    /// payload is longer than a frame can be.
    pub fn push(
        &mut self,
        levels: LevelBits,
        kind: FrameKind,
        sequence: u64,
        payload: &[u8],
    ) -> Option<u64> {
        let needed = 1 + frame::OVERHEAD + payload.len();
        let mut dropped = 0;
        for droppable in [Some(FrameKind::Sample), None] {
            if self.bytes.len() - self.len < needed {
                dropped += self.drop_oldest(droppable, needed);
            }
        }
        let (mark, room) = self.bytes.get_mut(self.len..)?.split_first_mut()?;
        let written = frame::write(room, kind as u8, sequence, payload)?;
        *mark = levels;
        self.len += 1 + written;
        Some(dropped)
    }

    /// Drops the oldest entries of one kind, or of any, until there is room for `needed` bytes
    /// and some more.
    fn drop_oldest(&mut self, droppable: Option<FrameKind>, needed: usize) -> u64 {
        let mut missing = needed
            .max(FREED_BYTES)
            .saturating_sub(self.bytes.len() - self.len);
        let mut dropped = 0;
        self.retain(|_, frame| {
            let goes = missing > 0 && droppable.is_none_or(|kind| kind as u8 == frame.kind);
            if goes {
                missing = missing.saturating_sub(1 + frame.size());
                dropped += 1;
            }
            !goes
        });
        dropped
    }

    /// Copies the frames that a level has not written to `out`, oldest first, as many as fit whole.
    pub fn copy_pending(&self, level: LevelBits, out: &mut [u8]) -> usize {
        let mut used = 0;
        for (levels, frame, bytes) in self.entries() {
            if levels & level == 0 {
                continue;
            }
            let Some(room) = out.get_mut(used..used + frame.size()) else {
                break;
            };
            room.copy_from_slice(bytes);
            used += frame.size();
        }
        used
    }

    /// Notes that the level has written the first `count` bytes of what was pending for it.
    pub fn mark_written(&mut self, level: LevelBits, count: usize) {
        let mut left = count;
        self.retain(|levels, frame| {
            if *levels & level != 0 && left >= frame.size() {
                left -= frame.size();
                *levels &= !level;
            }
            *levels != 0
        });
    }

    pub fn has_pending(&self, level: LevelBits) -> bool {
        self.entries().any(|(levels, ..)| levels & level != 0)
    }

    fn entries(&self) -> impl Iterator<Item = (LevelBits, Frame<'_>, &[u8])> {
        let mut rest = self.bytes.get(..self.len).unwrap_or_default();
        std::iter::from_fn(move || {
            let (&levels, after) = rest.split_first()?;
            let frame = frame::unchecked_at_start(after)?;
            let (bytes, next) = after.split_at_checked(frame.size())?;
            rest = next;
            Some((levels, frame, bytes))
        })
    }

    /// Keeps the entries for which `keep` returns true, in order, and closes the gaps.
    fn retain(&mut self, mut keep: impl FnMut(&mut LevelBits, &Frame) -> bool) {
        let (mut from, mut to) = (0, 0);
        while let Some((levels, after)) = self
            .bytes
            .get_mut(from..self.len)
            .and_then(<[u8]>::split_first_mut)
        {
            let Some(frame) = frame::unchecked_at_start(after) else {
                break;
            };
            let entry = 1 + frame.size();
            if keep(levels, &frame) {
                self.bytes.copy_within(from..from + entry, to);
                to += entry;
            }
            from += entry;
        }
        self.len = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequences(pending: &Pending, level: LevelBits) -> Vec<u64> {
        let mut out = vec![0; PENDING_BYTES];
        let len = pending.copy_pending(level, &mut out);
        frame::scan(&out[..len])
            .map(|(_, frame)| frame.sequence)
            .collect()
    }

    #[test]
    fn a_frame_stays_until_every_level_has_written_it() {
        let mut pending = Pending::new();
        pending.push(0b11, FrameKind::Event, 1, b"one").unwrap();
        pending.push(0b01, FrameKind::Sample, 2, b"two").unwrap();
        assert_eq!(sequences(&pending, 0b01), [1, 2]);
        assert_eq!(sequences(&pending, 0b10), [1]);
        pending.mark_written(0b01, 3 + frame::OVERHEAD);
        assert_eq!(sequences(&pending, 0b01), [2]);
        assert_eq!(sequences(&pending, 0b10), [1]);
        pending.mark_written(0b01, 3 + frame::OVERHEAD);
        pending.mark_written(0b10, 3 + frame::OVERHEAD);
        assert!(!pending.has_pending(0b11));
        assert_eq!(pending.len, 0);
    }

    #[test]
    fn only_whole_frames_are_copied() {
        let mut pending = Pending::new();
        pending.push(1, FrameKind::Event, 1, &[0; 10]).unwrap();
        pending.push(1, FrameKind::Event, 2, &[0; 10]).unwrap();
        let one = 10 + frame::OVERHEAD;
        assert_eq!(pending.copy_pending(1, &mut vec![0; 2 * one - 1]), one);
    }

    #[test]
    fn when_it_is_full_the_oldest_samples_go_and_events_stay() {
        let mut pending = Pending::new();
        pending.push(1, FrameKind::Event, 1, b"first").unwrap();
        let mut dropped = 0;
        for sequence in 2..1000 {
            dropped += pending
                .push(1, FrameKind::Sample, sequence, &[7; 1000])
                .unwrap();
        }
        let kept = sequences(&pending, 1);
        assert!(dropped > 0);
        assert_eq!(kept[0], 1);
        assert_eq!(kept[1..], (dropped + 2..1000).collect::<Vec<_>>());
    }

    #[test]
    fn with_nothing_but_events_the_newest_stay() {
        let mut pending = Pending::new();
        for sequence in 1..1000 {
            pending
                .push(1, FrameKind::Event, sequence, &[7; 1000])
                .unwrap();
        }
        assert_eq!(sequences(&pending, 1).last(), Some(&999));
    }
}
