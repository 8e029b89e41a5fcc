//! How a command ended and what it printed.

use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// An ended command. `Display` shows everything, for the message of a failed assertion.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub(super) fn new(status: ExitStatus, stdout: &Path, stderr: &Path) -> Ended {
        let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        Ended {
            status,
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }

    /// Fails the test unless the command exited with this status.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Ended {
        assert_eq!(self.status.code(), Some(code), "exit status\n{self}");
        self
    }

    /// Fails the test unless the command was ended by this signal.
    #[track_caller]
    pub fn is_ended_by(&self, signal: i32) -> &Ended {
        assert_eq!(self.status.signal(), Some(signal), "signal\n{self}");
        self
    }

    /// Fails the test unless standard output holds this text.
    #[track_caller]
    pub fn prints(&self, text: &str) -> &Ended {
        assert!(self.stdout.contains(text), "no {text:?} in stdout\n{self}");
        self
    }

    /// Fails the test unless standard error holds this text.
    #[track_caller]
    pub fn tells(&self, text: &str) -> &Ended {
        assert!(self.stderr.contains(text), "no {text:?} in stderr\n{self}");
        self
    }

    /// Fails the test if standard error holds this text.
    #[track_caller]
    pub fn never_tells(&self, text: &str) -> &Ended {
        assert!(!self.stderr.contains(text), "{text:?} in stderr\n{self}");
        self
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, signal) = (self.status.code(), self.status.signal());
        writeln!(f, "exit code {code:?}, signal {signal:?}")?;
        writeln!(f, "--- stdout\n{}", self.stdout)?;
        writeln!(f, "--- stderr\n{}", self.stderr)
    }
}
