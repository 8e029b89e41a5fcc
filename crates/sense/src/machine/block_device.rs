//! Finds the disk that a folder is on.

use crate::parse::{self, BlockDevice};
use rustix::fs::{major, minor, stat};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Finds the block device below a folder; `None` for a network mount, a tmpfs, an overlay or ZFS.
pub fn find_block_device(folder: &Path, proc: &Path) -> Option<BlockDevice> {
    let here = stat(folder).ok()?.st_dev;
    // Major 0 stands for "no device": btrfs and others have numbers of their own, and only the
    // mount table has the device that they were made on.
    if major(here) != 0 {
        return Some(BlockDevice {
            major: major(here),
            minor: minor(here),
        });
    }
    let mountinfo = std::fs::read(proc.join("self/mountinfo")).ok()?;
    let folder = folder.canonicalize().ok()?;
    let mount = parse::mount_holding(&mountinfo, folder.as_os_str().as_bytes())?;
    let source = OsString::from_vec(parse::unescape_mount_path(mount.source).collect());
    if !Path::new(&source).starts_with("/dev") {
        return None;
    }
    let device = stat(&source).ok()?.st_rdev;
    (major(device) != 0).then(|| BlockDevice {
        major: major(device),
        minor: minor(device),
    })
}
