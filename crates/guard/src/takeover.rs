//! Passes the trainer's output on after the front has died, from the very byte at which the front stopped.

use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_ipc::relay::{Flow, Source, Transfer, Way, is_anonymous_pipe};
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::state::STREAM_OVER;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::thread::futex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// The indices of both output streams.
pub const STREAMS: [usize; 2] = [0, 1];

/// Wakes the relay threads of the guard when a stream is over.
pub struct RelayWakers([OwnedFd; 2]);

impl RelayWakers {
    pub fn new() -> Result<RelayWakers, Errno> {
        let waker = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        Ok(RelayWakers([waker()?, waker()?]))
    }

    pub fn wake_all(&self) {
        for waker in &self.0 {
            let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
        }
    }
}

/// Waits for the end of the front or of the stream. Then relays the stream if it is open, or closes it.
pub fn stand_by(shared: Shared, args: &GuardArgs, index: usize, wakers: &RelayWakers) {
    let (lives, waker) = (front_lives(args), &wakers.0[index]);
    while !is_over(shared, index) {
        let mut either = [
            PollFd::from_borrowed_fd(lives, PollFlags::IN),
            PollFd::new(waker, PollFlags::IN),
        ];
        let _ = poll(&mut either, None);
        let _ = rustix::io::read(waker, &mut [0; 8]);
        if !either[0].revents().is_empty() {
            break;
        }
    }
    relay(shared, args, index);
}

/// The pipe that closes when the front ends.
pub fn front_lives(args: &GuardArgs) -> BorrowedFd<'static> {
    // SAFETY: handed over by the front, and never closed.
    unsafe { BorrowedFd::borrow_raw(args.front_lives) }
}

/// Waits until all output of the command was passed on, by the front or by us: a reader may be slower than the command.
pub fn wait_until_passed(shared: Shared, args: &GuardArgs, wakers: &RelayWakers) {
    let head = shared.head();
    let is_passing = |index: usize| args.read[index] >= 0 && head.broken[index].load(Acquire) == 0;
    loop {
        let kick = shared.page().kick.load(Acquire);
        wakers.wake_all();
        if !STREAMS.into_iter().any(is_passing) {
            return;
        }
        let _ = futex::wait(&shared.page().kick, futex::Flags::empty(), kick, None);
    }
}

/// Closes our descriptors of each stream that is over, once.
pub fn close_broken(shared: Shared, args: &GuardArgs) {
    for index in STREAMS {
        if is_over(shared, index) {
            drop(Stream::take(index, args));
        }
    }
}

fn is_over(shared: Shared, index: usize) -> bool {
    shared.head().broken[index].load(Acquire) == STREAM_OVER
}

/// Whether the descriptors of a stream have an owner in this process.
static TAKEN: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Relays a stream until the trainer closes it, or its reader is gone. Each stream has its own thread, because a slow
/// reader blocks the thread that writes.
pub fn relay(shared: Shared, args: &GuardArgs, index: usize) {
    let Some(stream) = Stream::take(index, args) else {
        return;
    };
    if !is_over(shared, index) {
        stream.relay(shared);
    }
    // The keeper has its own descriptors, and closes them when the guard asks for it.
    shared.head().broken[index].store(STREAM_OVER, Release);
    shared.kick();
}

struct Stream {
    index: usize,
    read: OwnedFd,
    pass: OwnedFd,
    intake: Option<(OwnedFd, OwnedFd)>,
    outlet: Option<(OwnedFd, OwnedFd)>,
}

impl Stream {
    /// None if there is no such stream, or if it was taken before.
    fn take(index: usize, args: &GuardArgs) -> Option<Stream> {
        if TAKEN[index].swap(true, AcqRel) {
            return None;
        }
        Some(Stream {
            index,
            read: owned(args.read[index])?,
            pass: owned(args.pass[index])?,
            intake: owned(args.intake_read[index]).zip(owned(args.intake_write[index])),
            outlet: owned(args.outlet_read[index]).zip(owned(args.outlet_write[index])),
        })
    }

    fn relay(&self, shared: Shared) {
        let output = shared.output(self.index);
        let mut source = Source::new(output, self.read.as_fd(), transfer(&self.intake));
        let mut way = Way::new(output, self.pass.as_fd(), transfer(&self.outlet));
        loop {
            // The same as without us: the reader is gone, or a file size limit is reached.
            if let Err(Errno::PIPE | Errno::FBIG) = way.pass_on(output) {
                return;
            }
            match source.fill(output) {
                Ok(Flow::Open) => {}
                Err(Errno::AGAIN) if !self.wait() => return,
                Err(Errno::AGAIN) => {}
                Ok(Flow::Closed) | Err(_) => break,
            }
        }
        let _ = way.pass_on(output);
    }

    /// Waits for output. False if its reader is gone.
    fn wait(&self) -> bool {
        let mut both = [
            PollFd::new(&self.read, PollFlags::IN),
            PollFd::new(&self.pass, PollFlags::empty()),
        ];
        let watched = if is_anonymous_pipe(self.pass.as_fd()) {
            2
        } else {
            1
        };
        let _ = poll(&mut both[..watched], None);
        both[1].revents().is_empty()
    }
}

fn owned(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: handed over by the front for this purpose; `TAKEN` keeps it from being owned twice.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

fn transfer(ends: &Option<(OwnedFd, OwnedFd)>) -> Option<Transfer<'_>> {
    ends.as_ref().map(|(read, write)| Transfer {
        read: read.as_fd(),
        write: write.as_fd(),
    })
}
