//! The writer of a record.
//!
//! [`RecordWriter::append`] only copies a frame into memory; [`RecordWriter::sync`] makes everything durable. Nothing
//! allocates after the record was opened. When a write fails, `sync` returns the error, the frames stay in memory, and
//! the next `sync` tries again.

mod level;
mod pending;

use crate::blocks::{BlockBuffer, BlockFile, WriteMode, sync_folder};
use crate::codec::{decode_stamp, encode_head};
use crate::frame::{self, FrameKind, MAX_FRAME, MAX_PAYLOAD};
use crate::head::RecordHead;
use crate::level_files::{LEVEL_COUNT, LEVEL_PERIODS, level_path};
use crate::read::Record;
use level::{Level, MAX_PIECE_BYTES};
use pending::{LevelBits, Pending};
use std::io;
use std::path::Path;

/// The largest size of each level's file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelSizes(pub [u64; LEVEL_COUNT]);

impl Default for LevelSizes {
    /// 24 MiB in all. At one sample a second they hold every sample of about four hours, every
    /// tenth of a day and a half, and weeks at lower density.
    fn default() -> LevelSizes {
        const MIB: u64 = 1 << 20;
        LevelSizes([8 * MIB, 8 * MIB, 4 * MIB, 4 * MIB])
    }
}

/// The level that takes every frame.
const FULL: LevelBits = 1;
/// The level that keeps events longest, when the finer ones have overwritten theirs.
const COARSEST: LevelBits = 1 << (LEVEL_COUNT - 1);

/// A record that is being written.
pub struct RecordWriter {
    /// The frame of the head, with which each lap begins.
    head: Box<[u8]>,
    levels: [Level; LEVEL_COUNT],
    pending: Pending,
    piece: BlockBuffer,
    next_sequence: u64,
    /// When each level last took a sample, in nanoseconds on the monotonic clock.
    last_sample: [Option<u64>; LEVEL_COUNT],
    dropped: u64,
}

impl RecordWriter {
    /// Creates a record in an existing folder that has none.
    pub fn create(folder: &Path, sizes: LevelSizes, head: &RecordHead) -> io::Result<RecordWriter> {
        RecordWriter::create_in(folder, sizes, head, WriteMode::Direct)
    }

    fn create_in(
        folder: &Path,
        sizes: LevelSizes,
        head: &RecordHead,
        way: WriteMode,
    ) -> io::Result<RecordWriter> {
        let head = head_frame(head)?;
        let mut level = 0;
        let levels = sizes.0.map(|capacity| {
            let file = BlockFile::open(&level_path(folder, level), way)?;
            if file.size() > 0 {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let fresh = Level::new(file, capacity, 1 << level, 0, &[]);
            level += 1;
            Ok(fresh)
        });
        sync_folder(folder)?;
        Ok(RecordWriter::with(
            head,
            all_opened(levels)?,
            1,
            [None; LEVEL_COUNT],
        ))
    }

    /// Continues the record of a guard that died, behind its last intact frame and with the next
    /// sequence number. If that guard died before its first frame, a new record is created.
    pub fn continue_existing(
        folder: &Path,
        sizes: LevelSizes,
        head: &RecordHead,
    ) -> io::Result<RecordWriter> {
        let record = match Record::open(folder) {
            Ok(record) => record,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return RecordWriter::create(folder, sizes, head);
            }
            Err(error) => return Err(error.into_io()),
        };
        if record.newest_sequence() == 0 && record.damaged_bytes() == 0 {
            for level in 0..LEVEL_COUNT {
                match std::fs::remove_file(level_path(folder, level)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            return RecordWriter::create(folder, sizes, head);
        }
        let head = record.head().ok_or(io::ErrorKind::InvalidData)?;
        let mut level = 0;
        let mut last_sample = [None; LEVEL_COUNT];
        let levels = sizes.0.map(|capacity| {
            let file = BlockFile::open(&level_path(folder, level), WriteMode::Direct)?;
            let (end, block) = record.end_of(level);
            if let Some(last) = last_sample.get_mut(level) {
                *last = record.last_sample_of(level).map(|at| at.monotonic_ns);
            }
            let found = Level::new(file, capacity, 1 << level, end, block);
            level += 1;
            Ok(found)
        });
        sync_folder(folder)?;
        let next = record.newest_sequence().saturating_add(1);
        Ok(RecordWriter::with(
            head_frame(&head)?,
            all_opened(levels)?,
            next,
            last_sample,
        ))
    }

    fn with(
        head: Box<[u8]>,
        levels: [Level; LEVEL_COUNT],
        next_sequence: u64,
        last_sample: [Option<u64>; LEVEL_COUNT],
    ) -> RecordWriter {
        let (pending, piece) = (Pending::new(), BlockBuffer::new(MAX_PIECE_BYTES));
        RecordWriter {
            head,
            levels,
            pending,
            piece,
            next_sequence,
            last_sample,
            dropped: 0,
        }
    }

    /// Adds an encoded sample or event to what the next [`sync`](RecordWriter::sync) writes, and
    /// touches no file.
    pub fn append(&mut self, kind: FrameKind, payload: &[u8]) {
        let levels = match kind {
            FrameKind::Event => FULL | COARSEST,
            FrameKind::Sample => self.levels_for_sample(payload),
        };
        let pushed = self.pending.push(levels, kind, self.next_sequence, payload);
        self.dropped += pushed.unwrap_or(1);
        self.next_sequence = self.next_sequence.saturating_add(1);
    }

    /// The levels for which another sample is due.
    fn levels_for_sample(&mut self, payload: &[u8]) -> LevelBits {
        let Some(at) = decode_stamp(payload).map(|stamp| stamp.monotonic_ns) else {
            return FULL;
        };
        let mut levels = match self.last_sample {
            [None, ..] => FULL | COARSEST,
            _ => FULL,
        };
        for ((bit, last), period) in (0..).zip(&mut self.last_sample).zip(LEVEL_PERIODS) {
            // A coarse level begins when its first period is over, so that a short run writes
            // to few files. A clock that went back is that of another boot, so the time since
            // the last sample is not known.
            let since = at.checked_sub(*last.get_or_insert(at));
            if since.is_none_or(|since| u128::from(since) >= period.as_nanos()) {
                levels |= 1 << bit;
                *last = Some(at);
            }
        }
        levels
    }

    /// Makes everything that was appended durable. On an error, the levels that can be written
    /// are written, and the rest waits for the next call.
    pub fn sync(&mut self) -> io::Result<()> {
        let mut result = Ok(());
        for level in &mut self.levels {
            let written = level.write(&self.head, &mut self.pending, &mut self.piece);
            result = result.and(written);
        }
        result
    }

    /// How many frames were dropped while writes failed.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

fn head_frame(head: &RecordHead) -> io::Result<Box<[u8]>> {
    let mut payload = [0; MAX_PAYLOAD];
    let len = encode_head(head, &mut payload);
    let mut out = [0; MAX_FRAME];
    let frame = payload
        .get(..len)
        .and_then(|payload| frame::write(&mut out, frame::HEAD, 0, payload))
        .and_then(|len| out.get(..len))
        .ok_or(io::ErrorKind::InvalidInput)?;
    Ok(frame.into())
}

fn all_opened(levels: [io::Result<Level>; LEVEL_COUNT]) -> io::Result<[Level; LEVEL_COUNT]> {
    let [a, b, c, d] = levels;
    Ok([a?, b?, c?, d?])
}

#[cfg(test)]
mod tests;
