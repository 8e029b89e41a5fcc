//! Opens the files of processes below /proc by number, and reads them into fixed buffers.
//!
//! By the time a file is opened, its number may already be that of another process. What is read here counts only after
//! the table has confirmed which process it was read from.

use crate::{Pid, parse};
use core::cell::Cell;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom, openat, seek, statat};
use rustix::io::{Errno, pread};
use std::path::Path;

/// Longer than the status of a process whose user is in hundreds of groups.
pub const FILE_BYTES: usize = 8192;
/// One read of a list of children, which is some hundreds of numbers.
const LIST_BYTES: usize = 4096;
/// A read of fewer bytes reached the end of the list: the kernel stops earlier only where the next number does not fit.
const SURE_END_BYTES: usize = LIST_BYTES / 2;

/// The open folder /proc.
pub struct Proc {
    root: OwnedFd,
    /// Whether the kernel lists the children of each thread.
    pub lists_children: bool,
    starved: Cell<bool>,
}

/// Whether a listing continues.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Continue,
    Stop,
}

impl Proc {
    pub fn open(path: &Path) -> rustix::io::Result<Proc> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path, flags, Mode::empty())?;
        let lists_children = openat(
            &root,
            c"thread-self/children",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .is_ok();
        Ok(Proc {
            root,
            lists_children,
            starved: Cell::new(false),
        })
    }

    /// Returns true once after an open failed because too many files were open.
    pub fn was_starved(&self) -> bool {
        self.starved.take()
    }

    pub fn open_file(&self, pid: Pid, name: &[u8]) -> rustix::io::Result<OwnedFd> {
        self.open_at(ProcPath::new(pid, name).as_c_str(), OFlags::RDONLY)
    }

    pub fn stat(&self, pid: Pid) -> rustix::io::Result<parse::ProcessStat> {
        read_stat(&self.open_file(pid, b"/stat")?)
    }

    pub fn io(&self, pid: Pid) -> rustix::io::Result<parse::ProcessIo> {
        read_io(&self.open_file(pid, b"/io")?)
    }

    /// Opens the list of the living children that one thread started, for [`read_children`].
    pub fn open_children(&self, pid: Pid, thread: Pid) -> rustix::io::Result<OwnedFd> {
        let path = ProcPath::new(pid, b"/task/")
            .number(thread)
            .text(b"/children");
        self.open_at(path.as_c_str(), OFlags::RDONLY)
    }

    /// Calls `found` with each thread of a process.
    pub fn list_threads(
        &self,
        pid: Pid,
        found: &mut impl FnMut(Pid) -> Listing,
    ) -> rustix::io::Result<()> {
        let path = ProcPath::new(pid, b"/task");
        let folder = self.open_at(path.as_c_str(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        for_each_numeric_entry(&folder, 0, found).map(|_| ())
    }

    /// Calls `found` with each process, from the offset at which an earlier listing stopped.
    /// Returns the offset at which this one stopped, or 0 at the end.
    pub fn list_processes(
        &self,
        from: u64,
        found: &mut impl FnMut(Pid) -> Listing,
    ) -> rustix::io::Result<u64> {
        for_each_numeric_entry(&self.root, from, found)
    }

    fn open_at(&self, path: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let opened = openat(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty());
        if matches!(opened, Err(Errno::MFILE | Errno::NFILE)) {
            self.starved.set(true);
            // Whether the process is gone shows without a descriptor.
            statat(&self.root, path, AtFlags::empty())?;
        }
        opened
    }
}

/// Reads the file as it is now. ESRCH once the process that it was opened for is gone, even if
/// the number was reused.
pub fn read_content(file: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> rustix::io::Result<&[u8]> {
    let (bytes, _) = pread(file, buffer, 0)?;
    // A regular file, as in tests, can be empty; a file of the kernel never is.
    if bytes.is_empty() {
        return Err(Errno::SRCH);
    }
    Ok(bytes)
}

/// Calls `found` with each number in a list of children.
pub fn read_children(
    file: &OwnedFd,
    found: &mut impl FnMut(Pid) -> Listing,
) -> rustix::io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); LIST_BYTES];
    // A number may be cut in two at the end of a buffer.
    let mut digits = None;
    let mut offset = 0;
    loop {
        let (bytes, _) = pread(file, &mut buffer, offset)?;
        for &byte in bytes.iter() {
            if byte.is_ascii_digit() {
                digits = Some(append_digit(digits.unwrap_or(0), byte));
            } else if let Some(number) = digits.take()
                && found(Pid(number)) == Listing::Stop
            {
                return Ok(());
            }
        }
        if bytes.len() < SURE_END_BYTES {
            return Ok(());
        }
        offset += bytes.len() as u64;
    }
}

pub fn read_stat(file: &OwnedFd) -> rustix::io::Result<parse::ProcessStat> {
    let mut buffer = [MaybeUninit::uninit(); 1024];
    parse::process_stat(read_content(file, &mut buffer)?).ok_or(Errno::INVAL)
}

pub fn read_io(file: &OwnedFd) -> rustix::io::Result<parse::ProcessIo> {
    let mut buffer = [MaybeUninit::uninit(); 512];
    Ok(parse::process_io(read_content(file, &mut buffer)?))
}

/// The thread group in a status file. A process is its own thread group, and another thread is not.
pub fn thread_group_id(status: &[u8]) -> Option<Pid> {
    // The kernel escapes newlines in the name, so the name cannot fake this line.
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Tgid:"))?;
    parse_pid(line.trim_ascii())
}

fn for_each_numeric_entry(
    folder: &OwnedFd,
    from: u64,
    found: &mut impl FnMut(Pid) -> Listing,
) -> rustix::io::Result<u64> {
    seek(folder, SeekFrom::Start(from))?;
    let mut buffer = [MaybeUninit::uninit(); LIST_BYTES];
    let mut entries = RawDir::new(folder, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        if let Some(pid) = parse_pid(entry.file_name().to_bytes())
            && found(pid) == Listing::Stop
        {
            return Ok(entry.next_entry_cookie());
        }
    }
    Ok(0)
}

fn parse_pid(digits: &[u8]) -> Option<Pid> {
    let wellformed = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    wellformed.then(|| {
        Pid(digits
            .iter()
            .fold(0, |number, &digit| append_digit(number, digit)))
    })
}

/// Process numbers end at 2²², so the result for a longer one is no process.
fn append_digit(number: u32, digit: u8) -> u32 {
    number
        .saturating_mul(10)
        .saturating_add(u32::from(digit.wrapping_sub(b'0')))
}

/// A path below /proc. The longest has two numbers and a few names.
struct ProcPath {
    bytes: [u8; 64],
    len: usize,
}

impl ProcPath {
    fn new(pid: Pid, rest: &[u8]) -> ProcPath {
        let empty = ProcPath {
            bytes: [0; 64],
            len: 0,
        };
        empty.number(pid).text(rest)
    }

    fn text(mut self, text: &[u8]) -> ProcPath {
        // The last byte stays 0.
        let end = self.len + text.len();
        if end < self.bytes.len()
            && let Some(place) = self.bytes.get_mut(self.len..end)
        {
            place.copy_from_slice(text);
            self.len = end;
        }
        self
    }

    fn number(self, pid: Pid) -> ProcPath {
        let mut digits = [b'0'; 10];
        let mut rest = pid.0;
        let mut first = digits.len() - 1;
        for (place, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            first = place;
            if rest == 0 {
                break;
            }
        }
        self.text(digits.get(first..).unwrap_or_default())
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}
