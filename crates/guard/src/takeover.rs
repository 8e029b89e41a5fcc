//! When the front is gone, its last duty becomes ours: passing the trainer's output on,
//! from the very byte where the front stopped.

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

/// Both streams of a process.
pub const STREAMS: [usize; 2] = [0, 1];

/// Wakes the threads of the guard that stand by, when a stream is over.
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

/// Waits for the end of the front or of the stream. The one has it relayed, the other closed.
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

/// The pipe that ends when the front does.
pub fn front_lives(args: &GuardArgs) -> BorrowedFd<'static> {
    // SAFETY: handed over by the front, and never closed.
    unsafe { BorrowedFd::borrow_raw(args.front_lives) }
}

/// Waits until everything that the command has printed was passed on, by the front or by us: a reader may be slower than
/// the command was.
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

/// Whether the descriptors of a stream have an owner in this process already.
static TAKEN: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Relays a stream until the trainer has closed it, or nobody reads it any more. Both streams have a thread of their
/// own, because a reader that does not read blocks the thread that writes.
pub fn relay(shared: Shared, args: &GuardArgs, index: usize) {
    let Some(stream) = Stream::take(index, args) else {
        return;
    };
    if !is_over(shared, index) {
        stream.relay(shared);
    }
    // The keeper has descriptors of its own, and closes them when it is told by the guard.
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
    /// None where there is no such stream, and where it was taken before.
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
            // As it would be without us: nobody reads, or no more may be written.
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

    /// Waits for output. False when its reader has gone.
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
