//! The threads that carry the trainer's output through the front.

use super::screen::Screen;
use super::streams::Streams;
use antifreeze_guard::relay::{Flow, fill_up};
use antifreeze_guard::shared::Shared;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;
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
            let (screen, ended) = (Arc::clone(screen), Arc::clone(&ended));
            let on_screen = stream.terminal && screen.terminal;
            threads.push(spawn(move || {
                let output = shared.output(index);
                let mut complained = false;
                while wait_for(read.as_fd(), ended.as_fd()) {
                    let flow = fill_up(output, read.as_fd());
                    match screen.pass_on(output, pass.as_fd(), on_screen) {
                        // Nobody reads any more: the trainer is to learn of it.
                        Err(Errno::PIPE) => {
                            shared.head().broken[index].store(1, Release);
                            shared.kick();
                            let _ = rustix::io::write(&wake, &1u64.to_ne_bytes());
                            break;
                        }
                        Err(errno) if !complained && errno != Errno::IO => {
                            complained = true;
                            screen.say(&format!("the output could not be passed on: {errno}"));
                        }
                        _ => {}
                    }
                    if flow != Ok(Flow::Open) {
                        break;
                    }
                }
            }));
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
