//! What travels inside the binary, and how it gets out: the guard runs from an anonymous
//! file in memory, the cushion from a file that every process of the trainer can load.

use crate::code_folder;
use rustix::fs::{MemfdFlags, StatVfsMountFlags, memfd_create, statvfs};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
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
    library!("_shim/cells.py"),
    library!("_shim/checkpoints.py"),
    library!("_shim/edits.py"),
    library!("_shim/events.py"),
    library!("_shim/files.py"),
    library!("_shim/growth.py"),
    library!("_shim/holders.py"),
    library!("_shim/hooks.py"),
    library!("_shim/iterations.py"),
    library!("_shim/jax.py"),
    library!("_shim/keras.py"),
    library!("_shim/landing.py"),
    library!("_shim/loops.py"),
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

/// The size of the guard's executable.
pub fn guard_bytes() -> usize {
    GUARD.len()
}

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
    let folder = code_folder::open(folder)?;
    if statvfs(&folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
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
    if !is_there(&path, CUSHION) {
        // Written aside and renamed, so that another run never loads half a library.
        let aside = folder.join(format!(".cushion-{}", std::process::id()));
        let _ = std::fs::remove_file(&aside);
        write_new(&aside, CUSHION)?;
        std::fs::rename(&aside, &path)?;
    }
    Ok(path)
}

/// Whether the file has this content, is this user's, and has the mode that it was written with.
fn is_there(path: &Path, content: &[u8]) -> bool {
    code_folder::is_own(path) && std::fs::read(path).is_ok_and(|there| there == content)
}

/// A file that was not there before, readable by those who run the code whatever the umask.
fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = std::fs::File::create_new(path)?;
    file.write_all(content)?;
    file.set_permissions(Permissions::from_mode(code_folder::mode() & !0o111))
}

/// The folder that makes Python load the shim when it is on its path, put beside the cushion. None
/// when it cannot be written.
pub fn shim(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().find_map(|folder| put_shim(folder).ok())
}

fn put_shim(folder: &Path) -> io::Result<PathBuf> {
    let folder = code_folder::open(folder)?;
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
    if is_whole(&home) {
        return Ok(stub);
    }
    // Written aside and renamed, so that it is there whole or not at all.
    let aside = folder.join(format!(".shim-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&aside);
    for (name, text) in SHIM {
        // Python would make the folder for what it compiles with a mode that the umask decides.
        let compiled = Path::new(name).with_file_name("__pycache__");
        make_folders(&aside, &compiled)?;
        write_new(&aside.join(name), text.as_bytes())?;
    }
    if std::fs::rename(&aside, &home).is_err() {
        // Another run may have been quicker. If what is there is not whole, it was changed, and is replaced.
        let changed = folder.join(format!(".changed-{}", std::process::id()));
        if !is_whole(&home) && std::fs::rename(&home, &changed).is_ok() {
            let _ = std::fs::remove_dir_all(&changed);
            std::fs::rename(&aside, &home)?;
        }
        let _ = std::fs::remove_dir_all(&aside);
    }
    match is_whole(&home) {
        true => Ok(stub),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Makes the folder `top`, and the folders `below` it, with the mode of folders for code.
fn make_folders(top: &Path, below: &Path) -> io::Result<()> {
    let mut folder = top.to_owned();
    for name in [OsStr::new("")].into_iter().chain(below.iter()) {
        folder.push(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => {
                std::fs::set_permissions(&folder, Permissions::from_mode(code_folder::mode()))?
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether every file of the shim is there with its content, and no other file is there except what Python compiled
/// from them. This user must own all of them.
fn is_whole(home: &Path) -> bool {
    let expected = || SHIM.iter().map(|(name, text)| (home.join(name), text));
    expected().all(|(path, text)| is_there(&path, text.as_bytes()))
        && has_only(home, &|path| {
            let is_compiled = path
                .parent()
                .is_some_and(|folder| folder.ends_with("__pycache__"));
            is_compiled || expected().any(|(expected, _)| expected == path)
        })
}

/// Whether all files below the folder are as `is_expected` says, and belong to this user.
fn has_only(folder: &Path, is_expected: &dyn Fn(&Path) -> bool) -> bool {
    code_folder::is_own(folder)
        && std::fs::read_dir(folder).is_ok_and(|mut entries| {
            entries.all(|entry| {
                entry.is_ok_and(|entry| {
                    let path = entry.path();
                    match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        true => has_only(&path, is_expected),
                        false => code_folder::is_own(&path) && is_expected(&path),
                    }
                })
            })
        })
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

    #[test]
    fn what_somebody_changed_in_the_shim_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("lib");
        let stub = put_shim(&folder).unwrap();
        let home = stub.parent().unwrap();
        let changes: [&dyn Fn(); 5] = [
            &|| std::fs::write(stub.join("sitecustomize.py"), "import os").unwrap(),
            &|| std::fs::remove_file(home.join("library/antifreeze/keras.py")).unwrap(),
            &|| std::fs::write(home.join("library/torch.py"), "import os").unwrap(),
            &|| std::os::unix::fs::symlink("/tmp", home.join("library/torch")).unwrap(),
            &|| {
                let anybody = Permissions::from_mode(0o777);
                std::fs::set_permissions(home.join("library"), anybody).unwrap();
            },
        ];
        for change in changes {
            assert!(is_whole(home));
            change();
            assert!(!is_whole(home));
            assert_eq!(put_shim(&folder).unwrap(), stub);
        }
        let compiled = home.join("library/antifreeze/__pycache__");
        std::fs::write(compiled.join("keras.cpython-311.pyc"), "").unwrap();
        assert!(is_whole(home));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn the_shim_reads_the_page_that_the_guard_writes() {
        let (_, text) = SHIM
            .iter()
            .find(|(path, _)| path.ends_with("_shim/page.py"))
            .unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let version = format!("VERSION = {}", antifreeze_ipc::page::VERSION);
        let magic = format!("MAGIC = 0x{:08x}", antifreeze_ipc::page::MAGIC);
        assert!(lines.contains(&version.as_str()), "{version}");
        assert!(lines.contains(&magic.as_str()), "{magic}");
    }
}
