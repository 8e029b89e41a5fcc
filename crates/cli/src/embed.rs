//! Unpacks the files that are embedded in the binary: the guard is executed from an anonymous file in memory, and
//! the cushion is written to a file that every process of the trainer can load.

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

/// The Python files of `python/antifreeze`: (path in the shim's folder, content). The build script lists them.
static SHIM: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/python_files.rs"));

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
    use antifreeze_ipc::page::{self, Head, Trainer};
    use antifreeze_sense::Phase;
    use std::collections::BTreeMap;

    #[test]
    fn every_python_file_of_the_package_is_embedded() {
        fn add(folder: &Path, found: &mut BTreeMap<String, String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    add(&path, found);
                } else if path.extension().is_some_and(|extension| extension == "py") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.insert(path.to_str().unwrap().to_owned(), text);
                }
            }
        }
        let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/antifreeze");
        let mut found = BTreeMap::new();
        add(Path::new(package), &mut found);
        assert!(found.len() > 40, "{}", found.len());
        let embedded: BTreeMap<String, String> = SHIM
            .iter()
            .map(|(path, text)| {
                let name = path
                    .strip_prefix("library/antifreeze")
                    .map(str::to_owned)
                    .or_else(|| Some(format!("/_stub{}", path.strip_prefix("stub")?)));
                (format!("{package}{}", name.unwrap()), (*text).to_owned())
            })
            .collect();
        assert_eq!(embedded, found);
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

    /// `(NAME, offset of the field name)` of each field.
    macro_rules! offsets {
        ($structure:ty: $($field:ident)*) => {
            [$((stringify!($field).to_uppercase(), std::mem::offset_of!($structure, $field))),*]
        };
    }

    /// The assignments of numbers in page.py, also those of `A, B = range(2)` and `A, B = 1, 2`.
    fn numbers_in_page_py() -> BTreeMap<String, usize> {
        let (_, text) = SHIM
            .iter()
            .find(|(path, _)| path.ends_with("_shim/page.py"))
            .unwrap();
        let mut numbers = BTreeMap::new();
        for line in text.lines() {
            let Some((names, value)) = line.split_once(" = ") else {
                continue;
            };
            let number = |text: &str| match text.strip_prefix("0x") {
                Some(digits) => usize::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            };
            let values: Option<Vec<usize>> = value.split(", ").map(number).collect();
            let names: Vec<&str> = names.split(", ").collect();
            if let Some(values) = values.filter(|values| values.len() == names.len()) {
                numbers.extend(names.into_iter().map(str::to_owned).zip(values));
            }
        }
        numbers
    }

    #[test]
    fn the_shim_knows_the_page_as_the_guard_does() {
        let numbers = numbers_in_page_py();
        let fields = offsets!(Trainer:
            pid phase batch save_asked stop_asked save_answered stop_answered save_ms steps saved_step rung look_asked
            listens save_failed
        );
        let words = fields.map(|(name, offset)| (name, offset / 4));
        let head = offsets!(Head: front_pid guard_pid leave);
        let phases = [
            ("UNKNOWN", Phase::Unknown),
            ("DATA", Phase::Data),
            ("FORWARD", Phase::Forward),
            ("BACKWARD", Phase::Backward),
            ("OPTIMIZER", Phase::Optimizer),
            ("EVALUATION", Phase::Evaluation),
            ("SAVING", Phase::Saving),
        ]
        .map(|(name, phase)| (name.to_owned(), phase as usize));
        let others = [
            ("MAGIC", page::MAGIC as usize),
            ("VERSION", page::VERSION as usize),
            ("WORDS", size_of::<Trainer>() / 4),
            ("HEARS", page::HEARS as usize),
            ("SHOWS_STACKS", page::SHOWS_STACKS as usize),
        ]
        .map(|(name, number)| (name.to_owned(), number));
        let expected: BTreeMap<String, usize> = words
            .into_iter()
            .chain(head)
            .chain(phases)
            .chain(others)
            .collect();
        assert_eq!(numbers, expected);
    }
}
