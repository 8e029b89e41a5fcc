//! When the front is gone, its last duty becomes ours: passing the trainer's output on,
//! from the very byte where the front stopped.

use crate::keeper::wait_for_end;
use crate::orders::Orders;
use crate::relay::{Flow, fill, pass_on};
use crate::shared::Shared;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::io::Errno;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Waits for the front's end, then relays.
pub fn stand_by(shared: Shared, orders: &Orders) {
    wait_for_end(front_lives(orders));
    relay(shared, orders);
}

/// The pipe that ends when the front does.
pub fn front_lives(orders: &Orders) -> BorrowedFd<'static> {
    // SAFETY: handed over by the front, and never closed.
    unsafe { BorrowedFd::borrow_raw(orders.front_lives) }
}

/// Closes our end of each stream that the front has given up, once.
pub fn close_broken(shared: Shared, orders: &Orders) {
    for (index, broken) in shared.head().broken.iter().enumerate() {
        if broken.load(Acquire) == 1 && !CLOSED[index].swap(true, AcqRel) {
            // SAFETY: ours alone; the relay leaves a closed stream alone.
            unsafe { libc::close(orders.read[index]) };
        }
    }
}

static CLOSED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// Relays until the trainer has closed its output.
pub fn relay(shared: Shared, orders: &Orders) {
    let mut streams = [0, 1].map(|index| Stream::open(index, orders));
    while streams.iter().any(Option::is_some) {
        wait_for_any(&streams);
        for stream in &mut streams {
            if stream
                .as_ref()
                .is_some_and(|stream| stream.relay(shared) == Flow::Closed)
            {
                *stream = None;
            }
        }
    }
}

struct Stream {
    index: usize,
    read: OwnedFd,
    pass: OwnedFd,
}

impl Stream {
    fn open(index: usize, orders: &Orders) -> Option<Stream> {
        if CLOSED[index].load(Acquire) {
            return None;
        }
        let (read, pass) = (orders.read[index], orders.pass[index]);
        // SAFETY: handed over by the front for this purpose, and owned by nobody else here.
        (read >= 0 && pass >= 0).then(|| unsafe {
            Stream {
                index,
                read: OwnedFd::from_raw_fd(read),
                pass: OwnedFd::from_raw_fd(pass),
            }
        })
    }

    fn relay(&self, shared: Shared) -> Flow {
        let output = shared.output(self.index);
        let _ = pass_on(output, Some(self.pass.as_fd()));
        let mut ready = [PollFd::new(&self.read, PollFlags::IN)];
        if !matches!(poll(&mut ready, Some(&NOW)), Ok(1..)) {
            return Flow::Open;
        }
        let flow = match fill(output, self.read.as_fd()) {
            Ok(flow) => flow,
            Err(Errno::AGAIN) => Flow::Open,
            Err(_) => Flow::Closed,
        };
        let _ = pass_on(output, Some(self.pass.as_fd()));
        flow
    }
}

const NOW: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

fn wait_for_any(streams: &[Option<Stream>; 2]) {
    match streams {
        [Some(one), Some(other)] => {
            let mut both = [&one.read, &other.read].map(|fd| PollFd::new(fd, PollFlags::IN));
            let _ = poll(&mut both, None);
        }
        [Some(one), None] | [None, Some(one)] => {
            let _ = poll(&mut [PollFd::new(&one.read, PollFlags::IN)], None);
        }
        [None, None] => {}
    }
}
