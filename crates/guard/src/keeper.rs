//! The keepers: two small processes that sleep beside the guard and undo its work if it dies.
//!
//! They continue a paused trainer. If the front is dead too, they restore its limits, take over its output, since its
//! next line would kill it otherwise, and remove its cgroup after the last process has left.
//!
//! The first keeper acts. The second is its child and does nothing until the first dies: then it takes its place and
//! starts another second keeper. Each holds an [`Anchor`] in the process group of the trainer.

use crate::anchor::Anchor;
use crate::descriptors;
use crate::hands::cgroup;
use crate::spawn::Held;
use crate::{takeover, undo};
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_ipc::page::STALE_NS;
use antifreeze_ipc::shared::Shared;
use antifreeze_sense::Pid;
use antifreeze_sense::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Signal, WaitOptions, kill_process, test_kill_process, waitpid};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// A guard that takes over has registered after this long.
const TAKEOVER_TIMEOUT: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// How often a cgroup is checked for being empty.
const CGROUP_POLL_INTERVAL: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// How many second keepers and anchors are replaced in all after they were killed.
const MAX_REPLACEMENTS: u32 = 200;
/// How long a dismissed second keeper may take to end.
const DISMISS_TIMEOUT: rustix::time::Timespec = rustix::time::Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The first keeper as the guard sees it, and the end of a pipe that closes when the guard dies.
pub struct Keeper {
    pub pid: Pid,
    guard_lives: OwnedFd,
}

impl Keeper {
    /// Forks the keepers. Must be called before any thread is started, and in another process group than `group`, which
    /// is that of the trainer. None if no process can be started: then guard and front are not backed up.
    pub fn stand(
        shared: Shared,
        args: &GuardArgs,
        held: Option<&Held>,
        group: Option<Pid>,
    ) -> Option<Keeper> {
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
                let watch = Watch {
                    shared,
                    args,
                    guard,
                    guard_lives: guard_lives.as_fd(),
                    group,
                    anchor: None,
                    second: None,
                    replacements: 0,
                };
                shared.head().keeper_pid.store(std::process::id(), Release);
                watch.keep()
            }
            pid => {
                // Stored by the parent as well: a guard that takes over must not count the keeper as part of the
                // command.
                shared.head().keeper_pid.store(pid as u32, Release);
                Some(Keeper {
                    pid: Pid(pid as u32),
                    guard_lives: ours,
                })
            }
        }
    }

    /// Makes the keepers close the streams that are over.
    pub fn close_broken(&self) {
        let _ = rustix::io::write(&self.guard_lives, &[0]);
    }

    /// Lets the keepers end with us, and reaps them. The state must say that the run is over.
    pub fn dismiss(self, shared: Shared) {
        // If the first was killed, the second has its place.
        let present = shared.head().keeper_pid.load(Acquire);
        drop(self.guard_lives);
        for pid in [present, self.pid.0] {
            if let Some(pid) = number(pid) {
                let _ = waitpid(Some(pid), WaitOptions::empty());
            }
        }
    }
}

/// A keeper at work.
struct Watch<'a> {
    shared: Shared,
    args: &'a GuardArgs,
    /// The guard that started it.
    guard: u32,
    /// A byte means that a stream is over; end of file, that the guard is gone.
    guard_lives: BorrowedFd<'a>,
    /// The process group of the trainer, if it is ours to keep connected.
    group: Option<Pid>,
    anchor: Option<Anchor>,
    second: Option<Second>,
    replacements: u32,
}

/// The second keeper as the first sees it.
struct Second {
    pid: rustix::process::Pid,
    /// Closes when it ends. A byte written here makes it close the streams that are over.
    lives: UnixStream,
}

impl Watch<'_> {
    /// Runs until the guard has closed the record, or everything was done in its place.
    fn keep(mut self) -> ! {
        name(c"af-keeper");
        descriptors::let_go_of_standard_streams();
        self.set_up();
        self.wait_for_guard();
        if self.shared.head().closed.load(Acquire) == 0 {
            undo::continue_paused(self.shared);
            if self.front_ends() {
                self.stand_in();
            }
        }
        self.leave()
    }

    /// Starts the second keeper and the anchor if they are missing.
    fn set_up(&mut self) {
        if self.anchor.as_ref().is_some_and(Anchor::is_gone) {
            self.anchor = None;
        }
        if self.second.as_ref().is_some_and(Second::is_gone) {
            self.second = None;
        }
        if self.replacements > MAX_REPLACEMENTS {
            return;
        }
        if self.anchor.is_none() {
            self.replacements += 1;
            self.anchor = self.group.and_then(Anchor::cast);
        }
        if self.second.is_none() {
            self.replacements += 1;
            self.second = self.start_second();
        }
    }

    fn start_second(&mut self) -> Option<Second> {
        let (ours, theirs) = UnixStream::pair().ok()?;
        // A second keeper that is stopped must not block us.
        ours.set_nonblocking(true).ok()?;
        let first = std::process::id();
        // SAFETY: the process has one thread, so the child may use everything.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => {
                drop(ours);
                let watch = Watch {
                    anchor: self.group.and_then(Anchor::cast),
                    second: None,
                    ..*self
                };
                watch.stand_by(first, theirs)
            }
            pid => Some(Second {
                pid: rustix::process::Pid::from_raw(pid)?,
                lives: ours,
            }),
        }
    }

    /// Runs the second keeper: waits for the end of the first.
    fn stand_by(self, first: u32, mut first_lives: UnixStream) -> ! {
        name(c"af-keeper-2");
        loop {
            match first_lives.read(&mut [0]) {
                Ok(1..) => takeover::close_broken(self.shared, self.args),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        let keeper = &self.shared.head().keeper_pid;
        let taken = keeper.compare_exchange(first, std::process::id(), AcqRel, Acquire);
        if taken.is_err() {
            // The run is over, or the keeper of another guard has the place.
            self.leave()
        }
        takeover::close_broken(self.shared, self.args);
        self.keep()
    }

    /// Returns when the guard has ended. Replaces the second keeper and the anchor if they are killed.
    fn wait_for_guard(&mut self) {
        loop {
            let mut all = vec![PollFd::from_borrowed_fd(self.guard_lives, PollFlags::IN)];
            all.extend(self.anchor.as_ref().map(Anchor::ends));
            all.extend(self.second.as_ref().map(Second::ends));
            if poll(&mut all, None).is_err() {
                continue;
            }
            let has_news = !all[0].revents().is_empty();
            let has_loss = all[1..].iter().any(|ended| !ended.revents().is_empty());
            drop(all);
            if has_loss {
                self.set_up();
            }
            if has_news {
                match rustix::io::read(self.guard_lives, &mut [0u8]) {
                    Ok(0) => return,
                    _ => self.close_broken(),
                }
            }
        }
    }

    fn close_broken(&mut self) {
        takeover::close_broken(self.shared, self.args);
        if let Some(second) = &mut self.second {
            let _ = second.lives.write(&[0]);
        }
    }

    /// Waits for the end of the front. False if the keeper of another guard has taken our place.
    fn front_ends(&mut self) -> bool {
        let lives = takeover::front_lives(self.args);
        loop {
            let mut ended = [PollFd::new(&lives, PollFlags::IN)];
            if matches!(poll(&mut ended, Some(&TAKEOVER_TIMEOUT)), Ok(1..)) {
                return true;
            }
            if self.shared.head().keeper_pid.load(Acquire) != std::process::id() {
                return false;
            }
            self.set_up();
        }
    }

    /// Undoes the work of the guard; both front and guard are dead.
    fn stand_in(&mut self) {
        self.set_up();
        let (shared, head) = (self.shared, self.shared.head());
        let is_over = || head.front_done.load(Acquire) == 1 && head.root_status.load(Acquire) != 0;
        if !is_over() {
            let _ = rustix::thread::nanosleep(&TAKEOVER_TIMEOUT);
        }
        if somebody_guards(shared, self.guard) {
            return;
        }
        let root = Pid(head.root_pid.load(Acquire));
        undo::undo_all(shared, &[Pid(std::process::id())]);
        cgroup::let_go(root, &self.args.run_id);
        let args = self.args;
        std::thread::scope(|threads| {
            for index in takeover::STREAMS {
                // If no thread can be started, the streams are relayed in turn.
                let relay = move || takeover::relay(shared, args, index);
                if std::thread::Builder::new()
                    .spawn_scoped(threads, relay)
                    .is_err()
                {
                    relay();
                }
            }
        });
        while cgroup::is_left(root, &self.args.run_id) {
            let _ = rustix::thread::nanosleep(&CGROUP_POLL_INTERVAL);
        }
    }

    fn leave(self) -> ! {
        // From here on the second keeper must not take our place.
        let keeper = &self.shared.head().keeper_pid;
        let _ = keeper.compare_exchange(std::process::id(), 0, AcqRel, Acquire);
        // Both end at the same time.
        if let Some(anchor) = &self.anchor {
            anchor.end();
        }
        if let Some(second) = self.second {
            second.dismiss();
        }
        if let Some(anchor) = self.anchor {
            anchor.collect();
        }
        // SAFETY: ends the child without running what belongs to the guard.
        unsafe { libc::_exit(0) }
    }
}

impl Second {
    /// Whether it was killed; if so, it is reaped.
    fn is_gone(&self) -> bool {
        !matches!(waitpid(Some(self.pid), WaitOptions::NOHANG), Ok(None))
    }

    fn ends(&self) -> PollFd<'_> {
        PollFd::from_borrowed_fd(self.lives.as_fd(), PollFlags::IN)
    }

    fn dismiss(self) {
        let _ = self.lives.shutdown(Shutdown::Write);
        if poll(&mut [self.ends()], Some(&DISMISS_TIMEOUT)) == Ok(0) {
            let _ = kill_process(self.pid, Signal::KILL);
        }
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

fn name(name: &std::ffi::CStr) {
    let _ = rustix::thread::set_name(name);
    antifreeze_ipc::process_title::set(name.to_bytes());
}

fn number(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Whether another guard has taken the place of ours.
fn somebody_guards(shared: Shared, ours: u32) -> bool {
    let head = shared.head();
    let guard = head.guard_pid.load(Acquire);
    let age = monotonic_ns().saturating_sub(head.heartbeat.load(Acquire));
    let lives = number(guard).is_some_and(|guard| test_kill_process(guard).is_ok());
    guard != ours && lives && age < STALE_NS
}
