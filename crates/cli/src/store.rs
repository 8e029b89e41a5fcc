//! Stores runs: one folder for each, with a limit on their number and size.

use crate::code_folder;
use antifreeze_diagnose::run::checkpoints::{self, Kind};
use antifreeze_ipc::shared::Shared;
use antifreeze_record::Record;
use antifreeze_sense::parse;
use antifreeze_sense::regular_file;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// The number of runs that are kept. A run takes at most 24 MB, and most take less than 1 MB.
const MAX_KEPT_RUNS: usize = 50;

/// The checkpoints of this many of the newest runs are kept in any case. A model may be large.
const RUNS_WITH_KEPT_SAVES: usize = 3;

/// The disk gets this long to write the rest of a record.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);

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
    /// Whether the run was made on this machine.
    pub is_here: bool,
}

/// What newer runs have saved, by the command and its folder.
#[derive(Default)]
struct SavedCommands {
    /// None: a newer run has finished, and nothing of older ones is needed.
    kinds: HashMap<(Vec<OsString>, PathBuf), Option<HashSet<Kind>>>,
    /// Runs with a saves folder that were seen.
    count: usize,
}

impl SavedCommands {
    /// Whether the checkpoints of this run are needed, given those of all newer runs, which were asked about before.
    fn needs(&mut self, run: &Run) -> bool {
        let has_saves = run.saves().is_dir();
        let is_finished = run.is_finished();
        if !has_saves && !is_finished {
            return false;
        }
        self.count += usize::from(has_saves);
        let kinds: HashSet<Kind> = checkpoints::scan(&run.saves())
            .iter()
            .map(|checkpoint| checkpoint.kind)
            .collect();
        let head = Record::open(&run.folder)
            .ok()
            .and_then(|record| record.head());
        let Some(head) = head else {
            return self.count <= RUNS_WITH_KEPT_SAVES;
        };
        let newer = self
            .kinds
            .entry((head.command, head.folder))
            .or_insert_with(|| Some(HashSet::new()));
        let is_superseded = match newer {
            None => true,
            Some(newer) => is_finished || kinds.is_subset(newer),
        };
        match newer {
            Some(_) if is_finished => *newer = None,
            Some(newer) => newer.extend(kinds),
            None => {}
        }
        !is_superseded || self.count <= RUNS_WITH_KEPT_SAVES
    }
}

/// The process that guards a run, and where its page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guardian {
    pub pid: u32,
    pub started: u64,
    /// Its descriptors of the page and of the state of the run.
    page: u32,
    state: u32,
}

impl Store {
    /// `ANTIFREEZE_HOME`, or the person's state folder. `HOME` may still be that of the user who has become root: then it
    /// is root's own, as the system's list of users says.
    pub fn locate() -> Result<Store, String> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let own_folder = |name| {
            variable(name)
                .map(PathBuf::from)
                .filter(|folder| !code_folder::belongs_to_another_user(folder))
        };
        let home = variable("ANTIFREEZE_HOME")
            .map(PathBuf::from)
            .or_else(|| own_folder("XDG_STATE_HOME").map(|state| state.join("antifreeze")))
            .or_else(|| {
                own_folder("HOME")
                    .or_else(listed_home)
                    .map(|home| home.join(".local/state/antifreeze"))
            })
            .ok_or("there is no home folder; set ANTIFREEZE_HOME to a folder for the records")?;
        let home = std::path::absolute(&home)
            .map_err(|error| format!("ANTIFREEZE_HOME {}: {error}", home.display()))?;
        Ok(Store { home })
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Where the preload library and the shim may be kept, best first.
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
        let user = rustix::process::geteuid().as_raw();
        folders.push(std::env::temp_dir().join(format!("antifreeze-{user}")));
        folders
    }

    /// Makes a folder for a run that starts now, named so that names sort by age. What a run prints and saves is
    /// nobody else's to read.
    pub fn new_run(&self) -> io::Result<Run> {
        let runs = self.home.join("runs");
        // Whatever the umask is.
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&runs)?;
        // Another user could put links in the place of what is written there.
        if [&self.home, &runs]
            .iter()
            .any(|folder| code_folder::belongs_to_another_user(folder))
        {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "it belongs to another user",
            ));
        }
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

    /// Removes the oldest ended runs beyond the limit; returns the number of removed runs.
    pub fn prune(&self, keep: usize) -> usize {
        let runs = self.runs();
        let surplus = runs.len().saturating_sub(keep);
        runs.iter()
            .take(surplus)
            .filter(|run| !run.is_guarded())
            .filter(|run| std::fs::remove_dir_all(&run.folder).is_ok())
            .count()
    }

    /// Removes the oldest ended runs beyond what is kept, and checkpoints that are no longer needed: those of older
    /// runs that a later run of the same command has finished, or has saved again in every kind. The newest checkpoint
    /// of a run that can still be continued stays, however old it is.
    pub fn prune_as_usual(&self) {
        let runs = self.runs();
        let mut saved = SavedCommands::default();
        let mut needed = Vec::new();
        for run in runs.iter().rev() {
            let is_needed = saved.needs(run);
            if run.is_guarded() {
                needed.push(run.id.clone());
                continue;
            }
            if run.saves().is_dir() {
                run.remove_temporary_saves();
                if !is_needed {
                    let _ = std::fs::remove_dir_all(run.saves());
                }
            }
            if is_needed && !checkpoints::scan(&run.saves()).is_empty() {
                needed.push(run.id.clone());
            }
        }
        let surplus = runs.len().saturating_sub(MAX_KEPT_RUNS);
        for run in runs.iter().take(surplus) {
            if !needed.contains(&run.id) && !run.is_guarded() {
                let _ = std::fs::remove_dir_all(&run.folder);
            }
        }
    }
}

/// This user's home folder by /etc/passwd, unless it belongs to another user.
fn listed_home() -> Option<PathBuf> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let own = rustix::process::geteuid().as_raw();
    let home = users.lines().find_map(|line| home_of(line, own))?;
    let home = PathBuf::from(home);
    (home.is_absolute() && !code_folder::belongs_to_another_user(&home)).then_some(home)
}

/// The home folder in a line of /etc/passwd, if the line is about this user.
fn home_of(line: &str, user: u32) -> Option<&str> {
    let mut fields = line.split(':').skip(2);
    let uid: u32 = fields.next()?.parse().ok()?;
    (uid == user).then(|| fields.nth(2)).flatten()
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

    /// The guard of this run, if it is alive.
    pub fn guardian(&self) -> Option<Guardian> {
        let text = regular_file::read(&self.folder.join(GUARD_FILE)).ok()?;
        let text = str::from_utf8(&text).ok()?;
        let mut numbers = text.split_ascii_whitespace();
        let guardian = Guardian {
            pid: numbers.next()?.parse().ok()?,
            started: numbers.next()?.parse().ok()?,
            page: numbers.next()?.parse().ok()?,
            state: numbers.next()?.parse().ok()?,
        };
        let stat = std::fs::read(format!("/proc/{}/stat", guardian.pid)).ok()?;
        let stat = parse::process_stat(&stat)?;
        (stat.started == guardian.started && stat.state != b'Z').then_some(guardian)
    }

    /// The folder for checkpoints that are saved before the run is ended.
    pub fn saves(&self) -> PathBuf {
        self.folder.join("saves")
    }

    /// Removes the temporary files of a process that was killed in the middle of a save. Only for runs that have ended.
    fn remove_temporary_saves(&self) {
        let Ok(entries) = std::fs::read_dir(self.saves()) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                let _ = std::fs::remove_file(entry.path())
                    .or_else(|_| std::fs::remove_dir_all(entry.path()));
            }
        }
    }

    /// Whether the run finished by itself and well, according to its verdict.
    fn is_finished(&self) -> bool {
        let verdict = regular_file::read(&self.folder.join("verdict.json")).unwrap_or_default();
        let verdict: serde_json::Value = serde_json::from_slice(&verdict).unwrap_or_default();
        verdict["end"]["kind"] == "finished"
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
        while has_ended() && self.is_guarded() && began.elapsed() < WRITE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Guardian {
    /// The page of its run. Only that of a guard of this user: the file that names the guard may be anybody's.
    pub fn page(&self) -> Result<Shared, String> {
        if code_folder::belongs_to_another_user(Path::new(&format!("/proc/{}", self.pid))) {
            return Err("the guard belongs to another user".into());
        }
        let open = |fd: u32| {
            std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(format!("/proc/{}/fd/{fd}", self.pid))
                .map_err(|error| format!("reaching the guard: {error}"))
        };
        Shared::open(open(self.page)?, open(self.state)?)
            .map_err(|error| format!("the guard's page: {error}"))
    }
}
