//! Which signals were sent to the whole process group, and so to the command as well.
//!
//! The front and the command are members of one process group. A signal that was sent to the group (Ctrl-C, `fg`,
//! `kill -- -PGID`) has reached the command already, one that was sent to the front alone has not, and the kernel does
//! not say which it was. So a third process is a member of the group: it does nothing but count the signals that it
//! receives. Nobody knows its pid, so what it receives was sent to the group.

use super::signals::{ALL, SET_BYTES};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::time::{Duration, Instant};

/// The numbers of all signals are below this.
const SIGNALS: usize = 65;
/// The listener answers within microseconds, unless it is kept from running.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// Shared by the front and the listener. Zero is valid.
struct Counts {
    received: [AtomicU32; SIGNALS],
    /// The last question that was answered. A futex word.
    answered: AtomicU32,
}

/// The process that counts, and what it had counted when it was asked last. Dropping it ends the process.
pub struct GroupListener {
    pub pid: Pid,
    counts: &'static Counts,
    seen: [u32; SIGNALS],
    questions: u32,
}

impl GroupListener {
    /// Forks the listener. Must be called before any thread is started, with all signals blocked. None where there is
    /// no process to spare.
    pub fn start() -> Option<GroupListener> {
        let bytes = size_of::<Counts>();
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which is never unmapped; zeroes are valid counts. The child makes system calls only.
        unsafe {
            let address = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
            if address == libc::MAP_FAILED {
                return None;
            }
            let counts = &*address.cast::<Counts>();
            let front = libc::getpid();
            let pid = match libc::fork() {
                0 => listen(counts, front),
                pid => Pid::from_raw(pid).filter(|_| pid > 0)?,
            };
            Some(GroupListener {
                pid,
                counts,
                seen: [0; SIGNALS],
                questions: 0,
            })
        }
    }

    /// Whether this signal, which the front has just received, was sent to the whole group. None when the listener
    /// does not answer.
    pub fn was_sent_to_group(&mut self, signal: i32) -> Option<bool> {
        self.wait_for_answer()?;
        let index = usize::try_from(signal).ok()?;
        let received = self.counts.received.get(index)?.load(Acquire);
        let seen = self.seen.get_mut(index)?;
        // Signals of one number that come close together are one signal for the front, and may be two here.
        Some(std::mem::replace(seen, received) != received)
    }

    /// The question is a signal as well. Those with a lower number are received before it.
    fn wait_for_answer(&mut self) -> Option<()> {
        self.questions = self.questions.wrapping_add(1);
        let value = libc::sigval {
            sival_ptr: self.questions as usize as *mut libc::c_void,
        };
        let pid = self.pid.as_raw_nonzero().get();
        // SAFETY: plain numbers; the value is never used as a pointer.
        if unsafe { libc::sigqueue(pid, libc::SIGRTMAX(), value) } != 0 {
            return None;
        }
        let asked_at = Instant::now();
        loop {
            let answered = self.counts.answered.load(Acquire);
            if answered == self.questions {
                return Some(());
            }
            let left = ANSWER_TIMEOUT.checked_sub(asked_at.elapsed())?;
            let left = rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: left.subsec_nanos().into(),
            };
            let flags = rustix::thread::futex::Flags::empty();
            let word = &self.counts.answered;
            let _ = rustix::thread::futex::wait(word, flags, answered, Some(&left));
        }
    }
}

impl Drop for GroupListener {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// The listener's life: it ends with the front.
fn listen(counts: &Counts, front: libc::pid_t) -> ! {
    // SAFETY: system calls on plain numbers and on values that live here.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"af-signals".as_ptr());
        if libc::getppid() != front {
            libc::_exit(0);
        }
        antifreeze_ipc::process_title::set(b"af-signals");
        close_all();
        loop {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let no_limit = std::ptr::null::<libc::timespec>();
            let (set, info_at) = (&raw const ALL, &raw mut info);
            let signal =
                libc::syscall(libc::SYS_rt_sigtimedwait, set, info_at, no_limit, SET_BYTES) as i32;
            let Some(count) = usize::try_from(signal)
                .ok()
                .and_then(|signal| counts.received.get(signal))
            else {
                continue;
            };
            let is_question = signal == libc::SIGRTMAX()
                && info.si_code == libc::SI_QUEUE
                && info.si_pid() == front;
            if is_question {
                let question = info.si_value().sival_ptr as usize as u32;
                counts.answered.store(question, Release);
                let flags = rustix::thread::futex::Flags::empty();
                let _ = rustix::thread::futex::wake(&counts.answered, flags, 1);
            } else {
                count.fetch_add(1, AcqRel);
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
