//! The files of processes under /proc, opened by number, read into fixed buffers.
//!
//! A number says little: by the time its file is opened it may name another process. What
//! is read here by number counts only once the table has confirmed whose it was.

use crate::{Pid, parse};
use core::cell::Cell;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom, openat, seek, statat};
use rustix::io::{Errno, pread};
use std::path::Path;

/// Longer than the status of a user who is in some hundreds of groups.
pub const FILE_BYTES: usize = 8192;
/// One read of a list of children; some hundreds of numbers.
const LIST_BYTES: usize = 4096;
/// A read of fewer bytes reached the end of the list: the kernel stops earlier only where the next number does not fit.
const SURE_END_BYTES: usize = LIST_BYTES / 2;

pub struct Proc {
    root: OwnedFd,
    /// The kernel lists the children of each thread.
    pub lists_children: bool,
    starved: Cell<bool>,
}

/// Whether to go on with a listing.
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

    /// True once after an open failed because too many files are open.
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

    /// The list of the children that one thread started and did not outlive, for [`read_children`].
    pub fn open_children(&self, pid: Pid, thread: Pid) -> rustix::io::Result<OwnedFd> {
        let path = ProcPath::new(pid, b"/task/")
            .number(thread)
            .text(b"/children");
        self.open_at(path.as_c_str(), OFlags::RDONLY)
    }

    /// The threads of a process.
    pub fn list_threads(
        &self,
        pid: Pid,
        found: &mut impl FnMut(Pid) -> Listing,
    ) -> rustix::io::Result<()> {
        let path = ProcPath::new(pid, b"/task");
        let folder = self.open_at(path.as_c_str(), OFlags::RDONLY | OFlags::DIRECTORY)?;
        for_each_numeric_entry(&folder, 0, found).map(|_| ())
    }

    /// Every process, from where an earlier listing stopped; gives where this one did, or
    /// 0 at the end.
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
            // That a process has gone can be seen without a descriptor.
            statat(&self.root, path, AtFlags::empty())?;
        }
        opened
    }
}

/// What the file says now. ESRCH once the process it was opened for is gone, whoever has
/// the number today.
pub fn read_content(file: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> rustix::io::Result<&[u8]> {
    let (bytes, _) = pread(file, buffer, 0)?;
    // A regular file in the place of a kernel's can be empty; the kernel's never is.
    if bytes.is_empty() {
        return Err(Errno::SRCH);
    }
    Ok(bytes)
}

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

/// Tells a process from a thread: both have a folder, but only a process is its own group.
pub fn thread_group_id(status: &[u8]) -> Option<Pid> {
    // The kernel escapes newlines in the name, so only a true line starts like this.
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

/// Process numbers end at 2²², so a longer one is nobody's and may be cut anywhere.
fn append_digit(number: u32, digit: u8) -> u32 {
    number
        .saturating_mul(10)
        .saturating_add(u32::from(digit.wrapping_sub(b'0')))
}

/// A path below /proc. The longest is two numbers and a few names.
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
