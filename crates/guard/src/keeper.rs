//! The keeper: a small process that sleeps beside the guard and wakes only if the guard
//! dies. Then a paused trainer must go on; and should the front be dead as well, somebody
//! has to take the trainer's output, or its next line would kill it.

use crate::descriptors;
use crate::hands::{cgroup, limit};
use crate::orders::Orders;
use crate::shared::Shared;
use crate::spawn::Held;
use crate::takeover;
use antifreeze_cushion::page::STALE_NS;
use antifreeze_sense::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Signal, kill_process, test_kill_process};
use std::sync::atomic::Ordering::{Acquire, Release};

/// A replaced guard has shown itself after this long.
const REPLACED: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// The keeper, and the end of a pipe that closes when the guard dies.
pub struct Keeper {
    pub pid: Pid,
    guard_lives: OwnedFd,
}

impl Keeper {
    /// Forks the keeper. Must be called before any thread is started. None when there is no
    /// process to spare: all then rests on guard and front.
    pub fn stand(shared: Shared, orders: &Orders, held: Option<&Held>) -> Option<Keeper> {
        let guard = std::process::id();
        let (guard_lives, ours) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
        // SAFETY: the process has one thread, so the child may use everything.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => {
                drop(ours);
                if let Some(held) = held {
                    held.close_in_child();
                }
                keep(shared, orders, guard_lives.as_fd(), guard)
            }
            pid => {
                // Here as well: a guard that takes our place must not count it as the command's.
                shared.head().keeper_pid.store(pid as u32, Release);
                Some(Keeper {
                    pid: Pid(pid as u32),
                    guard_lives: ours,
                })
            }
        }
    }
}

impl Keeper {
    /// Has the keeper close the streams that are over.
    pub fn close_broken(&self) {
        let _ = rustix::io::write(&self.guard_lives, &[0]);
    }

    /// Lets the keeper end with us, and collects it. The page must say that all is over.
    pub fn dismiss(self) {
        drop(self.guard_lives);
        let pid = rustix::process::Pid::from_raw(self.pid.0 as i32);
        let _ = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty());
    }
}

fn keep(shared: Shared, orders: &Orders, guard_lives: BorrowedFd<'_>, guard: u32) -> ! {
    let _ = rustix::thread::set_name(c"af-keeper");
    crate::title::set(b"af-keeper");
    descriptors::let_go_of_standard_streams();
    let head = shared.head();
    head.keeper_pid.store(std::process::id(), Release);
    // A byte means that a stream is over; the end, that the guard is gone.
    while rustix::io::read(guard_lives, &mut [0u8]) != Ok(0) {
        takeover::close_broken(shared, orders);
    }
    if head.closed.load(Acquire) == 0 {
        continue_paused(shared);
        if !front_ends(takeover::front_lives(orders), shared) {
            // SAFETY: as below.
            unsafe { libc::_exit(0) }
        }
        let _ = rustix::thread::nanosleep(&REPLACED);
        if !somebody_guards(shared, guard) {
            let root = Pid(head.root_pid.load(Acquire));
            limit::lift(root, None);
            cgroup::let_go(root, &orders.run_id);
            std::thread::scope(|threads| {
                for index in takeover::STREAMS {
                    // Without a thread to spare, one after the other.
                    let relay = move || takeover::relay(shared, orders, index);
                    if std::thread::Builder::new()
                        .spawn_scoped(threads, relay)
                        .is_err()
                    {
                        relay();
                    }
                }
            });
        }
    }
    // SAFETY: ends the child without running what belongs to the guard.
    unsafe { libc::_exit(0) }
}

/// Waits for the front's end. False when the keeper of another guard stands there in our place.
fn front_ends(lives: BorrowedFd<'_>, shared: Shared) -> bool {
    loop {
        let mut ended = [PollFd::new(&lives, PollFlags::IN)];
        if matches!(poll(&mut ended, Some(&REPLACED)), Ok(1..)) {
            return true;
        }
        if shared.head().keeper_pid.load(Acquire) != std::process::id() {
            return false;
        }
    }
}

fn continue_paused(shared: Shared) {
    shared.withdraw_pageouts();
    for pid in &shared.head().paused {
        if let Some(pid) = rustix::process::Pid::from_raw(pid.load(Acquire) as i32) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}

/// Whether another guard has taken the place of ours.
fn somebody_guards(shared: Shared, ours: u32) -> bool {
    let head = shared.head();
    let guard = head.guard_pid.load(Acquire);
    let age = crate::scout::now().saturating_sub(head.heartbeat.load(Acquire));
    let lives = rustix::process::Pid::from_raw(guard as i32)
        .is_some_and(|guard| test_kill_process(guard).is_ok());
    guard != ours && lives && age < STALE_NS
}
