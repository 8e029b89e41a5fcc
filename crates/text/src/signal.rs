//! Names and meanings of the kernel's numbers: signals, wait statuses and error numbers.

/// The name of a signal: "SIGTERM", or "signal 42" where it has no name.
pub fn name(signal: u32) -> String {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    }
    .into()
}

/// How a process ended, from its raw wait status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(u32),
    /// This signal ended it.
    Signal(u32),
}

impl Exit {
    /// Decodes a raw wait status.
    pub fn from_status(status: u32) -> Exit {
        match status & 0x7f {
            0 => Exit::Code(status >> 8 & 0xff),
            signal => Exit::Signal(signal),
        }
    }

    /// The signal that ended it. A shell reports a signal as exit code 128 + N, which is believed only for SIGKILL and
    /// crashes, since a program may exit with the other codes itself.
    pub fn deadly_signal(self) -> Option<u32> {
        match self {
            Exit::Signal(signal) => Some(signal),
            Exit::Code(code) => code.checked_sub(128).filter(|n| *n == KILL || is_crash(*n)),
        }
    }
}

/// The number of a signal, from its name as written by [`name`].
pub fn from_name(text: &str) -> Option<u32> {
    let is_name = |number: &u32| text.starts_with("SIG") && name(*number) == text;
    (1..32).find(is_name)
}

/// SIGHUP.
pub const HANG_UP: u32 = 1;
/// SIGINT.
pub const INTERRUPT: u32 = 2;
/// SIGABRT.
pub const ABORT: u32 = 6;
/// SIGBUS.
pub const BUS: u32 = 7;
/// SIGKILL.
pub const KILL: u32 = 9;
/// SIGTERM.
pub const TERMINATE: u32 = 15;
/// SIGXCPU.
pub const CPU_LIMIT: u32 = 24;
/// SIGXFSZ.
pub const FILE_LIMIT: u32 = 25;

/// Whether the kernel sends this signal for a fault of the program itself.
pub fn is_crash(signal: u32) -> bool {
    matches!(signal, 4..=8 | 11 | 31)
}

/// The meaning of an error number (errno) in plain words.
pub fn errno_meaning(number: u32) -> String {
    match number {
        1 | 13 => "no permission".into(),
        5 => "the disk reported an error".into(),
        12 => "no memory left".into(),
        27 => "the file grew too large".into(),
        28 => "the disk is full".into(),
        30 => "the file system is read-only".into(),
        122 => "the disk quota is used up".into(),
        other => match i32::try_from(other) {
            Ok(code) => std::io::Error::from_raw_os_error(code).to_string(),
            Err(_) => format!("error {other}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn a_real_wait_status_is_read_as_the_kernel_meant_it() {
        for (script, exit) in [
            ("exit 0", Exit::Code(0)),
            ("exit 3", Exit::Code(3)),
            ("kill -KILL $$", Exit::Signal(9)),
            ("kill -TERM $$", Exit::Signal(15)),
        ] {
            let status = Command::new("sh").args(["-c", script]).status().unwrap();
            assert_eq!(
                Exit::from_status(status.into_raw() as u32),
                exit,
                "{script}"
            );
        }
    }

    #[test]
    fn a_shells_report_of_a_crash_counts_as_the_signal() {
        assert_eq!(Exit::Code(137).deadly_signal(), Some(KILL));
        assert_eq!(Exit::Code(139).deadly_signal(), Some(11));
        assert_eq!(Exit::Code(130).deadly_signal(), None);
        assert_eq!(Exit::Code(1).deadly_signal(), None);
    }

    #[test]
    fn error_numbers_are_named_by_their_meaning() {
        assert_eq!(errno_meaning(28), "the disk is full");
        assert_eq!(errno_meaning(30), "the file system is read-only");
        assert!(errno_meaning(2).starts_with("No such file"));
        assert_eq!(errno_meaning(u32::MAX), "error 4294967295");
    }
}
