//! A cgroup of the trainer's own, where we may have one: a systemd scope, a delegated
//! cgroup of version 2, or version 1 as far as it goes.
//!
//! It is made before the trainer starts, so that everything the trainer ever starts is in
//! it, and removed when the last process has left.

use antifreeze_record::event::Degradation;
use antifreeze_sense::Pid;
use antifreeze_sense::cgroup::{CgroupLocation, CgroupVersion};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often the removal of a cgroup is tried.
const MAX_REMOVALS: usize = 10;

/// The trainer's own cgroup.
#[derive(Default)]
pub struct Home {
    /// The folder that counts the trainer's memory.
    pub memory: Option<PathBuf>,
    /// memory.high, open for writing; version 2 alone has it.
    pub high: Option<std::fs::File>,
    /// memory.reclaim, with which a paused tree makes room; newer kernels have it.
    pub reclaim: Option<std::fs::File>,
    made: Vec<PathBuf>,
}

impl Home {
    /// Makes one and puts the trainer in. Its processes then share what one process of this
    /// nice value would get, where cgroups divide the processor: nice itself counts only
    /// within a cgroup there.
    pub fn make(
        trainer: Pid,
        run_id: &str,
        nice: i32,
        location: &CgroupLocation,
    ) -> Result<Home, Degradation> {
        match location.memory_folder() {
            Some((CgroupVersion::V2, folder)) => scope(trainer, run_id, nice)
                .or_else(|| delegated(trainer, run_id, nice, &folder.path))
                .ok_or(Degradation::NoCgroup),
            Some((CgroupVersion::V1, folder)) => {
                let mut home = Home::default();
                // Made first. Without it none is made for the CPU, which nothing would remove.
                home.memory = home.child_of(&folder.path, trainer, run_id).ok();
                if home.memory.is_some()
                    && let Some(cpu) = &location.cpu
                    && let Ok(made) = home.child_of(&cpu.path, trainer, run_id)
                {
                    let shares = (share(nice) * 1024.0) as u64;
                    let _ = std::fs::write(made.join("cpu.shares"), shares.to_string());
                }
                home.memory
                    .is_some()
                    .then_some(home)
                    .ok_or(Degradation::NoCgroup)
            }
            None => Err(Degradation::NoCgroup),
        }
    }

    /// Finds the cgroup that an earlier guard made for this trainer.
    pub fn find(trainer: Pid, run_id: &str, location: &CgroupLocation) -> Option<Home> {
        let name = name(run_id, trainer);
        match location.memory_folder()? {
            (CgroupVersion::V2, folder) => {
                let now = cgroup_of(trainer)?;
                let path = folder.top.join(now.trim_start_matches('/'));
                // systemd removes its scopes itself.
                let made = delegated_path(&folder.path, &name);
                let made = made.into_iter().filter(|made| *made == path).collect();
                now.contains(&name).then(|| version_2(path, made))
            }
            (CgroupVersion::V1, folder) => {
                let memory = folder.path.join(&name);
                let cpu = location.cpu.as_ref().map(|cpu| cpu.path.join(&name));
                let made = std::iter::once(memory.clone()).chain(cpu).collect();
                memory.is_dir().then(|| Home {
                    memory: Some(memory),
                    made,
                    ..Home::default()
                })
            }
        }
    }

    fn child_of(&mut self, parent: &Path, trainer: Pid, run_id: &str) -> io::Result<PathBuf> {
        let path = parent.join(name(run_id, trainer));
        std::fs::create_dir(&path)?;
        self.made.push(path.clone());
        std::fs::write(path.join("cgroup.procs"), trainer.0.to_string())?;
        Ok(path)
    }

    /// Removes the cgroups that were made. The kernel refuses while a process is left inside, and briefly after the
    /// last one has ended.
    pub fn remove(&self) {
        for path in self.made.iter().rev() {
            for _ in 0..MAX_REMOVALS {
                let removed = std::fs::remove_dir(path);
                if !removed.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY)) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// A run's id is unique in one folder of records; runs of other folders may begin in the same millisecond and meet in
/// the same parent cgroup.
fn name(run_id: &str, trainer: Pid) -> String {
    format!("antifreeze-{run_id}-{}", trainer.0)
}

/// A child of our own cgroup. Works where the cgroup was delegated to us (a container, a
/// service with Delegate=) or where we are root on a machine without systemd.
fn delegated(trainer: Pid, run_id: &str, nice: i32, ours: &Path) -> Option<Home> {
    let mut home = Home::default();
    // Fails where processes live beside the child, us among them: the cgroup then still
    // holds the tree together, it only counts no memory.
    let _ = std::fs::write(ours.join("cgroup.subtree_control"), "+memory +cpu");
    let path = home.child_of(ours, trainer, run_id).ok();
    if path.is_none() {
        home.remove();
    }
    path.map(|path| {
        let _ = std::fs::write(path.join("cpu.weight"), weight(nice));
        version_2(path, home.made)
    })
}

fn version_2(path: PathBuf, made: Vec<PathBuf>) -> Home {
    Home {
        high: open(&path.join("memory.high")),
        reclaim: open(&path.join("memory.reclaim")),
        memory: path.join("memory.current").exists().then_some(path),
        made,
    }
}

/// What a process of this nice value gets of the processor beside one of nice 0: a quarter
/// less with each step.
fn share(nice: i32) -> f64 {
    1.25f64.powi(-nice)
}

/// The same as a weight of version 2, where 100 is ordinary.
fn weight(nice: i32) -> String {
    format!("{:.0}", (share(nice) * 100.0).max(1.0))
}

/// Opened without blocking: newer kernels then skip the reclaim that a lower memory.high
/// would make the writer do.
fn open(path: &Path) -> Option<std::fs::File> {
    std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .ok()
}

/// A scope of the systemd that manages this person's session (or of the machine's, for
/// root). Asked over D-Bus with systemd's own client, since systemd alone may arrange its
/// tree.
fn scope(trainer: Pid, run_id: &str, nice: i32) -> Option<Home> {
    if !Path::new("/run/systemd/system").exists() {
        return None;
    }
    let bus = if rustix::process::geteuid().is_root() {
        "--system"
    } else {
        "--user"
    };
    let unit = format!("{}.scope", name(run_id, trainer));
    let pid = trainer.0.to_string();
    let description = format!("antifreeze run {run_id}");
    let asked = Command::new("busctl")
        .args([bus, "--quiet", "--timeout=2", "call"])
        .args(["org.freedesktop.systemd1", "/org/freedesktop/systemd1"])
        .args(["org.freedesktop.systemd1.Manager", "StartTransientUnit"])
        .args(["ssa(sv)a(sa(sv))", &unit, "fail", "6"])
        .args(["Description", "s", &description, "PIDs", "au", "1", &pid])
        .args(["CollectMode", "s", "inactive-or-failed"])
        .args(["MemoryAccounting", "b", "true"])
        .args(["CPUAccounting", "b", "true"])
        .args(["CPUWeight", "t", &weight(nice), "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !asked.is_ok_and(|status| status.success()) {
        return None;
    }
    // systemd answers when the job is queued; the move itself follows.
    let deadline = Instant::now() + Duration::from_secs(3);
    while Instant::now() < deadline {
        if let Some(path) = cgroup_of(trainer).filter(|path| path.contains(&unit)) {
            let top = CgroupLocation::of_self().unified?.top;
            return Some(version_2(
                top.join(path.trim_start_matches('/')),
                Vec::new(),
            ));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Where a cgroup of version 2 stands that we made ourselves.
fn delegated_path(ours: &Path, name: &str) -> Option<PathBuf> {
    let path = ours.join(name);
    path.is_dir().then_some(path)
}

/// Removes the cgroups of a trainer that is no longer guarded. True while a process is left in one of them.
pub fn is_left(trainer: Pid, run_id: &str) -> bool {
    let location = CgroupLocation::of_self();
    let name = name(run_id, trainer);
    let folders = location.memory_folder().map(|(_, folder)| &folder.path);
    let cpu = location.cpu.as_ref().map(|cpu| &cpu.path);
    let mut is_left = false;
    for parent in folders.into_iter().chain(cpu) {
        let removed = std::fs::remove_dir(parent.join(&name));
        is_left |= removed.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY));
    }
    is_left
}

/// Removes the brake from a trainer that is no longer guarded.
pub fn let_go(trainer: Pid, run_id: &str) {
    if let Some(home) = Home::find(trainer, run_id, &CgroupLocation::of_self())
        && let Some(mut high) = home.high
    {
        let _ = high.write_all(b"max");
    }
}

/// The version 2 cgroup of a process, as a path below the mount.
fn cgroup_of(pid: Pid) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{}/cgroup", pid.0)).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("0::"))
        .map(str::to_owned)
}
