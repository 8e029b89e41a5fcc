//! The threads that carry the trainer's output through the front: one reads from the
//! trainer into the page, the other passes on from there, so that neither waits for the
//! other. A terminal gives and takes small pieces, and doing both in turn would halve it.

use super::screen::Screen;
use super::signals::spawn_thread;
use super::streams::{Ends, Streams};
use antifreeze_ipc::relay::{Flow, Source, Way, is_anonymous_pipe};
use antifreeze_ipc::shared::{OutputRing, Shared};
use antifreeze_ipc::state::Output;
use antifreeze_ipc::state::{STREAM_OVER, STREAM_PASSED};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Once the trainer has ended, this much silence means that all of its output has come.
const SILENCE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

pub struct Relays {
    /// The number of threads that still run.
    running: Arc<AtomicUsize>,
    /// Written to when the trainer has ended.
    ended: Arc<OwnedFd>,
    losses: Arc<Losses>,
}

/// For each stream the error with which output was lost; 0 if none was.
#[derive(Default)]
pub struct Losses([AtomicI32; 2]);

impl Losses {
    /// The first reason counts.
    fn note(&self, index: usize, errno: Errno) {
        let _ = self.0[index].compare_exchange(0, errno.raw_os_error(), Release, Relaxed);
    }

    fn first(&self) -> Option<Errno> {
        let mut each = self.0.iter().map(|errno| errno.load(Acquire));
        each.find(|errno| *errno != 0).map(Errno::from_raw_os_error)
    }
}

impl Relays {
    /// `wake` is written to when a stream is over, and when all of the output has been passed on.
    pub fn start(
        streams: &Streams,
        shared: Shared,
        screen: &Arc<Screen>,
        wake: &OwnedFd,
    ) -> std::io::Result<Relays> {
        let ended = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let relays = Relays {
            running: Arc::default(),
            ended,
            losses: Arc::default(),
        };
        for (index, stream) in streams.each() {
            let gate = Arc::new(Gate::default());
            let output = shared.output(index);
            let filling = Filling {
                read: stream.read.try_clone()?,
                intake: stream.intake.try_clone()?,
                reader: is_anonymous_pipe(stream.pass.as_fd())
                    .then(|| stream.pass.try_clone())
                    .transpose()?,
                ended: Arc::clone(&relays.ended),
            };
            let passing = Passing {
                index,
                shared,
                to: stream.pass.try_clone()?,
                outlet: stream.outlet.try_clone()?,
                wake: wake.try_clone()?,
                screen: Arc::clone(screen),
                losses: Arc::clone(&relays.losses),
                terminal: stream.terminal,
                // Its errors go where our own lines go, be that a terminal or not.
                on_screen: index == 1 || streams.joined || (stream.terminal && screen.terminal),
            };
            let theirs = Arc::clone(&gate);
            relays.spawn(wake.try_clone()?, move || filling.take_in(output, &theirs))?;
            relays.spawn(wake.try_clone()?, move || passing.pass_on(output, &gate))?;
        }
        Ok(relays)
    }

    fn spawn(&self, wake: OwnedFd, life: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        let running = Arc::clone(&self.running);
        running.fetch_add(1, Relaxed);
        spawn_thread("relay", move || {
            life();
            running.fetch_sub(1, Release);
            ring(&wake);
        })
    }

    /// Lets the relays finish what has been written.
    pub fn finish(&self) {
        ring(&self.ended);
    }

    /// Tells the guard that nothing more is forwarded here: everything was, or no reader waits for it.
    pub fn leave(&self, shared: Shared, abandoned: bool) {
        for broken in &shared.head().broken {
            let left = if abandoned {
                STREAM_OVER
            } else {
                STREAM_PASSED
            };
            let _ = broken.compare_exchange(0, left, Release, Relaxed);
        }
        shared.kick();
    }

    pub fn have_finished(&self) -> bool {
        self.running.load(Acquire) == 0
    }

    /// The error with which output was lost, if some was.
    pub fn loss(&self) -> Option<Errno> {
        self.losses.first()
    }
}

fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Where the two threads of a stream wait for each other.
#[derive(Default)]
struct Gate {
    closed: Mutex<Closed>,
    moved: Condvar,
}

/// The sides that have closed.
#[derive(Clone, Copy, Default)]
struct Closed {
    /// Nothing more comes from the trainer.
    input: bool,
    /// The output has no reader any more.
    output: bool,
    /// The trainer and all who share its output have closed it.
    is_over: bool,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Closed> {
        self.closed
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits while `idle` returns true; returns the sides that have closed.
    fn wait(&self, idle: impl Fn(Closed) -> bool) -> Closed {
        let waited = self.moved.wait_while(self.lock(), |closed| idle(*closed));
        *waited.unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Changes the state and wakes the other side.
    fn update(&self, change: impl FnOnce(&mut Closed)) {
        change(&mut self.lock());
        self.moved.notify_all();
    }
}

/// The thread that reads from the trainer.
struct Filling {
    read: OwnedFd,
    intake: Ends,
    /// Where the output goes, if it can be seen that its reader has gone.
    reader: Option<OwnedFd>,
    ended: Arc<OwnedFd>,
}

/// The result of waiting for output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    Output,
    /// The trainer has ended, and nothing has come for a while.
    Silence,
    ReaderGone,
}

impl Filling {
    /// Reads from the trainer until it has closed its output, or has ended and is silent.
    fn take_in(&self, output: &Output, gate: &Gate) {
        let intake = Some(self.intake.as_transfer());
        let mut source = Source::new(output, self.read.as_fd(), intake);
        let is_over = loop {
            let closed = gate.wait(|closed| output.space().is_empty() && !closed.output);
            if closed.output {
                break false;
            }
            match source.fill(output) {
                Ok(Flow::Open) => gate.update(|_| {}),
                // Read to the last byte: only now is it worth waiting.
                Err(Errno::AGAIN) => match self.wait() {
                    Waited::Output => {}
                    Waited::Silence => break false,
                    Waited::ReaderGone => {
                        gate.update(|closed| closed.output = true);
                        break false;
                    }
                },
                Ok(Flow::Closed) | Err(_) => break true,
            }
        };
        gate.update(|closed| {
            closed.input = true;
            closed.is_over = is_over;
        });
    }

    fn wait(&self) -> Waited {
        let reader = self.reader.as_ref();
        let mut all = [
            PollFd::new(&self.read, PollFlags::IN),
            PollFd::new(&self.ended, PollFlags::IN),
            // Without an event asked for, only the end of the reader is reported.
            PollFd::from_borrowed_fd(reader.unwrap_or(&self.ended).as_fd(), PollFlags::empty()),
        ];
        while poll(&mut all, None) == Err(Errno::INTR) {}
        let [output, _, gone] = all.map(|one| !one.revents().is_empty());
        if output {
            return Waited::Output;
        }
        if gone {
            return Waited::ReaderGone;
        }
        let mut rest = [PollFd::new(&self.read, PollFlags::IN)];
        match poll(&mut rest, Some(&SILENCE)) {
            Ok(1..) => Waited::Output,
            _ => Waited::Silence,
        }
    }
}

/// The thread that forwards to the reader.
struct Passing {
    index: usize,
    shared: Shared,
    to: OwnedFd,
    outlet: Ends,
    wake: OwnedFd,
    screen: Arc<Screen>,
    losses: Arc<Losses>,
    terminal: bool,
    on_screen: bool,
}

impl Passing {
    fn pass_on(&self, output: &Output, gate: &Gate) {
        let outlet = Some(self.outlet.as_transfer());
        let mut way = Way::new(output, self.to.as_fd(), outlet);
        let mut complained = false;
        loop {
            let closed =
                gate.wait(|closed| output.pending().is_empty() && !closed.input && !closed.output);
            if output.pending().is_empty() {
                if closed.output || closed.is_over {
                    self.give_up();
                }
                if closed.input || closed.output {
                    return;
                }
            }
            let passed = self
                .screen
                .pass_on(output, self.index, &mut way, self.on_screen);
            if let Err(errno) = passed {
                // A terminal that is gone, after which the command is hung up, is no loss.
                if !(errno == Errno::IO && self.terminal) {
                    self.losses.note(self.index, errno);
                }
                if errno != Errno::PIPE && errno != Errno::IO && !complained {
                    complained = true;
                    self.report_write_error(errno);
                }
                // What the command prints from now on ends it, or fails, as it would without us.
                if errno == Errno::PIPE || errno == Errno::FBIG {
                    gate.update(|closed| closed.output = true);
                    return self.give_up();
                }
            }
            gate.update(|_| {});
        }
    }

    fn report_write_error(&self, errno: Errno) {
        let stream = match self.index {
            0 => "standard output",
            _ => "standard error",
        };
        let hint = match errno {
            Errno::FBIG => " (see `ulimit -f`)",
            _ => "",
        };
        self.screen.say(&format!(
            "output was lost: writing to {stream}: {errno}{hint}"
        ));
    }

    /// The stream is over: front, guard and keeper close it, and the other side learns of it.
    fn give_up(&self) {
        self.shared.head().broken[self.index].store(STREAM_OVER, Release);
        self.shared.kick();
        ring(&self.wake);
    }
}
