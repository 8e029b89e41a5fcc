//! Starts the trainer: forks it while the guard has one thread, holds it until the wall and the cgroup are set, then
//! releases it.

use antifreeze_cushion::sanitizer;
use antifreeze_ipc::group_signals::{self, SET_BYTES};
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_ipc::page;
use antifreeze_ipc::shared::Shared;
use antifreeze_ipc::user_limits::UserLimits;
use antifreeze_sense::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::{Acquire, Release};

/// How long to wait for the start of the command, which may lie on a slow disk.
const START_TIMEOUT: Timespec = Timespec {
    tv_sec: 4,
    tv_nsec: 0,
};

/// A trainer that waits to be released.
pub struct Held {
    pub pid: Pid,
    go: std::io::PipeWriter,
    /// Ends when the command has been started, or could not be.
    started: std::io::PipeReader,
}

impl Held {
    /// Releases the trainer, and waits until it has started. It also starts if the guard dies before this.
    pub fn release(mut self) {
        let _ = self.go.write(&[1]);
        let _ = poll(
            &mut [PollFd::new(&self.started, PollFlags::IN)],
            Some(&START_TIMEOUT),
        );
    }
}

impl Held {
    /// The descriptors that it needs.
    pub fn descriptors(&self) -> [RawFd; 2] {
        [self.go.as_raw_fd(), self.started.as_raw_fd()]
    }

    /// Closes them in a child of ours that stays: if it held them, a trainer whose guard dies before the release would
    /// wait for ever.
    pub fn close_in_child(&self) {
        // SAFETY: the child never uses or drops them.
        unsafe {
            libc::close(self.go.as_raw_fd());
            libc::close(self.started.as_raw_fd());
        }
    }
}

/// Forks the trainer with these limits. Must be called before any thread is started.
pub fn spawn(
    args: &GuardArgs,
    shared: Shared,
    limits: &UserLimits,
    command: &[OsString],
) -> std::io::Result<Held> {
    let (mut wait, go) = std::io::pipe()?;
    let (started, starting) = std::io::pipe()?;
    let is_sanitized = is_sanitized(command);
    let arguments: Vec<CString> = command
        .iter()
        .filter_map(|word| CString::new(word.as_bytes()).ok())
        .collect();
    // SAFETY: the process has one thread, so the child may use everything.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        0 => {
            drop(go);
            let is_released = wait.read(&mut [0]).is_ok_and(|bytes| bytes > 0);
            if !is_released && shared.head().root_pid.load(Acquire) == 0 {
                // The guard died before any process could know of this one.
                unsafe { libc::_exit(126) }
            }
            // Open until the program is executed, which closes it, or this process ends.
            let _starting = starting;
            become_trainer(args, shared, limits, &arguments, is_sanitized)
        }
        pid => {
            if is_sanitized {
                shared.step_aside(pid as u32);
            }
            Ok(Held {
                pid: Pid(pid as u32),
                go,
                started,
            })
        }
    }
}

/// Whether the command must run without the cushion.
fn is_sanitized(command: &[OsString]) -> bool {
    let preloaded = std::env::var_os("LD_PRELOAD");
    if preloaded.is_some_and(|names| sanitizer::is_preloaded(names.as_bytes())) {
        return true;
    }
    let Some(name) = command.first() else {
        return false;
    };
    let folders = match name.as_bytes().contains(&b'/') {
        true => OsString::new(),
        false => std::env::var_os("PATH").unwrap_or_default(),
    };
    let file = std::env::split_paths(&folders).find_map(|folder| {
        let path = folder.join(name);
        // A named pipe would block.
        path.is_file().then(|| File::open(path).ok()).flatten()
    });
    file.is_some_and(|file| {
        sanitizer::is_sanitized(|bytes, offset| file.read_at(bytes, offset).unwrap_or(0))
    })
}

fn become_trainer(
    args: &GuardArgs,
    shared: Shared,
    limits: &UserLimits,
    arguments: &[CString],
    is_sanitized: bool,
) -> ! {
    for (stream, fd) in args.give.iter().enumerate().filter(|(_, fd)| **fd >= 0) {
        // SAFETY: plain descriptor numbers of this process.
        unsafe { libc::dup2(*fd, stream as i32 + 1) };
    }
    raise_oom_score();
    // Before the first thread: threads have a nice value each. At 19 it stays there.
    // SAFETY: a system call on a number.
    unsafe { libc::nice(args.nice) };
    set_environment(args, shared, !is_sanitized);
    limits.restore();
    group_signals::receive_earlier(shared);
    let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|a| a.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: a null-terminated list of C strings that outlive the call. The Rust runtime ignores SIGPIPE and opens
    // closed streams; the trainer finds both as the front did.
    let errno = unsafe {
        set_timers(args);
        for stream in (0..3).filter(|stream| args.closed_streams & (1 << stream) != 0) {
            libc::close(stream);
        }
        if args.ignore_sigpipe == 0 {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        } else {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        }
        // This comes last, because pending signals are received now.
        let (mask, none) = (&raw const args.signal_mask, std::ptr::null_mut::<u64>());
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            mask,
            none,
            SET_BYTES,
        );
        libc::execvp(pointers[0], pointers.as_ptr());
        *libc::__errno_location()
    };
    shared.head().exec_errno.store(errno, Release);
    let status = if errno == libc::ENOENT { 127 } else { 126 };
    // SAFETY: ends the child without running what belongs to the guard.
    unsafe { libc::_exit(status) }
}

/// Sets the timers that the caller had set.
fn set_timers(args: &GuardArgs) {
    let timers = [libc::ITIMER_REAL, libc::ITIMER_VIRTUAL, libc::ITIMER_PROF];
    for (timer, [left, every]) in timers.into_iter().zip(args.timers) {
        let time = |micros: u64| libc::timeval {
            tv_sec: (micros / 1_000_000) as libc::time_t,
            tv_usec: (micros % 1_000_000) as libc::suseconds_t,
        };
        let value = libc::itimerval {
            it_value: time(left),
            it_interval: time(every),
        };
        if left > 0 {
            let none = std::ptr::null_mut::<libc::itimerval>();
            // SAFETY: a system call on a structure that lives here.
            unsafe { libc::syscall(libc::SYS_setitimer, timer, &raw const value, none) };
        }
    }
}

/// If the kernel must kill a process, it should be the trainer.
fn raise_oom_score() {
    const PATH: &str = "/proc/self/oom_score_adj";
    let now: i32 = std::fs::read_to_string(PATH)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0);
    let _ = std::fs::write(PATH, (now + 500).min(1000).to_string());
}

fn set_environment(args: &GuardArgs, shared: Shared, preloads: bool) {
    let guard = rustix::process::getppid().map_or(0, |guard| guard.as_raw_nonzero().get());
    let front = shared.head().front_pid.load(Acquire);
    let fd = args.page;
    let paths = format!("/proc/{guard}/fd/{fd}:/proc/{front}/fd/{fd}");
    // SAFETY: one thread.
    unsafe {
        std::env::set_var(page::ENV, paths);
        if preloads && !args.preload.is_empty() {
            let mut preload = OsString::from(&args.preload);
            if let Some(theirs) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
                preload.push(OsStr::new(":"));
                preload.push(theirs);
            }
            std::env::set_var("LD_PRELOAD", OsString::from_vec(preload.into_vec()));
        }
    }
}
