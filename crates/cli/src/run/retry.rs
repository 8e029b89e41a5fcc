//! Restarts the command after its run was ended, as a new run in place of this process.

use super::inherited;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Holds a [`Restart`] for the process that replaces this one. It is not a flag, so that the command line stays as it was
/// typed.
const VARIABLE: &str = "ANTIFREEZE_RESTART";

/// A run that `--retries` starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Restarts that are left after this one.
    pub left: u32,
    /// The run that it continues.
    pub run: String,
}

impl Restart {
    /// Reads the variable, and removes it from the environment that the command will inherit.
    pub fn take() -> Option<Restart> {
        let restart = Restart::parse(&std::env::var(VARIABLE).ok()?);
        // SAFETY: no other thread runs yet.
        unsafe { std::env::remove_var(VARIABLE) };
        restart
    }

    fn parse(text: &str) -> Option<Restart> {
        let (left, run) = text.split_once(' ')?;
        Some(Restart {
            left: left.parse().ok()?,
            run: run.into(),
        })
    }

    fn to_variable(&self) -> String {
        format!("{} {}", self.left, self.run)
    }

    /// Replaces this process by one that runs the command again and continues the run. Returns only when it cannot be
    /// done, and says why.
    pub fn start(&self, mask: libc::sigset_t) -> String {
        // SAFETY: plain calls, one on a set that lives here. A line of ours that nobody has read must not end us now.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            libc::sigprocmask(libc::SIG_SETMASK, &mask, std::ptr::null_mut());
        }
        let error = match std::env::current_exe() {
            Ok(ours) => {
                let mut command = Command::new(ours);
                command
                    .args(std::env::args_os().skip(1))
                    .env(VARIABLE, self.to_variable());
                // SAFETY: it makes system calls only.
                unsafe { command.pre_exec(inherited::restore) };
                command.exec()
            }
            Err(error) => error,
        };
        format!("restarting: {error}")
    }
}

/// Sets variables of this process, which the command inherits.
pub fn set_variables(variables: [(&'static str, OsString); 2]) {
    for (name, value) in variables {
        // SAFETY: no other thread runs yet.
        unsafe { std::env::set_var(name, value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_is_read_as_it_was_written() {
        let restart = Restart {
            left: 2,
            run: "20261116-131741-170".into(),
        };
        assert_eq!(Restart::parse(&restart.to_variable()), Some(restart));
        for wrong in ["", "2", "x 20261116", "-1 20261116"] {
            assert_eq!(Restart::parse(wrong), None, "{wrong}");
        }
    }
}
