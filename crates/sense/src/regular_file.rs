//! Reading files in folders that others may have written. Only regular files are opened: a pipe or a device in place of
//! a file would block the reader or never end.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading, and fails on anything else.
pub fn open(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe waits for a writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// No file that antifreeze writes whole, and no settings file, is longer.
const MAX_BYTES: u64 = 16 << 20;

/// Reads a whole file of at most 16 MiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
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
}
