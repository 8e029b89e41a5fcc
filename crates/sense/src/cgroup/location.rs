//! Finds where a process is in the cgroup hierarchies, as far as it can see them.

use crate::parse::{CgroupMembership, Mount, cgroup_memberships, mounts, unescape_mount_path};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The cgroups of one process. A hierarchy that is not mounted, or whose mount does not show the cgroup, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CgroupLocation {
    /// Version 2. On a mixed machine it has no memory controller.
    pub unified: Option<CgroupFolder>,
    /// Version 1's memory controller. While this exists, version 2 cannot have one.
    pub memory: Option<CgroupFolder>,
    /// Version 1's cpu controller.
    pub cpu: Option<CgroupFolder>,
}

/// The folder of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupFolder {
    /// The folder itself.
    pub path: PathBuf,
    /// The mount point: nothing above it is visible.
    pub top: PathBuf,
}

impl CgroupFolder {
    /// Iterates over this folder and those above it, up to the mount point.
    pub fn ancestors_to_mount(&self) -> impl Iterator<Item = &Path> {
        self.path
            .ancestors()
            .take_while(|folder| folder.starts_with(&self.top))
    }
}

/// The version of cgroups that accounts for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// Version 1, with a hierarchy for each controller.
    V1,
    /// Version 2, with one hierarchy for all.
    V2,
}

impl CgroupLocation {
    /// Finds the cgroups of this process.
    pub fn of_self() -> CgroupLocation {
        let read = |path| std::fs::read(path).unwrap_or_default();
        CgroupLocation::parse(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
            .climb_to_existing()
    }

    /// Parses /proc/PID/cgroup and mountinfo, and reads no other file.
    pub fn parse(cgroup: &[u8], mountinfo: &[u8]) -> CgroupLocation {
        let mut location = CgroupLocation::default();
        for membership in cgroup_memberships(cgroup) {
            let controls = |name: &[u8]| list_contains(membership.controllers, name);
            if membership.hierarchy == 0 && membership.controllers.is_empty() {
                location.unified =
                    folder_below_mount(&membership, mountinfo, |m| m.kind == b"cgroup2");
            } else if controls(b"memory") {
                location.memory =
                    folder_below_mount(&membership, mountinfo, |m| is_v1_mount(m, b"memory"));
            }
            // Memory and cpu may share a hierarchy.
            if controls(b"cpu") {
                location.cpu =
                    folder_below_mount(&membership, mountinfo, |m| is_v1_mount(m, b"cpu"));
            }
        }
        location
    }

    /// Climbs to the nearest folder that exists. In a container with the cgroup namespace of the host, the path
    /// does not exist, and the mount itself is the cgroup.
    pub(super) fn climb_to_existing(mut self) -> CgroupLocation {
        for place in [&mut self.unified, &mut self.memory, &mut self.cpu] {
            let there = place.as_ref().and_then(|folder| {
                folder
                    .ancestors_to_mount()
                    .find(|path| path.is_dir())
                    .map(Path::to_path_buf)
            });
            match (place.as_mut(), there) {
                (Some(folder), Some(path)) => folder.path = path,
                _ => *place = None,
            }
        }
        self
    }

    /// The version that would account for memory, and the folder in it. Whether version 2 has the memory controller
    /// enabled there shows in the files of the folder.
    pub fn memory_folder(&self) -> Option<(CgroupVersion, &CgroupFolder)> {
        match (&self.memory, &self.unified) {
            (Some(folder), _) => Some((CgroupVersion::V1, folder)),
            (None, Some(folder)) => Some((CgroupVersion::V2, folder)),
            (None, None) => None,
        }
    }
}

fn is_v1_mount(mount: &Mount<'_>, controller: &[u8]) -> bool {
    mount.kind == b"cgroup" && list_contains(mount.options, controller)
}

fn list_contains(list: &[u8], name: &[u8]) -> bool {
    list.split(|&b| b == b',').any(|entry| entry == name)
}

/// The folder of a cgroup below the first mount of its hierarchy.
fn folder_below_mount(
    membership: &CgroupMembership<'_>,
    mountinfo: &[u8],
    hierarchy: impl Fn(&Mount<'_>) -> bool,
) -> Option<CgroupFolder> {
    let mount = mounts(mountinfo).find(hierarchy)?;
    let top = path_from_bytes(unescape_mount_path(mount.point));
    // A container sees its own cgroup mounted as the root, under the path the host gives it.
    // Where our path is not below what is mounted, the mount is the nearest we can see.
    let below = path_from_bytes(membership.path.iter().copied())
        .strip_prefix(path_from_bytes(unescape_mount_path(mount.root)))
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let climbs = below.as_os_str().as_bytes().starts_with(b"..");
    Some(CgroupFolder {
        path: match below.as_os_str().is_empty() || climbs {
            true => top.clone(),
            false => top.join(below),
        },
        top,
    })
}

fn path_from_bytes(bytes: impl Iterator<Item = u8>) -> PathBuf {
    OsString::from_vec(bytes.collect()).into()
}
