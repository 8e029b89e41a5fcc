//! The binary `antifreeze`: parses the arguments and calls the subcommand.

mod args;
mod check;
mod code_folder;
mod config;
mod demo;
mod embed;
mod explain;
mod gpu_memory;
mod lint_evidence;
mod output;
mod probe;
mod report;
mod run;
mod runs;
mod share;
mod size;
mod store;
mod term_style;
mod usage;

use args::Command;
use output::complain;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match usage::parse().command {
        Command::Run(arguments) => return run::run(*arguments).into(),
        Command::Attach(arguments) => return run::attach::attach(arguments).into(),
        Command::Check(arguments) => return check::check(*arguments).into(),
        Command::Demo => return demo::demo().into(),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Runs(arguments) => runs::runs(arguments),
        Command::Resume(arguments) => runs::resume(arguments.run.as_deref()),
        Command::ProbeGpus { page, state } => probe::probe([page, state]),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&message);
            ExitCode::from(2)
        }
    }
}
