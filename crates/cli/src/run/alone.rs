//! Runs the command without a guard, in place of this process. If the user's limits leave no room for a guard, the
//! command must still run.

use super::inherited;
use crate::output::complain;
use antifreeze_ipc::shared;
use antifreeze_text::{sanitize, units};
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Open files that the front needs, or the guard of a few processes.
const MIN_OPEN_FILES: u64 = 64;
/// Processes and threads of front, guard, keeper and probe, and as many again for the command.
const MIN_PROCESSES: u64 = 64;

/// The limit that is too low for the guard, as a sentence; None if the guard can be started. The limits were raised as
/// far as possible before.
pub fn obstacle() -> Option<String> {
    let file_bytes = shared::BYTES.max(crate::embed::guard_bytes()) as u64;
    let below = |resource, least| getrlimit(resource).current.filter(|limit| *limit < least);
    if let Some(files) = below(Resource::Nofile, MIN_OPEN_FILES) {
        return Some(format!(
            "`ulimit -n` allows {files} open files, and the guard needs {MIN_OPEN_FILES}"
        ));
    }
    if let Some(bytes) = below(Resource::Fsize, file_bytes) {
        let (bytes, needed) = (units::bytes(bytes), units::bytes(file_bytes));
        return Some(format!(
            "`ulimit -f` allows files of {bytes}, and the guard needs {needed}"
        ));
    }
    // The kernel does not count the processes of root.
    let processes = below(Resource::Nproc, MIN_PROCESSES);
    if let Some(number) = processes.filter(|_| !rustix::process::geteuid().is_root()) {
        return Some(format!(
            "`ulimit -u` allows {number} processes, and the guard needs {MIN_PROCESSES}"
        ));
    }
    None
}

/// Replaces this process by the command. Returns an exit status only if that fails.
pub fn run(command: &[OsString], mask: libc::sigset_t, reason: &str) -> u8 {
    complain(&format!("the command runs without a guard: {reason}"));
    let Some((program, arguments)) = command.split_first() else {
        return super::OWN_FAILURE;
    };
    let _ = rustix::process::set_child_subreaper(None);
    let mut itself = Command::new(program);
    itself.args(arguments);
    // SAFETY: it makes system calls only.
    unsafe {
        itself.pre_exec(move || {
            libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
            inherited::restore()
        });
    }
    let error = itself.exec();
    let name = sanitize::escape(program.as_bytes());
    complain(&format!("{name}: {error}"));
    match error.kind() {
        std::io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}
