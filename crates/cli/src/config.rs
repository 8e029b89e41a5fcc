//! Reads settings from `antifreeze.toml`, or from `[tool.antifreeze]` in `pyproject.toml`, in the folder where the
//! command is started or the nearest one above it.

use crate::args::{self, RunArguments, Terms};
use crate::output::complain;
use crate::size::{self, Size};
use antifreeze_check::settings::Settings as CheckSettings;
use antifreeze_sense::regular_file;
use antifreeze_text::sanitize;
use serde::Deserialize;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    reserve: Option<Text<Size>>,
    budget: Option<Text<Budget>>,
    allow_swap: Option<Text<Bytes>>,
    wall: Option<bool>,
    checkpoint_signal: Option<Text<SignalNumber>>,
    nice: Option<Nice>,
    retries: Option<u32>,
    quiet: Option<bool>,
    verbose: Option<bool>,
    live: Option<bool>,
    check: Option<CheckSettings>,
    /// The file that contains the settings.
    #[serde(skip)]
    file: Option<PathBuf>,
}

/// A value in the format of the flag of the same name.
#[derive(Debug, PartialEq)]
struct Text<T>(T);

#[derive(Debug, PartialEq)]
struct Budget(Size);

#[derive(Debug, PartialEq)]
struct Bytes(u64);

#[derive(Debug, PartialEq)]
struct SignalNumber(i32);

/// A niceness from 0 to 19; negative ones need privileges.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(try_from = "i32")]
struct Nice(i32);

impl TryFrom<i32> for Nice {
    type Error = String;
    fn try_from(value: i32) -> Result<Nice, String> {
        (0..20)
            .contains(&value)
            .then_some(Nice(value))
            .ok_or_else(|| format!("{value} is not a niceness; use 0 to 19"))
    }
}

impl std::str::FromStr for Budget {
    type Err = String;
    fn from_str(text: &str) -> Result<Budget, String> {
        size::budget(text).map(Budget)
    }
}

impl std::str::FromStr for Bytes {
    type Err = String;
    fn from_str(text: &str) -> Result<Bytes, String> {
        size::bytes(text).map(Bytes)
    }
}

impl std::str::FromStr for SignalNumber {
    type Err = String;
    fn from_str(text: &str) -> Result<SignalNumber, String> {
        args::signal(text).map(SignalNumber)
    }
}

impl<'de, T: std::str::FromStr<Err = String>> Deserialize<'de> for Text<T> {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = match Scalar::deserialize(from)? {
            Scalar::Text(text) => text,
            Scalar::Number(number) => number.to_string(),
        };
        text.parse().map(Text).map_err(serde::de::Error::custom)
    }
}

/// A number is read as the flag would read it, so that `budget = 8` is refused for its missing unit.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string, such as \"8GB\"")]
enum Scalar {
    Text(String),
    Number(i64),
}

#[derive(Deserialize)]
struct PyProject {
    tool: Option<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    antifreeze: Option<Settings>,
}

impl Settings {
    /// The settings for a command started in this folder.
    pub fn read(start: &Path) -> Result<Settings, String> {
        for folder in start.ancestors() {
            let own = folder.join("antifreeze.toml");
            if let Some(text) = trusted_text(&own, start) {
                return match toml::from_str::<Settings>(&text) {
                    Ok(settings) => Ok(settings.with_file(own)),
                    Err(error) => Err(explain_error(&own, &error)),
                };
            }
            let project = folder.join("pyproject.toml");
            if let Some(text) = trusted_text(&project, start) {
                // A project file that is broken for other reasons is not ours to judge.
                let mentions_us = text.contains("antifreeze");
                match toml::from_str::<PyProject>(&text) {
                    Ok(PyProject {
                        tool:
                            Some(Tool {
                                antifreeze: Some(settings),
                            }),
                    }) => return Ok(settings.with_file(project)),
                    Err(error) if mentions_us => return Err(explain_error(&project, &error)),
                    _ => {}
                }
            }
        }
        Ok(Settings::default())
    }

    fn with_file(mut self, file: PathBuf) -> Settings {
        self.file = Some(file);
        self
    }

    /// The settings of `check`, and the file that contains them.
    pub fn check(self) -> (CheckSettings, Option<PathBuf>) {
        (self.check.unwrap_or_default(), self.file)
    }

    /// Sets the options that neither flags nor variables have set.
    pub fn fill(self, arguments: &mut RunArguments) {
        self.fill_terms(&mut arguments.terms);
        arguments.checkpoint_signal = arguments.checkpoint_signal.or(self
            .checkpoint_signal
            .map(|Text(SignalNumber(number))| number));
        arguments.nice = arguments.nice.or(self.nice.map(|Nice(value)| value));
        arguments.retries = arguments.retries.or(self.retries);
        arguments.live |= self.live == Some(true);
    }

    /// Sets the options that `run` and `attach` share.
    pub fn fill_terms(&self, terms: &mut Terms) {
        let reserve = self.reserve.as_ref().map(|Text(size)| *size);
        let budget = self.budget.as_ref().map(|Text(Budget(size))| *size);
        let swap = self.allow_swap.as_ref().map(|Text(Bytes(bytes))| *bytes);
        terms.reserve = terms.reserve.or(reserve);
        terms.budget = terms.budget.or(budget);
        terms.allow_swap = terms.allow_swap.or(swap);
        terms.no_wall |= self.wall == Some(false);
        if !terms.quiet && !terms.verbose {
            terms.quiet = self.quiet == Some(true);
            terms.verbose = self.verbose == Some(true) && !terms.quiet;
        }
    }
}

/// The text of a file that belongs to this user, to root, or to the owner of the folder that the command is started in.
/// Any user can put a file into a folder like /tmp, above the folders of others.
fn trusted_text(path: &Path, start: &Path) -> Option<String> {
    let file = regular_file::open(path).ok()?;
    // Both count: a link of another user chooses which of this user's files is read.
    let owners = [path.symlink_metadata().ok()?, file.metadata().ok()?].map(|about| about.uid());
    let is_trusted = |owner: &u32| {
        *owner == 0
            || *owner == rustix::process::geteuid().as_raw()
            || start.metadata().is_ok_and(|about| about.uid() == *owner)
    };
    if !owners.iter().all(is_trusted) {
        let path = sanitize::escape(path.as_os_str().as_bytes());
        complain(&format!("{path} is ignored: it belongs to another user"));
        return None;
    }
    String::from_utf8(regular_file::read_from(file).ok()?).ok()
}

/// The error quotes the file, which may hold anything.
fn explain_error(path: &Path, error: &toml::de::Error) -> String {
    let error: Vec<String> =
        sanitize::visible_lines(error.to_string().trim_end().as_bytes()).collect();
    format!(
        "{}: {}",
        sanitize::escape(path.as_os_str().as_bytes()),
        error.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;

    fn run(words: &[&str]) -> RunArguments {
        let words = ["antifreeze", "run"]
            .iter()
            .chain(words)
            .chain(&["--", "true"]);
        match Arguments::parse_from(words).command {
            Command::Run(arguments) => *arguments,
            _ => unreachable!("the words say run"),
        }
    }

    #[test]
    fn a_file_of_another_user_above_is_not_read() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("antifreeze.toml");
        let start = folder.path().join("project");
        std::fs::create_dir(&start).unwrap();
        std::fs::write(&file, "retries = 3").unwrap();
        std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
        assert_eq!(Settings::read(&start).unwrap().retries, None);
        std::fs::remove_file(&file).unwrap();
        std::fs::write(folder.path().join("own.toml"), "retries = 3").unwrap();
        std::os::unix::fs::symlink("own.toml", &file).unwrap();
        std::os::unix::fs::lchown(&file, Some(65534), None).unwrap();
        assert_eq!(Settings::read(&start).unwrap().retries, None);
        // A user who works in the folder of another trusts that other user.
        std::os::unix::fs::chown(&start, Some(65534), None).unwrap();
        assert_eq!(Settings::read(&start).unwrap().retries, Some(3));
    }

    #[test]
    fn what_an_error_quotes_cannot_control_the_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("antifreeze.toml");
        std::fs::write(&file, "\u{1b}]0;title\u{7} = 1").unwrap();
        let error = Settings::read(folder.path()).unwrap_err();
        assert!(
            !error.contains(|character: char| character.is_control() && character != '\n'),
            "{error:?}"
        );
    }

    #[test]
    fn the_nearest_file_above_counts_and_flags_win() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        let text = "reserve = '3G'\nbudget = '2G'\ncheckpoint-signal = 'USR2'\nwall = false\n";
        std::fs::write(folder.path().join("antifreeze.toml"), text).unwrap();
        let mut arguments = run(&["--budget", "1G"]);
        Settings::read(&below).unwrap().fill(&mut arguments);
        let terms = &arguments.terms;
        assert_eq!(terms.reserve, Some(Size::Bytes(3_000_000_000)));
        assert_eq!(terms.budget, Some(Size::Bytes(1_000_000_000)));
        assert_eq!(arguments.checkpoint_signal, Some(libc::SIGUSR2));
        assert!(terms.no_wall);
    }

    #[test]
    fn a_project_file_serves_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pyproject.toml");
        std::fs::write(
            &path,
            "[project]\nname = 'x'\n[tool.antifreeze]\nlive = true\n",
        )
        .unwrap();
        assert_eq!(Settings::read(folder.path()).unwrap().live, Some(true));
        std::fs::write(&path, "[project\n").unwrap();
        assert_eq!(Settings::read(folder.path()), Ok(Settings::default()));
    }

    #[test]
    fn a_mistake_is_explained_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("antifreeze.toml");
        for (text, hint) in [
            ("reserv = '1G'", "reserv"),
            ("budget = '150%'", "100%"),
            ("budget = 3", "did you mean 3GB"),
            ("budget = '10GBs'", "did you mean 10GB"),
            ("budget = 0", "8GB"),
            ("allow-swap = '10%'", "8GB"),
            ("reserve = true", "8GB"),
            ("nice = -5", "0 to 19"),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Settings::read(folder.path()).unwrap_err();
            assert!(
                message.contains("antifreeze.toml") && message.contains(hint),
                "{message}"
            );
        }
    }
}
