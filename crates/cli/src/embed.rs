//! What travels inside the binary, and how it gets out: the guard runs from an anonymous
//! file in memory, the cushion from a file that every process of the trainer can load.

use rustix::fs::{MemfdFlags, Mode, OFlags, StatVfsMountFlags, memfd_create, statvfs};
use rustix::io::Errno;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

static GUARD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/antifreeze-guard"));
static CUSHION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cushion.so"));

/// A file of the package.
macro_rules! library {
    ($name:literal) => {
        (
            concat!("library/antifreeze/", $name),
            include_str!(concat!("../../../python/antifreeze/", $name)),
        )
    };
}

/// Where each file of the shim goes, and what is in it.
static SHIM: &[(&str, &str)] = &[
    (
        "stub/sitecustomize.py",
        include_str!("../../../python/antifreeze/_stub/sitecustomize.py"),
    ),
    library!("__init__.py"),
    library!("_attach.py"),
    library!("_batch.py"),
    library!("_before.py"),
    library!("_callbacks.py"),
    library!("_known.py"),
    library!("_loader.py"),
    library!("_memory.py"),
    library!("_notebook.py"),
    library!("_optimizer.py"),
    library!("_pressure.py"),
    library!("_ranks.py"),
    library!("_sizes.py"),
    library!("_split.py"),
    library!("_tools.py"),
    library!("keras.py"),
    library!("lightning.py"),
    library!("transformers.py"),
    library!("_shim/__init__.py"),
    library!("_shim/events.py"),
    library!("_shim/files.py"),
    library!("_shim/growth.py"),
    library!("_shim/holders.py"),
    library!("_shim/hooks.py"),
    library!("_shim/jax.py"),
    library!("_shim/keras.py"),
    library!("_shim/landing.py"),
    library!("_shim/numbers.py"),
    library!("_shim/oom.py"),
    library!("_shim/page.py"),
    library!("_shim/pytorch.py"),
    library!("_shim/report.py"),
    library!("_shim/restore.py"),
    library!("_shim/save.py"),
    library!("_shim/stacks.py"),
    library!("_shim/steps.py"),
    library!("_shim/trainer.py"),
];

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

/// The folder that makes Python load the shim when it is on its path, put beside the cushion. None
/// when it cannot be written.
pub fn shim(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| put_shim(folder).ok())
}

fn put_shim(folder: &Path) -> io::Result<PathBuf> {
    let all: Vec<u8> = SHIM
        .iter()
        .flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()].concat())
        .collect();
    let home = folder.join(format!("shim-{:08x}", fingerprint(&all)));
    let stub = home.join("stub");
    // Python's path knows no quoting.
    if home.to_str().is_none_or(|path| path.contains(':')) {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    if stub.is_dir() {
        return Ok(stub);
    }
    // Written aside and renamed, so that it is there whole or not at all.
    let aside = folder.join(format!(".shim-{}", std::process::id()));
    for (name, text) in SHIM {
        let file = aside.join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(&aside))?;
        std::fs::write(file, text)?;
    }
    if let Err(error) = std::fs::rename(&aside, &home) {
        let _ = std::fs::remove_dir_all(&aside);
        // Another run may have been quicker.
        return if stub.is_dir() { Ok(stub) } else { Err(error) };
    }
    Ok(stub)
}

/// FNV-1a: tells one build from another in a file name.
fn fingerprint(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_of_the_shim_travels_in_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/antifreeze/_shim");
        let there: BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".py"))
            .collect();
        let carried: BTreeSet<String> = SHIM
            .iter()
            .filter_map(|(path, _)| Some(path.split_once("_shim/")?.1.to_owned()))
            .collect();
        assert_eq!(carried, there);
    }
}
