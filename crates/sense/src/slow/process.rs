//! Reads what takes a lock of a process or asks the file systems that it uses: shared memory, open files, mapped files
//! and files being written. Nothing here allocates.

use crate::file::{ProcFile, ShortPath};
use crate::parse::{self, MemoryMapping, Pss};
use crate::{Pid, Reading, Reason};
use core::ffi::CStr;
use core::mem::MaybeUninit;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, readlinkat_raw, statat};
use rustix::io::{self, Errno, read, retry_on_intr};

/// Reads the share of a process in memory that it maps together with others (since Linux 5.9).
pub fn read_pss(pid: Pid) -> Reading<Pss> {
    let bytes = &mut [0; 4096];
    match ProcessFolder::open(pid).and_then(|folder| folder.open_file(c"smaps_rollup")?.read(bytes))
    {
        // Kernel threads and zombies have no memory.
        Ok([]) => Reading::Unavailable(Reason::Absent),
        Ok(bytes) => parse::smaps_rollup(bytes),
        Err(errno) => errno.into(),
    }
}

/// Counts the open files of a process.
pub fn count_open_files(pid: Pid) -> Reading<u64> {
    let mut count = 0;
    match ProcessFolder::open(pid).and_then(|folder| folder.for_each_descriptor(|_| count += 1)) {
        Ok(()) => Reading::Value(count),
        Err(errno) => errno.into(),
    }
}

/// The files that a process has mapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MappedFiles {
    /// The index of the needle that the first matching path contains.
    pub needle: Option<usize>,
    /// Bytes of private writable mappings of files, such as the data of libraries. The kernel counts all of it
    /// against a limit on data, but it takes memory only where it is written to.
    pub file_data: u64,
}

impl MappedFiles {
    fn add_line(&mut self, line: &[u8], needles: &[&[u8]]) {
        let Some(MemoryMapping {
            bytes,
            is_data,
            path,
        }) = parse::memory_mapping(line)
        else {
            return;
        };
        if is_data && is_file(path) {
            self.file_data = self.file_data.saturating_add(bytes);
        }
        self.needle = self
            .needle
            .or_else(|| needles.iter().position(|needle| contains(path, needle)));
    }
}

/// Not `[heap]`, and not a special file that only stands for anonymous memory.
fn is_file(path: &[u8]) -> bool {
    let no_file: [&[u8]; 2] = [b"/dev/zero", b"/anon_hugepage"];
    path.starts_with(b"/") && !no_file.iter().any(|name| path.starts_with(name))
}

fn contains(path: &[u8], needle: &[u8]) -> bool {
    !needle.is_empty() && path.windows(needle.len()).any(|part| part == needle)
}

/// Searches the mapped files of a process for parts of paths, such as the name of a library, and adds up the data of
/// files.
pub fn read_mapped_files(pid: Pid, needles: &[&[u8]]) -> Reading<MappedFiles> {
    let mut mapped = MappedFiles::default();
    let read = ProcessFolder::open(pid).and_then(|folder| {
        let maps = folder.open_entry(c"maps", OFlags::RDONLY)?;
        for_each_line(
            |rest| retry_on_intr(|| read(&maps, &mut *rest)),
            |line| mapped.add_line(line, needles),
        )
    });
    match read {
        Ok(()) => Reading::Value(mapped),
        Err(errno) => errno.into(),
    }
}

/// Longer than a line with the longest path.
const MAX_LINE_BYTES: usize = 8192;

/// Reads to the end of a file, in pieces that may end anywhere, and calls `f` with each line. Of a line that is too
/// long only the end is passed.
pub(super) fn for_each_line(
    mut next: impl FnMut(&mut [u8]) -> io::Result<usize>,
    mut f: impl FnMut(&[u8]),
) -> io::Result<()> {
    let mut window = [0; MAX_LINE_BYTES];
    let mut kept = 0;
    loop {
        if kept == window.len() {
            kept = 0;
        }
        let more = next(window.get_mut(kept..).unwrap_or_default())?;
        if more == 0 {
            return Ok(());
        }
        let filled = (kept + more).min(window.len());
        let seen = window.get(..filled).unwrap_or_default();
        let whole = seen.iter().rposition(|&byte| byte == b'\n');
        let rest = whole.map_or(0, |end| end + 1);
        for line in parse::lines(seen) {
            f(line);
        }
        kept = filled - rest;
        window.copy_within(rest..filled, 0);
    }
}

/// Calls `f` with the path and size of each regular file that a process has open for writing. Deleted files and those
/// of /dev, /proc and /sys are skipped, because no checkpoint is saved there.
pub fn visit_files_being_written(pid: Pid, mut f: impl FnMut(&[u8], u64)) -> Reading<()> {
    let listed = ProcessFolder::open(pid).and_then(|folder| {
        folder.for_each_descriptor(|number| {
            // A file that was closed meanwhile is no longer written.
            let _ = folder.report_if_written(number, &mut f);
        })
    });
    match listed {
        Ok(()) => Reading::Value(()),
        Err(errno) => errno.into(),
    }
}

/// Reads how many bytes a process has sent to disks.
pub fn read_written_bytes(pid: Pid) -> Reading<u64> {
    let bytes = &mut [0; 512];
    match ProcessFolder::open(pid).and_then(|folder| folder.open_file(c"io")?.read(bytes)) {
        Ok(bytes) => parse::process_io(bytes).write_bytes,
        Err(errno) => errno.into(),
    }
}

/// The open folder of a process in /proc.
pub(super) struct ProcessFolder {
    folder: OwnedFd,
}

impl ProcessFolder {
    pub(super) fn open(pid: Pid) -> io::Result<ProcessFolder> {
        let path = ShortPath::new(format_args!("/proc/{}", pid.0))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, path.as_c_str()?, flags, Mode::empty()) {
            Ok(folder) => Ok(ProcessFolder { folder }),
            // The folder exists as long as the process.
            Err(Errno::NOENT) => Err(Errno::SRCH),
            Err(errno) => Err(errno),
        }
    }

    fn open_entry(&self, name: &CStr, flags: OFlags) -> io::Result<OwnedFd> {
        openat(&self.folder, name, flags | OFlags::CLOEXEC, Mode::empty())
            .map_err(|errno| self.gone_or(errno))
    }

    pub(super) fn open_file(&self, name: &CStr) -> io::Result<ProcFile> {
        ProcFile::open_at(&self.folder, name).map_err(|errno| self.gone_or(errno))
    }

    /// ESRCH instead of ENOENT where the process has ended: its folder is then empty, while a kernel without one
    /// file has the others.
    fn gone_or(&self, errno: Errno) -> Errno {
        match statat(&self.folder, c"stat", AtFlags::empty()) {
            Err(_) if errno == Errno::NOENT => Errno::SRCH,
            _ => errno,
        }
    }

    fn for_each_descriptor(&self, mut f: impl FnMut(u32)) -> io::Result<()> {
        let folder = self.open_entry(c"fd", OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(folder.as_fd(), &mut space);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            // "." and ".." are not numbers.
            if let Ok(name) = entry.file_name().to_str()
                && let Ok(number) = name.parse()
            {
                f(number);
            }
        }
        Ok(())
    }

    fn report_if_written(&self, number: u32, f: &mut impl FnMut(&[u8], u64)) -> io::Result<()> {
        let info = ShortPath::new(format_args!("fdinfo/{number}"))?;
        let bytes = &mut [0; 512];
        if !parse::open_for_writing(self.open_file(info.as_c_str()?)?.read(bytes)?) {
            return Ok(());
        }
        let link = ShortPath::new(format_args!("fd/{number}"))?;
        let mut target = [MaybeUninit::uninit(); 4096];
        let (path, _) = readlinkat_raw(&self.folder, link.as_c_str()?, &mut target[..])?;
        // The names of pipes and sockets are not paths.
        let skipped = [&b"/dev/"[..], b"/proc/", b"/sys/"];
        if !path.starts_with(b"/") || skipped.iter().any(|place| path.starts_with(place)) {
            return Ok(());
        }
        let stat = statat(&self.folder, link.as_c_str()?, AtFlags::empty())?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink > 0 {
            f(path, u64::try_from(stat.st_size).unwrap_or(0));
        }
        Ok(())
    }
}
