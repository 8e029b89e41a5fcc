//! Passes the trainer's output on to where it was going, keeping its tail in the page.
//!
//! The front relays; when it dies the guard goes on from the very byte. No byte is lost and none is passed on twice,
//! wherever the relay was killed: a piece goes through two pipes of our own, the intake and the outlet, which the
//! successor holds too. Moving bytes between pipes (`splice`) is one step that cannot be half seen, and what is in a
//! pipe that nobody else reads can be counted. So the successor knows where the piece is:
//!
//! - Intake: bytes move from the trainer into it (empty before), `taken` says where they will end, they are read into
//!   the ring, `filled` counts them. If the intake holds bytes they were not read yet; if it is empty and `taken` is
//!   ahead of `filled`, they are in the ring.
//! - Outlet: `sending` says where the piece ends, it is written to the outlet (empty before), `staged` says so, it
//!   moves on, `passed` counts it. If the outlet holds bytes, those are left to move; if it is empty and `staged` has
//!   reached `sending`, all of them went.
//!
//! A file that is opened for appending takes no `splice`: there the growth of the file says how much arrived. What takes
//! none for another reason is written to directly, and there a kill in the middle of a write may repeat bytes.

use crate::shared::OutputRing;
use crate::state::{OUTPUT_BYTES, Output};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// What every pipe holds.
const PIPE_BUF: usize = 4096;

/// Whether more output may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Open,
    /// The trainer and all who share its output have closed it.
    Closed,
}

/// Both ends of a pipe that only relays use.
#[derive(Clone, Copy)]
pub struct Transfer<'a> {
    pub read: BorrowedFd<'a>,
    pub write: BorrowedFd<'a>,
}

impl Transfer<'_> {
    /// Bytes that an empty one takes at once.
    fn capacity(&self) -> usize {
        rustix::pipe::fcntl_getpipe_size(self.write).map_or(PIPE_BUF, |bytes| bytes.max(PIPE_BUF))
    }

    fn held(&self) -> usize {
        rustix::io::ioctl_fionread(self.read).map_or(0, |bytes| bytes as usize)
    }

    /// Removes what is in it.
    fn drop_all(&self) {
        let mut scratch = [0; PIPE_BUF];
        while self.held() > 0 && rustix::io::read(self.read, &mut scratch).is_ok() {}
    }
}

/// Where the output of the trainer comes from.
pub struct Source<'a> {
    from: BorrowedFd<'a>,
    intake: Option<Transfer<'a>>,
    capacity: usize,
}

impl<'a> Source<'a> {
    /// Takes over from a relay that may have been killed.
    pub fn new(output: &Output, from: BorrowedFd<'a>, intake: Option<Transfer<'a>>) -> Source<'a> {
        let source = Source {
            from,
            intake,
            capacity: intake.map_or(0, |intake| intake.capacity()),
        };
        source.recover(output);
        source
    }

    /// Reads once from the trainer into the page, as much as there is space for.
    pub fn fill(&mut self, output: &Output) -> Result<Flow, Errno> {
        let read = match self.intake {
            Some(intake) => match self.fill_through(intake, output) {
                // No file of a kind that can be moved from.
                Err(Errno::INVAL) => {
                    self.intake = None;
                    return self.fill(output);
                }
                other => other,
            },
            None => read_into(self.from, output.space()).inspect(|read| {
                output.filled.fetch_add(*read as u64, Release);
            }),
        };
        match read {
            Err(Errno::INTR) => self.fill(output),
            // A pty whose other side is closed answers with an I/O error.
            Err(Errno::IO) | Ok(0) => Ok(Flow::Closed),
            other => other.map(|_| Flow::Open),
        }
    }

    fn fill_through(&self, intake: Transfer<'_>, output: &Output) -> Result<usize, Errno> {
        let most = output.space().len().min(self.capacity);
        let moved = splice(
            self.from,
            None,
            intake.write,
            None,
            most,
            SpliceFlags::NONBLOCK,
        )?;
        let filled = output.filled.load(Relaxed);
        output.taken.store(filled + moved as u64, Release);
        take(intake, output, moved);
        Ok(moved)
    }

    fn recover(&self, output: &Output) {
        let Some(intake) = self.intake else {
            return;
        };
        let filled = output.filled.load(Acquire);
        let ahead = output.taken.load(Acquire).saturating_sub(filled);
        match intake.held() {
            0 if ahead <= OUTPUT_BYTES as u64 => {
                output.filled.fetch_add(ahead, Release);
            }
            0 => {}
            held => take(intake, output, held),
        }
    }
}

/// Reads a piece from the intake into the ring, and counts it.
fn take(intake: Transfer<'_>, output: &Output, bytes: usize) {
    let mut left = bytes;
    while left > 0 {
        let space = output.space();
        match read_into(intake.read, &space[..space.len().min(left)]) {
            Ok(0) => return,
            Ok(read) => {
                left = left.saturating_sub(read);
                output.filled.fetch_add(read as u64, Release);
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Where the output of the trainer goes.
pub struct Way<'a> {
    to: BorrowedFd<'a>,
    outlet: Option<Transfer<'a>>,
    capacity: usize,
    /// A regular file that every write appends to.
    appends: bool,
}

impl<'a> Way<'a> {
    /// Takes over from a relay that may have been killed.
    pub fn new(output: &Output, to: BorrowedFd<'a>, outlet: Option<Transfer<'a>>) -> Way<'a> {
        let appends = rustix::fs::fcntl_getfl(to).is_ok_and(|flags| flags.contains(OFlags::APPEND))
            && rustix::fs::fstat(to)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let way = Way {
            to,
            outlet: outlet.filter(|_| !appends),
            capacity: outlet.map_or(OUTPUT_BYTES, |outlet| outlet.capacity()),
            appends,
        };
        // An error is reported with the next piece.
        let _ = way.recover(output, outlet);
        way
    }

    /// Passes on all that is held now; what comes meanwhile is for the next call. A destination that is gone (closed
    /// terminal, broken pipe) is reported, and what was for it is dropped: the tail is still kept.
    pub fn pass_on(&mut self, output: &Output) -> Result<(), Errno> {
        self.pass_on_until(output, output.filled.load(Acquire))
    }

    /// Passes on what is held up to `goal`, counted in bytes that were ever read, and nothing beyond it.
    pub fn pass_on_until(&mut self, output: &Output, goal: u64) -> Result<(), Errno> {
        let mut result = Ok(());
        loop {
            let passed = output.passed.load(Relaxed);
            let left = goal.saturating_sub(passed);
            let pending = output.pending();
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            let piece = &pending[..pending.len().min(left).min(self.capacity)];
            if piece.is_empty() {
                return result;
            }
            let end = passed + piece.len() as u64;
            let sent = match self.outlet {
                Some(outlet) => match self.send_through(outlet, output, piece, end) {
                    Err(Errno::INVAL) => {
                        outlet.drop_all();
                        self.outlet = None;
                        continue;
                    }
                    sent => sent,
                },
                None => self.write_directly(output, piece, end),
            };
            result = result.and(sent);
            output.passed.store(end, Release);
        }
    }

    fn send_through(
        &self,
        outlet: Transfer<'_>,
        output: &Output,
        piece: &[AtomicU8],
        end: u64,
    ) -> Result<(), Errno> {
        output.sending.store(end, Release);
        let mut written = 0;
        while let Some(rest) = piece.get(written..).filter(|rest| !rest.is_empty()) {
            // It is empty, so all of it goes in at once.
            match write_from(outlet.write, rest) {
                Ok(bytes) => written += bytes,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        output.staged.store(end, Release);
        self.move_on(outlet, piece.len())
    }

    /// Moves the bytes that are in the outlet to where they go. What cannot go there is dropped.
    fn move_on(&self, outlet: Transfer<'_>, held: usize) -> Result<(), Errno> {
        let mut left = held;
        while left > 0 {
            match splice(outlet.read, None, self.to, None, left, SpliceFlags::empty()) {
                Ok(moved) => left = left.saturating_sub(moved),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_writable(self.to),
                Err(Errno::INVAL) => return Err(Errno::INVAL),
                Err(errno) => {
                    outlet.drop_all();
                    return Err(errno);
                }
            }
        }
        Ok(())
    }

    fn write_directly(&self, output: &Output, piece: &[AtomicU8], end: u64) -> Result<(), Errno> {
        if self.appends {
            output.size_before.store(self.size(), Release);
        }
        output.sending.store(end, Release);
        self.write(piece)
    }

    fn write(&self, piece: &[AtomicU8]) -> Result<(), Errno> {
        let mut written = 0;
        while let Some(rest) = piece.get(written..).filter(|rest| !rest.is_empty()) {
            match write_from(self.to, rest) {
                Ok(bytes) => written += bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait_writable(self.to),
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    fn size(&self) -> u64 {
        rustix::fs::fstat(self.to).map_or(0, |stat| stat.st_size as u64)
    }

    /// Finishes the piece that another relay had begun.
    fn recover(&self, output: &Output, outlet: Option<Transfer<'_>>) -> Result<(), Errno> {
        let passed = output.passed.load(Acquire);
        let end = output.sending.load(Acquire);
        if end <= passed || end - passed > OUTPUT_BYTES as u64 {
            return Ok(());
        }
        if self.appends {
            let arrived = self.size().saturating_sub(output.size_before.load(Acquire));
            output.passed.store((passed + arrived).min(end), Release);
            return Ok(());
        }
        let Some(outlet) = outlet else {
            return Ok(());
        };
        let held = outlet.held();
        if held == 0 && output.staged.load(Acquire) < end {
            // It was not begun.
            return Ok(());
        }
        let moved = self.move_on(outlet, held);
        outlet.drop_all();
        if moved != Err(Errno::INVAL) {
            output.passed.store(end, Release);
        }
        moved
    }
}

/// Whether poll(2) reports that a reader has gone for good. A named pipe may get another reader.
pub fn is_anonymous_pipe(fd: BorrowedFd<'_>) -> bool {
    // As the kernel's `PIPEFS_MAGIC`.
    rustix::fs::fstatfs(fd).is_ok_and(|stat| stat.f_type == 0x5049_5045)
}

/// Waits until a destination that another process made non-blocking accepts bytes again.
fn wait_writable(to: BorrowedFd<'_>) {
    let _ = poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None);
}

fn read_into(from: BorrowedFd<'_>, space: &[AtomicU8]) -> Result<usize, Errno> {
    // SAFETY: shared bytes that only this relay writes; the kernel fills at most as many
    // as there are.
    let buffer = unsafe {
        std::slice::from_raw_parts_mut(space.as_ptr().cast_mut().cast::<u8>(), space.len())
    };
    rustix::io::read(from, buffer)
}

fn write_from(to: BorrowedFd<'_>, pending: &[AtomicU8]) -> Result<usize, Errno> {
    // SAFETY: shared bytes that nobody writes until they are passed on.
    let buffer =
        unsafe { std::slice::from_raw_parts(pending.as_ptr().cast::<u8>(), pending.len()) };
    rustix::io::write(to, buffer)
}

/// Copies bytes of the kept tail, starting at `offset` of all that was ever read.
pub fn copy_tail(output: &Output, offset: u64, out: &mut [u8]) {
    let size = output.ring.len() as u64;
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = output.ring[((offset + i as u64) % size) as usize].load(Relaxed);
    }
}
