//! Reads how much room a file system has, and whether it is on the network.

use crate::parse;
use crate::{FsSpace, Reading, Reason};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, fstatvfs, openat};
use rustix::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An open folder whose file system is read.
pub struct FileSystemFolder(io::Result<OwnedFd>);

pub struct FileSystemRoom {
    pub space: FsSpace,
    pub inodes_free: Reading<u64>,
}

impl FileSystemFolder {
    pub fn open(folder: &Path) -> FileSystemFolder {
        // The folder is opened as a path only, which needs no read permission.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        FileSystemFolder(openat(CWD, folder, flags, Mode::empty()))
    }

    pub fn read(&self) -> FileSystemRoom {
        let answer = match &self.0 {
            Ok(folder) => fstatvfs(folder),
            Err(errno) => Err(*errno),
        };
        match answer {
            Ok(room) => FileSystemRoom {
                space: FsSpace {
                    total: Reading::Value(room.f_blocks.saturating_mul(room.f_frsize)),
                    free: Reading::Value(room.f_bavail.saturating_mul(room.f_frsize)),
                },
                // A file system that creates inodes on demand (btrfs) shows 0.
                inodes_free: match room.f_files {
                    0 => Reading::Unavailable(Reason::Absent),
                    _ => Reading::Value(room.f_favail),
                },
            },
            Err(errno) => FileSystemRoom {
                space: FsSpace::unavailable(errno.into()),
                inodes_free: errno.into(),
            },
        }
    }
}

/// File systems whose data is on another machine (9p: on the host of a virtual machine).
const NETWORK_FILE_SYSTEMS: &[&[u8]] = &[
    b"9p",
    b"afs",
    b"beegfs",
    b"ceph",
    b"cifs",
    b"coda",
    b"fuse.beegfs",
    b"fuse.ceph",
    b"fuse.ceph-fuse",
    b"fuse.gcsfuse",
    b"fuse.glusterfs",
    b"fuse.goofys",
    b"fuse.juicefs",
    b"fuse.rclone",
    b"fuse.s3fs",
    b"fuse.sshfs",
    b"glusterfs",
    b"gpfs",
    b"lustre",
    b"ncpfs",
    b"nfs",
    b"nfs4",
    b"orangefs",
    b"pvfs2",
    b"smb3",
    b"smbfs",
    b"wekafs",
];

/// Returns 1 when the folder is on a network mount, and 0 when it is not.
pub fn network_flag(folder: &Path, proc: &Path) -> Reading<u64> {
    let Ok(mountinfo) = std::fs::read(proc.join("self/mountinfo")) else {
        return Reading::Unavailable(Reason::Absent);
    };
    let mount = folder.canonicalize().ok().and_then(|folder| {
        parse::mount_holding(&mountinfo, folder.as_os_str().as_bytes()).map(is_network_mount)
    });
    match mount {
        Some(far) => Reading::Value(far.into()),
        None => Reading::Unavailable(Reason::Absent),
    }
}

fn is_network_mount(mount: parse::Mount<'_>) -> bool {
    NETWORK_FILE_SYSTEMS.contains(&mount.kind)
}
