//! The threads that carry the trainer's output through the front: one reads from the
//! trainer into the page, the other passes on from there, so that neither waits for the
//! other. A terminal gives and takes small pieces, and doing both in turn would halve it.

use super::screen::Screen;
use super::streams::Streams;
use antifreeze_guard::relay::{Flow, fill};
use antifreeze_guard::shared::{OutputRing, Shared};
use antifreeze_guard::state::Output;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{JoinHandle, spawn};

/// Once the trainer has ended, this much silence means that all of its output has come.
const SILENCE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

pub struct Relays {
    threads: Vec<JoinHandle<()>>,
    /// Written to when the trainer has ended.
    ended: Arc<OwnedFd>,
}

impl Relays {
    /// `wake` is written to when a stream is given up.
    pub fn start(
        streams: &Streams,
        shared: Shared,
        screen: &Arc<Screen>,
        wake: &OwnedFd,
    ) -> Result<Relays, Errno> {
        let ended = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let mut threads = Vec::new();
        for (index, stream) in streams.each() {
            let (read, pass) = (stream.read.try_clone(), stream.pass.try_clone());
            let (Ok(read), Ok(pass), Ok(wake)) = (read, pass, wake.try_clone()) else {
                return Err(Errno::MFILE);
            };
            let gate = Arc::new(Gate::default());
            let output = shared.output(index);
            let (filling, over) = (Arc::clone(&gate), Arc::clone(&ended));
            threads.push(spawn(move || take_in(output, &read, &over, &filling)));
            let passing = Passing {
                index,
                shared,
                to: pass,
                wake,
                screen: Arc::clone(screen),
                // Its errors go where our own lines go, be that a terminal or not.
                on_screen: index == 1 || streams.joined || (stream.terminal && screen.terminal),
            };
            threads.push(spawn(move || passing.pass_on(output, &gate)));
        }
        Ok(Relays { threads, ended })
    }

    /// Lets the relays finish what has been written, and waits for them.
    pub fn finish(self) {
        let _ = rustix::io::write(&*self.ended, &1u64.to_ne_bytes());
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Where the two threads of a stream wait for each other.
#[derive(Default)]
struct Gate {
    closed: Mutex<Closed>,
    moved: Condvar,
}

/// Which side has gone.
#[derive(Clone, Copy, Default)]
struct Closed {
    /// Nothing more comes from the trainer.
    input: bool,
    /// Nobody reads any more.
    output: bool,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Closed> {
        self.closed
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits while `idle` says that there is nothing to do; returns who has gone.
    fn wait(&self, idle: impl Fn(Closed) -> bool) -> Closed {
        let waited = self.moved.wait_while(self.lock(), |closed| idle(*closed));
        *waited.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Tells the other side that something has moved.
    fn tell(&self, change: impl FnOnce(&mut Closed)) {
        change(&mut self.lock());
        self.moved.notify_all();
    }
}

/// Reads from the trainer until it has closed its output, or has ended and is silent.
fn take_in(output: &Output, read: &OwnedFd, ended: &OwnedFd, gate: &Gate) {
    loop {
        let closed = gate.wait(|closed| output.space().is_empty() && !closed.output);
        if closed.output {
            break;
        }
        match fill(output, read.as_fd()) {
            Ok(Flow::Open) => gate.tell(|_| {}),
            // Read to the last byte: only now is it worth waiting.
            Err(Errno::AGAIN) if wait_for(read.as_fd(), ended.as_fd()) => {}
            _ => break,
        }
    }
    gate.tell(|closed| closed.input = true);
}

/// The way out.
struct Passing {
    index: usize,
    shared: Shared,
    to: OwnedFd,
    wake: OwnedFd,
    screen: Arc<Screen>,
    on_screen: bool,
}

impl Passing {
    fn pass_on(&self, output: &Output, gate: &Gate) {
        let mut complained = false;
        loop {
            let closed = gate.wait(|closed| output.pending().is_empty() && !closed.input);
            if closed.input && output.pending().is_empty() {
                return;
            }
            let to = self.to.as_fd();
            match self.screen.pass_on(output, self.index, to, self.on_screen) {
                Err(Errno::PIPE) => {
                    gate.tell(|closed| closed.output = true);
                    return self.give_up();
                }
                Err(errno) if !complained && errno != Errno::IO => {
                    complained = true;
                    let text = format!("the output could not be passed on: {errno}");
                    self.screen.say(&text);
                }
                _ => {}
            }
            gate.tell(|_| {});
        }
    }

    /// Nobody reads any more: the trainer is to learn of it.
    fn give_up(&self) {
        self.shared.head().broken[self.index].store(1, Release);
        self.shared.kick();
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// True when there is something to read; false when the trainer has ended and nothing has
/// come for a while.
fn wait_for(read: BorrowedFd<'_>, ended: BorrowedFd<'_>) -> bool {
    let mut both = [
        PollFd::from_borrowed_fd(read, PollFlags::IN),
        PollFd::from_borrowed_fd(ended, PollFlags::IN),
    ];
    loop {
        match poll(&mut both, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return false,
            Ok(_) => break,
        }
    }
    if !both[0].revents().is_empty() {
        return true;
    }
    let mut rest = [PollFd::from_borrowed_fd(read, PollFlags::IN)];
    matches!(poll(&mut rest, Some(&SILENCE)), Ok(1..))
}
