//! Explains a command line that cannot be parsed: what was probably meant, and the line to type instead.
//!
//! clap finds the mistake and suggests similar names. This module adds what clap cannot know, such as that
//! `antifreeze python train.py` wants `run`.

use crate::args::{self, Arguments};
use crate::run::attach;
use antifreeze_text::sanitize;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error, Parser};
use rustix::fs::{Access, access};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The arguments of this process. Exits with status 2 where they cannot be understood, and with 0 after the help.
pub fn parse() -> Arguments {
    let words = args::words();
    Arguments::try_parse_from(&words).unwrap_or_else(|error| {
        let error = explain_error(error, &words, &Surroundings::real());
        // Python reads what was wrong from the tether, and raises it.
        if error.use_stderr() && words.iter().any(|word| word == "--tether") {
            attach::Tether::fail(&first_line(&error));
            std::process::exit(2);
        }
        error.exit()
    })
}

/// The facts about this machine that an explanation depends on.
struct Surroundings<'a> {
    /// Whether a program of this name can be started.
    is_program: &'a dyn Fn(&OsStr) -> bool,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Surroundings<'_> {
    fn real() -> Surroundings<'static> {
        Surroundings {
            is_program: &is_program,
            variable: &|name| std::env::var_os(name),
        }
    }
}

/// The interpreter to suggest: Debian has no `python`.
pub fn python(is_program: &dyn Fn(&OsStr) -> bool) -> &'static str {
    let has = |name: &str| is_program(OsStr::new(name));
    if has("python3") && !has("python") {
        "python3"
    } else {
        "python"
    }
}

pub fn is_program(word: &OsStr) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if word.as_encoded_bytes().contains(&b'/') {
        return runs(Path::new(word));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| runs(&folder.join(word)))
}

/// What to type in place of a command that could not be started: with `python3` where there is no `python`, with an
/// interpreter before a script, with variables before `antifreeze`, and without a slip in the name of a launcher.
pub fn command_hint(
    command: &[OsString],
    folder: &Path,
    is_program: &dyn Fn(&OsStr) -> bool,
) -> Option<String> {
    let (first, rest) = command.split_first()?;
    let line = |words: &[OsString]| format!("antifreeze run {}", sanitize::shell_command(words));
    let instead_of_first = |program: &str| {
        let words: Vec<OsString> = [OsString::from(program)]
            .into_iter()
            .chain(rest.iter().cloned())
            .collect();
        line(&words)
    };
    let script = Path::new(first);
    if script.extension().is_some_and(|ending| ending == "py") && folder.join(script).is_file() {
        let words: Vec<OsString> = [OsString::from(python(is_program))]
            .into_iter()
            .chain(command.iter().cloned())
            .collect();
        return Some(format!("to run it with Python: {}", line(&words)));
    }
    let name = first.to_str()?;
    let variables = command.iter().take_while(|word| is_assignment(word));
    let count = variables.count();
    if count > 0 && count < command.len() {
        let (variables, command) = command.split_at(count);
        // As arguments: the first word of a command is quoted where it holds a `=`.
        let words: Vec<OsString> = [OsString::new()]
            .into_iter()
            .chain(variables.iter().cloned())
            .collect();
        let variables = sanitize::shell_command(&words);
        let variables = variables.trim_start_matches("''").trim_start();
        return Some(format!(
            "put variables before antifreeze: {variables} {}",
            line(command)
        ));
    }
    let similar = LAUNCHERS.iter().find(|launcher| {
        let is_meant =
            is_one_slip_away(name, launcher) || name == "python" && **launcher == "python3";
        name != **launcher && is_meant && is_program(OsStr::new(launcher))
    })?;
    Some(format!("did you mean: {}", instead_of_first(similar)))
}

/// Programs that start a training, in the order in which they are suggested.
const LAUNCHERS: [&str; 7] = [
    "python",
    "python3",
    "torchrun",
    "accelerate",
    "deepspeed",
    "jupyter",
    "bash",
];

/// `NAME=value`, as a shell takes it before a command.
fn is_assignment(word: &OsStr) -> bool {
    let name = word.to_str().and_then(|word| word.split_once('='));
    name.is_some_and(|(name, _)| {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
    })
}

/// Adds to the error what was probably meant.
fn explain_error(error: Error, words: &[OsString], here: &Surroundings<'_>) -> Error {
    match error.kind() {
        ErrorKind::MissingRequiredArgument if subcommand(words) == Some("run") => needs_command(),
        ErrorKind::MissingRequiredArgument if subcommand(words) == Some("attach") => with_tip(
            error,
            "find the PID with `pgrep -a python`, then run: antifreeze attach 4711",
        ),
        ErrorKind::InvalidSubcommand if subcommand(words).is_none() => {
            suggest_run(suggest_subcommand(error, words), words, here)
        }
        ErrorKind::UnknownArgument if subcommand(words).is_none() => {
            suggest_flag_position(error, words)
        }
        ErrorKind::UnknownArgument => match suggest_long_flag(&error, words) {
            Some(meant) => with_tip(error, &format!("a similar argument exists: '{meant}'")),
            None => {
                let mut error = error;
                if error.get(ContextKind::SuggestedArg).is_some() {
                    error.remove(ContextKind::Suggested);
                }
                error
            }
        },
        ErrorKind::ValueValidation => name_variable(error, words, here),
        _ => error,
    }
}

/// The subcommand in the command line, if there is one.
fn subcommand(words: &[OsString]) -> Option<&str> {
    let name = words.get(1)?.to_str()?;
    Arguments::command()
        .find_subcommand(name)
        .is_some()
        .then_some(name)
}

fn needs_command() -> Error {
    let mut program = Arguments::command();
    program.build();
    let message =
        "`antifreeze run` needs the command to run, such as:\n\n  antifreeze run python train.py";
    match program.find_subcommand_mut("run") {
        Some(run) => run.error(ErrorKind::MissingRequiredArgument, message),
        None => program.error(ErrorKind::MissingRequiredArgument, message),
    }
}

/// Suggests the subcommands that differ by one typing error: clap's measure misses `run` for `rn`.
fn suggest_subcommand(mut error: Error, words: &[OsString]) -> Error {
    let typed = words.get(1).and_then(|word| word.to_str());
    let program = Arguments::command();
    let names: Vec<String> = program
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| command.get_name().to_owned())
        .filter(|name| typed.is_some_and(|typed| is_one_slip_away(typed, name)))
        .collect();
    if !names.is_empty() {
        error.insert(
            ContextKind::SuggestedSubcommand,
            ContextValue::Strings(names),
        );
    }
    error
}

/// Whether one letter too many, too few, wrong or swapped with its neighbour makes the one into the other.
fn is_one_slip_away(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    match (one, other) {
        ([a, b, rest @ ..], [c, d, others @ ..]) if a == d && b == c => rest == others,
        ([_, rest @ ..], [_, others @ ..]) if rest == others => true,
        ([_, rest @ ..], others) if rest == others => true,
        (rest, [_, others @ ..]) => rest == others,
        _ => false,
    }
}

/// Suggests `run` for `antifreeze python train.py` and `antifreeze train.py`.
fn suggest_run(error: Error, words: &[OsString], here: &Surroundings<'_>) -> Error {
    let Some((first, rest)) = words.get(1..).and_then(<[OsString]>::split_first) else {
        return error;
    };
    let ending = Path::new(first).extension().and_then(OsStr::to_str);
    let python = python(here.is_program);
    let interpreter: &[&str] = match ending {
        _ if (here.is_program)(first) => &[],
        Some("py") => &[python],
        Some("sh") => &["bash"],
        Some("ipynb") => {
            return with_tip(
                error,
                "in a notebook, run this in its first cell: %load_ext antifreeze",
            );
        }
        _ if error.get(ContextKind::SuggestedSubcommand).is_some() => return error,
        _ => {
            return with_tip(
                error,
                "to run a command guarded: antifreeze run python train.py",
            );
        }
    };
    let command: Vec<OsString> = interpreter
        .iter()
        .map(OsString::from)
        .chain([first.clone()])
        .chain(rest.iter().cloned())
        .collect();
    let line = format!("antifreeze run {}", sanitize::shell_command(&command));
    with_tip(error, &format!("to run it guarded: {line}"))
}

/// Suggests the right place of the flag for `antifreeze --budget 8GB python train.py`.
fn suggest_flag_position(error: Error, words: &[OsString]) -> Error {
    let is_flag_of_run = |word: &str| {
        let name = word.split('=').next().unwrap_or(word);
        let program = Arguments::command();
        let run = program.find_subcommand("run");
        run.is_some_and(|run| has_flag(run, name))
    };
    let rest = words.get(1..).unwrap_or_default();
    match rest.first().and_then(|word| word.to_str()) {
        Some(word) if is_flag_of_run(word) => {
            let mut line: Vec<OsString> = rest.to_vec();
            // `antifreeze --budget 8GB run python train.py`.
            if let Some(at) = line.iter().position(|word| word == "run") {
                line.remove(at);
            }
            let line = format!("antifreeze run {}", sanitize::shell_command(&line));
            let mut error = error;
            error.remove(ContextKind::SuggestedArg);
            with_tip(error, &format!("put the flags after `run`: {line}"))
        }
        _ => error,
    }
}

/// The long flag for `-budget` and `-budget=8GB`, of which the error names the first letter that is no flag.
fn suggest_long_flag(error: &Error, words: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let letter = unknown.strip_prefix('-').filter(|rest| rest.len() == 1)?;
    let program = Arguments::command();
    let command = program.find_subcommand(subcommand(words)?)?;
    words.iter().skip(2).find_map(|word| {
        let name = word.to_str()?.strip_prefix('-')?.split('=').next()?;
        let flag = format!("--{name}");
        let is_meant = name.len() > 1 && name.contains(letter) && has_flag(command, &flag);
        is_meant.then_some(flag)
    })
}

fn has_flag(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        long.as_deref() == Some(name) || short.as_deref() == Some(name)
    })
}

/// Names the variable that a wrong value comes from, if the value was not typed.
fn name_variable(error: Error, words: &[OsString], here: &Surroundings<'_>) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (Some(argument), Some(value)) = (
        text(ContextKind::InvalidArg),
        text(ContextKind::InvalidValue),
    ) else {
        return error;
    };
    let flag = argument.split(' ').next().unwrap_or_default();
    let is_typed = |word: &OsString| {
        let word = word.to_string_lossy();
        word == flag || word.starts_with(&format!("{flag}="))
    };
    let variable = format!(
        "ANTIFREEZE_{}",
        flag.trim_start_matches('-')
            .replace('-', "_")
            .to_uppercase()
    );
    let is_set = (here.variable)(&variable).is_some_and(|set| set.to_string_lossy() == value);
    if words.iter().any(is_typed) || !is_set {
        return error;
    }
    with_tip(
        error,
        &format!("the value comes from the variable {variable}"),
    )
}

fn with_tip(mut error: Error, tip: &str) -> Error {
    let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip.to_owned())]);
    error.insert(ContextKind::Suggested, tips);
    error
}

/// The first line of the error, without the usage.
fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_message(line: &str, variables: &[(&str, &str)]) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let here = Surroundings {
            is_program: &|word| word == "python" || word == "torchrun",
            variable: &|name| {
                let set = variables.iter().find(|(set, _)| *set == name);
                set.map(|(_, value)| OsString::from(value))
            },
        };
        match Arguments::try_parse_from(&words) {
            Ok(_) => panic!("{line} is accepted"),
            Err(error) => explain_error(error, &words, &here).to_string(),
        }
    }

    /// The first line of the message and its tip, for every line that people type first.
    #[test]
    fn a_mistake_is_answered_with_the_line_to_type() {
        let missing = "error: `antifreeze run` needs the command to run, such as:\n\n  antifreeze run python train.py\n\nUsage: antifreeze run [OPTIONS] [--] COMMAND [ARGUMENTS]...";
        for (typed, expected) in [
            ("antifreeze run", missing),
            ("antifreeze run --", missing),
            ("antifreeze run --budget 8GB", missing),
            (
                "antifreeze train.py --lr 0.1",
                "tip: to run it guarded: antifreeze run python train.py --lr 0.1\n",
            ),
            (
                "antifreeze python train.py",
                "tip: to run it guarded: antifreeze run python train.py\n",
            ),
            (
                "antifreeze torchrun train.py",
                "tip: to run it guarded: antifreeze run torchrun train.py\n",
            ),
            (
                "antifreeze train.ipynb",
                "tip: in a notebook, run this in its first cell: %load_ext antifreeze\n",
            ),
            (
                "antifreeze --budget 8GB python train.py",
                "tip: put the flags after `run`: antifreeze run --budget 8GB python train.py\n",
            ),
            (
                "antifreeze --budget 8GB run python train.py",
                "tip: put the flags after `run`: antifreeze run --budget 8GB python train.py\n",
            ),
            (
                "antifreeze -q python train.py",
                "tip: put the flags after `run`: antifreeze run -q python train.py\n",
            ),
            (
                "antifreeze rn python train.py",
                "tip: a similar subcommand exists: 'run'\n",
            ),
            (
                "antifreeze rnu python train.py",
                "tip: a similar subcommand exists: 'run'\n",
            ),
            (
                "antifreeze start train",
                "tip: to run a command guarded: antifreeze run python train.py",
            ),
            (
                "antifreeze chek train.py",
                "tip: a similar subcommand exists: 'check'",
            ),
            (
                "antifreeze explian",
                "tip: a similar subcommand exists: 'explain'",
            ),
            (
                "antifreeze runs shw",
                "tip: a similar subcommand exists: 'show'",
            ),
            (
                "antifreeze run --bugdet 8GB python train.py",
                "tip: a similar argument exists: '--budget'",
            ),
            (
                "antifreeze run -budget 8GB python train.py",
                "tip: a similar argument exists: '--budget'",
            ),
            (
                "antifreeze run --budget 8GB -retries=3 python train.py",
                "tip: a similar argument exists: '--retries'",
            ),
            (
                "antifreeze check --ouput-format json",
                "tip: a similar argument exists: '--output-format'",
            ),
            (
                "antifreeze attach",
                "tip: find the PID with `pgrep -a python`, then run: antifreeze attach 4711",
            ),
            (
                "antifreeze attach python",
                "a PID is a number such as 4711; `pgrep -a python` lists the Python processes with their PIDs",
            ),
            ("antifreeze attach 0", "a PID is a number such as 4711"),
            (
                "antifreeze attach 99999999999",
                "a PID is a number such as 4711",
            ),
            (
                "antifreeze run --budget 4 python train.py",
                "error: invalid value '4' for '--budget <SIZE|PERCENT>': `4` has no unit and would mean 4 bytes; did you mean 4GB, or 4MB?",
            ),
            (
                "antifreeze run --budget -5 python train.py",
                "`-5` is negative; did you mean 5GB?",
            ),
            (
                "antifreeze run --budget --verbose python train.py",
                "a size is missing before `--verbose`",
            ),
            (
                "antifreeze check --ram 16 train.py",
                "`16` has no unit and would mean 16 bytes; did you mean 16GB, or 16MB?",
            ),
            (
                "antifreeze attach --reserve 150% 4711",
                "`150%` is more than all of the memory",
            ),
        ] {
            let message = error_message(typed, &[]);
            assert!(
                message.contains(expected),
                "{typed}\n{message}\nhas no\n{expected}"
            );
        }
    }

    #[test]
    fn a_command_that_is_not_there_is_answered_with_the_line_to_type() {
        let folder = Path::new("/nonexistent");
        for (command, programs, expected) in [
            (
                "python train.py --lr 0.1",
                &["python3"][..],
                Some("did you mean: antifreeze run python3 train.py --lr 0.1"),
            ),
            ("python train.py", &[], None),
            (
                "pyhton train.py",
                &["python", "python3"],
                Some("did you mean: antifreeze run python train.py"),
            ),
            (
                "torchrn train.py",
                &["torchrun"],
                Some("did you mean: antifreeze run torchrun train.py"),
            ),
            ("torchrn train.py", &["python"], None),
            (
                "CUDA_VISIBLE_DEVICES=0 OMP_NUM_THREADS=1 python train.py",
                &["python"],
                Some(
                    "put variables before antifreeze: CUDA_VISIBLE_DEVICES=0 OMP_NUM_THREADS=1 antifreeze run python \
                     train.py",
                ),
            ),
            ("A=1", &["python"], None),
            ("=1 python", &["python"], None),
            ("unknown train.py", &["python"], None),
        ] {
            let words: Vec<OsString> = command.split(' ').map(OsString::from).collect();
            let is_program = |word: &OsStr| programs.iter().any(|program| word == *program);
            let hint = command_hint(&words, folder, &is_program);
            assert_eq!(hint.as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn one_slip_is_one_letter() {
        for (typed, name, expected) in [
            ("rn", "run", true),
            ("runn", "run", true),
            ("rin", "run", true),
            ("rnu", "run", true),
            ("urn", "run", true),
            ("chekc", "check", true),
            ("r", "run", false),
            ("nur", "run", false),
            ("python", "run", false),
        ] {
            assert_eq!(is_one_slip_away(typed, name), expected, "{typed} {name}");
        }
    }

    #[test]
    fn a_wrong_value_that_was_not_typed_is_laid_at_its_variable() {
        let tip = "the value comes from the variable ANTIFREEZE_BUDGET";
        let set = [("ANTIFREEZE_BUDGET", "4")];
        // What clap reads itself cannot be given here; the message is the same.
        let words: Vec<OsString> = ["antifreeze", "run", "python"].map(OsString::from).into();
        let typed: Vec<OsString> = ["antifreeze", "run", "--budget", "4", "python"]
            .map(OsString::from)
            .into();
        let here = Surroundings {
            is_program: &|_| false,
            variable: &|name| {
                let set = set.iter().find(|(set, _)| *set == name);
                set.map(|(_, value)| OsString::from(value))
            },
        };
        let error = || match Arguments::try_parse_from(&typed) {
            Ok(_) => panic!("it is accepted"),
            Err(error) => error,
        };
        assert!(
            explain_error(error(), &words, &here)
                .to_string()
                .contains(tip)
        );
        assert!(
            !explain_error(error(), &typed, &here)
                .to_string()
                .contains(tip)
        );
    }
}
