//! Passes the trainer's output on to where it was going, keeping its tail in the page.
//!
//! The front relays; when it dies the guard goes on from the very byte: what was read is
//! in the page with a mark of how much of it was passed on, so nothing is lost.

use crate::shared::OutputRing;
use crate::state::Output;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Whether more may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Open,
    /// The trainer and all who share its output have closed it.
    Closed,
}

/// Reads once from the trainer into the page, as much as there is space for.
pub fn fill(output: &Output, from: BorrowedFd<'_>) -> Result<Flow, Errno> {
    let read = loop {
        match read_into(from, output.space()) {
            Err(Errno::INTR) => continue,
            // A pty whose other side is closed answers with an I/O error.
            Err(Errno::IO) | Ok(0) => return Ok(Flow::Closed),
            other => break other?,
        }
    };
    output.filled.fetch_add(read as u64, Release);
    Ok(Flow::Open)
}

/// Passes on all that is held now; what comes meanwhile is for the next call. A destination that is gone (closed terminal, broken pipe)
/// is reported, and what was for it is dropped: the tail is still kept.
pub fn pass_on(output: &Output, to: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    pass_on_until(output, to, output.filled.load(Acquire))
}

/// Passes on what is held up to `goal`, counted in bytes that were ever read, and nothing beyond it.
pub fn pass_on_until(output: &Output, to: Option<BorrowedFd<'_>>, goal: u64) -> Result<(), Errno> {
    let mut result = Ok(());
    loop {
        let left = goal.saturating_sub(output.passed.load(Relaxed));
        let pending = output.pending();
        let pending = &pending[..pending
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX))];
        if pending.is_empty() {
            return result;
        }
        let passed = match to {
            None => pending.len(),
            Some(to) => match write_from(to, pending) {
                Ok(wrote) => wrote,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    wait_writable(to);
                    continue;
                }
                Err(errno) => {
                    result = Err(errno);
                    pending.len()
                }
            },
        };
        output.passed.fetch_add(passed as u64, Release);
    }
}

/// Waits until a destination that somebody else made non-blocking takes bytes again.
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
