//! One level as it was read: its bytes, and where the intact frames are in them.

use crate::frame::{self, FrameKind, HEAD};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

/// A file is read up to this size. The largest that is written by default is 8 MiB.
pub(crate) const MAX_FILE_BYTES: usize = 64 << 20;
/// How many bytes a refresh reads at a time.
const REFRESH_BYTES: usize = 64 * 1024;

/// Where a frame is in the levels.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameLocation {
    pub sequence: u64,
    pub offset: u32,
    pub payload_len: u16,
    pub kind: FrameKind,
    pub level: u8,
}

impl FrameLocation {
    fn start(&self) -> usize {
        self.offset as usize
    }

    fn end(&self) -> usize {
        self.start() + usize::from(self.payload_len) + frame::OVERHEAD
    }
}

pub(super) struct LevelImage {
    level: u8,
    file: Option<File>,
    bytes: Vec<u8>,
    /// Every sample and event, sorted by sequence number.
    pub places: Vec<FrameLocation>,
    /// The offset of the first intact head.
    head: Option<usize>,
    /// Where the newest frame ends, and the writer continues.
    end: usize,
    pub damaged: u64,
}

impl LevelImage {
    pub fn from_bytes(level: u8, bytes: Vec<u8>) -> LevelImage {
        let mut image = LevelImage {
            level,
            file: None,
            bytes,
            places: Vec::new(),
            head: None,
            end: 0,
            damaged: 0,
        };
        image.index();
        image
    }

    pub fn from_file(level: u8, mut file: File) -> io::Result<LevelImage> {
        let expected = file.metadata()?.len().min(MAX_FILE_BYTES as u64) as usize;
        let mut bytes = Vec::with_capacity(expected + 1);
        file.by_ref()
            .take(MAX_FILE_BYTES as u64)
            .read_to_end(&mut bytes)?;
        let mut image = LevelImage::from_bytes(level, bytes);
        image.file = Some(file);
        Ok(image)
    }

    fn index(&mut self) {
        let mut gaps = Gaps::new(&self.bytes);
        for (offset, frame) in frame::scan(&self.bytes) {
            gaps.frame(offset, offset + frame.size(), frame.sequence);
            if frame.kind == HEAD {
                self.head.get_or_insert(offset);
            }
            self.places.extend(place(self.level, offset, &frame));
        }
        self.damaged = gaps.finish();
        // A file that is written in laps has two rising runs, which this sort only has to merge.
        self.places.sort_by_key(|place| place.sequence);
        let head_end = self.head.map_or(0, |at| {
            self.bytes
                .get(at..)
                .and_then(frame::at_start)
                .map_or(0, |head| at + head.size())
        });
        self.end = self.places.last().map_or(head_end, FrameLocation::end);
    }

    pub fn payload(&self, place: &FrameLocation) -> Option<&[u8]> {
        let start = place.start() + frame::HEADER_BYTES;
        self.bytes
            .get(start..start + usize::from(place.payload_len))
    }

    pub fn head(&self) -> Option<&[u8]> {
        self.bytes
            .get(self.head?..)
            .and_then(frame::at_start)
            .map(|frame| frame.payload)
    }

    pub fn newest(&self) -> u64 {
        self.places.last().map_or(0, |place| place.sequence)
    }

    /// Where the newest frame ends, and the bytes of the block up to there.
    pub fn end(&self) -> (u64, &[u8]) {
        let block = self.end / crate::blocks::BLOCK_BYTES * crate::blocks::BLOCK_BYTES;
        (
            self.end as u64,
            self.bytes.get(block..self.end).unwrap_or_default(),
        )
    }

    /// Reads what was written since, and returns whether there was anything.
    pub fn refresh(&mut self) -> io::Result<bool> {
        let mut any = false;
        // New frames begin where the last frame ended, or at the start of a new lap.
        while self.take_newer(self.end)? || self.take_newer(0)? {
            any = true;
        }
        Ok(any)
    }

    /// Reads a part of the file and adds the frames in it that are newer than all others.
    fn take_newer(&mut self, from: usize) -> io::Result<bool> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let mut window = vec![0; REFRESH_BYTES.min(MAX_FILE_BYTES.saturating_sub(from))];
        let len = read_at(file, &mut window, from as u64)?;
        window.truncate(len);
        let newest = self.newest();
        let found: Vec<FrameLocation> = frame::scan(&window)
            .filter(|(_, frame)| frame.sequence > newest)
            .filter_map(|(offset, frame)| place(self.level, from + offset, &frame))
            .collect();
        let Some(end) = found.last().map(FrameLocation::end) else {
            return Ok(false);
        };
        // The frames that were there before are overwritten in the file, so they go here too.
        self.places
            .retain(|place| place.end() <= from || place.start() >= end);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let (Some(to), Some(new)) = (self.bytes.get_mut(from..end), window.get(..end - from)) {
            to.copy_from_slice(new);
        }
        if from == 0 {
            self.head = None;
        }
        if self.head.is_none() {
            self.head = frame::scan(&self.bytes)
                .find(|(_, f)| f.kind == HEAD)
                .map(|(at, _)| at);
        }
        self.places.extend(found);
        self.end = end;
        Ok(true)
    }
}

fn place(level: u8, offset: usize, frame: &frame::Frame) -> Option<FrameLocation> {
    Some(FrameLocation {
        sequence: frame.sequence,
        offset: offset.try_into().ok()?,
        payload_len: frame.payload.len().try_into().ok()?,
        kind: FrameKind::from_code(frame.kind)?,
        level,
    })
}

/// Reads as `read_exact_at` does, but less where the file is shorter.
fn read_at(file: &File, out: &mut [u8], from: u64) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = out.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, from + len as u64) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// Counts the bytes between the frames that are not empty space.
struct Gaps<'a> {
    bytes: &'a [u8],
    from: usize,
    damaged: u64,
    newest: u64,
    behind_newest: bool,
    /// The bytes of the gap behind the newest frame. The writer overwrites the oldest there, so
    /// a part of an old frame is not damage.
    seam: u64,
}

impl<'a> Gaps<'a> {
    fn new(bytes: &'a [u8]) -> Gaps<'a> {
        Gaps {
            bytes,
            from: 0,
            damaged: 0,
            newest: 0,
            behind_newest: false,
            seam: 0,
        }
    }

    fn frame(&mut self, start: usize, end: usize, sequence: u64) {
        self.gap(start);
        self.from = end;
        self.behind_newest = sequence >= self.newest;
        if self.behind_newest {
            self.newest = sequence;
            self.seam = 0;
        }
    }

    fn gap(&mut self, to: usize) {
        let gap = self.bytes.get(self.from..to).unwrap_or_default();
        let first = gap.iter().position(|&byte| byte != 0);
        let last = gap.iter().rposition(|&byte| byte != 0);
        let span = first
            .zip(last)
            .map_or(0, |(first, last)| (last - first + 1) as u64);
        self.damaged += span;
        if self.behind_newest {
            self.seam = span;
        }
    }

    fn finish(mut self) -> u64 {
        self.gap(self.bytes.len());
        self.damaged - self.seam
    }
}
