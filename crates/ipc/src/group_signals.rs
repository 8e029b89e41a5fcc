//! Counts the signals that were sent to the process group of the command.
//!
//! The kernel does not say whether a signal was sent to a process or to its group. The front and the command are
//! members of one group, so the front must not pass on what was sent to the group: the command has received it too. A
//! third member, the listener (crates/cli, `run/group_signals.rs`), counts what it receives in [`GroupCounts`]. No
//! other process knows its PID, so what it receives was sent to the group.
//!
//! A command that was just forked has missed the signals that were sent to the group before. It sends them to itself
//! ([`receive_earlier`]), so that the front need not know when it was forked.

use crate::shared::Shared;
use rustix::thread::futex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant};

/// The numbers of all signals are below this.
pub const SIGNALS: usize = 65;
/// A set of signals as the kernel has it. Those of the C library leave out two real-time signals that it uses itself.
pub const SET_BYTES: usize = size_of::<u64>();
/// Signals from this number on are queued; of those below it one at most is pending, however many were sent.
pub const FIRST_QUEUED: usize = 32;
/// How long to wait for the listener. It answers within microseconds if it runs.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Who asks the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    Front,
    Command,
}

/// What the listener has received. Zero is valid.
#[repr(C)]
pub struct GroupCounts {
    received: [AtomicU32; SIGNALS],
    /// The last question of each [`Asker`] that was answered. Futex words.
    answered: [AtomicU32; 2],
}

impl GroupCounts {
    /// The listener's: one more signal of this number has come.
    pub fn add(&self, signal: usize) {
        if let Some(count) = self.received.get(signal) {
            count.fetch_add(1, AcqRel);
        }
    }

    /// The listener's: answers a question by the value that came with it.
    pub fn answer(&self, value: usize) {
        let word = &self.answered[value & 1];
        word.store((value >> 1) as u32, Release);
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }

    /// Asks the listener whether it has counted all that it has received until now, and waits for the answer. False where it
    /// has not come in time. `question` differs from that of the same asker before.
    pub fn ask(&self, listener: u32, asker: Asker, question: u32) -> bool {
        let value = libc::sigval {
            sival_ptr: ((question as usize) << 1 | asker as usize) as *mut libc::c_void,
        };
        // The question is the signal with the highest number, so all others are received before it.
        // SAFETY: plain numbers; the value is never used as a pointer.
        if unsafe { libc::sigqueue(listener as i32, libc::SIGRTMAX(), value) } != 0 {
            return false;
        }
        let asked_at = Instant::now();
        let word = &self.answered[asker as usize];
        loop {
            let answered = word.load(Acquire);
            if answered == question {
                return true;
            }
            let Some(left) = ANSWER_TIMEOUT.checked_sub(asked_at.elapsed()) else {
                return false;
            };
            let left = rustix::time::Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            let _ = futex::wait(word, futex::Flags::empty(), answered, Some(&left));
        }
    }

    /// What was counted until now, by number.
    pub fn all(&self) -> [u32; SIGNALS] {
        std::array::from_fn(|signal| self.received[signal].load(Acquire))
    }
}

/// The signals that are pending for this process or thread, one bit each, from bit 0 for number 1.
pub fn pending() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes as many bytes as it is told.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut set, SET_BYTES) };
    set
}

/// Sends this process, the command before its program is executed, what was sent to its group before it was forked. All
/// signals must be blocked since before then. Waits for the listener.
pub fn receive_earlier(shared: Shared) {
    let head = shared.head();
    let listener = head.listener_pid.load(Acquire);
    let counts = &head.group_signals;
    if listener == 0 || !counts.ask(listener, Asker::Command, 1) {
        return;
    }
    let pending = pending();
    for (signal, count) in counts.all().into_iter().enumerate().skip(1) {
        let times = missed(signal, count, pending >> (signal - 1) & 1 == 1);
        for _ in 0..times {
            // SAFETY: a system call on plain numbers.
            unsafe { libc::kill(libc::getpid(), signal as i32) };
        }
    }
}

/// How many of the signals that the group has received were sent before a process was there. If one is pending for it, the
/// last was not, and signals of one number that come close together are one.
fn missed(signal: usize, received: u32, is_pending: bool) -> u32 {
    match is_pending {
        true => 0,
        false if signal < FIRST_QUEUED => received.min(1),
        false => received,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_the_fork_is_made_up_for_once() {
        let term = libc::SIGTERM as usize;
        assert_eq!(missed(term, 0, false), 0);
        assert_eq!(missed(term, 3, false), 1);
        assert_eq!(missed(term, 3, true), 0);
        assert_eq!(missed(40, 3, false), 3);
        assert_eq!(missed(40, 3, true), 0);
    }
}
