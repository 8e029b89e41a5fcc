//! Writes one level of the record: a file that is written in laps.

use super::pending::{LevelBits, Pending};
use crate::blocks::{BLOCK_BYTES, BlockBuffer, BlockFile};
use rustix::io::Errno;
use std::io;

/// The shortest lap, with room for the head, the longest frame and a few more.
pub(crate) const MIN_LAP_BYTES: u64 = 64 * 1024;
/// The most that is written at a time. A lap holds at least one such piece.
pub(super) const MAX_PIECE_BYTES: usize = MIN_LAP_BYTES as usize;

pub(super) struct Level {
    file: BlockFile,
    capacity: u64,
    bit: LevelBits,
    /// The offset of the block into which the next frame goes.
    at: u64,
    /// What that block already holds. The same bytes are written again with the next frame, so
    /// a torn write can damage only the newest frames.
    block: Box<[u8; BLOCK_BYTES]>,
    used: usize,
}

impl Level {
    /// A level that continues at `end`, where the last frame ended; `block` has the bytes of the
    /// block that holds it.
    pub fn new(file: BlockFile, capacity: u64, bit: LevelBits, end: u64, block: &[u8]) -> Level {
        let mut copy = Box::new([0; BLOCK_BYTES]);
        let used = (end % BLOCK_BYTES as u64) as usize;
        copy_start(&mut *copy, block.get(..used).unwrap_or_default());
        let capacity = (capacity / BLOCK_BYTES as u64 * BLOCK_BYTES as u64).max(MIN_LAP_BYTES);
        Level {
            file,
            capacity,
            bit,
            at: end - used as u64,
            block: copy,
            used,
        }
    }

    /// Writes all frames that this level has not written yet. After an error, what was written stays
    /// written, and the rest is tried again by the next call.
    pub fn write(
        &mut self,
        head: &[u8],
        pending: &mut Pending,
        piece: &mut BlockBuffer,
    ) -> io::Result<()> {
        while pending.has_pending(self.bit) {
            let wanted = (self.at + MAX_PIECE_BYTES as u64).min(self.capacity);
            let growth = self.file.grow(wanted, self.capacity, piece);
            if self.write_piece(head, pending, piece)? {
                continue;
            }
            // No frame fits any more. Where the lap is over because the disk is full, a shorter
            // one over the allocated space still keeps the newest.
            if self.at == 0 || self.file.size() < MIN_LAP_BYTES {
                return growth.and(Err(Errno::NOSPC.into()));
            }
            self.end_lap(piece)?;
        }
        Ok(())
    }

    /// Writes as many frames as fit into one piece and into the allocated space. Returns false
    /// when not even one fits.
    fn write_piece(
        &mut self,
        head: &[u8],
        pending: &mut Pending,
        piece: &mut BlockBuffer,
    ) -> io::Result<bool> {
        let space = self.file.size().saturating_sub(self.at);
        let space = usize::try_from(space)
            .unwrap_or(MAX_PIECE_BYTES)
            .min(MAX_PIECE_BYTES);
        let Some(room) = piece.bytes().get_mut(..space) else {
            return Ok(false);
        };
        let begun = if self.at == 0 && self.used == 0 {
            copy_start(room, head)
        } else {
            copy_start(room, self.block.get(..self.used).unwrap_or_default())
        };
        let frames = room.get_mut(begun..).unwrap_or_default();
        let count = pending.copy_pending(self.bit, frames);
        if count == 0 {
            return Ok(false);
        }
        let end = begun + count;
        let blocks = end.next_multiple_of(BLOCK_BYTES);
        room.get_mut(end..blocks).unwrap_or_default().fill(0);
        self.file
            .write(self.at, room.get(..blocks).unwrap_or_default())?;
        pending.mark_written(self.bit, count);
        self.used = end % BLOCK_BYTES;
        let last = end - self.used;
        copy_start(&mut *self.block, room.get(last..end).unwrap_or_default());
        self.at += last as u64;
        Ok(true)
    }

    /// Clears what is left of the lap before, so that no part of an old frame stays.
    fn end_lap(&mut self, zeros: &mut BlockBuffer) -> io::Result<()> {
        let written = (self.at + self.used as u64).next_multiple_of(BLOCK_BYTES as u64);
        self.file.write_zeros(written, self.file.size(), zeros)?;
        self.at = 0;
        self.used = 0;
        Ok(())
    }
}

/// Copies `bytes` to the start of `out`. Returns their number, or 0 when they do not fit.
fn copy_start(out: &mut [u8], bytes: &[u8]) -> usize {
    match out.get_mut(..bytes.len()) {
        Some(room) => {
            room.copy_from_slice(bytes);
            bytes.len()
        }
        None => 0,
    }
}
