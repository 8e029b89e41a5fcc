//! Files of the kernel, opened once and read many times without heap.

use crate::Reading;
use core::ffi::CStr;
use core::fmt::{self, Write};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{self, Errno, pread, retry_on_intr};
use rustix::path::Arg;

/// A piece that the kernel returns is shorter than this only at the end of the file, because no line of these files is
/// longer than the rest of a page.
const FULL_PIECE_BYTES: usize = 3 * 1024;

/// An open file of /proc, /sys or a cgroup. Each read returns its content at that time.
#[derive(Debug)]
pub struct ProcFile {
    fd: OwnedFd,
}

impl ProcFile {
    /// Opens the file for reading.
    pub fn open(path: impl Arg) -> io::Result<ProcFile> {
        ProcFile::open_at(CWD, path)
    }

    /// Opens the file below an open folder.
    pub fn open_at(folder: impl AsFd, path: impl Arg) -> io::Result<ProcFile> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
        let fd = openat(folder, path, flags, Mode::empty())?;
        Ok(ProcFile { fd })
    }

    /// Reads the first piece that the kernel returns: about a page, in whole lines.
    pub fn read_first_piece<'b>(&self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let filled = retry_on_intr(|| pread(&self.fd, &mut *buffer, 0))?;
        Ok(buffer.get(..filled).unwrap_or_default())
    }

    /// Reads the file from its beginning, as much of it as fits into the buffer.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let mut filled = 0;
        // The kernel returns such files in pieces: as many whole lines as fit into a page.
        // A piece that is much shorter than a page is the last, so no other read is needed.
        while let Some(rest) = buffer.get_mut(filled..)
            && !rest.is_empty()
        {
            let more = retry_on_intr(|| pread(&self.fd, &mut *rest, filled as u64))?;
            filled += more;
            if more < FULL_PIECE_BYTES {
                break;
            }
        }
        Ok(buffer.get(..filled).unwrap_or_default())
    }
}

/// A file that this kernel or machine may not have. It is opened once; where that fails, each read returns the error.
#[derive(Debug)]
pub struct OptionalFile(io::Result<ProcFile>);

impl OptionalFile {
    /// Opens the file, or keeps the error.
    pub fn open(path: impl Arg) -> OptionalFile {
        OptionalFile(ProcFile::open(path))
    }

    /// Reads the file as [`ProcFile::read`] does.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        match &self.0 {
            Ok(file) => file.read(buffer),
            Err(errno) => Err(*errno),
        }
    }

    /// Reads the first piece as [`ProcFile::read_first_piece`] does.
    pub fn read_first_piece<'b>(&self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        match &self.0 {
            Ok(file) => file.read_first_piece(buffer),
            Err(errno) => Err(*errno),
        }
    }

    /// Reads the file and parses it; an error becomes the reason why there is no value.
    pub fn read_with<T>(
        &self,
        buffer: &mut [u8],
        parse: impl FnOnce(&[u8]) -> Reading<T>,
    ) -> Reading<T> {
        match self.read(buffer) {
            Ok(bytes) => parse(bytes),
            Err(errno) => errno.into(),
        }
    }
}

/// A short path that is formatted without heap.
pub(crate) struct ShortPath {
    bytes: [u8; ShortPath::CAPACITY_BYTES],
    len: usize,
}

impl ShortPath {
    const CAPACITY_BYTES: usize = 96;

    pub fn new(parts: fmt::Arguments<'_>) -> io::Result<ShortPath> {
        let mut path = ShortPath {
            bytes: [0; ShortPath::CAPACITY_BYTES],
            len: 0,
        };
        path.write_fmt(parts).map_err(|_| Errno::NAMETOOLONG)?;
        Ok(path)
    }

    pub fn as_c_str(&self) -> io::Result<&CStr> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::NAMETOOLONG)
    }
}

impl Write for ShortPath {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        // The last byte stays 0, because it ends the path.
        if end >= ShortPath::CAPACITY_BYTES {
            return Err(fmt::Error);
        }
        let place = self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?;
        place.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_read_sees_the_file_as_it_is_now() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, "one").unwrap();
        let file = ProcFile::open(path.path()).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(file.read(&mut buffer).unwrap(), b"one");
        std::fs::write(&path, "other").unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), b"other");
    }

    #[test]
    fn a_full_buffer_ends_the_read() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&path, "longer than that").unwrap();
        let file = ProcFile::open(path.path()).unwrap();
        assert_eq!(file.read(&mut [0; 6]).unwrap(), b"longer");
        assert_eq!(file.read(&mut []).unwrap(), b"");
    }

    #[test]
    fn a_missing_file_says_so_at_every_read() {
        let source = OptionalFile::open("/proc/no-such-file");
        assert_eq!(source.read(&mut [0; 8]), Err(Errno::NOENT));
        assert_eq!(source.read(&mut [0; 8]), Err(Errno::NOENT));
    }

    #[test]
    fn a_path_too_long_to_hold_is_refused_and_not_cut() {
        let fits = "x".repeat(ShortPath::CAPACITY_BYTES - 1);
        let path = ShortPath::new(format_args!("{fits}")).unwrap();
        assert_eq!(path.as_c_str().unwrap().to_bytes(), fits.as_bytes());
        assert!(ShortPath::new(format_args!("{fits}x")).is_err());
    }
}
