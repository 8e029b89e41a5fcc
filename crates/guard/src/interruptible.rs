//! Finds the threads of a stopped process that can run a signal handler without the program noticing.
//!
//! A thread that was stopped in its own code returns there from a handler, and nothing shows. For a thread in a system
//! call it depends: after a handler many calls fail with EINTR that would have been restarted after SIGCONT alone, such
//! as `poll` and `nanosleep`. Others are restarted either way, such as `read`, and these may be interrupted. The kernel
//! reports the call in `/proc/PID/task/TID/syscall`, exactly for a stopped thread; if it does not (Yama, a guard that
//! is no ancestor), no thread is interrupted.
//!
//! The slow worker calls this, because it takes as many reads as there are threads.

use antifreeze_ipc::page::PAGEOUT_SIGNAL;
use antifreeze_sense::Pid;
use antifreeze_sense::file::ProcFile;
use core::mem::MaybeUninit;
use rustix::fs::{Mode, OFlags, RawDir, open};
use std::io::Write;

/// How many threads are interrupted at most. The others run until the process is stopped again.
pub const MAX_THREADS: usize = 32;
/// How many threads are inspected at most.
const MAX_INSPECTED: usize = 512;
const STATUS_BYTES: usize = 4096;

/// The threads of one process that may be interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interruptible {
    threads: [u32; MAX_THREADS],
    count: usize,
    /// None was found yet because a thread has not stopped.
    pub not_yet: bool,
    /// None was found, but one might be if the process is stopped at another time.
    pub can_move: bool,
}

impl Interruptible {
    pub fn threads(&self) -> &[u32] {
        &self.threads[..self.count]
    }

    fn push(&mut self, thread: u32) {
        if let Some(place) = self.threads.get_mut(self.count) {
            *place = thread;
            self.count += 1;
        }
    }
}

/// Inspects a stopped process. Returns all threads that were in their own code, so that none of them runs beside the
/// handler; if there is none, one thread in a call that a handler does not disturb.
pub fn inspect(pid: Pid) -> Interruptible {
    let mut found = Interruptible::default();
    let mut in_call = None;
    let ours = seccomp_filters(Pid(std::process::id()));
    let mut inspect_one = |thread: u32| {
        let Some(path) = Path::task(pid, thread, "status") else {
            return;
        };
        let mut buffer = [0; STATUS_BYTES];
        let Some(status) = path.read(&mut buffer) else {
            return;
        };
        // A filter of the program may end it for our system calls.
        if !catches(status) || filters(status) != ours {
            return;
        }
        // The C library briefly blocks all signals while it starts a thread.
        if blocks(status) {
            found.can_move = true;
            return;
        }
        if !is_stopped(status) {
            found.not_yet = true;
            return;
        }
        let mut buffer = [0; 256];
        let Some(call) = Path::task(pid, thread, "syscall").and_then(|path| path.read(&mut buffer))
        else {
            return;
        };
        match Interruption::parse(call) {
            Interruption::OfOwnCode => found.push(thread),
            Interruption::OfUnaffectedCall => in_call = in_call.or(Some(thread)),
            Interruption::Visible => found.can_move = true,
        }
    };
    for_each_thread(pid, &mut inspect_one);
    if found.count == 0
        && let Some(thread) = in_call
    {
        found.push(thread);
    }
    found.not_yet &= found.count == 0;
    found.can_move &= found.count == 0;
    found
}

/// What a handler would interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    OfOwnCode,
    OfUnaffectedCall,
    /// A call that would fail, or an unknown one.
    Visible,
}

impl Interruption {
    /// Parses a `syscall` file: the number of the call and its six arguments, or -1.
    fn parse(text: &[u8]) -> Interruption {
        let mut words = text.trim_ascii().split(|byte| *byte == b' ');
        let number = words
            .next()
            .and_then(|word| std::str::from_utf8(word).ok())
            .and_then(|word| word.parse::<i64>().ok());
        // The fourth argument of futex(2).
        let has_timeout = words.nth(3) != Some(b"0x0");
        match number {
            Some(-1) => Interruption::OfOwnCode,
            Some(libc::SYS_futex) if !has_timeout => Interruption::OfUnaffectedCall,
            Some(number) if UNAFFECTED.contains(&number) => Interruption::OfUnaffectedCall,
            _ => Interruption::Visible,
        }
    }
}

/// Calls after which a handler with SA_RESTART shows no more than SIGCONT alone: the kernel restarts them in both
/// cases, or in neither (signal(7)), or no signal ends their wait.
const UNAFFECTED: [i64; 33] = [
    // Restarted in both cases.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_flock,
    // Restarted in neither case.
    EPOLL_WAIT,
    libc::SYS_epoll_pwait,
    // Never ended by a signal.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_sched_yield,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_close,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_getpid,
    libc::SYS_gettid,
];

#[cfg(target_arch = "x86_64")]
const EPOLL_WAIT: i64 = libc::SYS_epoll_wait;
#[cfg(not(target_arch = "x86_64"))]
const EPOLL_WAIT: i64 = libc::SYS_epoll_pwait;

fn is_stopped(status: &[u8]) -> bool {
    field(status, b"State:").is_some_and(|state| state.starts_with(b"T"))
}

fn catches(status: &[u8]) -> bool {
    has_signal(status, b"SigCgt:")
}

fn blocks(status: &[u8]) -> bool {
    has_signal(status, b"SigBlk:")
}

fn has_signal(status: &[u8], name: &[u8]) -> bool {
    field(status, name)
        .and_then(|mask| std::str::from_utf8(mask).ok())
        .and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .is_some_and(|mask| mask >> (PAGEOUT_SIGNAL - 1) & 1 == 1)
}

/// The number of seccomp filters, and whether there is any if the kernel does not count them.
fn filters(status: &[u8]) -> (Option<u64>, Option<u64>) {
    let number = |name: &[u8]| {
        let text = std::str::from_utf8(field(status, name)?).ok()?;
        text.parse().ok()
    };
    (number(b"Seccomp:"), number(b"Seccomp_filters:"))
}

fn seccomp_filters(pid: Pid) -> (Option<u64>, Option<u64>) {
    let mut buffer = [0; STATUS_BYTES];
    Path::task(pid, pid.0, "status")
        .and_then(|path| path.read(&mut buffer))
        .map_or((None, None), filters)
}

fn field<'s>(status: &'s [u8], name: &[u8]) -> Option<&'s [u8]> {
    status
        .split(|byte| *byte == b'\n')
        .find_map(|line| line.strip_prefix(name))
        .map(<[u8]>::trim_ascii)
}

/// The first threads of a process, beginning with the main thread.
fn for_each_thread(pid: Pid, look: &mut impl FnMut(u32)) {
    let Some(path) = Path::tasks(pid) else {
        return;
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = open(path.as_str(), flags, Mode::empty()) else {
        return;
    };
    let mut buffer = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(folder, &mut buffer);
    for _ in 0..MAX_INSPECTED {
        let Some(Ok(entry)) = entries.next() else {
            return;
        };
        let number = entry.file_name().to_str().ok();
        if let Some(thread) = number.and_then(|name| name.parse().ok()) {
            look(thread);
        }
    }
}

/// A path below /proc, written without heap.
struct Path {
    bytes: [u8; 64],
    len: usize,
}

impl Path {
    fn tasks(pid: Pid) -> Option<Path> {
        Path::written(format_args!("/proc/{}/task", pid.0))
    }

    fn task(pid: Pid, thread: u32, file: &str) -> Option<Path> {
        Path::written(format_args!("/proc/{}/task/{thread}/{file}", pid.0))
    }

    fn written(text: std::fmt::Arguments<'_>) -> Option<Path> {
        let mut bytes = [0; 64];
        let mut rest = &mut bytes[..];
        rest.write_fmt(text).ok()?;
        let len = 64 - rest.len();
        Some(Path { bytes, len })
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    fn read<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
        let text = ProcFile::open(self.as_str()).ok()?.read(buffer).ok()?;
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_a_handler_would_end_are_not_interrupted() {
        let text = |number: i64, fourth: &str| {
            format!("{number} 0x3 0x7ffd 0x400 {fourth} 0x0 0x0 0x7ffd1234 0x7f001234\n")
        };
        let of = |text: &str| Interruption::parse(text.as_bytes());
        assert_eq!(of("-1 0x7ffd1234 0x401000\n"), Interruption::OfOwnCode);
        assert_eq!(
            of(&text(libc::SYS_read, "0x1")),
            Interruption::OfUnaffectedCall
        );
        assert_eq!(
            of(&text(libc::SYS_futex, "0x0")),
            Interruption::OfUnaffectedCall
        );
        assert_eq!(of(&text(libc::SYS_futex, "0x7ffd")), Interruption::Visible);
        assert_eq!(
            of(&text(libc::SYS_clock_nanosleep, "0x0")),
            Interruption::Visible
        );
        assert_eq!(of(&text(libc::SYS_ppoll, "0x0")), Interruption::Visible);
        assert_eq!(of("running\n"), Interruption::Visible);
        assert_eq!(of(""), Interruption::Visible);
    }

    #[test]
    fn masks_and_filters_are_read_from_a_status_file() {
        let status = b"Name:\tpython\nState:\tT (stopped)\nSigBlk:\t0000000000000000\n\
            SigCgt:\t0000080000000000\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert!(is_stopped(status) && catches(status) && !blocks(status));
        assert_eq!(filters(status), (Some(2), Some(1)));
        assert!(!catches(b"SigCgt:\tnonsense\n") && !is_stopped(b""));
    }
}
