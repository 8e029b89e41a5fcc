//! The table of processes that are followed. It never grows, and each entry can prove which process it is.
//!
//! The proof is the open status file: the kernel ties it to the process and not to the number, so once the process is
//! gone, every read fails with ESRCH. Where no descriptor is left, number and start time together are the proof.

use super::TrackedProcess;
use super::procfs::{FILE_BYTES, Proc, read_content, read_io, read_stat, thread_group_id};
use crate::{Pid, Process, Reading, Reason, parse};
use core::mem::MaybeUninit;
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// How many light processes may turn out to be parents before the search for one to remove ends. In a chain of parents
/// it would otherwise compare all with all.
const MAX_LIGHTEST_TRIED: usize = 8;

/// In trees of more processes than this, only the status file of each is kept open.
const MAX_PROCESSES_WITH_MORE_FILES: usize = 64;

/// What identifies a process: a number may be reused, but not together with its start time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub pid: Pid,
    pub started: u64,
}

impl Identity {
    /// Reads the start time of the process that has this number now.
    pub fn read(proc: &Proc, pid: Pid) -> rustix::io::Result<Identity> {
        let started = proc.stat(pid)?.started;
        Ok(Identity { pid, started })
    }

    /// Fails with ESRCH when the number no longer is that of this process.
    pub fn check_alive(self, proc: &Proc) -> rustix::io::Result<()> {
        if Identity::read(proc, self.pid)? == self {
            Ok(())
        } else {
            Err(Errno::SRCH)
        }
    }
}

/// Files of a process that are kept open in small trees besides its status, because opening takes longer than reading.
struct ExtraFiles {
    statm: OwnedFd,
    stat: OwnedFd,
    /// The children of the first thread, where the kernel lists them.
    children: Option<OwnedFd>,
    /// `None` where we lack the permission, as for another user's process.
    io: Option<OwnedFd>,
}

impl ExtraFiles {
    fn open(proc: &Proc, pid: Pid) -> rustix::io::Result<ExtraFiles> {
        Ok(ExtraFiles {
            statm: proc.open_file(pid, b"/statm")?,
            stat: proc.open_file(pid, b"/stat")?,
            children: proc.open_children(pid, pid).ok(),
            io: proc.open_file(pid, b"/io").ok(),
        })
    }
}

/// One process in the table.
pub struct Slot<S> {
    pub tracked: TrackedProcess<S>,
    status: Option<OwnedFd>,
    more: Option<ExtraFiles>,
    /// The sizes in `statm`, as read before the status.
    pub sizes: Option<parse::ProcessSizes>,
    /// When the status was last read.
    pub status_at: Option<u64>,
    /// The process is a root of the tree.
    pub root: bool,
    /// The process was gone when it was last read.
    pub gone: bool,
    /// When the sizes or the status were last read.
    pub read_at: Option<u64>,
    /// When CPU time and I/O were last read.
    pub counters_read_at: Option<u64>,
    /// Bytes that it read from files, from a disk or from the page cache.
    pub read_asked: Reading<u64>,
    /// It has read many bytes since its counters were read before.
    pub reads: bool,
}

impl<S: Copy + Default> Slot<S> {
    /// Opens the process that has this number now.
    pub fn open(proc: &Proc, pid: Pid, now: u64) -> rustix::io::Result<Slot<S>> {
        let file = proc.open_file(pid, b"/status")?;
        let started = proc.stat(pid)?.started;
        // Read last, because this fails if the process that was opened is gone: so the start
        // time, which was read by number, was its own.
        let mut buffer = [MaybeUninit::uninit(); FILE_BYTES];
        let bytes = read_content(&file, &mut buffer)?;
        if thread_group_id(bytes) != Some(pid) {
            return Err(Errno::SRCH);
        }
        let mut process = Process {
            pid,
            started,
            wall: Reading::Unavailable(Reason::NotYet),
            ..Process::default()
        };
        copy_status(&mut process, &parse::process_status(bytes));
        Ok(Slot {
            tracked: TrackedProcess {
                process,
                first_seen: now,
                grown: 0,
                fresh: false,
                state: S::default(),
            },
            status: Some(file),
            more: None,
            sizes: None,
            status_at: None,
            root: false,
            gone: false,
            read_at: None,
            counters_read_at: None,
            read_asked: Reading::default(),
            reads: true,
        })
    }

    pub fn identity(&self) -> Identity {
        let Process { pid, started, .. } = self.tracked.process;
        Identity { pid, started }
    }

    /// Reads the status of this process, never of another that reused its number.
    pub fn status(&self, proc: &Proc) -> rustix::io::Result<parse::ProcessStatus> {
        let mut buffer = [MaybeUninit::uninit(); FILE_BYTES];
        match &self.status {
            Some(file) => Ok(parse::process_status(read_content(file, &mut buffer)?)),
            None => {
                let file = proc.open_file(self.tracked.process.pid, b"/status")?;
                let status = parse::process_status(read_content(&file, &mut buffer)?);
                self.identity().check_alive(proc)?;
                Ok(status)
            }
        }
    }

    /// Opens the extra files of this process, never of another that reused its number. Returns false where no
    /// descriptor is left for them.
    pub fn open_extra_files(&mut self, proc: &Proc) -> bool {
        if self.more.is_none() && self.status.is_some() {
            let files = ExtraFiles::open(proc, self.tracked.process.pid);
            // The process is still alive after they were opened by number, so they are its own.
            self.more = files.ok().filter(|_| self.check_alive(proc).is_ok());
        }
        self.more.is_some()
    }

    /// Reads the sizes in `statm`; `None` where that file is not kept open.
    pub fn read_sizes(&self) -> Option<parse::ProcessSizes> {
        let mut buffer = [MaybeUninit::uninit(); 256];
        parse::process_sizes(read_content(&self.more.as_ref()?.statm, &mut buffer).ok()?)
    }

    /// The open list of the children of its first thread, where it is kept.
    pub fn children(&self) -> Option<&OwnedFd> {
        self.more.as_ref()?.children.as_ref()
    }

    /// Reads its `stat` and, when wanted, its `io`.
    pub fn read_counters(
        &self,
        proc: &Proc,
        wants_io: bool,
    ) -> rustix::io::Result<(
        parse::ProcessStat,
        Option<rustix::io::Result<parse::ProcessIo>>,
    )> {
        let Process { pid, started, .. } = self.tracked.process;
        let more = self.more.as_ref();
        let io = wants_io.then(|| match more.and_then(|more| more.io.as_ref()) {
            Some(file) => read_io(file),
            None => proc.io(pid),
        });
        // Read last, so that its start time proves both files.
        let stat = match more {
            Some(more) => read_stat(&more.stat),
            None => proc.stat(pid),
        }?;
        if stat.started == started {
            Ok((stat, io))
        } else {
            Err(Errno::SRCH)
        }
    }

    /// Fails with ESRCH when the process is gone. A zombie is still there.
    pub fn check_alive(&self, proc: &Proc) -> rustix::io::Result<()> {
        match &self.status {
            Some(file) => read_content(file, &mut [MaybeUninit::uninit(); 1]).map(|_| ()),
            None => self.identity().check_alive(proc),
        }
    }

    /// Whether the process is known to be gone; another error proves nothing.
    pub fn is_gone(&self, proc: &Proc) -> bool {
        matches!(self.check_alive(proc), Err(Errno::SRCH | Errno::NOENT))
    }

    /// The bytes that it holds and grew by: the heaviest processes stay in a full table.
    pub fn weight(&self) -> u64 {
        let growth = u64::try_from(self.tracked.grown).unwrap_or(0);
        self.tracked.process.resident().saturating_add(growth)
    }
}

/// Copies the values of a status file into the process.
pub fn copy_status(process: &mut Process, status: &parse::ProcessStatus) {
    process.parent = status.parent;
    process.name = status.name;
    process.state = status.state;
    process.vm_data = status.vm_data;
    process.rss_anon = status.rss_anon;
    process.rss_shmem = status.rss_shmem;
    process.rss_file = status.rss_file;
    process.swap = status.swap;
    process.threads = status.threads;
}

impl Process {
    /// The bytes that it holds in memory and swap, shared or not. A zombie holds nothing.
    pub fn resident(&self) -> u64 {
        [self.rss_anon, self.swap, self.rss_shmem]
            .into_iter()
            .filter_map(Reading::value)
            .fold(0, u64::saturating_add)
    }

    /// Whether it has ended and only waits to be reaped. A process whose first thread has ended while others continue
    /// has the same state, but more than one thread.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X') && self.threads.value().unwrap_or(0) <= 1
    }
}

/// The processes that are followed.
pub struct Table<S> {
    slots: Vec<Slot<S>>,
    /// The numbers of `slots`, in the same order, so that a search stays within a few cache lines.
    pids: Vec<Pid>,
    capacity: usize,
    /// How many status files may be kept open.
    descriptors: usize,
    /// Whether [`ExtraFiles`] may be kept open.
    keeps_extra_files: bool,
}

impl<S: Copy + Default> Table<S> {
    pub fn new(capacity: usize, descriptors: usize) -> Table<S> {
        Table {
            slots: Vec::with_capacity(capacity),
            pids: Vec::with_capacity(capacity),
            capacity,
            descriptors,
            keeps_extra_files: true,
        }
    }

    pub fn slots(&self) -> &[Slot<S>] {
        &self.slots
    }

    pub fn slots_mut(&mut self) -> &mut [Slot<S>] {
        &mut self.slots
    }

    /// One slot, and whether it may keep extra files open.
    pub fn slot_mut(&mut self, index: usize) -> Option<(&mut Slot<S>, bool)> {
        let keeps_extra_files =
            self.keeps_extra_files && self.slots.len() <= MAX_PROCESSES_WITH_MORE_FILES;
        Some((self.slots.get_mut(index)?, keeps_extra_files))
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_full(&self) -> bool {
        self.slots.len() >= self.capacity
    }

    pub fn contains(&self, pid: Pid) -> bool {
        self.pids.contains(&pid)
    }

    pub fn position(&self, pid: Pid) -> Option<usize> {
        self.pids.iter().position(|&known| known == pid)
    }

    pub fn get(&self, pid: Pid) -> Option<&Slot<S>> {
        self.slots.get(self.position(pid)?)
    }

    /// Adds a process; returns false when the table is full.
    pub fn insert(&mut self, mut slot: Slot<S>) -> bool {
        if self.is_full() {
            return false;
        }
        if self.open_status_files() >= self.descriptors {
            slot.status = None;
        }
        self.pids.push(slot.tracked.process.pid);
        self.slots.push(slot);
        true
    }

    pub fn remove(&mut self, index: usize) -> Option<Slot<S>> {
        if index >= self.slots.len() {
            return None;
        }
        self.pids.swap_remove(index);
        Some(self.slots.swap_remove(index))
    }

    /// The process that is removed first: a light one that is not the parent of another in the
    /// table, because children are found through their parent.
    pub fn lightest(&self) -> Option<usize> {
        let mut above = None;
        for _ in 0..MAX_LIGHTEST_TRIED {
            let (weight, index, pid) = self
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| !slot.root)
                .map(|(index, slot)| (slot.weight(), index, slot.tracked.process.pid))
                .filter(|&candidate| Some(candidate) > above)
                .min()?;
            if !self.has_children(pid) {
                return Some(index);
            }
            above = Some((weight, index, pid));
        }
        None
    }

    fn has_children(&self, pid: Pid) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.tracked.process.parent == pid)
    }

    /// Closes files for good, so that other files can be opened: the extra files or, where there are none, this many
    /// status files.
    pub fn close_files(&mut self, count: usize) {
        let mut closed_some = false;
        for slot in &mut self.slots {
            closed_some |= slot.more.take().is_some();
        }
        self.keeps_extra_files = false;
        if closed_some {
            return;
        }
        self.descriptors = self.open_status_files().saturating_sub(count);
        let open = self.slots.iter_mut().filter(|slot| slot.status.is_some());
        for slot in open.skip(self.descriptors) {
            slot.status = None;
        }
    }

    pub fn open_status_files(&self) -> usize {
        let open = self.slots.iter().filter(|slot| slot.status.is_some());
        open.count()
    }
}
