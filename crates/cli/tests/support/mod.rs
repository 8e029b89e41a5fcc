//! A stage for tests that start the real `antifreeze` and real trainers.
//!
//! What it promises: a [`Scene`] has a folder of its own (`ANTIFREEZE_HOME` included), hears
//! nothing of the settings of the person who runs the tests, and leaves no process behind:
//! whatever a scene starts carries the scene's mark in its environment, daemonised
//! grandchildren too, and only what carries it is ever ended. No test waits longer than its
//! limit.

// Every test file compiles this module for itself and uses its own part of it.
#![allow(dead_code, unused_imports, clippy::expect_used)]

mod ended;
mod marked;
mod pythons;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub use ended::Ended;
pub use pythons::{framework_python, pythons};

/// How often a running command is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// One test's folder and the processes started in it.
pub struct Scene {
    folder: tempfile::TempDir,
    mark: String,
}

impl Scene {
    /// An empty scene.
    pub fn new() -> Scene {
        let folder = tempfile::Builder::new()
            .prefix("antifreeze-scene-")
            .tempdir()
            .expect("a temporary folder");
        let mark = format!("{}={}", marked::VARIABLE, folder.path().display());
        Scene { folder, mark }
    }

    /// A path inside the scene's folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a script into the scene and says where.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("writing a script into the scene");
        path
    }

    /// `antifreeze`, ready for its arguments.
    pub fn antifreeze(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_antifreeze"))
    }

    /// `antifreeze run --budget BUDGET --json …`, ready for more flags, `--` and the command.
    pub fn run(&self, budget: &str) -> Command {
        let mut command = self.antifreeze();
        command.args(["run", "--budget", budget, "--json"]);
        command.arg(self.path("verdict.json"));
        command
    }

    /// Any other program of this scene: a neighbour, a tool.
    ///
    /// It leads a process group of its own, as a job of a shell does.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            // A delay of the slow worker that all tests are run with is kept.
            if name.starts_with("ANTIFREEZE_") && !name.starts_with("ANTIFREEZE_TEST_") {
                command.env_remove(&*name);
            }
        }
        command
            .current_dir(self.folder.path())
            .env("ANTIFREEZE_HOME", self.path("home"))
            .env(marked::VARIABLE, self.folder.path())
            .env("PYTHONUNBUFFERED", "1")
            // On a machine that others use too, a trainer of lower priority would hardly run.
            .env("ANTIFREEZE_NICE", "0")
            // TensorFlow has another allocator with it, on processors that it likes: it takes memory in pieces that
            // double, and crashes where another raises.
            .env("TF_ENABLE_ONEDNN_OPTS", "0")
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// Runs a command to its end, or fails the test when it is not over within the limit.
    pub fn finish(&self, command: &mut Command, limit: Duration) -> Ended {
        self.finish_watched(command, limit, |_| ())
    }

    /// As [`Scene::finish`]; `watch` is called again and again while the command runs.
    pub fn finish_watched(
        &self,
        command: &mut Command,
        limit: Duration,
        mut watch: impl FnMut(&Child),
    ) -> Ended {
        let started = Instant::now();
        let mut child = self.start(command);
        loop {
            if let Some(status) = child.try_wait().expect("waiting for the command") {
                return self.ended(status);
            }
            if started.elapsed() > limit {
                self.clear();
                let status = child.wait().expect("waiting for the command");
                panic!("not over within {limit:?}:\n{}", self.ended(status));
            }
            watch(&child);
            thread::sleep(GLANCE);
        }
    }

    /// Starts a command and leaves it running; its output goes to `stdout` and `stderr` in the
    /// scene's folder. Files and not pipes: a grandchild that outlives the command and holds a
    /// pipe open would keep the test waiting.
    pub fn start(&self, command: &mut Command) -> Child {
        let file = |name| File::create(self.path(name)).expect("a file for the output");
        command
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .spawn()
            .expect("starting the command")
    }

    /// What the command last started by [`Scene::start`] has printed, and how it ended.
    pub fn ended(&self, status: std::process::ExitStatus) -> Ended {
        Ended::new(status, &self.path("stdout"), &self.path("stderr"))
    }

    /// Waits until something is so, or fails the test when it is not within the limit.
    pub fn until(&self, what: &str, limit: Duration, mut so: impl FnMut() -> bool) {
        let started = Instant::now();
        while !so() {
            assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
            thread::sleep(GLANCE);
        }
    }

    /// The verdict that [`Scene::run`] wrote.
    pub fn verdict(&self) -> serde_json::Value {
        let text = fs::read_to_string(self.path("verdict.json")).expect("run wrote a verdict");
        serde_json::from_str(&text).expect("the verdict is JSON")
    }

    /// What `antifreeze runs show` says about the last run, each sentence on one line.
    pub fn shown(&self) -> String {
        let mut command = self.antifreeze();
        command.args(["runs", "show"]);
        let output = command.output().expect("starting `runs show`");
        let text = String::from_utf8_lossy(&output.stdout);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Ids of the processes of this scene that still live.
    pub fn living(&self) -> Vec<u32> {
        marked::living(&self.mark)
    }

    fn clear(&self) {
        marked::end(&self.mark);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `run --budget BUDGET FLAGS… -- python EXAMPLE`, in an interpreter that has the frameworks; `None`
/// where there is none.
pub fn train(scene: &Scene, budget: &str, flags: &[&str], script: &str) -> Option<Command> {
    let python = framework_python()?;
    let mut run = scene.run(budget);
    run.args(flags).arg("--").arg(python).arg(example(script));
    run.env("TF_CPP_MIN_LOG_LEVEL", "3");
    run.env("CUDA_VISIBLE_DEVICES", "-1");
    Some(run)
}

/// A script of the repository's `examples/` folder.
pub fn example(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(name);
    path.canonicalize()
        .unwrap_or_else(|error| panic!("no example {name}: {error}"))
}

/// The line of a script that holds this text: where an error is expected.
pub fn line_of(script: &Path, text: &str) -> usize {
    let source = fs::read_to_string(script).expect("reading the script");
    let found = source.lines().position(|line| line.contains(text));
    1 + found.unwrap_or_else(|| panic!("{} has no line with {text:?}", script.display()))
}
