use super::{AncestorLimits, CgroupFolder, CgroupLocation, CgroupVersion, OwnCgroup};
use crate::{Cgroup, Reading, Reason};
use Reading::{Unavailable, Value};
use std::fs;
use std::path::{Path, PathBuf};

const ABSENT: Reading<u64> = Unavailable(Reason::Absent);

fn folder(top: &str, below: &str) -> Option<CgroupFolder> {
    let path = match below {
        "" => PathBuf::from(top),
        _ => Path::new(top).join(below),
    };
    Some(CgroupFolder {
        path,
        top: top.into(),
    })
}

#[test]
fn a_systemd_user_session_is_found_in_the_unified_hierarchy() {
    let location = CgroupLocation::parse(
        b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/term.scope\n",
        b"30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
    );
    let session = "user.slice/user-1000.slice/user@1000.service/app.slice/term.scope";
    assert_eq!(location.unified, folder("/sys/fs/cgroup", session));
    assert_eq!(
        (location.memory.as_ref(), location.cpu.as_ref()),
        (None, None)
    );
    assert_eq!(location.memory_folder().unwrap().0, CgroupVersion::V2);
    assert_eq!(location.unified.unwrap().ancestors_to_mount().count(), 6);
}

#[test]
fn a_container_with_its_own_namespace_is_at_the_top() {
    let location = CgroupLocation::parse(
        b"0::/\n",
        b"1200 1190 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n",
    );
    assert_eq!(location.unified, folder("/sys/fs/cgroup", ""));
    assert_eq!(location.unified.unwrap().ancestors_to_mount().count(), 1);
}

#[test]
fn a_version_1_container_is_what_is_mounted_for_it() {
    let location = CgroupLocation::parse(
        b"11:cpu,cpuacct:/docker/3ab\n4:memory:/docker/3ab\n1:name=systemd:/docker/3ab\n",
        b"800 790 0:33 /docker/3ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
801 790 0:34 /docker/3ab /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
    );
    assert_eq!(location.memory, folder("/sys/fs/cgroup/memory", ""));
    assert_eq!(location.cpu, folder("/sys/fs/cgroup/cpu,cpuacct", ""));
    assert_eq!(location.unified, None);
}

#[test]
fn on_a_mixed_machine_memory_is_version_1s() {
    let location = CgroupLocation::parse(
        b"9:name=systemd:/\n4:memory:/jobs/17\n2:cpuacct:/\n1:cpu:/\n0::/\n",
        b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
    );
    assert_eq!(location.unified, folder("/sys/fs/cgroup/unified", ""));
    assert_eq!(location.memory, folder("/sys/fs/cgroup/memory", "jobs/17"));
    assert_eq!(location.cpu, folder("/sys/fs/cgroup/cpu", ""));
    assert_eq!(location.memory_folder().unwrap().0, CgroupVersion::V1);
}

#[test]
fn a_path_outside_what_is_mounted_falls_back_to_the_mount() {
    let outside = CgroupLocation::parse(
        b"0::/../../other\n",
        b"30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );
    assert_eq!(outside.unified, folder("/sys/fs/cgroup", ""));
    let elsewhere = CgroupLocation::parse(
        b"4:memory:/kubepods/b\n",
        b"35 31 0:32 /kubepods/a /m rw - cgroup cgroup rw,memory\n",
    );
    assert_eq!(elsewhere.memory, folder("/m", ""));
}

#[test]
fn without_mounts_we_are_nowhere() {
    assert_eq!(
        CgroupLocation::parse(b"0::/\n", b""),
        CgroupLocation::default()
    );
    assert_eq!(CgroupLocation::default().memory_folder(), None);
}

/// A hierarchy of our own making.
struct Hierarchy {
    home: tempfile::TempDir,
}

impl Hierarchy {
    fn new() -> Hierarchy {
        Hierarchy {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn with(self, file: &str, text: &str) -> Hierarchy {
        let path = self.home.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn place(&self, below: &str) -> Option<CgroupFolder> {
        Some(CgroupFolder {
            path: self.home.path().join(below),
            top: self.home.path().into(),
        })
    }

    fn v2(&self, below: &str) -> CgroupLocation {
        CgroupLocation {
            unified: self.place(below),
            ..CgroupLocation::default()
        }
    }

    fn v1(&self, below: &str) -> CgroupLocation {
        CgroupLocation {
            memory: self.place(below),
            ..CgroupLocation::default()
        }
    }
}

fn above(location: &CgroupLocation) -> (Reading<u64>, Reading<u64>) {
    let mut out = Cgroup::default();
    AncestorLimits::open(location).read(&mut out);
    (out.limit, out.limit_available)
}

#[test]
fn the_tightest_ancestor_is_the_one_with_the_least_left() {
    let hierarchy = Hierarchy::new()
        .with("pod/memory.max", "1000\n")
        .with("pod/memory.high", "max\n")
        .with("pod/memory.current", "950\n")
        .with(
            "pod/memory.stat",
            "inactive_file 10\nactive_file 20\nslab_reclaimable 5\n",
        )
        .with("pod/job/memory.max", "500\n")
        .with("pod/job/memory.high", "max\n")
        .with("pod/job/memory.current", "300\n")
        .with("pod/job/memory.stat", "inactive_file 0\n");
    assert_eq!(
        above(&hierarchy.v2("pod/job")),
        (Value(1000), Value(50 + 10 + 10 + 5))
    );
}

#[test]
fn the_high_mark_bounds_as_the_maximum_does() {
    let hierarchy = Hierarchy::new()
        .with("a/memory.max", "1000\n")
        .with("a/memory.high", "800\n")
        .with("a/memory.current", "100\n")
        .with("a/memory.stat", "");
    assert_eq!(above(&hierarchy.v2("a")), (Value(800), Value(700)));
}

#[test]
fn usage_beyond_a_limit_leaves_nothing() {
    let hierarchy = Hierarchy::new()
        .with("a/memory.max", "100\n")
        .with("a/memory.current", "900\n")
        .with("a/memory.stat", "inactive_file 50\n");
    assert_eq!(above(&hierarchy.v2("a")), (Value(100), Value(0)));
}

#[test]
fn version_1_counts_memory_with_swap_as_a_limit_of_its_own() {
    let hierarchy = Hierarchy::new()
        .with("a/memory.limit_in_bytes", "9223372036854771712\n")
        .with("a/memory.usage_in_bytes", "100\n")
        .with("a/memory.memsw.limit_in_bytes", "600\n")
        .with("a/memory.memsw.usage_in_bytes", "450\n")
        .with("a/memory.stat", "total_inactive_file 30\n");
    assert_eq!(above(&hierarchy.v1("a")), (Value(600), Value(180)));
}

#[test]
fn no_limit_is_an_absence() {
    let hierarchy = Hierarchy::new()
        .with("a/memory.max", "max\n")
        .with("a/memory.high", "max\n")
        .with("a/memory.current", "900\n")
        .with("a/memory.stat", "");
    assert_eq!(above(&hierarchy.v2("a")), (ABSENT, ABSENT));
    assert_eq!(above(&CgroupLocation::default()), (ABSENT, ABSENT));
}

#[test]
fn a_limit_set_while_we_run_is_seen_within_four_reads() {
    let hierarchy = Hierarchy::new()
        .with("a/memory.max", "max\n")
        .with("a/memory.current", "10\n")
        .with("a/memory.stat", "");
    let mut above = AncestorLimits::open(&hierarchy.v2("a"));
    let mut out = Cgroup::default();
    above.read(&mut out);
    assert_eq!(out.limit, ABSENT);
    let hierarchy = hierarchy.with("a/memory.max", "100\n");
    for _ in 0..4 {
        above.read(&mut out);
    }
    assert_eq!((out.limit, out.limit_available), (Value(100), Value(90)));
    let _hierarchy = hierarchy.with("a/memory.max", "200\n");
    above.read(&mut out);
    assert_eq!(out.limit, Value(200), "a change is seen at once");
}

#[test]
fn a_path_that_leads_nowhere_is_left_for_the_nearest_that_exists() {
    let hierarchy = Hierarchy::new().with("pod/memory.max", "max\n");
    let location = hierarchy.v2("pod/of/the/host").climb_to_existing();
    assert_eq!(location.unified, hierarchy.place("pod"));
    let nowhere = CgroupLocation {
        unified: folder("/no/such/mount", "a"),
        ..CgroupLocation::default()
    };
    assert_eq!(nowhere.climb_to_existing(), CgroupLocation::default());
}

#[test]
fn our_own_cgroup_is_read_in_either_version() {
    let hierarchy = Hierarchy::new()
        .with("two/memory.current", "100\n")
        .with("two/memory.stat", "anon 60\nshmem 7\n")
        .with("two/memory.swap.current", "5\n")
        .with("two/memory.events", "low 0\nhigh 12\n")
        .with("one/memory.usage_in_bytes", "200\n")
        .with(
            "one/memory.stat",
            "rss 1\ntotal_rss 70\ntotal_shmem 8\ntotal_swap 6\n",
        );
    let read = |name: &str| {
        let mut out = Cgroup::default();
        OwnCgroup::open(&hierarchy.home.path().join(name)).read(&mut out);
        out
    };
    let two = read("two");
    assert_eq!((two.own_current, two.own_anon), (Value(100), Value(60)));
    assert_eq!((two.own_shmem, two.own_swap), (Value(7), Value(5)));
    assert_eq!(two.own_high_events, Value(12));
    let one = read("one");
    assert_eq!((one.own_current, one.own_anon), (Value(200), Value(70)));
    assert_eq!((one.own_shmem, one.own_swap), (Value(8), Value(6)));
    assert_eq!(one.own_high_events, ABSENT);
    assert_eq!(read("none").own_current, ABSENT);
}
