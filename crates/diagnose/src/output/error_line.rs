//! Classifies lines that have the words of an error. The same words are also in hints, in error counts of 0, in warnings,
//! and in messages about failures that a program recovered from.

/// Phrases that announce a retry or fallback beside the error.
const RECOVERY_PHRASES: [&str; 9] = [
    "retry",
    "trying ",
    "try again",
    "going on",
    "go on ",
    "continu",
    "falling back",
    "fall back",
    "skipping",
];

/// What a line with the words of an error says about the end of a run. A later variant says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ErrorLine {
    /// A hint, a count of zero errors, or something that the program recovered from.
    Hint,
    /// An error that the program may have recovered from.
    Recovered,
    /// It mentions the error in some sentence.
    Mention,
    /// It reports the error.
    Error,
}

impl ErrorLine {
    /// Classifies a line by its form alone.
    pub fn classify(line: &str) -> ErrorLine {
        match (is_hint(line), is_error(line)) {
            (true, _) => ErrorLine::Hint,
            (false, true) => ErrorLine::Error,
            (false, false) => ErrorLine::Mention,
        }
    }

    /// The highest confidence for a cause that is found by such a line.
    pub fn max_confidence(self) -> f64 {
        match self {
            ErrorLine::Hint => 0.2,
            ErrorLine::Recovered => 0.4,
            ErrorLine::Mention => 0.6,
            ErrorLine::Error => 1.0,
        }
    }
}

/// Whether a line is advice for the case that something happens.
fn is_hint(line: &str) -> bool {
    const BEGINS: [&str; 7] = ["tip", "hint", "usage", "help", "#", "//", "todo"];
    const HOLDS: [&str; 6] = [
        "if you see",
        "if you get",
        "in case of",
        "when you see",
        "to avoid",
        "press ctrl",
    ];
    let lower = line.trim().to_lowercase();
    // An error may end with advice.
    let begins = |mark: &&str| {
        lower.strip_prefix(*mark).is_some_and(|rest| {
            rest.starts_with([':', ' ', 's']) || !mark.starts_with(char::is_alphabetic)
        })
    };
    let is_of_error = is_error(line);
    // GitHub marks its own lines in this way.
    if lower.starts_with("##[") {
        return false;
    }
    BEGINS.iter().any(begins) || !is_of_error && HOLDS.iter().any(|mark| lower.contains(mark))
}

/// Whether a line denies the error: `NCCL errors: 0`, `"OOMKilled": false`, `illegal memory accesses: none`.
pub(crate) fn is_denied(line: &str, word: &str) -> bool {
    let Some((_, after)) = line.split_once(word) else {
        return false;
    };
    let lower = after
        .trim_start_matches(|next: char| next.is_alphanumeric())
        .to_lowercase();
    let value = lower.trim_start_matches([':', '=', '"', '\'', ' ', '|']);
    let is_value = value.len() < lower.len() && lower.contains([':', '=', '|']);
    let end = value
        .find(|next: char| !next.is_alphanumeric())
        .unwrap_or(value.len());
    let is_all = !value.get(end..).unwrap_or_default().starts_with(' ');
    is_value
        && match value.get(..end) {
            Some("0") => true,
            // `: No such file` denies nothing.
            Some("false" | "no" | "none" | "null" | "off") => is_all,
            _ => false,
        }
}

/// Whether a line reports a failure, and does not only mention errors: `RuntimeError: …`, `ERROR …`, `terminate called …`,
/// `[rank0]:[E1116 12:00:00 ProcessGroupNCCL.cpp:616] …`, `slurmstepd: error: …`.
pub(crate) fn is_error(line: &str) -> bool {
    const BEGINS: [&str; 21] = [
        "watchdog caught",
        "terminate called",
        "what():",
        "fatal python error",
        "failed to ",
        "could not ",
        "couldn't ",
        "unable to ",
        "cannot ",
        "can't ",
        "assertion failed",
        "memory access fault",
        "mpirun noticed",
        "mpirun detected",
        "mpiexec detected",
        "error response from ",
        "##[error]",
        "=>> pbs",
        "term_",
        "gpu is lost",
        "caused by",
    ];
    let line = line.trim();
    if announces_recovery(line) {
        return false;
    }
    let lower = line.to_lowercase();
    let mut rest = line;
    let mut number = 0;
    loop {
        let begin: String = rest.chars().take(24).flat_map(char::to_lowercase).collect();
        if BEGINS.iter().any(|words| begin.starts_with(words)) {
            return true;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        if token.is_empty() {
            return false;
        }
        for piece in token.split(|next: char| !next.is_alphanumeric() && next != '_' && next != '.')
        {
            match level(piece) {
                Some(is_error) => return is_error,
                None if is_kind(piece) => return true,
                None => {}
            }
        }
        // `CUDA error: …`, `NVIDIA-SMI has failed …`, `train.py: error: …`.
        let says = matches!(
            token.trim_end_matches(','),
            "error:" | "Error:" | "failed" | "failed." | "failed:"
        );
        if says && number <= 2 {
            return true;
        }
        // A message begins after a prefix; a plain word ends the prefix, but two may be a name.
        let is_mark = token.contains(|next: char| !next.is_alphabetic())
            || !token.contains(char::is_lowercase);
        if !is_mark && number >= 2 || number > 12 {
            return lower.ends_with(" failed.")
                || lower.ends_with(" failed")
                || line.contains("NVRM: ");
        }
        number += 1;
        rest = after.trim_start();
    }
}

/// Whether a line announces a retry or fallback.
pub(crate) fn announces_recovery(line: &str) -> bool {
    let lower = line.to_lowercase();
    RECOVERY_PHRASES.iter().any(|words| lower.contains(words))
}

/// Whether a line has the form of a raised error: `ValueError: …`.
pub(crate) fn is_raised(line: &str) -> bool {
    let pieces = line.split(|next: char| next == ':' || next.is_whitespace());
    pieces.take(6).any(is_kind)
}

/// Whether a word in front of a message is the log level of an error (true) or a lower level (false).
fn level(piece: &str) -> Option<bool> {
    match piece {
        "ERROR" | "FATAL" | "CRITICAL" | "Fatal" | "fatal" | "panicked" => return Some(true),
        "WARNING" | "WARN" | "Warning" | "INFO" | "DEBUG" => return Some(false),
        _ => {}
    }
    if piece.ends_with("Warning") {
        return Some(false);
    }
    // glog: E1116; TensorFlow writes the letter alone.
    let rest = piece.strip_prefix(['E', 'F', 'W', 'I'])?;
    let is_level = rest.len() >= 4 && rest.bytes().all(|byte| byte.is_ascii_digit())
        || rest.is_empty() && matches!(piece, "E" | "F" | "W");
    is_level.then(|| piece.starts_with(['E', 'F']))
}

/// Whether a word is the name of an error type: `torch.OutOfMemoryError`, `MemoryError`, `c10.Exception`.
fn is_kind(piece: &str) -> bool {
    let name = piece.rsplit('.').next().unwrap_or_default();
    let is_named = ["Error", "Exception", "Interrupt"]
        .iter()
        .any(|end| name.ends_with(end));
    is_named && name.len() > "Error".len()
}

/// Whether a line reports success: `Training complete`, `done.`, `Trainer.fit stopped: max_epochs reached`.
pub(crate) fn is_good_end(line: &str) -> bool {
    let lower = line.trim().trim_end_matches(['.', '!', ' ']).to_lowercase();
    let lower = lower.replace("without error", "");
    if [
        "error",
        "fail",
        "killed",
        "signal",
        "exit code",
        "exception",
        "not ",
    ]
    .iter()
    .any(|word| lower.contains(word))
    {
        return false;
    }
    if matches!(
        lower.as_str(),
        "done" | "finished" | "complete" | "completed" | "success" | "all done"
    ) {
        return true;
    }
    let ends = ["complete", "finished", "done", "succeeded"]
        .iter()
        .any(|word| lower.contains(word));
    let of_all = [
        "training",
        "finetun",
        "fine-tun",
        "fit ",
        "all done",
        "run ",
        "experiment",
    ];
    ends && of_all.iter().any(|word| lower.contains(word))
        || lower.contains("max_epochs") && lower.contains("reached")
        || lower.contains("'train_runtime'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_error_is_distinguished_from_a_sentence_about_errors() {
        for line in [
            "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB",
            "[rank0]: torch.OutOfMemoryError: CUDA out of memory",
            "trainer-1  | MemoryError",
            "2024-05-01T10:00:01.5Z ValueError: bad",
            "(train pid=123) RuntimeError: no",
            "[rank1]:[E1116 12:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective",
            "2024-01-01 10:00:00.1: E tensorflow/stream: failed call to cuInit",
            "slurmstepd: error: Detected 1 oom_kill event",
            "train.py: error: unrecognized arguments: --foo",
            "[2024-01-01 10:00:00,000] [ERROR] [launch.py:322] exits",
            "CUDA error: out of memory",
            "terminate called after throwing an instance of 'std::bad_alloc'",
            "Failed to initialize NVML: Unknown Error",
            "NVIDIA-SMI has failed because it couldn't communicate",
            "##[error]The operation was canceled.",
            "docker: Error response from daemon: could not select device driver",
            "thread 'main' panicked at src/main.rs:3:5",
            "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 4096.00 MiB on device 0: cudaMalloc failed",
        ] {
            assert_eq!(ErrorLine::classify(line), ErrorLine::Error, "{line}");
        }
        for line in [
            "an illegal memory access was encountered: 0 times",
            "Batch size 256 failed, trying batch size 128: CUDA out of memory",
            "torch/cuda/__init__.py:129: UserWarning: CUDA initialization: Found no NVIDIA driver",
            "WARN could not write cache: No space left on device",
            "2021: W tensorflow/x: Could not load dynamic library; dlerror: cannot open",
            "10 clients joined the federation",
            "we saw a RuntimeError: in the paper",
            "",
        ] {
            assert_ne!(ErrorLine::classify(line), ErrorLine::Error, "{line}");
        }
        for line in [
            "tip: if you see 'CUDA out of memory', lower --batch-size",
            "usage note: on RuntimeError: CUDA error: device-side assert triggered set X",
            "Keyboard interrupt received will stop training (press Ctrl-C)",
            "# on CUDA out of memory lower this",
        ] {
            assert_eq!(ErrorLine::classify(line), ErrorLine::Hint, "{line}");
        }
    }

    #[test]
    fn an_error_count_of_zero_is_a_denial() {
        for (line, word) in [
            ("health: NCCL errors: 0, ECC errors: 0", "NCCL error"),
            ("\"OOMKilled\": false, \"ExitCode\": 0", "OOMKilled"),
            ("illegal memory access: none", "illegal memory access"),
        ] {
            assert!(is_denied(line, word), "{line}");
        }
        for (line, word) in [
            ("NCCL error in: x.cpp:3", "NCCL error"),
            ("\"OOMKilled\": true", "OOMKilled"),
            ("CUDA out of memory. 0 bytes free", "CUDA out of memory"),
            ("Reason: OOMKilled", "OOMKilled"),
            (
                "x.so: cannot open shared object file: No such file",
                "shared object file",
            ),
        ] {
            assert!(!is_denied(line, word), "{line}");
        }
    }

    #[test]
    fn a_report_of_success_is_recognized() {
        for line in [
            "Training complete. Model saved to out/model.pt",
            "Finished training. test acc 0.98",
            "done",
            "Done.",
            "All done, results in runs/7",
            "`Trainer.fit` stopped: `max_epochs=6` reached.",
            "{'train_runtime': 120.0, 'epoch': 3.0}",
            "Training finished without errors",
        ] {
            assert!(is_good_end(line), "{line}");
        }
        for line in [
            "Process finished with exit code 139",
            "Training failed",
            "training not finished",
            "Finished batch size finder",
            "done loading 3 files",
        ] {
            assert!(!is_good_end(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_classified(line: String, word: String) {
            ErrorLine::classify(&line);
            is_denied(&line, &word);
            is_good_end(&line);
        }
    }
}
