//! Where runs are kept: one folder a run, bounded in number and size.

use antifreeze_guard::shared::Shared;
use antifreeze_sense::parse;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// How many runs are kept. One takes 24 MB at most, and most of them less than one.
const KEEP_RUNS: usize = 50;

/// Of how many runs the saves are kept that we made for them: a model may be large.
const KEEP_SAVES: usize = 3;

/// A disk gets this long to take the rest of a record.
const WRITING: Duration = Duration::from_secs(20);

/// The name of the file that says which process guards a run.
pub const GUARD_FILE: &str = "guard";

#[derive(Clone)]
pub struct Store {
    home: PathBuf,
}

/// A run's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub folder: PathBuf,
    /// It is one of this machine's, where it was made.
    pub is_here: bool,
}

/// The process that guards a run, and where its page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guardian {
    pub pid: u32,
    pub started: u64,
    pub page_fd: u32,
}

impl Store {
    /// `ANTIFREEZE_HOME`, or the person's state folder.
    pub fn locate() -> Result<Store, String> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = variable("ANTIFREEZE_HOME")
            .map(PathBuf::from)
            .or_else(|| {
                variable("XDG_STATE_HOME").map(|state| Path::new(&state).join("antifreeze"))
            })
            .or_else(|| {
                variable("HOME").map(|home| Path::new(&home).join(".local/state/antifreeze"))
            })
            .ok_or("there is no home folder; set ANTIFREEZE_HOME to a folder for the records")?;
        let home = std::path::absolute(&home)
            .map_err(|error| format!("ANTIFREEZE_HOME {}: {error}", home.display()))?;
        Ok(Store { home })
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where the preload library may be kept: ours alone to write, everybody's to read.
    pub fn library_folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        if rustix::process::geteuid().is_root() {
            // Root's home is closed to the users that a trainer may switch to.
            folders.push(PathBuf::from("/run/antifreeze"));
        }
        folders.push(self.home.join("lib"));
        if let Some(runtime) = std::env::var_os("XDG_RUNTIME_DIR") {
            folders.push(Path::new(&runtime).join("antifreeze"));
        }
        folders
    }

    /// Makes a folder for a run that starts now, named so that names sort by age. What a run prints and saves is
    /// nobody else's to read.
    pub fn new_run(&self) -> io::Result<Run> {
        let runs = self.home.join("runs");
        std::fs::create_dir_all(&runs)?;
        loop {
            let id = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S-%3f").to_string();
            let folder = runs.join(&id);
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    return Ok(Run {
                        id,
                        folder,
                        is_here: true,
                    });
                }
                // Another run began in the same millisecond; the next has a name of its own.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
        }
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> Vec<Run> {
        let Ok(entries) = std::fs::read_dir(self.home.join("runs")) else {
            return Vec::new();
        };
        let mut runs: Vec<Run> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| {
                let id = entry.file_name().into_string().ok()?;
                Some(Run {
                    id,
                    folder: entry.path(),
                    is_here: true,
                })
            })
            .collect();
        runs.sort_by(|a, b| a.id.cmp(&b.id));
        runs
    }

    /// The run with this id, or the only one whose id begins or ends so; without a name,
    /// the last.
    pub fn find(&self, name: Option<&str>) -> Result<Run, String> {
        let runs = self.runs();
        let Some(name) = name else {
            return runs.last().cloned().ok_or_else(|| {
                "there is no run yet; start one with: antifreeze run -- python train.py".to_owned()
            });
        };
        let mut matching = runs
            .iter()
            .filter(|run| run.id.starts_with(name) || run.id.ends_with(name));
        match (matching.next(), matching.next()) {
            (Some(run), None) => Ok(run.clone()),
            (Some(_), Some(_)) => Err(format!("several runs match `{name}`; see: antifreeze runs")),
            (None, _) => Err(format!("no run `{name}`; see: antifreeze runs")),
        }
    }

    /// Removes the oldest ended runs beyond what is kept; returns how many went.
    pub fn prune(&self, keep: usize) -> usize {
        let runs = self.runs();
        let surplus = runs.len().saturating_sub(keep);
        runs.iter()
            .take(surplus)
            .filter(|run| !run.is_guarded())
            .filter(|run| std::fs::remove_dir_all(&run.folder).is_ok())
            .count()
    }

    pub fn prune_as_usual(&self) {
        self.prune(KEEP_RUNS);
        self.prune_saves();
    }

    /// Removes what all but the last few of the runs that were saved have saved.
    fn prune_saves(&self) {
        let saved = |run: &Run| run.saves().is_dir();
        let runs = self.runs().into_iter().rev().filter(saved);
        for old in runs.skip(KEEP_SAVES).filter(|run| !run.is_guarded()) {
            let _ = std::fs::remove_dir_all(old.saves());
        }
    }
}

impl Run {
    /// What is left of a run in this folder, wherever it is from.
    pub fn at(folder: &Path) -> Run {
        let name = folder.file_name().unwrap_or(folder.as_os_str());
        Run {
            id: name.to_string_lossy().into_owned(),
            folder: folder.into(),
            is_here: false,
        }
    }

    /// The guard of this run, if it lives.
    pub fn guardian(&self) -> Option<Guardian> {
        let text = std::fs::read_to_string(self.folder.join(GUARD_FILE)).ok()?;
        let mut numbers = text.split_ascii_whitespace();
        let guardian = Guardian {
            pid: numbers.next()?.parse().ok()?,
            started: numbers.next()?.parse().ok()?,
            page_fd: numbers.next()?.parse().ok()?,
        };
        let stat = std::fs::read(format!("/proc/{}/stat", guardian.pid)).ok()?;
        let stat = parse::stat(&stat)?;
        (stat.started == guardian.started && stat.state != b'Z').then_some(guardian)
    }

    /// Where it is saved before it is ended.
    pub fn saves(&self) -> PathBuf {
        self.folder.join("saves")
    }

    pub fn is_guarded(&self) -> bool {
        self.guardian().is_some()
    }

    /// Where it has ended, and a slow disk has not taken the last of it yet, waits for that.
    pub fn wait_until_written(&self) {
        let Some(Ok(page)) = self.guardian().map(|guardian| guardian.page()) else {
            return;
        };
        let began = Instant::now();
        let has_ended = || page.head().root_status.load(Acquire) != 0;
        while has_ended() && self.is_guarded() && began.elapsed() < WRITING {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Guardian {
    /// The page of its run.
    pub fn page(&self) -> Result<Shared, String> {
        let path = format!("/proc/{}/fd/{}", self.pid, self.page_fd);
        let page = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(|error| format!("reaching the guard: {error}"))?;
        Shared::open(page).map_err(|error| format!("the guard's page: {error}"))
    }
}
