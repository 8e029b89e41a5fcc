//! Which signals were sent to the whole process group, and so to the command as well: the listener, a third member of the
//! group, counts what it receives (`antifreeze_ipc::group_signals`).

use super::signals::ALL;
use antifreeze_ipc::group_signals::{Asker, FIRST_QUEUED, SET_BYTES, SIGNALS, pending};
use antifreeze_ipc::shared::Shared;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, waitid, waitpid,
};
use std::sync::atomic::Ordering::Acquire;

/// What was counted by number. Each of these signals has reached the front too.
#[derive(Clone, Copy)]
pub struct Tally([u32; SIGNALS]);

/// The listener, and which of the signals it has counted are accounted for. Dropping it ends the process.
pub struct GroupListener {
    pub pid: Pid,
    shared: Shared,
    seen: [u32; SIGNALS],
    questions: u32,
}

impl GroupListener {
    /// Forks the listener. Must be called before any thread is started, with all signals blocked. None where there is
    /// no process to spare.
    pub fn start(shared: Shared) -> Option<GroupListener> {
        // SAFETY: one thread, and the child makes system calls only.
        let pid = unsafe {
            let front = libc::getpid();
            match libc::fork() {
                0 => listen(shared, front),
                pid => Pid::from_raw(pid).filter(|_| pid > 0)?,
            }
        };
        Some(GroupListener {
            pid,
            shared,
            seen: [0; SIGNALS],
            questions: 0,
        })
    }

    /// What was counted until now. None when the listener does not answer.
    pub fn tally(&mut self) -> Option<Tally> {
        if self.has_ended() {
            return None;
        }
        if !self.ask() {
            // The group may have been stopped and the front alone continued.
            let _ = kill_process(self.pid, Signal::CONT);
            if !self.ask() {
                return None;
            }
        }
        let tally = Tally(self.shared.head().group_signals.all());
        // The kernel sends to the members of a group one after the other, and no process changes groups meanwhile. So when
        // this call returns, even if it is refused, the front has received what the listener had.
        // SAFETY: system calls on plain numbers.
        unsafe { libc::setpgid(0, libc::getpgrp()) };
        Some(tally)
    }

    /// Whether it has ended. The front reaps it later.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    fn ask(&mut self) -> bool {
        self.questions = self.questions.wrapping_add(1);
        let listener = self.pid.as_raw_nonzero().get() as u32;
        let counts = &self.shared.head().group_signals;
        counts.ask(listener, Asker::Front, self.questions)
    }

    /// Whether this signal was sent to the whole group: the front has received it after `before`, and asked for `after`
    /// then. None where it is not known.
    pub fn was_sent_to_group(&mut self, signal: i32, before: Option<Tally>) -> Option<bool> {
        let after = self.tally()?;
        let index = usize::try_from(signal).ok()?;
        let seen = self.seen.get_mut(index)?;
        let after = *after.0.get(index)?;
        let counted = Counted {
            seen: *seen,
            before: before.and_then(|before| before.0.get(index).copied()),
            after,
            is_queued: index >= FIRST_QUEUED,
            more_pending: pending() >> (index - 1) & 1 == 1,
        };
        let unseen = counted.unseen();
        *seen = after.wrapping_sub(unseen);
        Some(counted.was_sent_to_group())
    }
}

/// What is known of the signals of one number when the front has received one.
struct Counted {
    /// Those of the group that the front has received as well.
    seen: u32,
    before: Option<u32>,
    after: u32,
    /// Each is received by itself. Of others, several are one when the front receives them.
    is_queued: bool,
    /// The front has another one to receive.
    more_pending: bool,
}

impl Counted {
    fn was_sent_to_group(&self) -> bool {
        self.after != self.seen
    }

    /// Those of the group that the front will receive by themselves later.
    fn unseen(&self) -> u32 {
        let all = self.after.wrapping_sub(self.seen);
        // What was counted before the front received one is part of that one.
        let before = self.before.unwrap_or(self.seen).wrapping_sub(self.seen);
        let late = match before {
            0 => all.saturating_sub(1),
            before => all.saturating_sub(before),
        };
        match (self.more_pending, self.is_queued) {
            (false, _) => 0,
            (true, true) => all.saturating_sub(1),
            (true, false) => late.min(1),
        }
    }
}

impl Drop for GroupListener {
    fn drop(&mut self) {
        let _ = kill_process(self.pid, Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// The listener's life: it ends with the front.
fn listen(shared: Shared, front: libc::pid_t) -> ! {
    // SAFETY: system calls on plain numbers and on values that live here.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"af-signals".as_ptr());
        if libc::getppid() != front {
            libc::_exit(0);
        }
        antifreeze_ipc::process_title::set(b"af-signals");
        close_all();
        let head = shared.head();
        loop {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let no_limit = std::ptr::null::<libc::timespec>();
            let (set, info_at) = (&raw const ALL, &raw mut info);
            let signal =
                libc::syscall(libc::SYS_rt_sigtimedwait, set, info_at, no_limit, SET_BYTES) as i32;
            let Ok(index) = usize::try_from(signal) else {
                continue;
            };
            let command = head.root_pid.load(Acquire) as i32;
            let is_of_process = info.si_code <= 0;
            let is_question = signal == libc::SIGRTMAX()
                && info.si_code == libc::SI_QUEUE
                && [front, command].contains(&info.si_pid());
            if is_question {
                head.group_signals
                    .answer(info.si_value().sival_ptr as usize);
            } else if !is_of_process || info.si_pid() != front {
                head.group_signals.add(index);
            }
        }
    }
}

/// Nothing of the caller's stays open because of the listener.
fn close_all() {
    // SAFETY: the listener uses no descriptor.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) != 0 {
            // Linux before 5.9.
            for fd in 0..4096 {
                libc::close(fd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(seen: u32, before: u32, after: u32, more_pending: bool) -> Counted {
        Counted {
            seen,
            before: Some(before),
            after,
            is_queued: false,
            more_pending,
        }
    }

    /// Whether it was sent to the group, and how many are still to be received.
    fn outcome(counted: &Counted) -> (bool, u32) {
        (counted.was_sent_to_group(), counted.unseen())
    }

    #[test]
    fn a_signal_to_the_front_alone_is_none_of_the_groups() {
        assert_eq!(outcome(&counted(3, 3, 3, false)), (false, 0));
        assert_eq!(outcome(&counted(3, 3, 3, true)), (false, 0));
    }

    #[test]
    fn signals_of_one_number_that_the_front_received_as_one_are_accounted_for_together() {
        assert_eq!(outcome(&counted(3, 4, 4, false)), (true, 0));
        assert_eq!(outcome(&counted(3, 7, 7, false)), (true, 0));
        // What is pending now came later, and to the front alone.
        assert_eq!(outcome(&counted(3, 7, 7, true)), (true, 0));
    }

    #[test]
    fn a_signal_to_the_group_that_comes_while_the_one_before_is_looked_into_is_the_groups_too() {
        assert_eq!(outcome(&counted(3, 4, 5, true)), (true, 1));
        assert_eq!(outcome(&counted(3, 3, 5, true)), (true, 1));
        assert_eq!(outcome(&counted(3, 3, 4, true)), (true, 0));
        assert_eq!(outcome(&counted(3, 4, 9, true)), (true, 1));
        assert_eq!(outcome(&counted(3, 4, 9, false)), (true, 0));
    }

    #[test]
    fn each_real_time_signal_is_accounted_for_by_itself() {
        let mut seen = 0;
        for left in (0..5).rev() {
            let queued = Counted {
                is_queued: true,
                ..counted(seen, 5, 5, left > 0)
            };
            assert_eq!(outcome(&queued), (true, left));
            seen = 5 - queued.unseen();
        }
        let alone = Counted {
            is_queued: true,
            ..counted(seen, 5, 5, false)
        };
        assert_eq!(outcome(&alone), (false, 0));
    }

    #[test]
    fn numbers_that_have_gone_round_are_compared_all_the_same() {
        assert_eq!(outcome(&counted(u32::MAX, 0, 0, false)), (true, 0));
        assert_eq!(outcome(&counted(u32::MAX, 0, 1, true)), (true, 1));
    }
}
