//! Closes inherited descriptors that the guard must not hold: a pipe of the caller, such as that of a shell's `$(…)`,
//! ends only when its last holder has closed it, and the guard may outlive the command.

use antifreeze_ipc::guard_args::GuardArgs;
use rustix::fd::{IntoRawFd, RawFd};
use rustix::fs::{CWD, Mode, OFlags, openat};

/// Closes every descriptor except the standard streams, those from the front, and `ours`. Needs a process with one
/// thread.
pub fn close_others(args: &GuardArgs, ours: &[RawFd]) {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let open: Vec<RawFd> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    let is_kept =
        |fd: RawFd| fd <= 2 || ours.contains(&fd) || args.kept_descriptors().any(|kept| kept == fd);
    for fd in open.into_iter().filter(|fd| !is_kept(*fd)) {
        // SAFETY: inherited, so nothing in this process owns it; the folder's own is closed already.
        unsafe { libc::close(fd) };
    }
}

/// Replaces the standard streams by /dev/null.
pub fn let_go_of_standard_streams() {
    for stream in 0..=2 {
        replace_by_null(stream);
    }
}

/// Replaces standard input and output by /dev/null. Standard error stays for later errors.
pub fn let_go_of_input_and_output() {
    for stream in 0..=1 {
        replace_by_null(stream);
    }
}

fn replace_by_null(stream: RawFd) {
    let Ok(null) = openat(
        CWD,
        c"/dev/null",
        OFlags::RDWR | OFlags::CLOEXEC,
        Mode::empty(),
    ) else {
        return;
    };
    let null = null.into_raw_fd();
    // SAFETY: plain descriptor numbers; a standard stream has no owner that would be surprised.
    unsafe {
        if null != stream {
            libc::dup2(null, stream);
            libc::close(null);
        }
    }
}
