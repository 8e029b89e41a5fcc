//! What travels inside the binary, and how it gets out: the guard runs from an anonymous
//! file in memory, the cushion from a file that every process of the trainer can load.

use rustix::fs::{MemfdFlags, Mode, OFlags, StatVfsMountFlags, memfd_create, statvfs};
use rustix::io::Errno;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

static GUARD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/antifreeze-guard"));
static CUSHION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cushion.so"));

/// The guard, ready to be executed by `/proc/self/fd/N`.
pub fn guard() -> io::Result<OwnedFd> {
    let name = "antifreeze-guard";
    let fd = match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::EXEC) {
        // Before Linux 6.3 every memfd may be executed and the flag is unknown.
        Err(Errno::INVAL) => memfd_create(name, MemfdFlags::CLOEXEC)?,
        other => other?,
    };
    let mut file = std::fs::File::from(fd);
    file.write_all(GUARD)?;
    Ok(file.into())
}

/// The path of the preload library, put in the first of these folders that can hold code.
/// None when none can: the kernel's limit then stands without its cushion.
pub fn cushion(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| put_cushion(folder).ok())
}

fn put_cushion(folder: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    if statvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let path = folder.join(format!("cushion-{:08x}.so", fingerprint(CUSHION)));
    // LD_PRELOAD separates by spaces and colons and knows no quoting.
    if path
        .to_str()
        .is_none_or(|path| path.contains([' ', ':', '\t']))
    {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    if std::fs::read(&path).is_ok_and(|there| there == CUSHION) {
        return Ok(path);
    }
    // Written aside and renamed, so that another run never loads half a library.
    let aside = folder.join(format!(".cushion-{}", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(rustix::fs::open(&aside, flags, Mode::from(0o755))?);
    file.write_all(CUSHION)?;
    drop(file);
    std::fs::rename(&aside, &path)?;
    Ok(path)
}

/// FNV-1a: tells one build from another in a file name.
fn fingerprint(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}
