//! Files that are written in whole blocks past the page cache. Each write is durable when it returns.
//!
//! While memory is short, a cached write can wait seconds for a page. A direct write into space that is already
//! allocated needs neither a page nor a change of metadata.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The size of a block, which every disk and file system in use accepts for direct writes.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// How much a file grows at a time.
const GROWTH_STEP_BYTES: u64 = 256 * 1024;

/// Memory for direct writes, aligned to blocks and allocated once.
pub(crate) struct BlockBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl BlockBuffer {
    /// `len` bytes, rounded up to whole blocks.
    pub fn new(len: usize) -> BlockBuffer {
        let len = len.next_multiple_of(BLOCK_BYTES);
        let memory = vec![0; len + BLOCK_BYTES];
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        BlockBuffer { memory, start, len }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // The allocation holds one block more than `len`, so the range always exists.
        self.memory
            .get_mut(self.start..self.start + self.len)
            .unwrap_or_default()
    }
}

/// How a file is written durably, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Past the page cache, durable on return.
    Direct,
    /// Through the page cache, durable on return.
    Synced,
    /// Through the page cache, made durable by another call.
    Plain,
}

impl WriteMode {
    fn next(self) -> Option<WriteMode> {
        match self {
            WriteMode::Direct => Some(WriteMode::Synced),
            WriteMode::Synced => Some(WriteMode::Plain),
            WriteMode::Plain => None,
        }
    }

    fn flags(self) -> OFlags {
        match self {
            WriteMode::Direct => OFlags::DIRECT | OFlags::DSYNC,
            WriteMode::Synced => OFlags::DSYNC,
            WriteMode::Plain => OFlags::empty(),
        }
    }
}

/// A file of whole blocks, all of which are allocated.
pub(crate) struct BlockFile {
    fd: OwnedFd,
    way: WriteMode,
    size: u64,
}

impl BlockFile {
    /// Opens or creates a file, in the best write mode that its file system supports.
    pub fn open(path: &Path, best: WriteMode) -> io::Result<BlockFile> {
        let mut way = best;
        let fd = loop {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | way.flags();
            match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
                Ok(fd) => break fd,
                Err(Errno::INVAL) => way = way.next().ok_or(Errno::INVAL)?,
                Err(errno) => return Err(errno.into()),
            }
        };
        let found = u64::try_from(rustix::fs::fstat(&fd)?.st_size).unwrap_or(0);
        // An incomplete last block is what a full disk leaves; it is written again.
        Ok(BlockFile {
            fd,
            way,
            size: found / BLOCK_BYTES as u64 * BLOCK_BYTES as u64,
        })
    }

    /// How many bytes can be written without needing new space.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Grows the file in steps until `needed` bytes are allocated, and never beyond `at_most`. Zeros
    /// are written, because space that is only reserved would cost a change of metadata later.
    /// `zeros` is a buffer that may be overwritten.
    pub fn grow(&mut self, needed: u64, at_most: u64, zeros: &mut BlockBuffer) -> io::Result<()> {
        if needed <= self.size {
            return Ok(());
        }
        let goal = needed
            .next_multiple_of(GROWTH_STEP_BYTES)
            .min(at_most)
            .max(needed);
        match self.write_zeros(self.size, goal, zeros) {
            // The disk became full within the step, but what is needed was written.
            Err(_) if needed <= self.size => Ok(()),
            result => result,
        }
    }

    /// Writes zeros over a range of whole blocks.
    pub fn write_zeros(&mut self, from: u64, to: u64, zeros: &mut BlockBuffer) -> io::Result<()> {
        let zeros = zeros.bytes();
        zeros.fill(0);
        let mut at = from;
        while at < to {
            let len = usize::try_from(to - at)
                .unwrap_or(usize::MAX)
                .min(zeros.len());
            self.write(at, zeros.get(..len).unwrap_or_default())?;
            at += len as u64;
        }
        Ok(())
    }

    /// Writes whole blocks of a [`BlockBuffer`] at a multiple of the block size. When it returns
    /// without an error, they survive a power cut.
    pub fn write(&mut self, at: u64, blocks: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while let Some(rest) = blocks.get(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pwrite(&self.fd, rest, at + done as u64) {
                Ok(0) => return Err(Errno::NOSPC.into()),
                // A direct write has to continue at a whole block, however much the kernel has written.
                Ok(count) if count < rest.len() => {
                    let whole = (done + count) / BLOCK_BYTES * BLOCK_BYTES;
                    if whole == done {
                        return Err(Errno::NOSPC.into());
                    }
                    done = whole;
                }
                Ok(_) => done = blocks.len(),
                Err(Errno::INTR) => {}
                Err(Errno::INVAL) if self.way == WriteMode::Direct => self.leave_direct()?,
                Err(errno) => return Err(errno.into()),
            }
            self.size = self.size.max(at + done as u64);
        }
        if self.way == WriteMode::Plain {
            rustix::fs::fdatasync(&self.fd)?;
        }
        Ok(())
    }

    /// Leaves the direct mode, because some mounts accept its flag when a file is opened and refuse the write.
    fn leave_direct(&mut self) -> io::Result<()> {
        let flags = rustix::fs::fcntl_getfl(&self.fd)?;
        rustix::fs::fcntl_setfl(&self.fd, flags - OFlags::DIRECT)?;
        self.way = WriteMode::Synced;
        Ok(())
    }
}

/// Makes the names of new files in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(folder, flags, Mode::empty())?;
    match rustix::fs::fsync(&fd) {
        // Some network mounts cannot; there, names are durable once they exist.
        Err(Errno::INVAL) => Ok(()),
        result => Ok(result?),
    }
}
