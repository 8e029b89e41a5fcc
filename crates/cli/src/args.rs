//! The argument tree.

use crate::size::{self, Size};
use antifreeze_check::render::Format;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Parser)]
#[command(
    name = "antifreeze",
    version,
    about = "Keeps a computer usable, and a training run alive, while a neural network trains on it",
    after_help = "Examples:\n  antifreeze check train.py\n  antifreeze run -- python train.py"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run a training command that cannot freeze the machine
    Run(Box<RunArguments>),
    /// Guard a process that runs already, such as a notebook's kernel
    Attach(AttachArguments),
    /// Find in training code, without running it, what will freeze the machine
    Check(Box<CheckArguments>),
    /// Show what antifreeze does, safely, in a few seconds
    Demo,
    /// Say why a run froze, crashed or crawled, how sure that is, and the way out
    Explain(ExplainArguments),
    /// List the runs, show one, or remove old ones
    Runs(RunsArguments),
    /// Let a run that antifreeze paused go on now
    Resume(ResumeArguments),
    /// Read NVIDIA's graphics cards for a run
    #[command(hide = true)]
    ProbeCards {
        /// The descriptor of its page
        page: i32,
    },
}

#[derive(Args)]
#[command(after_help = "Examples:
  antifreeze run -- python train.py
  antifreeze run --reserve 3G -- torchrun --nproc-per-node 2 train.py
  antifreeze run --checkpoint-signal USR1 -- python train.py
  antifreeze run --retries 3 -- python train.py

Exit status: the command's own (128+N if signal N ended it); 75 when antifreeze ended it
and starting again makes sense; 127 when it was not found, 126 when it could not be run.

Settings may also stand in antifreeze.toml, or under [tool.antifreeze] in pyproject.toml,
and in variables such as ANTIFREEZE_RESERVE; flags win over variables, variables over files.")]
pub struct RunArguments {
    #[command(flatten)]
    pub terms: Terms,
    /// The signal at which the command saves a checkpoint, such as USR1
    #[arg(long, value_name = "SIGNAL", env = "ANTIFREEZE_CHECKPOINT_SIGNAL", value_parser = signal)]
    pub checkpoint_signal: Option<i32>,
    /// How far the command stands back from the processor: 0 not at all, 19 furthest (default: 10)
    #[arg(long, value_name = "N", env = "ANTIFREEZE_NICE", value_parser = clap::value_parser!(i32).range(0..20))]
    pub nice: Option<i32>,
    /// After the run was stopped or killed for want of memory, start it again so often from its last save
    #[arg(
        long,
        value_name = "N",
        env = "ANTIFREEZE_RETRIES",
        overrides_with = "retries"
    )]
    pub retries: Option<u32>,
    /// Keep a status line on the terminal
    #[arg(long)]
    pub live: bool,
    /// Write the verdict to this file, for machines
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What a command may take, and how much is said about it.
#[derive(Args)]
pub struct Terms {
    /// Memory kept free for you, as a size or a share (default: about a tenth)
    #[arg(long, value_name = "SIZE|PERCENT", env = "ANTIFREEZE_RESERVE")]
    pub reserve: Option<Size>,
    /// Behave as if the command may have only this much memory
    #[arg(long, value_name = "SIZE", env = "ANTIFREEZE_BUDGET", value_parser = size::bytes)]
    pub budget: Option<u64>,
    /// Let the command use this much swap (for cold data, or where zram is all there is)
    #[arg(long, value_name = "SIZE", env = "ANTIFREEZE_ALLOW_SWAP", value_parser = size::bytes)]
    pub allow_swap: Option<u64>,
    /// Keep no limit on the command's memory; the ladder alone protects
    #[arg(long, env = "ANTIFREEZE_NO_WALL", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_wall: bool,
    /// Say nothing unless the command is stopped
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more: every change, and what is missing
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  antifreeze attach 4711
  antifreeze attach --budget 6G $(pgrep -n ipykernel)

Until it ends, or you press Ctrl-C: then it goes on unguarded. What was not started by `antifreeze run` has
no cushion: a request that is refused fails as it would on a machine without memory.")]
pub struct AttachArguments {
    /// The process; what it has started and will start is guarded with it
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,
    #[command(flatten)]
    pub terms: Terms,
    /// Say on standard output where the page is, and leave when told to on standard input
    #[arg(long, hide = true)]
    pub tether: bool,
    /// Leave out what an exception tells in the process itself
    #[arg(long, hide = true)]
    pub tersely: bool,
}

#[derive(Args)]
#[command(after_help = "Examples:
  antifreeze check
  antifreeze check train.py --ram 16G --vram 8G
  antifreeze check --fix src
  antifreeze check --explain graph-in-accumulator
  antifreeze check --output-format github .

Exit status: 0 when nothing is found, 1 when something is, 2 when something could not be read.

A finding is ignored with a comment at the end of its line: # antifreeze: ignore[RULE]
Settings may stand under [check] in antifreeze.toml, or [tool.antifreeze.check] in pyproject.toml.")]
pub struct CheckArguments {
    /// Files, notebooks and folders, or - for standard input (default: this folder)
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// How to say what is found
    #[arg(long, value_enum, default_value = "full", value_name = "FORMAT")]
    pub output_format: OutputFormat,
    /// Look for these only: rules by name or code, AF1 for all that begin so, or ALL
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub select: Vec<String>,
    /// Do not look for these
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// Use also the rules that have yet to prove themselves
    #[arg(long)]
    pub preview: bool,
    /// Make the fixes that change nothing but memory and time
    #[arg(long)]
    pub fix: bool,
    /// With --fix or --diff: also fixes that may change what the program computes
    #[arg(long)]
    pub unsafe_fixes: bool,
    /// Show what --fix would change, and change nothing
    #[arg(long, conflicts_with = "fix")]
    pub diff: bool,
    /// Memory of the machine that will train (default: this one's)
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    pub ram: Option<u64>,
    /// Memory of its graphics card (default: this one's)
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    pub vram: Option<u64>,
    /// Its processor cores (default: this one's)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cores: Option<u32>,
    /// What standard input is called
    #[arg(long, value_name = "PATH")]
    pub stdin_filename: Option<PathBuf>,
    /// Explain a rule, or list them all
    #[arg(long, value_name = "RULE", num_args = 0..=1, default_missing_value = "")]
    pub explain: Option<String>,
    /// Serve an editor on standard input and output, in the language server protocol
    #[arg(long, conflicts_with_all = ["paths", "fix", "diff", "explain", "stdin_filename"])]
    pub lsp: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OutputFormat {
    /// For a person: the lines, and the way out
    Full,
    /// One line each
    Concise,
    /// For programs
    Json,
    /// Annotations of GitHub Actions
    Github,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// GitLab's code quality report
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
    /// The run: its name, the beginning of it, or a folder (default: the last)
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Explain what a run printed, where there is nothing else; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub log: Option<PathBuf>,
    /// The system's log, as dmesg or journalctl -k wrote it (default: this machine's own)
    #[arg(long, value_name = "FILE")]
    pub kernel_log: Option<PathBuf>,
    /// Where to write the report, a page with a timeline (default: report.html in the run's folder)
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write a bundle for somebody who is to help, without tokens, keys and names (default: antifreeze-RUN.tar.gz)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub share: Option<Option<PathBuf>>,
    /// Print the verdict for programs
    #[arg(long)]
    pub json: bool,
    /// Tell of a cause, or list them all
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
    /// As JSON, one object a line
    #[arg(long)]
    pub json: bool,
}

#[derive(Subcommand)]
pub enum RunsAction {
    /// Show how a run went (the last one, unless named)
    Show {
        /// The run's id, or the beginning or end of it
        run: Option<String>,
        /// The verdict as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove old runs
    Prune {
        /// How many of the newest to keep
        #[arg(long, default_value_t = 20, value_name = "N")]
        keep: usize,
    },
}

#[derive(Args)]
#[command(after_help = "Example:\n  antifreeze resume")]
pub struct ResumeArguments {
    /// The run's id, or the beginning or end of it (default: the last)
    pub run: Option<String>,
}

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
    use clap::CommandFactory;

    #[test]
    fn the_argument_tree_is_sound() {
        Arguments::command().debug_assert();
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
