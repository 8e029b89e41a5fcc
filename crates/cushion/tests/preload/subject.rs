//! A process under the wall: started with a limit, the library and a deadline.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use antifreeze_ipc::page;

use crate::library;
use crate::sentry::Sentry;

/// Whatever goes wrong, a process of a test takes no more than this.
const MAX_BYTES: u64 = 3 << 30;
const MAX_SECONDS: u32 = 60;

pub struct Plan(Command);

/// What a finished process said: lines of a word and a number.
pub struct Said {
    pub lines: Vec<(String, i64)>,
    pub status: ExitStatus,
}

pub struct Running {
    pub child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Plan {
    /// `steps.c`, doing `steps` under a soft limit of `limit` bytes.
    pub fn steps(limit: u64, steps: &str) -> Self {
        Self::program(&library::subject("steps", &[]).unwrap(), limit).arguments(steps.split(' '))
    }

    pub fn program(program: &Path, limit: u64) -> Self {
        let mut command = Command::new(program);
        command
            .env_remove(page::ENV)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let set = move |resource, soft, hard| {
            let limit = libc::rlimit {
                rlim_cur: soft,
                rlim_max: hard,
            };
            // SAFETY: the limit is a live value of the right layout.
            match unsafe { libc::setrlimit(resource, &limit) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        };
        let before_exec = move || {
            // SAFETY: alarm has no preconditions.
            unsafe { libc::alarm(MAX_SECONDS) };
            set(libc::RLIMIT_CPU, MAX_SECONDS.into(), MAX_SECONDS.into())?;
            set(libc::RLIMIT_AS, MAX_BYTES, MAX_BYTES)?;
            set(libc::RLIMIT_DATA, limit, libc::RLIM_INFINITY)
        };
        // SAFETY: setrlimit and alarm may be called between fork and exec.
        unsafe { command.pre_exec(before_exec) };
        Self(command).preloading(&[&library::cushion()])
    }

    pub fn arguments<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.0.args(arguments);
        self
    }

    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    pub fn preloading(mut self, libraries: &[&Path]) -> Self {
        let list: Vec<_> = libraries
            .iter()
            .map(|path| path.to_str().unwrap())
            .collect();
        self.0.env("LD_PRELOAD", list.join(":"));
        self
    }

    pub fn with_page(mut self, sentry: &Sentry) -> Self {
        self.0.env(page::ENV, sentry.path());
        self
    }

    pub fn with_page_at(mut self, paths: &str) -> Self {
        self.0.env(page::ENV, paths);
        self
    }

    /// Names the library that the step `load` loads.
    pub fn with_library(mut self, library: &Path) -> Self {
        self.0.env("LIBRARY", library);
        self
    }

    pub fn with_empty_environment(mut self) -> Self {
        self.0.env_clear();
        self
    }

    pub fn start(mut self) -> Running {
        let mut child = self.0.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Running { child, output }
    }

    pub fn run(self) -> Said {
        self.start().finish()
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line, which must begin with `word`.
    pub fn says(&mut self, word: &str) -> i64 {
        let (said, value) = self.line().expect("the process has ended");
        assert_eq!(said, word);
        value
    }

    /// Lets a process that waits go on.
    pub fn go_on(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
    }

    pub fn finish(mut self) -> Said {
        let lines = std::iter::from_fn(|| self.line()).collect();
        Said {
            lines,
            status: self.child.wait().unwrap(),
        }
    }

    fn line(&mut self) -> Option<(String, i64)> {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (word, value) = line
            .trim_end()
            .split_once(' ')
            .unwrap_or((line.trim_end(), "0"));
        (!word.is_empty()).then(|| (word.to_owned(), value.parse().unwrap()))
    }
}

impl Said {
    /// The values of all lines that begin with `word`. The process must have ended well.
    pub fn all(&self, word: &str) -> Vec<i64> {
        assert!(self.status.success(), "{}: {:?}", self.status, self.lines);
        self.lines
            .iter()
            .filter(|(said, _)| said == word)
            .map(|(_, value)| *value)
            .collect()
    }

    pub fn only(&self, word: &str) -> i64 {
        let values = self.all(word);
        assert_eq!(values.len(), 1, "{word} in {:?}", self.lines);
        values[0]
    }
}
