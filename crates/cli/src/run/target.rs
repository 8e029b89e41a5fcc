//! The process that `antifreeze attach` was given, held so that its number cannot come to mean another one.
//!
//! All facts are read through one open folder of /proc, which stays that of the first process even when its number
//! is given away, and its end is awaited through a pidfd.

use super::attach_policy::{Process, Request};
use antifreeze_ipc::guard_args::GuardArgs;
use antifreeze_sense::parse;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, open, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// `PF_KTHREAD` of the kernel.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// More parents than this are a loop in what was read.
const MAX_DEPTH: usize = 1000;
/// What the kernel calls a guard: the first 15 bytes of its name.
const GUARD_NAME: &[u8] = b"antifreeze-guar";
/// What `stat` shows in place of an address to those who may not see the process's secrets.
const HIDDEN_ADDRESS: u64 = 1;

pub struct Target {
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub started: u64,
    folder: OwnedFd,
    /// Readable once it has ended; none on kernels before 5.3.
    ends: Option<OwnedFd>,
    /// The kernel shows us its exit status while it waits to be collected; to others it shows 0.
    shows_status: bool,
}

impl Target {
    pub fn open(pid: u32) -> Result<Target, Errno> {
        let folder = open_folder(pid)?;
        let ends = rustix::process::Pid::from_raw(pid as i32)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        // The folder answers only while its process lives, so after this both are of the same one.
        let stat = Stat::read(folder.as_fd()).ok_or(Errno::SRCH)?;
        Ok(Target {
            pid,
            started: stat.started,
            folder,
            ends,
            shows_status: stat.first_address != HIDDEN_ADDRESS,
        })
    }

    /// What the decision needs to know. None when the process has ended meanwhile.
    pub fn request(&self) -> Option<Request> {
        let target = process(self.pid, self.folder.as_fd())?;
        let processes = all_processes();
        let descendants: Vec<Process> = descendants(self.pid, &processes)
            .into_iter()
            .filter_map(|pid| process(pid, open_folder(pid).ok()?.as_fd()))
            // Ourselves, where the process asks for itself.
            .filter(|process| !process.is_antifreeze)
            .collect();
        Some(Request {
            guarded_by: self.guarded_by(&processes),
            target,
            descendants,
            ancestors: ancestors(std::process::id(), &processes),
            user: rustix::process::geteuid().as_raw(),
            ..Request::default()
        })
    }

    /// The run whose guard holds the process, one above it or one below it.
    fn guarded_by(&self, processes: &HashMap<u32, u32>) -> Option<String> {
        let mut tree = descendants(self.pid, processes);
        tree.extend(ancestors(self.pid, processes));
        tree.push(self.pid);
        processes.keys().find_map(|&pid| {
            let folder = open_folder(pid).ok()?;
            let guard = Stat::read(folder.as_fd()).filter(|stat| stat.name == GUARD_NAME)?;
            let argument = words(folder.as_fd()).into_iter().nth(1)?;
            let guard_args = GuardArgs::parse(std::str::from_utf8(&argument).ok()?)?;
            // The guard is the parent of a command that it started, and no relative of a process that it attached to.
            let is_related = match guard_args.attach {
                0 => tree.contains(&pid),
                attached => {
                    let started = || Stat::read(open_folder(attached).ok()?.as_fd());
                    tree.contains(&attached)
                        && started().is_some_and(|stat| stat.started == guard_args.attach_started)
                }
            };
            (is_related && guard.state != b'Z').then_some(guard_args.run_id)
        })
    }

    pub fn command(&self) -> Vec<OsString> {
        words(self.folder.as_fd())
            .into_iter()
            .map(OsString::from_vec)
            .collect()
    }

    /// The folder that it works in.
    pub fn working_folder(&self) -> Option<PathBuf> {
        link(self.folder.as_fd(), "cwd").map(PathBuf::from)
    }

    /// What to wait on for its end.
    pub fn ends(&self) -> Option<BorrowedFd<'_>> {
        self.ends.as_ref().map(AsFd::as_fd)
    }

    /// Its wait status, once it has ended. None where only its parent was given it.
    pub fn status(&self) -> Option<u32> {
        // While it waits to be collected, and on newer kernels after that.
        let waiting = Stat::read(self.folder.as_fd())
            .filter(|stat| self.shows_status && stat.state == b'Z')
            .map(|stat| stat.exit_status);
        waiting.or_else(|| kept_status(self.ends.as_ref()?.as_fd()))
    }
}

/// The wait status that a pidfd keeps of a process that was collected (Linux 6.15).
fn kept_status(pidfd: BorrowedFd<'_>) -> Option<u32> {
    /// `struct pidfd_info` in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        mask: u64,
        cgroup: u64,
        ids: [u32; 11],
        exit_code: i32,
    }
    const EXIT: u64 = 1 << 3;
    // _IOWR(0xFF, 11, struct pidfd_info)
    const GET_INFO: libc::c_ulong =
        (3 << 30) | ((size_of::<Info>() as libc::c_ulong) << 16) | (0xFF << 8) | 11;
    let mut info = Info {
        mask: EXIT,
        ..Info::default()
    };
    // SAFETY: the kernel writes at most the size that the request names, into a value that lives here.
    let done = unsafe { libc::ioctl(pidfd.as_raw_fd(), GET_INFO as _, &mut info) };
    (done == 0 && info.mask & EXIT != 0).then_some(info.exit_code as u32)
}

/// The fields of /proc/PID/stat that are asked for here.
struct Stat {
    state: u8,
    session: u32,
    terminal: i64,
    flags: u64,
    started: u64,
    first_address: u64,
    exit_status: u32,
    name: Vec<u8>,
}

impl Stat {
    fn read(folder: BorrowedFd<'_>) -> Option<Stat> {
        Stat::parse(&read_at(folder, "stat")?)
    }

    fn parse(bytes: &[u8]) -> Option<Stat> {
        // The name may hold anything; nothing after it holds a parenthesis.
        let open = bytes.iter().position(|byte| *byte == b'(')?;
        let close = bytes.iter().rposition(|byte| *byte == b')')?;
        let name = bytes.get(open + 1..close)?.to_vec();
        let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // The first of them is the third in proc(5).
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |place: usize| field(place)?.parse::<u64>().ok();
        Some(Stat {
            state: *field(3)?.as_bytes().first()?,
            session: field(6)?.parse().ok()?,
            terminal: field(7)?.parse().ok()?,
            flags: number(9)?,
            started: number(22)?,
            first_address: number(26)?,
            exit_status: field(52)?.parse().ok()?,
            name,
        })
    }
}

fn open_folder(pid: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match open(format!("/proc/{pid}"), flags, Mode::empty()) {
        Err(Errno::NOENT) => Err(Errno::SRCH),
        opened => opened,
    }
}

fn read_at(folder: BorrowedFd<'_>, name: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    std::fs::File::from(file).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn link(folder: BorrowedFd<'_>, name: &str) -> Option<OsString> {
    let target = readlinkat(folder, name, Vec::new()).ok()?;
    Some(OsString::from_vec(target.into_bytes()))
}

fn words(folder: BorrowedFd<'_>) -> Vec<Vec<u8>> {
    let line = read_at(folder, "cmdline").unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

fn process(pid: u32, folder: BorrowedFd<'_>) -> Option<Process> {
    let stat = Stat::read(folder)?;
    let program = link(folder, "exe").and_then(|path| file_name(&path));
    let own = std::fs::read_link("/proc/self/exe").ok();
    let is_ours = own.is_some() && link(folder, "exe").map(PathBuf::from) == own;
    let is_part = [GUARD_NAME, b"af-keeper", b"af-probe"].contains(&&stat.name[..]);
    let short_name = String::from_utf8_lossy(&stat.name).into_owned();
    Some(Process {
        pid,
        program: program.unwrap_or_else(|| short_name.clone()),
        short_name,
        words: words(folder),
        users: users(&read_at(folder, "status")?)?,
        leads_session: stat.session == pid,
        has_terminal: stat.terminal != 0,
        is_kernel_thread: stat.flags & KERNEL_THREAD != 0,
        has_ended: matches!(stat.state, b'Z' | b'X'),
        is_antifreeze: is_ours || is_part,
    })
}

/// Of a program that was replaced on the disk too.
fn file_name(path: &OsStr) -> Option<String> {
    let path = path.as_bytes();
    let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
    let name = Path::new(OsStr::from_bytes(path)).file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// The real, effective and saved user of a process.
fn users(status: &[u8]) -> Option<[u32; 3]> {
    let text = String::from_utf8_lossy(status);
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let mut users = line.split_ascii_whitespace().map(str::parse);
    let mut next = || users.next()?.ok();
    Some([next()?, next()?, next()?])
}

/// Every process that is seen, with its parent.
fn all_processes() -> HashMap<u32, u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return HashMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parse::process_stat(&stat)?.parent.0))
        })
        .collect()
}

fn ancestors(pid: u32, parents: &HashMap<u32, u32>) -> Vec<u32> {
    let mut found = Vec::new();
    let mut next = parents.get(&pid);
    while let Some(&parent) = next.filter(|parent| **parent != 0 && found.len() < MAX_DEPTH) {
        found.push(parent);
        next = parents.get(&parent);
    }
    found
}

fn descendants(pid: u32, parents: &HashMap<u32, u32>) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (child, parent) in parents {
        children.entry(*parent).or_default().push(*child);
    }
    let mut found = Vec::new();
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        // Each is taken once, so that a loop in what was read ends.
        let mut below = children.remove(&parent).unwrap_or_default();
        below.sort_unstable();
        found.extend(&below);
        open.extend(below);
    }
    found.retain(|found| *found != pid);
    found
}

/// The name of a user, from wherever this system keeps its accounts; the number where there is no name.
pub fn user_name(user: u32) -> String {
    // Larger than any account; one that does not fit is shown by its number.
    let mut text = vec![0; 1 << 16];
    // SAFETY: all bytes zero are a valid `passwd`: pointers that are null, and numbers.
    let mut account: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: every pointer is to a value that lives here, and the length is that of the buffer.
    let errno = unsafe {
        libc::getpwuid_r(
            user,
            &mut account,
            text.as_mut_ptr(),
            text.len(),
            &mut found,
        )
    };
    if errno != 0 || found.is_null() || account.pw_name.is_null() {
        return user.to_string();
    }
    // SAFETY: the call has set the name to a terminated string in the buffer, which lives.
    let name = unsafe { std::ffi::CStr::from_ptr(account.pw_name) };
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_real_process_are_read() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let target = Target::open(child.id()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let request = loop {
            let request = target.request().unwrap();
            // Before its exec is done it is still ourselves, or has no arguments yet.
            let is_started =
                request.target.program.contains("sleep") && request.target.words.len() == 2;
            if is_started || std::time::Instant::now() > deadline {
                break request;
            }
        };
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(request.target.words, [b"sleep".to_vec(), b"60".to_vec()]);
        assert_eq!(request.target.users, [user; 3]);
        assert!(!request.target.is_kernel_thread && !request.target.has_ended);
        assert_eq!(request.ancestors.last(), Some(&1));
        assert_eq!(target.status(), None);
        child.kill().unwrap();
        let ends = target.ends().unwrap();
        let mut ready = [rustix::event::PollFd::from_borrowed_fd(
            ends,
            rustix::event::PollFlags::IN,
        )];
        rustix::event::poll(&mut ready, None).unwrap();
        // Not collected yet, so that the kernel still shows it.
        assert_eq!(target.status(), Some(9));
        child.wait().unwrap();
        assert!(target.request().is_none());
        assert!(matches!(target.status(), None | Some(9)));
    }

    #[test]
    fn a_process_that_is_not_there_is_no_target() {
        assert_eq!(Target::open(u32::MAX >> 1).err(), Some(Errno::SRCH));
    }

    #[test]
    fn a_name_that_looks_like_fields_confuses_nothing() {
        let fields = "S 7 8 9 34816 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0 0 77 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0 256";
        let text = format!("12 (a) R 1 (b) {fields}\n");
        let stat = Stat::parse(text.as_bytes()).unwrap();
        assert_eq!(stat.name, b"a) R 1 (b");
        assert_eq!((stat.session, stat.terminal), (9, 34816));
        assert_eq!((stat.started, stat.exit_status), (4242, 256));
    }

    #[test]
    fn descendants_and_ancestors_follow_the_parents() {
        let parents: HashMap<u32, u32> = [(1, 0), (2, 1), (3, 2), (4, 2), (5, 4), (9, 1)].into();
        assert_eq!(ancestors(5, &parents), [4, 2, 1]);
        assert_eq!(descendants(2, &parents), [3, 4, 5]);
        let looped: HashMap<u32, u32> = [(6, 7), (7, 6)].into();
        assert_eq!(descendants(6, &looped), [7]);
    }
}
