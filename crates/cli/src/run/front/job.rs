//! The front as a member of the shell's job: signals that reach it are passed on to the command, and when the command
//! is stopped or continued, so is the front, because the front is what the shell knows.

use super::Front;
use crate::run::group_signals::{GroupListener, Tally};
use crate::run::signals::{Arrived, ends_by_default, has_job_control, stops, take_default_action};
use antifreeze_guard::others;
use antifreeze_ipc::group_signals::pending;
use antifreeze_ipc::state::{attached, stop_signal};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::sync::atomic::Ordering::{Acquire, Release};

/// These leave a paused command paused: it could not act on them, or they stop it anyway.
const NOT_RESUMING: [i32; 3] = [libc::SIGWINCH, libc::SIGCONT, libc::SIGCHLD];

/// A signal that came before there was a command.
pub(super) struct Early {
    signal: i32,
    to_group: bool,
}

/// Whether a signal is pending besides SIGCHLD, which is mostly about a child of our own.
fn has_pending() -> bool {
    pending() & !(1 << (libc::SIGCHLD - 1)) != 0
}

/// Whether the terminal would send this signal again to a command that continues: it is not in the foreground.
fn would_stop_again(signal: i32) -> bool {
    let is_in_background = || {
        let terminal = std::fs::File::open("/dev/tty").ok()?;
        let foreground = rustix::termios::tcgetpgrp(&terminal).ok()?;
        Some(foreground != rustix::process::getpgrp())
    };
    signal != libc::SIGTSTP && is_in_background().unwrap_or(false)
}

impl Front {
    pub(super) fn signals_arrived(&mut self) {
        loop {
            let listener = self.listener.as_mut().filter(|_| has_pending());
            let before = listener.and_then(GroupListener::tally);
            let Some(arrived) = self.signals.next() else {
                break;
            };
            match arrived.signal {
                _ if arrived.is_our_own() => {}
                // The command was continued, and the guard continues us.
                libc::SIGCONT if arrived.sender == self.shared.head().guard_pid.load(Acquire) => {}
                libc::SIGCHLD if !arrived.was_sent() => self.reap_children(),
                _ if self.guard_args.attach != 0 => self.leave_attached(arrived.signal),
                libc::SIGWINCH => self.window_changed(arrived, before),
                signal => {
                    // Another child may have ended at the same moment, and that is one signal.
                    if signal == libc::SIGCHLD {
                        self.reap_children();
                    }
                    self.deliver(arrived, before);
                }
            }
        }
        self.stop_with_command();
    }

    /// A command without the cushion may have asked for the size of its output already, when that was the old one: it
    /// learns of it by a second signal.
    fn window_changed(&mut self, arrived: Arrived, before: Option<Tally>) {
        match self.streams.resize() && !self.command_has_cushion() {
            true => self.pass_signal(libc::SIGWINCH),
            false => self.deliver(arrived, before),
        }
    }

    fn command_has_cushion(&self) -> bool {
        let root = self.shared.head().root_pid.load(Acquire);
        let library = self.guard_args.preload.as_bytes();
        let maps = std::fs::read(format!("/proc/{root}/maps")).unwrap_or_default();
        !library.is_empty()
            && maps
                .split(|byte| *byte == b'\n')
                .any(|line| line.ends_with(library))
    }

    /// Nobody started the process for us, so no signal is passed on: these end the guarding, and no more.
    fn leave_attached(&mut self, signal: i32) {
        if stops(signal) {
            take_default_action(signal);
        }
        let ending = [
            libc::SIGHUP,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGTERM,
            libc::SIGABRT,
        ];
        if ending.contains(&signal) {
            self.report_status(attached::LEFT_ALIVE);
        }
    }

    /// Passes a signal on, unless the command has received it as well. A paused command could not act on it, so it is
    /// resumed first.
    fn deliver(&mut self, arrived: Arrived, before: Option<Tally>) {
        let signal = arrived.signal;
        let to_group = self.was_sent_to_group(arrived, before);
        if self.root_status().is_some() && ends_by_default(signal) {
            // The command would be waiting where we wait, and end by it.
            self.abandoned.get_or_insert(signal);
        }
        if ends_by_default(signal) {
            self.ending_signal = Some(signal);
        }
        let head = self.shared.head();
        let root = head.root_pid.load(Acquire) as i32;
        if stops(signal) && self.shared.guarded().any(|noted| noted.paused) {
            // It is stopped already, by the guard; now the user wants it to stay so.
            self.settling.wait();
            take_default_action(signal);
            return;
        }
        if !stops(signal) && !NOT_RESUMING.contains(&signal) {
            head.resume_requests.fetch_add(1, Release);
            self.shared.kick();
        }
        if root <= 0 {
            self.undelivered.push(Early { signal, to_group });
            return;
        }
        // A shell with job control is in a process group of its own.
        // SAFETY: system calls on plain numbers.
        let has_received = to_group && unsafe { libc::getpgid(root) == libc::getpgrp() };
        if !has_received {
            self.pass_signal(signal);
        }
    }

    /// Passes on what came before there was a command. What was sent to the group it makes up for itself.
    pub(super) fn deliver_earlier(&mut self) {
        if self.shared.head().root_pid.load(Acquire) != 0 {
            for early in std::mem::take(&mut self.undelivered) {
                if !early.to_group {
                    self.pass_signal(early.signal);
                }
            }
        }
    }

    /// Keeps what came before there was a command for one that takes the place of this process: blocked signals stay
    /// pending when a program is executed.
    pub(super) fn keep_undelivered(&mut self) {
        for early in std::mem::take(&mut self.undelivered) {
            // SAFETY: plain numbers.
            unsafe { libc::kill(libc::getpid(), early.signal) };
        }
    }

    fn was_sent_to_group(&mut self, arrived: Arrived, before: Option<Tally>) -> bool {
        self.listener
            .as_mut()
            .and_then(|listener| listener.was_sent_to_group(arrived.signal, before))
            // The terminal sends its signals to the group, people mostly to a process.
            .unwrap_or(!arrived.was_sent())
    }

    fn pass_signal(&self, signal: i32) {
        let root = Pid::from_raw(self.shared.head().root_pid.load(Acquire) as i32);
        if let Some(root) = root
            && self.root_status().is_none()
        {
            // Real-time signals have no name, so the number is passed to the system call as it came.
            // SAFETY: plain numbers.
            unsafe { libc::kill(root.as_raw_nonzero().get(), signal) };
        }
    }

    /// Continues all members of our process group, but for those that the guard has paused.
    fn continue_group(&self) {
        self.pass_signal(libc::SIGCONT);
        let paused: Vec<u32> = self
            .shared
            .guarded()
            .filter(|noted| noted.paused)
            .map(|noted| noted.pid.0)
            .collect();
        let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for pid in numbers.filter(|pid| !paused.contains(pid)) {
            // SAFETY: system calls on plain numbers.
            unsafe {
                let is_member = libc::getpgid(pid as i32) == libc::getpgrp();
                if is_member && others::state(antifreeze_sense::Pid(pid)) == Some(b'T') {
                    libc::kill(pid as i32, libc::SIGCONT);
                }
            }
        }
    }

    /// Reads whether the command was stopped or continued, where it is our child: its guard has died.
    pub(super) fn command_may_have_stopped(&self) {
        let head = self.shared.head();
        let options = WaitIdOptions::STOPPED | WaitIdOptions::CONTINUED | WaitIdOptions::NOHANG;
        let Some(root) = Pid::from_raw(head.root_pid.load(Acquire) as i32) else {
            return;
        };
        while let Ok(Some(status)) = waitid(WaitId::Pid(root), options) {
            if let Some(signal) = status.stopping_signal() {
                stop_signal::report(&head.root_stops, signal as u32);
            }
        }
    }

    /// Stops when the command was stopped, by the same signal, so that the shell sees a stopped job.
    fn stop_with_command(&mut self) {
        let head = self.shared.head();
        let stops_seen = head.root_stops.load(Acquire);
        if stops_seen == self.stops_seen {
            return;
        }
        self.stops_seen = stops_seen;
        let signal = stop_signal::signal(stops_seen) as i32;
        if stops(signal) && !has_job_control() && !would_stop_again(signal) {
            // Alone it would not have been stopped, and nobody would continue it.
            self.continue_group();
            return;
        }
        // A program that draws puts the screen back before it stops, and the shell draws afterwards.
        self.settling.wait();
        // The guard continues us if the command is continued before we are stopped.
        head.front_stops.store(1, Release);
        let root = antifreeze_sense::Pid(head.root_pid.load(Acquire));
        if others::state(root) == Some(b'T') {
            take_default_action(signal);
        }
        head.front_stops.store(0, Release);
    }
}
