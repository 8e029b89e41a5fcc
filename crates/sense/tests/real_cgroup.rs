//! A real cgroup with a real limit and a real process in it, where we may make one.

use antifreeze_sense::cgroup::{
    AncestorLimits, CgroupFolder, CgroupLocation, CgroupVersion, OwnCgroup,
};
use antifreeze_sense::{Cgroup, Reading};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const LIMIT: u64 = 64 << 20;
const FILL: usize = 16 << 20;

/// A cgroup below ours, gone at the end.
struct Made {
    version: CgroupVersion,
    folder: CgroupFolder,
}

impl Made {
    /// Err with the reason where we may not.
    fn new() -> Result<Made, String> {
        let location = CgroupLocation::of_self();
        let (version, ours) = location.memory_folder().ok_or("no memory cgroup")?;
        let path = ours.path.join(format!("sense-test-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let made = Made {
            version,
            folder: CgroupFolder {
                path,
                top: ours.top.clone(),
            },
        };
        let limit = made.file(match version {
            CgroupVersion::V1 => "memory.limit_in_bytes",
            CgroupVersion::V2 => "memory.max",
        });
        fs::write(&limit, LIMIT.to_string())
            .map_err(|error| format!("{}: {error}", limit.display()))?;
        Ok(made)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    fn location(&self) -> CgroupLocation {
        let folder = Some(self.folder.clone());
        match self.version {
            CgroupVersion::V1 => CgroupLocation {
                memory: folder,
                ..CgroupLocation::default()
            },
            CgroupVersion::V2 => CgroupLocation {
                unified: folder,
                ..CgroupLocation::default()
            },
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder.path);
    }
}

/// A process in the cgroup that keeps all that it is sent: `tail` waits for the end of a
/// line that does not end.
struct Keeper(Child);

impl Keeper {
    fn in_cgroup(made: &Made) -> io::Result<Keeper> {
        Command::new("sh")
            .args(["-c", "echo $$ > \"$0\" && exec tail -n 1"])
            .arg(made.file("cgroup.procs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map(Keeper)
    }

    /// Returns when all but what fits in the pipe has been taken.
    fn keep(&mut self, bytes: usize) -> io::Result<()> {
        let input = self.0.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(&vec![b'x'; bytes])
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_limit_bounds_and_a_real_process_is_counted() {
    let made = match Made::new() {
        Ok(made) => made,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let own = OwnCgroup::open(&made.folder.path);
    let mut above = AncestorLimits::open(&made.location());
    let mut empty = Cgroup::default();
    own.read(&mut empty);
    above.read(&mut empty);
    assert_eq!(empty.limit, Reading::Value(LIMIT));

    let mut keeper = Keeper::in_cgroup(&made).unwrap();
    keeper.keep(FILL).unwrap();
    let mut filled = Cgroup::default();
    own.read(&mut filled);
    above.read(&mut filled);

    // The kernel gathers these counts in batches per core: half is sure to show.
    let sure = FILL as u64 / 2;
    let rise = |of: fn(&Cgroup) -> Reading<u64>| {
        of(&filled).value().unwrap() - of(&empty).value().unwrap()
    };
    assert!(rise(|c| c.own_current) >= sure);
    assert!(rise(|c| c.own_anon) >= sure);
    assert!(filled.limit_available.value().unwrap() <= LIMIT - sure);
}
