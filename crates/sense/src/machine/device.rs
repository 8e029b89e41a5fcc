//! Which disk a folder is on.

use crate::parse::{self, Device};
use rustix::fs::{major, minor, stat};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// The block device below a folder; None for a network mount, a tmpfs, an overlay, ZFS.
pub fn below(folder: &Path, proc: &Path) -> Option<Device> {
    let here = stat(folder).ok()?.st_dev;
    // Major 0 stands for "no device": btrfs and its kin number their own, and only the
    // mount table tells which device they were made from.
    if major(here) != 0 {
        return Some(Device {
            major: major(here),
            minor: minor(here),
        });
    }
    let mountinfo = std::fs::read(proc.join("self/mountinfo")).ok()?;
    let folder = folder.canonicalize().ok()?;
    let mount = parse::mount_of(&mountinfo, folder.as_os_str().as_bytes())?;
    let source = OsString::from_vec(parse::unescaped(mount.source).collect());
    if !Path::new(&source).starts_with("/dev") {
        return None;
    }
    let device = stat(&source).ok()?.st_rdev;
    (major(device) != 0).then(|| Device {
        major: major(device),
        minor: minor(device),
    })
}
