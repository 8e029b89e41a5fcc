//! Parses what a shell or launcher reports about the signal that ended a process.

use antifreeze_text::signal;

/// A report that a signal ended a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitNotice {
    /// The signal.
    pub signal: u32,
    /// The process was one of several. A shell reports about the whole command.
    pub is_one_of_several: bool,
}

impl ExitNotice {
    /// Parses a line of output.
    pub fn parse(line: &str) -> Option<ExitNotice> {
        let line = line.trim();
        // A launcher reports the rank, PID or name of one of several processes.
        const PARTS: [&str; 5] = [
            "exitcode",
            "return code",
            "received by PID",
            "DataLoader worker",
            "process ",
        ];
        let shell_signal = shell_signal(line).map(|signal| ExitNotice {
            signal,
            is_one_of_several: false,
        });
        shell_signal.or_else(|| {
            let is_one_of_several = PARTS.iter().any(|part| line.contains(part));
            launcher_signal(line).map(|signal| ExitNotice {
                signal,
                is_one_of_several,
            })
        })
    }
}

/// The names that the C library gives to signals.
const WORDS: [(&str, u32); 8] = [
    ("Killed", signal::KILL),
    ("Terminated", signal::TERMINATE),
    ("Hangup", signal::HANG_UP),
    ("Aborted", signal::ABORT),
    ("Segmentation fault", 11),
    ("Bus error", signal::BUS),
    ("Illegal instruction", 4),
    ("Floating point exception", 8),
];

/// The signal with whose name a text begins.
pub(crate) fn signal_for_word(text: &str) -> Option<u32> {
    let word = WORDS.iter().find(|(word, _)| text.starts_with(word));
    word.map(|(_, signal)| *signal)
}

/// Parses the report of a shell: `Killed`, `run.sh: line 3: 4242 Killed  python train.py`, `[1]+  Killed  python train.py`, `zsh: killed  python`,
/// `make: *** [train] Killed`, `srun: error: node1: task 0: Killed`.
fn shell_signal(line: &str) -> Option<u32> {
    let is_word = |text: &str| {
        let bare = text.strip_suffix("(core dumped)").unwrap_or(text).trim();
        // On macOS the number follows.
        let bare = match bare.split_once(": ") {
            Some((word, number))
                if signal_for_word(word).is_some_and(|signal| number == signal.to_string()) =>
            {
                word
            }
            _ => bare,
        };
        // Python writes this itself.
        let bare = bare.strip_prefix("Fatal Python error: ").unwrap_or(bare);
        // Other exceptions of this kind are often caught.
        if let Some(what) = bare.strip_prefix("Windows fatal exception: ") {
            let is_fall = what == "access violation" || what == "stack overflow";
            return is_fall.then_some(11);
        }
        WORDS
            .iter()
            .find(|(word, _)| bare == *word)
            .map(|(_, signal)| *signal)
    };
    if let Some(signal) = is_word(line) {
        return Some(signal);
    }
    let without_number = |text: &'_ str| -> Option<String> {
        let rest = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
        (rest.len() < text.len()).then(|| rest.trim_start().to_owned())
    };
    if let Some((_, rest)) = line.split_once(": line ") {
        let rest = without_number(rest)?;
        let process = rest.strip_prefix(':')?.trim_start();
        return signal_for_word(&without_number(process)?);
    }
    if let Some(rest) = line.strip_prefix('[') {
        let rest = without_number(rest)?;
        return signal_for_word(rest.strip_prefix(']')?.trim_start_matches(['+', '-', ' ']));
    }
    if let Some(rest) = line.strip_prefix("zsh: ") {
        const ZSH: [(&str, u32); 6] = [
            ("killed", signal::KILL),
            ("terminated", signal::TERMINATE),
            ("segmentation fault", 11),
            ("bus error", signal::BUS),
            ("abort", signal::ABORT),
            ("illegal hardware instruction", 4),
        ];
        return ZSH
            .iter()
            .find(|(word, _)| rest.starts_with(word))
            .map(|(_, signal)| *signal);
    }
    if line.starts_with("make") && line.contains(": *** [") {
        return is_word(line.rsplit_once(']')?.1);
    }
    if line.starts_with("srun: error: ") {
        return is_word(line.rsplit_once(": ")?.1);
    }
    None
}

/// Parses the report of a launcher: `failed (exitcode: -9) local_rank: 0`, `Signal 9 (SIGKILL) received by PID 7`, `terminated with signal SIGKILL`,
/// `exits with return code = -9`, `DataLoader worker (pid 7) is killed by signal: Killed`.
fn launcher_signal(line: &str) -> Option<u32> {
    // The launcher announces that it ends the remaining processes.
    if line.contains("closing signal") || line.contains("ending signal") {
        return None;
    }
    let after = |mark: &str| {
        line.split_once(mark)
            .map(|(_, rest)| rest.trim_start_matches([' ', ':', '=']))
    };
    if let Some(rest) = after("is killed by signal") {
        return signal_for_word(rest);
    }
    for mark in [
        "erminated with signal",
        "erminated by signal",
        "got signal",
        "exited on signal",
        "<Signals.",
        "Signal",
    ] {
        // "Signal" has other meanings too, as in an ECG.
        let is_named = mark != "Signal" || line.contains("(SIG") || line.contains("received");
        let Some(rest) = after(mark).filter(|_| is_named) else {
            continue;
        };
        let end = rest
            .find(|next: char| !next.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let number = word.parse().ok().or_else(|| signal::from_name(word));
        if let Some(number) = number.filter(|number| (1..=64).contains(number)) {
            return Some(number);
        }
    }
    // Shells on Windows print the bare status.
    let bare = line
        .parse::<i64>()
        .ok()
        .filter(|status| *status < -1 || *status > 1 << 31);
    if let Some(told) = bare.and_then(|status| windows_crash_signal(status as u32)) {
        return Some(told);
    }
    for mark in [
        "exitcode",
        "xit code",
        "xit Code",
        "return code",
        "exited with code",
    ] {
        let Some(rest) = after(mark) else { continue };
        let hex = rest.get(..10).filter(|hex| hex.starts_with("0x"));
        let hex = hex.and_then(|hex| u32::from_str_radix(hex.get(2..)?, 16).ok());
        if let Some(told) = hex.and_then(windows_crash_signal) {
            return Some(told);
        }
        let is_below = rest.starts_with('-');
        let digits = rest.trim_start_matches('-');
        let end = digits
            .find(|next: char| !next.is_ascii_digit())
            .unwrap_or(digits.len());
        let Some(code) = digits.get(..end).and_then(|digits| digits.parse().ok()) else {
            continue;
        };
        let status = if is_below {
            0u32.wrapping_sub(code)
        } else {
            code
        };
        let told = match is_below {
            _ if windows_crash_signal(status).is_some() => windows_crash_signal(status),
            true => Some(code).filter(|number| (1..=64).contains(number)),
            false => signal::Exit::Code(code).deadly_signal(),
        };
        if told.is_some() {
            return told;
        }
    }
    None
}

/// The signal that corresponds to a crash status of Windows.
fn windows_crash_signal(status: u32) -> Option<u32> {
    Some(match status {
        0xC000_0005 => 11,
        0xC000_001D => 4,
        0xC000_0094 => 8,
        0xC000_0409 | 0xC000_0374 => signal::ABORT,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_shells_and_launchers_are_parsed() {
        for (line, signal, is_one_of_several) in [
            ("Killed", 9, false),
            ("Segmentation fault (core dumped)", 11, false),
            (
                "./run.sh: line 3: 12345 Segmentation fault      (core dumped) python train.py",
                11,
                false,
            ),
            ("[1]+  Killed                  python train.py", 9, false),
            (
                "zsh: illegal hardware instruction (core dumped)  python train.py",
                4,
                false,
            ),
            ("make: *** [Makefile:3: train] Killed", 9, false),
            (
                "srun: error: node01: task 0: Bus error (core dumped)",
                7,
                false,
            ),
            (
                "E1116 api.py:869] failed (exitcode: -9) local_rank: 0 (pid: 7) of binary: python",
                9,
                true,
            ),
            ("  exitcode  : -11 (pid: 123)", 11, true),
            (
                "  traceback : Signal 9 (SIGKILL) received by PID 123",
                9,
                true,
            ),
            (
                "ProcessExitedException: process 0 terminated with signal SIGKILL",
                9,
                true,
            ),
            (
                "launch.py: ['python', 'train.py'] exits with return code = -9",
                9,
                true,
            ),
            ("trainer-1 exited with code 137", 9, false),
            ("Segmentation fault: 11", 11, false),
            ("Fatal Python error: Segmentation fault", 11, false),
            (
                "mpirun noticed that process rank 3 with PID 12 on node n01 exited on signal 9 (Killed).",
                9,
                true,
            ),
            (
                "Process finished with exit code -1073741819 (0xC0000005)",
                11,
                false,
            ),
            (
                "Process finished with exit code 139 (interrupted by signal 11:SIGSEGV)",
                11,
                false,
            ),
            ("Command terminated by signal 9", 9, false),
            ("      Exit Code:    137", 9, false),
            ("Windows fatal exception: access violation", 11, false),
            ("-1073741819", 11, false),
            ("3221225477", 11, false),
            ("python.exe exited with exit code 0xC0000005", 11, false),
            (
                "subprocess.CalledProcessError: Command '['python', 't.py']' died with <Signals.SIGKILL: 9>.",
                9,
                false,
            ),
            (
                "fish: Job 1, 'python train.py' terminated by signal SIGKILL (Forced quit)",
                9,
                false,
            ),
            (
                "RuntimeError: DataLoader worker (pid 7) is killed by signal: Segmentation fault. ",
                11,
                true,
            ),
        ] {
            assert_eq!(
                ExitNotice::parse(line),
                Some(ExitNotice {
                    signal,
                    is_one_of_several
                }),
                "{line}"
            );
        }
        for line in [
            "Killed it: 3 epochs in a row",
            "The film was Killed",
            "Terminated early: no improvement",
            "Sending process 124 closing signal SIGTERM",
            "failed (exitcode: 1) local_rank: 0 (pid: 7)",
            "Signal to noise 9",
            "Signal 1: lead I, 500 Hz",
            "Fatal Python error: init_fs_encoding: no codec",
            "Killed: 3",
            "the job exited with code 0",
            "[1/3] Killed",
            "Windows fatal exception: code 0xe06d7363",
            "      Exit Code:    1",
            "-9",
            "137",
        ] {
            assert_eq!(ExitNotice::parse(line), None, "{line}");
        }
    }
}
