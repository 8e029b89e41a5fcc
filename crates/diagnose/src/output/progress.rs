//! Decides whether a line shows that training continues, that it succeeded, or neither.

use crate::output::error_line::is_good_end;

/// A longer line is not a line of progress.
pub const MAX_LINE_BYTES: usize = 600;

/// Whether a line reports success.
pub fn reports_success(line: &str) -> bool {
    line.len() <= MAX_LINE_BYTES && is_good_end(line)
}

/// Whether a line is noise that processes print when they exit, for whatever reason.
pub fn is_noise(line: &str) -> bool {
    const BEGINNINGS: [&str; 14] = [
        "wandb:",
        "Exception ignored",
        "Process ",
        "srun:",
        "slurmstepd:",
        "make:",
        "make[",
        "ERROR conda",
        "Sending process",
        "terminate called",
        "-----",
        "=====",
        "^C",
        "Exception in thread",
    ];
    const WORDS: [&str; 4] = [
        "resource_tracker",
        "leaked semaphore",
        "Warning: ",
        "warnings.warn",
    ];
    // W1116 12:00:00.1 12 api.py:897] …
    let is_glog = matches!(
        line.as_bytes(),
        [b'I' | b'W' | b'E' | b'F', rest @ ..]
            if rest.get(..4).is_some_and(|date| date.iter().all(u8::is_ascii_digit))
    );
    is_glog
        || BEGINNINGS.iter().any(|words| line.starts_with(words))
        || WORDS.iter().any(|words| line.contains(words))
}

/// Whether a line shows progress. A progress bar is redrawn after an error, and loggers print summaries: neither counts.
pub fn shows_progress(line: &str) -> bool {
    line.len() <= MAX_LINE_BYTES
        && !line.starts_with("wandb:")
        && !line.contains("%|")
        && is_progress(line)
}

/// Whether a line has the form of progress: "epoch 3", "step: 40", "train_loss=0.2", "3.9it/s". Code and errors do not.
pub fn is_progress(line: &str) -> bool {
    const NAMES: [&str; 6] = ["epoch", "step", "iter", "iteration", "batch", "loss"];
    if line.len() > MAX_LINE_BYTES {
        return false;
    }
    let line = line.to_lowercase();
    // A summary at the end repeats the last values.
    if ["error", "exception", "traceback", "file \"", "wandb:"]
        .iter()
        .any(|word| line.contains(word))
    {
        return false;
    }
    // The lines of a traceback that show code are indented.
    let is_named = !line.starts_with("  ")
        && NAMES.iter().any(|name| {
            line.match_indices(name).any(|(at, _)| {
                let (before, after) = line.split_at(at);
                // An option of a command is not progress.
                if before.split(' ').next_back().is_some_and(is_option) {
                    return false;
                }
                let after = after.get(name.len()..).unwrap_or_default();
                let value =
                    after.trim_start_matches([':', '=', ' ', '\'', '"', '[', '#', '(', '|', '-']);
                value.starts_with(|next: char| next.is_ascii_digit())
            })
        });
    is_named || has_rate(&line) || is_trial(&line)
}

/// Whether a word begins an option: `--` or `--max-`.
fn is_option(begin: &str) -> bool {
    let name = begin.strip_prefix("--");
    name.is_some_and(|name| !name.starts_with('-'))
}

/// Whether a line is of a hyperparameter search: `Trial 2 finished with value: 0.8`.
fn is_trial(line: &str) -> bool {
    line.split_once("trial ").is_some_and(|(_, after)| {
        let rest = after.trim_start_matches(|next: char| next.is_ascii_digit());
        let is_over = [" finished", " pruned", " complete"];
        rest.len() < after.len() && is_over.iter().any(|words| rest.starts_with(words))
    })
}

/// Whether a line shows training; loading, downloading and preprocessing have progress bars as well.
pub fn is_training(line: &str) -> bool {
    const BEFORE: [&str; 12] = [
        "load", "read", "download", "fetch", "extract", "process", "tokeniz", "map", "cach",
        "import", "shard", "generat",
    ];
    let lower = line.to_lowercase();
    let has_loss = lower.contains("loss");
    let is_bare = has_rate(&lower)
        && !["epoch", "step", "iter"]
            .iter()
            .any(|name| lower.contains(name));
    is_progress(line) && (has_loss || !is_bare && !BEFORE.iter().any(|word| lower.contains(word)))
}

/// Whether a line is a progress bar with a rate.
pub fn has_rate(line: &str) -> bool {
    const PACES: [&str; 4] = ["it/s", "s/it", "ms/step", "s/step"];
    PACES.iter().any(|pace| {
        line.match_indices(pace).any(|(at, _)| {
            let before = line.get(..at).unwrap_or_default();
            before.ends_with(|last: char| last.is_ascii_digit() || last == '?')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_distinguished_from_code_and_errors() {
        for line in [
            "Epoch 3: train_loss=0.2",
            "step 40",
            "{'loss': 0.31, 'epoch': 0.1}",
            " 10%|#         | 1/10 [00:00<00:04,  2.00it/s]",
            "50/100 [=====>....] - ETA: 5s - loss: 0.2",
            "--- epoch 3 ---",
            "---epoch 3---",
        ] {
            assert!(is_progress(line), "{line}");
        }
        for line in [
            "    loss = 0.5 * x",
            "  File \"train.py\", line 3, in step",
            "RuntimeError: bad loss 3",
            "the step that failed",
            "PS C:\\yolo> python train.py --workers 8 --batch 16 --max-iter=90",
            "",
        ] {
            assert!(!is_progress(line), "{line}");
        }
    }

    #[test]
    fn training_is_distinguished_from_what_comes_before_it() {
        for line in [
            "Epoch 3: train_loss=0.2",
            "step 40",
            " 37%|### | 874/2344 [05:11<08:43, 2.81it/s, loss=1.12]",
            "Trial 2 finished with value: 0.8 and parameters: {}",
        ] {
            assert!(is_training(line), "{line}");
        }
        for line in [
            "loading images:  83%|### | 99713/120000 [06:12<01:15, 267.11it/s]",
            " 83%|### | 99713/120000 [06:12<01:15, 267.11it/s]",
            "Reading batch 3 of 9",
            "Trial 2 failed with value None.",
            "import torch",
        ] {
            assert!(!is_training(line), "{line}");
        }
    }
}
