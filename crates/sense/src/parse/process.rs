//! Parses the files of one process: status, statm, stat, io, smaps_rollup, fdinfo and maps. All sizes are in bytes.

use super::text::{
    ABSENT, lines, padded_kibibytes, padded_number, parse_decimal, parse_hexadecimal,
    split_at_byte, words,
};
use crate::{Pid, ProcessName, Reading, Reason};

/// /proc/PID/status. Kernel threads and zombies have no memory lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStatus {
    /// The kernel's short name of it.
    pub name: ProcessName,
    /// The kernel's letter for its state; 0 where the line is missing.
    pub state: u8,
    /// The number of its parent.
    pub parent: Pid,
    /// VmData: private memory that it has mapped.
    pub vm_data: Reading<u64>,
    /// RssAnon: anonymous memory that it has touched.
    pub rss_anon: Reading<u64>,
    /// RssShmem: shared memory that it has touched.
    pub rss_shmem: Reading<u64>,
    /// RssFile: pages of mapped files.
    pub rss_file: Reading<u64>,
    /// VmSwap: anonymous memory that is in swap.
    pub swap: Reading<u64>,
    /// How many threads it has.
    pub threads: Reading<u64>,
}

/// Parses /proc/PID/status.
pub fn process_status(bytes: &[u8]) -> ProcessStatus {
    let mut status = ProcessStatus {
        name: ProcessName::default(),
        state: 0,
        parent: Pid::default(),
        vm_data: ABSENT,
        rss_anon: ABSENT,
        rss_shmem: ABSENT,
        rss_file: ABSENT,
        swap: ABSENT,
        threads: ABSENT,
    };
    for line in lines(bytes) {
        let Some((key, rest)) = split_at_byte(line, b':') else {
            continue;
        };
        match key {
            b"Name" => {
                status.name = unescape_process_name(rest.strip_prefix(b"\t").unwrap_or(rest))
            }
            b"State" => status.state = rest.trim_ascii().first().copied().unwrap_or(0),
            b"PPid" => status.parent = parse_pid(rest.trim_ascii()).unwrap_or_default(),
            b"VmData" => status.vm_data = padded_kibibytes(rest),
            b"RssAnon" => status.rss_anon = padded_kibibytes(rest),
            b"RssShmem" => status.rss_shmem = padded_kibibytes(rest),
            b"RssFile" => status.rss_file = padded_kibibytes(rest),
            b"VmSwap" => status.swap = padded_kibibytes(rest),
            b"Threads" => {
                status.threads = padded_number(rest);
                // The rest of the file, about half of it, is not needed.
                break;
            }
            _ => {}
        }
    }
    status
}

/// /proc/PID/statm: the seven sizes of a process in pages. They only serve to find out whether anything has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessSizes([u64; 7]);

/// Parses /proc/PID/statm; `None` where it is not complete, because then it cannot be compared.
pub fn process_sizes(bytes: &[u8]) -> Option<ProcessSizes> {
    let line = bytes.strip_suffix(b"\n")?;
    let mut sizes = [0; 7];
    let mut fields = words(line);
    for size in &mut sizes {
        *size = parse_decimal(fields.next()?)?;
    }
    fields.next().is_none().then_some(ProcessSizes(sizes))
}

/// Unescapes a name, in which the kernel writes newlines as `\n` and backslashes as `\\`.
fn unescape_process_name(escaped: &[u8]) -> ProcessName {
    let mut raw = [0u8; 15];
    let mut len = 0;
    let mut rest = escaped.iter().copied().peekable();
    for slot in &mut raw {
        let Some(byte) = rest.next() else { break };
        *slot = match (byte, rest.peek()) {
            (b'\\', Some(b'n')) => {
                rest.next();
                b'\n'
            }
            (b'\\', Some(b'\\')) => {
                rest.next();
                b'\\'
            }
            _ => byte,
        };
        len += 1;
    }
    ProcessName::new(raw.get(..len).unwrap_or_default())
}

fn parse_pid(digits: &[u8]) -> Option<Pid> {
    parse_decimal(digits)?.try_into().ok().map(Pid)
}

/// /proc/PID/stat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// The kernel's letter for its state.
    pub state: u8,
    /// The number of its parent.
    pub parent: Pid,
    /// Page faults that waited for a disk.
    pub major_faults: Reading<u64>,
    /// User and system time, in clock ticks.
    pub cpu: Reading<u64>,
    /// How many threads it has.
    pub threads: Reading<u64>,
    /// Start time in clock ticks since boot.
    pub started: u64,
}

/// Parses /proc/PID/stat; `None` when it is cut off before the start time, without which a number identifies no process.
pub fn process_stat(bytes: &[u8]) -> Option<ProcessStat> {
    // The name may contain anything, also ") R 1". What follows it contains no parenthesis.
    let name_end = bytes.iter().rposition(|&b| b == b')')?;
    let after = bytes.get(name_end + 1..)?;
    // A field counts when something ends it: the last one may have been cut.
    let last_blank = after.iter().rposition(u8::is_ascii_whitespace)?;
    let mut fields = words(after.get(..last_blank)?);

    let state = match fields.next()? {
        &[letter] => letter,
        _ => return None,
    };
    let parent = parse_pid(fields.next()?)?;
    // Skipped: pgrp, session, tty_nr, tpgid, flags, minflt, cminflt.
    let major_faults = parse_decimal(fields.nth(7)?)?;
    // Skipped: cmajflt.
    let user = parse_decimal(fields.nth(1)?)?;
    let system = parse_decimal(fields.next()?)?;
    // Skipped: cutime, cstime, priority, nice.
    let threads = parse_decimal(fields.nth(4)?)?;
    // Skipped: itrealvalue.
    let started = parse_decimal(fields.nth(1)?)?;
    Some(ProcessStat {
        state,
        parent,
        major_faults: Reading::Value(major_faults),
        cpu: match user.checked_add(system) {
            Some(cpu) => Reading::Value(cpu),
            None => Reading::Unavailable(Reason::Malformed),
        },
        threads: Reading::Value(threads),
        started,
    })
}

/// /proc/PID/io, in bytes since the process began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes that read calls returned, from the page cache or a device.
    pub rchar: Reading<u64>,
    /// Bytes that write calls took.
    pub wchar: Reading<u64>,
    /// Bytes that were read from a device.
    pub read_bytes: Reading<u64>,
    /// Bytes that were sent to a device.
    pub write_bytes: Reading<u64>,
}

/// Parses /proc/PID/io.
pub fn process_io(bytes: &[u8]) -> ProcessIo {
    let mut io = ProcessIo {
        rchar: ABSENT,
        wchar: ABSENT,
        read_bytes: ABSENT,
        write_bytes: ABSENT,
    };
    for line in lines(bytes) {
        match split_at_byte(line, b':') {
            Some((b"rchar", rest)) => io.rchar = padded_number(rest),
            Some((b"wchar", rest)) => io.wchar = padded_number(rest),
            Some((b"read_bytes", rest)) => io.read_bytes = padded_number(rest),
            Some((b"write_bytes", rest)) => io.write_bytes = padded_number(rest),
            _ => {}
        }
    }
    io
}

/// /proc/PID/smaps_rollup: memory in which each page counts divided by the number of processes that map it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pss {
    /// Anonymous memory.
    pub anon: u64,
    /// Shared memory.
    pub shmem: u64,
    /// Memory in swap.
    pub swap: u64,
}

/// Parses /proc/PID/smaps_rollup. Without one of the three values there is none, because a part of the sum would be
/// taken for the whole.
pub fn smaps_rollup(bytes: &[u8]) -> Reading<Pss> {
    let (mut anon, mut shmem, mut swap) = (ABSENT, ABSENT, ABSENT);
    for line in lines(bytes) {
        match split_at_byte(line, b':') {
            Some((b"Pss_Anon", rest)) => anon = padded_kibibytes(rest),
            Some((b"Pss_Shmem", rest)) => shmem = padded_kibibytes(rest),
            Some((b"SwapPss", rest)) => swap = padded_kibibytes(rest),
            _ => {}
        }
    }
    match (anon, shmem, swap) {
        (Reading::Value(anon), Reading::Value(shmem), Reading::Value(swap)) => {
            Reading::Value(Pss { anon, shmem, swap })
        }
        (Reading::Unavailable(reason), _, _)
        | (_, Reading::Unavailable(reason), _)
        | (_, _, Reading::Unavailable(reason)) => Reading::Unavailable(reason),
    }
}

/// Whether /proc/PID/fdinfo/N says that the file is open for writing.
pub fn open_for_writing(bytes: &[u8]) -> bool {
    const ACCESS: u64 = 0o3;
    const WRITE_ONLY: u64 = 0o1;
    const READ_WRITE: u64 = 0o2;
    lines(bytes)
        .filter_map(|line| split_at_byte(line, b':'))
        .find(|(key, _)| *key == b"flags")
        .and_then(|(_, rest)| core::str::from_utf8(rest.trim_ascii()).ok())
        .and_then(|digits| u64::from_str_radix(digits, 8).ok())
        .is_some_and(|flags| matches!(flags & ACCESS, WRITE_ONLY | READ_WRITE))
}

/// One line of /proc/PID/maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryMapping<'a> {
    /// The size of the mapping.
    pub bytes: u64,
    /// It is private and writable, so the kernel counts it as data of the process.
    pub is_data: bool,
    /// The path as the kernel writes it; empty where no file is mapped.
    pub path: &'a [u8],
}

/// Parses one line of /proc/PID/maps.
pub fn memory_mapping(line: &[u8]) -> Option<MemoryMapping<'_>> {
    let (range, rest) = split_at_byte(line, b' ')?;
    let (from, to) = split_at_byte(range, b'-')?;
    let (rights, rest) = split_at_byte(rest, b' ')?;
    // Offset, device and inode; blanks follow up to the path, which may have some of its own.
    let rest = (0..2).try_fold(rest, |rest, _| Some(split_at_byte(rest, b' ')?.1))?;
    let path = split_at_byte(rest, b' ').map_or(&b""[..], |(_, path)| path);
    Some(MemoryMapping {
        bytes: parse_hexadecimal(to)?.checked_sub(parse_hexadecimal(from)?)?,
        is_data: matches!(rights, [_, b'w', _, b'p']),
        path: path.trim_ascii_start(),
    })
}
