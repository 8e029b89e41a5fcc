//! Waits until everything that the command has printed has reached the real terminal.

use super::signals::spawn_thread;
use super::streams::Streams;
use antifreeze_ipc::shared::Shared;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::thread::futex;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A reader that does not read is waited for at most this long.
const READER_TIMEOUT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_micros(200);
const AT_ONCE: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// The ptys of the command, as the relays read them.
pub struct Settling {
    shared: Shared,
    ptys: Vec<(usize, OwnedFd)>,
}

impl Settling {
    pub fn open(streams: &Streams, shared: Shared) -> io::Result<Settling> {
        let terminals = streams.each().filter(|(_, stream)| stream.terminal);
        let ptys = terminals.map(|(index, stream)| Ok((index, stream.read.try_clone()?)));
        Ok(Settling {
            shared,
            ptys: ptys.collect::<io::Result<_>>()?,
        })
    }

    /// Waits until the output that was printed before is forwarded.
    pub fn wait(&self) {
        let began = Instant::now();
        // A relay may have read something that it has not counted yet, hence twice.
        while !(self.is_settled() && {
            sleep(POLL_INTERVAL);
            self.is_settled()
        }) {
            if began.elapsed() > READER_TIMEOUT {
                return;
            }
            sleep(POLL_INTERVAL);
        }
    }

    fn is_settled(&self) -> bool {
        self.ptys.iter().all(|(index, pty)| {
            let mut ready = [PollFd::new(pty, PollFlags::IN)];
            let output = self.shared.output(*index);
            matches!(poll(&mut ready, Some(&AT_ONCE)), Ok(0))
                && output.passed.load(Acquire) >= output.filled.load(Acquire)
        })
    }

    /// Starts the thread that answers processes of the command which are about to change what the terminal makes of
    /// what is printed. It ends with the process.
    pub fn serve(self) -> io::Result<()> {
        if self.ptys.is_empty() {
            return Ok(());
        }
        let serve_for_ever = move || {
            let head = self.shared.page();
            loop {
                let asked = head.drains_asked.load(Acquire);
                if asked == head.drains_done.load(Acquire) {
                    let _ = futex::wait(&head.drains_asked, futex::Flags::empty(), asked, None);
                    continue;
                }
                self.wait();
                head.drains_done.store(asked, Release);
                let _ = futex::wake(&head.drains_done, futex::Flags::empty(), u32::MAX >> 1);
            }
        };
        spawn_thread("drains", serve_for_ever)
    }
}
