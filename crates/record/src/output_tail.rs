//! The last 256 KiB of the trainer's output, kept durably while it runs.
//!
//! The file has a fixed size: two header blocks and a ring of output bytes. A header states how much output there was so
//! far; the two are written in turn, so that one of them is always intact. The ring is longer than what a reader gets, and
//! is never written further ahead of a header than by that difference, so a power cut between the two loses nothing that
//! a header states. The output itself may be any bytes and has no checksum: half of a last line is better than none.

use crate::blocks::{BLOCK_BYTES, BlockBuffer, BlockFile, WriteMode, sync_folder};
use antifreeze_sense::regular_file;
use std::io::{self, Read};
use std::path::Path;

/// How many bytes of the output are kept.
pub const KEPT_BYTES: u64 = 256 * 1024;
/// How many bytes the ring is written ahead of its header at most.
const MAX_AHEAD_BYTES: u64 = 64 * 1024;
const RING_BYTES: u64 = KEPT_BYTES + MAX_AHEAD_BYTES;
const RING_START: u64 = 2 * BLOCK_BYTES as u64;
const FILE_BYTES: u64 = RING_START + RING_BYTES;

const MAGIC: [u8; 4] = *b"AFTL";
const VERSION: u32 = 1;

/// The file that the end of the output is written to.
pub struct OutputTail {
    file: BlockFile,
    /// The part of the output that the file holds, as offsets in the output: its first byte
    /// and its end.
    first: u64,
    end: u64,
    /// The end that the newest header states.
    stated_end: u64,
    /// A copy of the block that holds the end, whose bytes may no longer exist at their source.
    block: Box<[u8; BLOCK_BYTES]>,
    /// Which of the two headers is written next.
    second_header: bool,
    buffer: BlockBuffer,
}

impl OutputTail {
    /// Creates the file with all the space that it will need, or opens that of a guard that died,
    /// whose content stays until the first update.
    pub fn create(path: &Path) -> io::Result<OutputTail> {
        let mut file = BlockFile::open(path, WriteMode::Direct)?;
        let mut buffer = BlockBuffer::new(MAX_AHEAD_BYTES as usize);
        file.grow(FILE_BYTES, FILE_BYTES, &mut buffer)?;
        if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
            sync_folder(folder)?;
        }
        let block = Box::new([0; BLOCK_BYTES]);
        Ok(OutputTail {
            file,
            first: 0,
            end: 0,
            stated_end: 0,
            block,
            second_header: false,
            buffer,
        })
    }

    /// Makes the output durable, which is `filled` bytes long since the start. `copy` fills a
    /// buffer with the bytes from an offset of the output on. It is called only for bytes that it
    /// was not called for before, and only for the last [`KEPT_BYTES`].
    pub fn update(&mut self, filled: u64, mut copy: impl FnMut(u64, &mut [u8])) -> io::Result<()> {
        let oldest = filled.saturating_sub(KEPT_BYTES);
        if self.end < oldest {
            (self.first, self.end, self.stated_end) = (oldest, oldest, oldest);
        }
        while self.stated_end < filled {
            // They differ when the last header could not be written.
            if self.stated_end == self.end {
                self.write_ahead(filled, &mut copy)?;
            }
            self.write_header()?;
        }
        Ok(())
    }

    /// Writes output bytes, as many as a header may lag behind, or up to the end of the ring.
    fn write_ahead(
        &mut self,
        filled: u64,
        copy: &mut impl FnMut(u64, &mut [u8]),
    ) -> io::Result<()> {
        let known = (self.end % BLOCK_BYTES as u64) as usize;
        let from = self.end - known as u64;
        let place = from % RING_BYTES;
        let end = filled
            .min(from + MAX_AHEAD_BYTES)
            .min(from + RING_BYTES - place);
        // At most `MAX_AHEAD_BYTES`, which is the length of the buffer.
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
        self.stated_end = self.end;
        Ok(())
    }
}

/// Reads how many bytes of output the file states, since the start.
pub fn recorded_len(path: &Path) -> io::Result<u64> {
    let mut bytes = Vec::new();
    regular_file::open(path)?
        .take(RING_START)
        .read_to_end(&mut bytes)?;
    Ok(newest_header(&bytes).map_or(0, |header| header.end))
}

/// Reads the end of the output, at most [`KEPT_BYTES`] bytes. Where both headers are damaged, it is the whole ring in
/// the order of the file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    regular_file::open(path)?
        .take(FILE_BYTES)
        .read_to_end(&mut bytes)?;
    let ring = bytes.get(RING_START as usize..).unwrap_or_default();
    let Some(header) = newest_header(&bytes) else {
        return Ok(without_zeros_around(ring).to_vec());
    };
    let first = header.first.max(header.end.saturating_sub(KEPT_BYTES));
    Ok((first..header.end)
        .filter_map(|offset| ring.get((offset % RING_BYTES) as usize))
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

/// A header: magic, version, first, end, and the CRC-32 of these.
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

    /// Parses a header and compares it with the bytes that would have been written, so that every byte counts.
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
