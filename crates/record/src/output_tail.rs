//! The last of the trainer's output, kept durably while it runs.
//!
//! A file of fixed size: two blocks of which each tells how much output there was so far,
//! written in turn so that one of them is always whole, and a ring of output bytes. The ring
//! is a little longer than what is given back, and never written further ahead than that
//! before the next header: so a power cut between the two costs nothing that a header tells
//! of. The output itself may be any bytes and has no checksum: half of a last line is worth
//! more than none.

use crate::blocks::{BLOCK_BYTES, BlockBuffer, BlockFile, WriteMode, sync_folder};
use antifreeze_sense::regular_file;
use std::io::{self, Read};
use std::path::Path;

/// How much of the output is kept.
pub const KEPT: u64 = 256 * 1024;
/// How far the ring is written ahead of its header.
const AHEAD: u64 = 64 * 1024;
const RING: u64 = KEPT + AHEAD;
const RING_START: u64 = 2 * BLOCK_BYTES as u64;
const FILE_BYTES: u64 = RING_START + RING;

const MAGIC: [u8; 4] = *b"AFTL";
const VERSION: u32 = 1;

pub struct OutputTail {
    file: BlockFile,
    /// The part of the output that the file holds, as offsets in the output: its first byte
    /// and its end.
    first: u64,
    end: u64,
    /// The end that the newest header tells of.
    told: u64,
    /// The block that holds the end. Its bytes may be gone from where they came from.
    block: Box<[u8; BLOCK_BYTES]>,
    /// Which of the two headers is written next.
    second_header: bool,
    buffer: BlockBuffer,
}

impl OutputTail {
    /// Makes the file with all the space that it will ever need, or takes over that of a
    /// guard that died: what it holds stays until the first update.
    pub fn create(path: &Path) -> io::Result<OutputTail> {
        let mut file = BlockFile::open(path, WriteMode::Direct)?;
        let mut buffer = BlockBuffer::new(AHEAD as usize);
        file.grow(FILE_BYTES, FILE_BYTES, &mut buffer)?;
        if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
            sync_folder(folder)?;
        }
        let block = Box::new([0; BLOCK_BYTES]);
        Ok(OutputTail {
            file,
            first: 0,
            end: 0,
            told: 0,
            block,
            second_header: false,
            buffer,
        })
    }

    /// Makes the output durable, of which there were `filled` bytes since the start. `copy`
    /// gives the bytes from an offset of the output on; it is asked only for bytes that it
    /// was not asked for before, and only for the last [`KEPT`].
    pub fn update(&mut self, filled: u64, mut copy: impl FnMut(u64, &mut [u8])) -> io::Result<()> {
        let oldest = filled.saturating_sub(KEPT);
        if self.end < oldest {
            (self.first, self.end, self.told) = (oldest, oldest, oldest);
        }
        while self.told < filled {
            // They differ when the header could not be written the last time.
            if self.told == self.end {
                self.write_ahead(filled, &mut copy)?;
            }
            self.write_header()?;
        }
        Ok(())
    }

    /// Writes as far as one header may lag behind, or to the end of the ring.
    fn write_ahead(
        &mut self,
        filled: u64,
        copy: &mut impl FnMut(u64, &mut [u8]),
    ) -> io::Result<()> {
        let known = (self.end % BLOCK_BYTES as u64) as usize;
        let from = self.end - known as u64;
        let place = from % RING;
        let end = filled.min(from + AHEAD).min(from + RING - place);
        // At most `AHEAD`, which is the length of the buffer.
        let len = (end - from) as usize;
        let blocks = len.next_multiple_of(BLOCK_BYTES);
        let room = self.buffer.bytes().get_mut(..blocks).unwrap_or_default();
        let (old, new) = room.split_at_mut_checked(known).unwrap_or_default();
        old.copy_from_slice(self.block.get(..known).unwrap_or_default());
        let (new, rest) = new.split_at_mut_checked(len - known).unwrap_or_default();
        copy(self.end, new);
        rest.fill(0);
        self.file.write(RING_START + place, room)?;
        let last = room.as_chunks::<BLOCK_BYTES>().0.last();
        *self.block = last.copied().unwrap_or([0; BLOCK_BYTES]);
        self.end = end;
        Ok(())
    }

    fn write_header(&mut self) -> io::Result<()> {
        let block = self
            .buffer
            .bytes()
            .get_mut(..BLOCK_BYTES)
            .unwrap_or_default();
        block.fill(0);
        let header = Header {
            first: self.first,
            end: self.end,
        }
        .to_bytes();
        if let Some(start) = block.first_chunk_mut() {
            *start = header;
        }
        self.file.write(
            if self.second_header {
                BLOCK_BYTES as u64
            } else {
                0
            },
            block,
        )?;
        self.second_header = !self.second_header;
        self.told = self.end;
        Ok(())
    }
}

/// Of how many bytes of output the file tells, since the start.
pub fn recorded_len(path: &Path) -> io::Result<u64> {
    let mut bytes = Vec::new();
    regular_file::open(path)?
        .take(RING_START)
        .read_to_end(&mut bytes)?;
    Ok(newest_header(&bytes).map_or(0, |header| header.end))
}

/// The last of the output in order, at most [`KEPT`] bytes. Where both headers are damaged,
/// all of the ring in the order of the file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path)?
        .take(FILE_BYTES)
        .read_to_end(&mut bytes)?;
    let ring = bytes.get(RING_START as usize..).unwrap_or_default();
    let Some(header) = newest_header(&bytes) else {
        return Ok(without_zeros_around(ring).to_vec());
    };
    let first = header.first.max(header.end.saturating_sub(KEPT));
    Ok((first..header.end)
        .filter_map(|offset| ring.get((offset % RING) as usize))
        .copied()
        .collect())
}

fn newest_header(bytes: &[u8]) -> Option<Header> {
    let headers = [0, BLOCK_BYTES].map(|at| Header::from_bytes(bytes.get(at..)?));
    headers
        .into_iter()
        .flatten()
        .max_by_key(|header| header.end)
}

fn without_zeros_around(bytes: &[u8]) -> &[u8] {
    let first = bytes
        .iter()
        .position(|&byte| byte != 0)
        .unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(first, |last| last + 1);
    bytes.get(first..end).unwrap_or_default()
}

/// Magic, version, first, end, and the CRC-32 of these.
struct Header {
    first: u64,
    end: u64,
}

const CHECKED_BYTES: usize = 24;
const HEADER_BYTES: usize = CHECKED_BYTES + 4;

impl Header {
    fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let (checked, checksum) = bytes.split_at_mut(CHECKED_BYTES);
        let fields = MAGIC
            .into_iter()
            .chain(VERSION.to_le_bytes())
            .chain(self.first.to_le_bytes())
            .chain(self.end.to_le_bytes());
        for (to, from) in checked.iter_mut().zip(fields) {
            *to = from;
        }
        checksum.copy_from_slice(&crc32fast::hash(checked).to_le_bytes());
        bytes
    }

    /// Compares with what would have been written, so that every byte of it counts.
    fn from_bytes(bytes: &[u8]) -> Option<Header> {
        let numbers = bytes.get(8..CHECKED_BYTES)?.as_chunks::<8>().0;
        let &[first, end] = numbers.first_chunk()?;
        let header = Header {
            first: u64::from_le_bytes(first),
            end: u64::from_le_bytes(end),
        };
        (bytes.first_chunk() == Some(&header.to_bytes())).then_some(header)
    }
}

#[cfg(test)]
mod tests;
