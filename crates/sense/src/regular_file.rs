//! Reading files in folders that others may have written. Only regular files are opened: a pipe or a device in place of
//! a file would block the reader or never end.

use rustix::fs::{FileType, Mode, OFlags, fstat, makedev};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// Opens a regular file for reading, and fails on anything else.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_without_waiting(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(refused("it is not a regular file")),
    }
}

/// Opens a file that the user names. Where a shell passes a pipe, as `<(…)` and /dev/stdin do, it is read; a pipe of
/// another name may have no writer.
pub fn open_named(path: &Path) -> io::Result<File> {
    let passed = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];
    let is_passed = passed.iter().any(|place| path.starts_with(place));
    let file = match is_passed {
        true => File::open(path)?,
        false => open_without_waiting(path)?,
    };
    if is_endless(&file)? {
        return Err(refused("it is a device"));
    }
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    let is_regular = kind == FileType::RegularFile;
    match is_regular || is_passed || kind == FileType::CharacterDevice {
        true => Ok(file),
        false => Err(refused("it is not a regular file")),
    }
}

/// Whether it is a device that may never end: any but a terminal and /dev/null.
pub fn is_endless(file: impl AsFd) -> io::Result<bool> {
    let about = fstat(&file)?;
    let is_device = FileType::from_raw_mode(about.st_mode) == FileType::CharacterDevice;
    Ok(is_device && !rustix::termios::isatty(&file) && about.st_rdev != makedev(1, 3))
}

fn open_without_waiting(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe waits for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// No file that antifreeze writes whole, and no settings file, is longer.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a whole file of at most 16 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_from(open(path)?)
}

/// Reads the whole of an open file of at most 16 MiB.
pub fn read_from(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), b"12345").unwrap();
        assert_eq!(read(&path("file")).unwrap(), b"12345");
        File::create(path("endless"))
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
        let too_large = read(&path("endless")).unwrap_err();
        assert_eq!(too_large.kind(), io::ErrorKind::FileTooLarge);
        mknodat(
            CWD,
            path("pipe"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        for path in [&path("pipe"), Path::new("/dev/zero"), folder.path()] {
            let refused = read(path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        let missing = read(&path("missing")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_named_pipe_or_an_endless_device_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            let refused = open_named(path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
        assert!(open_named(Path::new("/dev/null")).is_ok());
        let (passed, writer) = std::io::pipe().unwrap();
        drop(writer);
        let name = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&passed));
        let read = read_from(open_named(Path::new(&name)).unwrap()).unwrap();
        assert_eq!(read, b"");
        let zero = format!("/dev/fd/{}", {
            use std::os::fd::IntoRawFd;
            File::open("/dev/zero").unwrap().into_raw_fd()
        });
        assert!(open_named(Path::new(&zero)).is_err());
    }
}
