//! Defines the command line: subcommands, flags and their help texts.

use crate::size::{self, Size};
use antifreeze_check::render::Format;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Parser)]
#[command(
    name = "antifreeze",
    version,
    about = "Keeps a computer usable, and a training run alive, while a neural network trains on it",
    after_help = "Examples:\n  antifreeze check train.py\n  antifreeze run python train.py"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run a training command without freezing the machine
    Run(Box<RunArguments>),
    /// Guard a running process, such as a notebook's kernel
    Attach(AttachArguments),
    /// Check training code, without running it, for what will freeze the machine
    Check(Box<CheckArguments>),
    /// Show what antifreeze does, safely, in a few seconds
    Demo,
    /// Explain why a run froze, crashed or was slow, how sure that is, and what to do
    Explain(ExplainArguments),
    /// List, show or remove recorded runs
    Runs(RunsArguments),
    /// Resume a run that antifreeze paused
    Resume(ResumeArguments),
    /// Read the metrics of NVIDIA GPUs for a run
    #[command(hide = true)]
    #[command(name = "probe-cards")]
    ProbeGpus {
        /// The descriptor of the page
        page: i32,
        /// The descriptor of the run's state
        state: i32,
    },
}

#[derive(Args)]
#[command(
    override_usage = "antifreeze run [OPTIONS] [--] COMMAND [ARGUMENTS]...",
    after_help = format!("\
Examples:
  antifreeze run python train.py
  antifreeze run --budget 8GB python train.py --epochs 3
  antifreeze run --reserve 3GB -- torchrun --nproc-per-node 2 train.py
  antifreeze run --checkpoint-signal USR1 python train.py
  antifreeze run --retries 3 python train.py
  antifreeze run --resume python train.py

Put the flags of antifreeze before the command. Everything after the command's name is passed to
the command.

{}

Exit status: the command's own (128+N if signal N killed it); 75 if antifreeze ended it
and a retry makes sense; 127 if it was not found, 126 if it could not be run.

Settings are also read from antifreeze.toml, from [tool.antifreeze] in pyproject.toml,
and from variables such as ANTIFREEZE_RESERVE. Flags override variables, and variables files.", size::UNITS_HELP))]
pub struct RunArguments {
    #[command(flatten)]
    pub terms: Terms,
    /// Signal that makes the command save a checkpoint, such as USR1
    #[arg(long, value_name = "SIGNAL", env = "ANTIFREEZE_CHECKPOINT_SIGNAL", value_parser = signal)]
    pub checkpoint_signal: Option<i32>,
    /// CPU niceness of the command, 0 to 19 (default: 10)
    #[arg(long, value_name = "N", env = "ANTIFREEZE_NICE", value_parser = clap::value_parser!(i32).range(0..20))]
    pub nice: Option<i32>,
    /// If lack of memory ended the run, restart it up to N times from the last checkpoint
    #[arg(
        long,
        value_name = "N",
        env = "ANTIFREEZE_RETRIES",
        overrides_with = "retries"
    )]
    pub retries: Option<u32>,
    /// Continue from the last checkpoint of this command's last run, or of RUN
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true)]
    pub resume: Option<Option<String>>,
    /// Show a status line on the terminal
    #[arg(long)]
    pub live: bool,
    /// Write the verdict to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What a command may take, and how much is said about it.
#[derive(Args)]
pub struct Terms {
    /// Memory kept free for you, as a size or a percentage (default: about 10%)
    #[arg(
        long,
        value_name = "SIZE|PERCENT",
        env = "ANTIFREEZE_RESERVE",
        allow_hyphen_values = true
    )]
    pub reserve: Option<Size>,
    /// Limit the command to this much memory
    #[arg(
        long,
        value_name = "SIZE|PERCENT",
        env = "ANTIFREEZE_BUDGET",
        allow_hyphen_values = true,
        value_parser = size::budget
    )]
    pub budget: Option<Size>,
    /// Let the command use this much swap (for cold data, or if all swap is zram)
    #[arg(
        long,
        value_name = "SIZE",
        env = "ANTIFREEZE_ALLOW_SWAP",
        allow_hyphen_values = true,
        value_parser = size::bytes
    )]
    pub allow_swap: Option<u64>,
    /// Set no memory limit on the command; only the ladder protects
    #[arg(long, env = "ANTIFREEZE_NO_WALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_wall: bool,
    /// Print nothing unless antifreeze refuses memory to the command, slows, pauses or stops it
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every event, and what is missing
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  antifreeze attach 4711
  antifreeze attach --budget 6GB $(pgrep -nf ipykernel_launcher)

The process is guarded until it ends or you press Ctrl-C; then it continues unguarded, with its
previous limits. A process that `antifreeze run` did not start has no cushion: a refused memory
request fails as it would on a machine that is out of memory.

It cannot be PID 1, a kernel thread, a shell or program that started this command, a manager of
sessions, logins, services or containers, or a process that is already guarded. A process of
another user needs --user NAME; a tree of more than 200 processes, or one with a terminal session
in it, needs --yes.

Exit status: 0 if the guard detached or the process ended, 2 if it was refused.")]
pub struct AttachArguments {
    /// The process to guard, with all processes that it starts
    #[arg(value_name = "PID", value_parser = process_id)]
    pub pid: u32,
    #[command(flatten)]
    pub terms: Terms,
    /// Also attach to processes of this user (as root; can be repeated)
    #[arg(long, value_name = "NAME")]
    pub user: Vec<String>,
    /// Also attach to a large process tree, or one with a terminal session in it
    #[arg(long)]
    pub yes: bool,
    /// Print where the shared page is on standard output; detach on request from standard input
    #[arg(long, hide = true)]
    pub tether: bool,
    /// Omit what an exception in the process itself reports
    #[arg(long, hide = true)]
    pub tersely: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  antifreeze check
  antifreeze check train.py --ram 16GB --vram 8GB
  antifreeze check --fix src
  antifreeze check --explain graph-in-accumulator
  antifreeze check --output-format github .

Exit status: 0 if there are no findings, 1 if there are, 2 if something could not be read.

Sizes: 8GB or 8G (10^9 bytes each), 8GiB (2^30).

To ignore a finding, end its line with a comment: # antifreeze: ignore[RULE]
Settings are read from [check] in antifreeze.toml, or [tool.antifreeze.check] in pyproject.toml.")]
pub struct CheckArguments {
    /// Files, notebooks and folders, or - for standard input (default: this folder)
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "full", value_name = "FORMAT")]
    pub output_format: OutputFormat,
    /// Enable only these rules: names, codes, a prefix such as AF1, or ALL
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub select: Vec<String>,
    /// Disable these rules
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Also enable the preview rules
    #[arg(long)]
    pub preview: bool,
    /// Apply the fixes that change only memory use and speed
    #[arg(long)]
    pub fix: bool,
    /// With --fix or --diff: also fixes that may change the program's results
    #[arg(long)]
    pub unsafe_fixes: bool,
    /// Show what --fix would change, without changing it
    #[arg(long, conflicts_with = "fix")]
    pub diff: bool,
    /// RAM of the training machine (default: this one's)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size::memory)]
    pub ram: Option<u64>,
    /// Memory of its GPU (default: this one's)
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size::bytes)]
    pub vram: Option<u64>,
    /// Its CPU cores (default: this one's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cores: Option<u32>,
    /// File name to report for standard input
    #[arg(long, value_name = "PATH")]
    pub stdin_filename: Option<PathBuf>,
    /// Explain a rule, or list all rules
    #[arg(long, value_name = "RULE", num_args = 0..=1, default_missing_value = "")]
    pub explain: Option<String>,
    /// Run a language server (LSP) on standard input and output
    #[arg(long, conflicts_with_all = ["paths", "fix", "diff", "explain", "stdin_filename"])]
    pub lsp: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OutputFormat {
    /// Source lines and help, for people
    Full,
    /// One line per finding
    Concise,
    /// JSON, for programs
    Json,
    /// GitHub Actions annotations
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitLab code quality report
    Gitlab,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Format {
        match format {
            OutputFormat::Full => Format::Full,
            OutputFormat::Concise => Format::Concise,
            OutputFormat::Json => Format::Json,
            OutputFormat::Github => Format::Github,
            OutputFormat::Sarif => Format::Sarif,
            OutputFormat::Gitlab => Format::Gitlab,
        }
    }
}

#[derive(Args)]
#[command(after_help = "Examples:
  antifreeze explain
  antifreeze explain 20261116-131741-170
  antifreeze explain --html report.html
  antifreeze explain --share
  antifreeze explain --log train.log
  antifreeze explain --cause memory-leak")]
pub struct ExplainArguments {
    /// The run's id or the beginning of it, or a folder (default: the last run)
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Explain a log file without a record; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub log: Option<PathBuf>,
    /// Kernel log from dmesg or journalctl -k (default: this machine's)
    #[arg(long, value_name = "FILE")]
    pub kernel_log: Option<PathBuf>,
    /// File for the HTML report, which has a timeline (default: report.html in the run's folder)
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a bundle to share, without tokens, keys and names (default: antifreeze-RUN.tar.gz)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub share: Option<Option<PathBuf>>,
    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,
    /// Explain a cause, or list all causes
    #[arg(
        long,
        value_name = "CODE",
        num_args = 0..=1,
        default_missing_value = "",
        conflicts_with_all = ["run", "log", "kernel_log", "html", "share", "json"]
    )]
    pub cause: Option<String>,
}

#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  antifreeze runs\n  antifreeze runs show\n  antifreeze runs prune --keep 10"
)]
pub struct RunsArguments {
    #[command(subcommand)]
    pub action: Option<RunsAction>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
pub enum RunsAction {
    /// Show a run (default: the last)
    Show {
        /// The run's id, or its beginning or end
        run: Option<String>,
        /// Print the verdict as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove old runs
    Prune {
        /// Number of newest runs to keep
        #[arg(long, default_value_t = 20, value_name = "N")]
        keep: usize,
    },
}

#[derive(Args)]
#[command(after_help = "Example:\n  antifreeze resume")]
pub struct ResumeArguments {
    /// The run's id, or its beginning or end (default: the last run)
    pub run: Option<String>,
}

/// The words of this process's command line, with `--resume RUN` as `--resume=RUN`.
///
/// clap cannot tell whether the word after a flag with an optional value is that value or the command. A run's id, or a
/// part of one, consists of digits and dashes, and no program is named like that.
pub fn words() -> Vec<OsString> {
    join_resume(std::env::args_os())
}

fn join_resume(mut words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments = Arguments::command();
    let run = arguments.find_subcommand("run");
    let takes_value = |flag: &str| {
        let mut flags = run.into_iter().flat_map(clap::Command::get_arguments);
        flags.any(|known| known.get_long() == Some(flag) && known.get_action().takes_values())
    };
    let mut joined: Vec<OsString> = words.by_ref().take(2).collect();
    let mut words = words.peekable();
    while joined.get(1).is_some_and(|subcommand| subcommand == "run") {
        let Some(mut word) = words.next() else { break };
        let flag = word.to_str().and_then(|word| word.strip_prefix("--"));
        match flag.map(str::to_owned).as_deref() {
            Some("resume") => {
                if let Some(run) = words.next_if(is_part_of_run_id) {
                    word.push("=");
                    word.push(run);
                }
                joined.push(word);
            }
            Some(flag) if !flag.is_empty() => {
                joined.push(word);
                if takes_value(flag) {
                    joined.extend(words.next());
                }
            }
            // The command begins here, and its own flags are left as they are.
            _ => {
                joined.push(word);
                break;
            }
        }
    }
    joined.extend(words);
    joined
}

fn is_part_of_run_id(word: &OsString) -> bool {
    let bytes = word.as_encoded_bytes();
    let is_of_id = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    bytes.first().is_some_and(u8::is_ascii_digit) && bytes.iter().all(is_of_id)
}

/// The number of a process.
fn process_id(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|pid| (1..=MAX_PID).contains(pid));
    number.ok_or_else(|| {
        format!(
            "a PID is a number such as 4711; {}",
            crate::run::attach_policy::FIND_PID_HINT
        )
    })
}

/// The kernel gives out no larger PID.
const MAX_PID: u32 = 1 << 22;

/// A signal by name, with or without SIG, or by number.
pub fn signal(text: &str) -> Result<i32, String> {
    const NAMES: [(&str, i32); 10] = [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("USR1", libc::SIGUSR1),
        ("USR2", libc::SIGUSR2),
        ("ALRM", libc::SIGALRM),
        ("TERM", libc::SIGTERM),
        ("CONT", libc::SIGCONT),
        ("URG", libc::SIGURG),
        ("IO", libc::SIGIO),
        ("PWR", libc::SIGPWR),
    ];
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
    NAMES
        .iter()
        .find(|(name, _)| *name == bare)
        .map(|(_, number)| *number)
        .or_else(|| bare.parse().ok().filter(|n| (1..32).contains(n)))
        .filter(|number| ![libc::SIGKILL, libc::SIGSTOP].contains(number))
        .ok_or_else(|| format!("`{text}` is not a signal a program can catch; try USR1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_argument_tree_is_sound() {
        Arguments::command().debug_assert();
    }

    fn typed_words(line: &str) -> Vec<OsString> {
        let words = ["antifreeze"].into_iter().chain(line.split(' '));
        words.map(OsString::from).collect()
    }

    #[test]
    fn a_run_to_resume_may_be_a_word_of_its_own() {
        for (typed, expected) in [
            ("run --resume 2026-1 -- x", "run --resume=2026-1 -- x"),
            (
                "run --resume 417 --nice 0 -- x",
                "run --resume=417 --nice 0 -- x",
            ),
            ("run --resume -- x", "run --resume -- x"),
            ("run --resume=1 -- 2", "run --resume=1 -- 2"),
            ("run --resume x", "run --resume x"),
            ("run -- x --resume 1", "run -- x --resume 1"),
            ("run --live x --resume 1", "run --live x --resume 1"),
            (
                "run --budget 4G --resume 1 x",
                "run --budget 4G --resume=1 x",
            ),
            ("resume 2026", "resume 2026"),
        ] {
            let words = join_resume(typed_words(typed).into_iter());
            assert_eq!(words, typed_words(expected), "{typed}");
        }
    }

    #[test]
    fn signals_are_read_by_name_and_number() {
        assert_eq!(signal("USR1"), Ok(libc::SIGUSR1));
        assert_eq!(signal("sigterm"), Ok(libc::SIGTERM));
        assert_eq!(signal("10"), Ok(10));
        for text in ["KILL", "9", "STOP", "0", "999", "", "SIGX"] {
            assert!(signal(text).is_err(), "{text}");
        }
    }
}
